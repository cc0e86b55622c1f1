"""Names of files that other programs keep: where they lead, what is listed, and what can be no name."""

import hashlib
import json
import sys
from pathlib import Path

import pytest

import jittok
from jittok.cli import main
from jittok.files.places import is_name, located, places

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODEL = {"model": {"type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]"}}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with a file of each program."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "OLLAMA_MODELS", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # nothing is fetched
    gguf = b"GGUF of a test"
    for repository, files in {
        "org--one": {"tokenizer.json": json.dumps(MODEL).encode()},
        "org--models": {"a-Q4.gguf": gguf, "b-Q8.gguf": gguf},
        "org--single": {"only.gguf": gguf},
        "org--empty": {"README.md": b""},
    }.items():
        folder = tmp_path / ".cache" / "huggingface" / "hub" / f"models--{repository}"
        (folder / "refs").mkdir(parents=True)
        (folder / "refs" / "main").write_text(COMMIT)
        (folder / "snapshots" / COMMIT).mkdir(parents=True)
        for name, content in files.items():
            (folder / "snapshots" / COMMIT / name).write_bytes(content)
    digest, models = hashlib.sha256(gguf).hexdigest(), tmp_path / ".ollama" / "models"
    layers = [
        {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:" + "0" * 64},
        {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"},
    ]
    for name in ("registry.ollama.ai/library/tiny/latest", "registry.ollama.ai/me/own/7b"):
        (models / "manifests" / name).parent.mkdir(parents=True)
        (models / "manifests" / name).write_text(json.dumps({"layers": layers}))
    (models / "blobs").mkdir()
    (models / "blobs" / f"sha256-{digest}").write_bytes(gguf)
    studio = tmp_path / ".lmstudio" / "models" / "org" / "name"
    studio.mkdir(parents=True)
    (studio / "x.gguf").write_bytes(gguf)
    (tmp_path / ".cache" / "llama.cpp").mkdir()
    (tmp_path / ".cache" / "llama.cpp" / "y.gguf").write_bytes(gguf)
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "hf:org/single", "hf:org/models/b-Q8.gguf", f"hf:org/single@{COMMIT}", "hf:org/single@main", "ollama:tiny",
        "ollama:tiny:latest", "ollama:me/own:7b", "ollama:registry.ollama.ai/me/own:7b", "lmstudio:org/name",
        "lmstudio:org/name/x.gguf",
    ],
)  # fmt: skip
@pytest.mark.usefixtures("home")
def test_names_lead_to_files(name):
    assert Path(located(name)).read_bytes()[:4] == b"GGUF"


@pytest.mark.usefixtures("home")
def test_a_folder_of_a_repository_is_read():
    assert jittok.load("hf:org/one", cache=False).encode("a").tolist() == [0]


@pytest.mark.parametrize(
    "name",
    [
        "hf:../x", "hf:org/..", "hf:org/one/../../x", "hf:/etc/passwd", "hf:org/one@../x", "hf:org//one",
        "hf:", "hf:.", "hf:org/a..b",

        "hf:org/one@..", "hf:org\\one", "ollama:../x",
        "ollama:tiny:../x", "ollama:", "ollama:a/b/c/d/e", "ollama:tiny:a/../../b",
        "lmstudio:x", "lmstudio:../x", "lmstudio:org/../x", "lmstudio:org/name/../../x", "hf:~/x", "hf:org/one\n",
    ],
)  # fmt: skip
@pytest.mark.usefixtures("home")
def test_what_can_be_no_name_is_refused(name):
    with pytest.raises(ValueError, match=r"^source: found .*expected (hf|ollama|lmstudio):"):
        located(name)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("hf:org/none", "such repository"), ("hf:org/one/no.json", "file no.json"),
        ("hf:org/empty", "no tokenizer file"),
        ("hf:org/models", "a-Q4.gguf, b-Q8.gguf"), ("ollama:none", "manifest registry.ollama.ai/library/none/latest"),
        ("lmstudio:org/none", "such model"), ("hf:org/one@other", "such repository"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_with_the_place(home, name, told):
    with pytest.raises(FileNotFoundError, match=r"hf:|ollama:|lmstudio:") as error:
        jittok.load(name)
    assert told in str(error.value)
    assert str(home) in str(error.value)


@pytest.mark.parametrize(
    "manifest",
    ["", "[]", "{}", '{"layers": [{}]}',
     '{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "../x"}]}'],
)  # fmt: skip
def test_a_manifest_that_names_no_model_is_refused(home, manifest):
    path = home / ".ollama" / "models" / "manifests" / "registry.ollama.ai" / "library" / "tiny" / "latest"
    path.write_text(manifest)
    with pytest.raises(FileNotFoundError, match="model that its manifest names"):
        located("ollama:tiny")
    assert "ollama:tiny:latest" not in {place.name for place in places()}


def test_a_ref_that_leads_elsewhere_is_none(home):
    folder = home / ".cache" / "huggingface" / "hub" / "models--org--one"
    (folder / "refs" / "main").write_text("../../../../x")
    with pytest.raises(FileNotFoundError, match="such repository"):
        located("hf:org/one")


def test_all_of_them_are_listed_and_each_can_be_loaded(home):
    found = {place.name: place.program for place in places()}
    assert found == {
        "hf:org/one": "Hugging Face", "hf:org/models/a-Q4.gguf": "Hugging Face",
        "hf:org/models/b-Q8.gguf": "Hugging Face",
        "hf:org/single/only.gguf": "Hugging Face", "ollama:me/own:7b": "Ollama", "ollama:tiny:latest": "Ollama",
        "lmstudio:org/name/x.gguf": "LM Studio", str(home / ".cache" / "llama.cpp" / "y.gguf"): "llama.cpp",
    }  # fmt: skip
    for place in places():
        assert located(place.name) == str(place.path) if is_name(place.name) else Path(place.name).is_file()


@pytest.mark.usefixtures("home")
def test_folders_that_variables_name_are_searched(monkeypatch, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    monkeypatch.setenv("HF_HUB_CACHE", str(other))
    monkeypatch.setenv("OLLAMA_MODELS", str(other))
    with pytest.raises(FileNotFoundError, match="such repository") as error:
        located("hf:org/one")
    assert str(other) in str(error.value)
    with pytest.raises(FileNotFoundError, match="manifest"):
        located("ollama:tiny")


def test_a_file_of_that_name_is_read_first(home, monkeypatch):
    monkeypatch.chdir(home)
    Path("ollama:mine").write_bytes(json.dumps(MODEL).encode())
    assert not is_name("ollama:mine")
    assert jittok.load("ollama:mine", cache=False).vocab_size == 2


@pytest.mark.usefixtures("home")
def test_the_command_lists_them(capsysbinary):
    assert main(["vocabs"]) == 0
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert [line.split()[0] for line in lines[:4]] == list(jittok.bundled_names())
    assert any(line.startswith("ollama:tiny:latest ") for line in lines)
    assert main(["vocabs", "--json"]) == 0
    rows = json.loads(capsysbinary.readouterr().out)
    assert [row["program"] for row in rows if row["name"] == "hf:org/one"] == ["Hugging Face"]
