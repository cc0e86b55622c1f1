"""The watcher tells what a build of llama.cpp does otherwise than every release that jittok knows."""

import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [str(ROOT / place) for place in ("upstream", "tests", "tests/data", "tests/fuzz")]


@pytest.fixture
def compare(monkeypatch):
    for folder in FOLDERS:
        monkeypatch.syspath_prepend(folder)
    import compare

    return compare


class Fake:
    """Answers as jittok of one release does, but for what is given."""

    library = __file__

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return None

    def __init__(self, compare, release, wrong=None):
        self.compare, self.release, self.wrong = compare, release, wrong or {}

    def answers(self, file, steps):
        found = self.compare._ours(file.read_bytes(), steps, self.release, None)
        return [self.wrong.get(k, answer) for k, answer in enumerate(found)]

    def accepted(self, _kind, words):
        return set(words) & {"gpt-2", "llama", "plamo3", "of-tomorrow"}


def vocab(compare):
    values = {
        "model": (8, "gpt2"),
        "pre": (8, "gpt-2"),
        "tokens": (9, (8, ["a", "b", "ab", "<|eot|>"])),
        "merges": (9, (8, ["a b"])),
    }
    pairs = {compare.T + key: value for key, value in values.items()}
    return compare.header({"general.architecture": (8, "llama"), **pairs})


@pytest.mark.parametrize("release", ["0.3.36", "b11739"])
def test_a_release_that_is_known_brings_nothing_new(compare, release):
    found = compare.check_answers(Fake(compare, release), "x", vocab(compare), [b"ab", b"<|eot|>", b"\xf4\x90\x80\x80"])
    assert found.new == []
    places = [*compare.RELEASE_NAMES]
    assert [found.differing[name] > 0 for name in places] == [k < places.index(release) for k in range(len(places))]


def test_an_answer_that_no_release_gives_is_new(compare):
    found = compare.check_answers(Fake(compare, "b11739", {0: [1, 0]}), "x", vocab(compare), [b"ab"])
    assert found.differing == Counter({"b11739": 1, "0.3.36": 1})
    (note,) = found.new
    assert "b'ab'" in note
    assert "[1, 0], jittok [2]" in note


def test_names_that_are_new_or_gone_are_told(compare, tmp_path):
    side = Fake(compare, "b11739")
    side.library = tmp_path / "libllama.so"
    side.library.write_bytes(
        b"\x00of-tomorrow\x00tokenizer.ggml.normalizer.nfd\x00tokenizer.ggml.bos_token_id\x00<|new|>\x00llama\x00"
    )
    pre, model = compare.names(side, 0)
    assert "tokenizer.ggml.pre 'of-tomorrow' is known to it" in pre.new
    assert "tokenizer.ggml.pre 'qwen2' is not known to it any more" in pre.new
    assert "tokenizer.ggml.model 'bert' is not known to it any more" in model.new
    (keys,) = compare.header_keys(side, 0)
    assert keys.new == ["the key tokenizer.ggml.normalizer.nfd is in its strings"]
    assert compare.tokens_of(side.library.read_bytes()) == {"<|new|>"}


def test_a_report_says_what_could_not_be_asked(compare, monkeypatch, tmp_path, capsys):
    import watch

    def no_side(_python, library):
        raise RuntimeError(f"{library}: version `GLIBC_9.9' not found")

    build = watch.Build("llama-cpp-tomorrow 1", Path(sys.executable), "libllama.so")
    monkeypatch.setattr(watch, "Side", no_side)
    monkeypatch.setattr(watch, "builds", lambda _options: ([build], ["llama-cpp-python: not done after 2700 s"]))
    report = tmp_path / "report.md"
    assert watch.main(["--report", str(report)]) == 1
    said = report.read_text(encoding="utf-8")
    assert "Cannot be asked here: libllama.so: version `GLIBC_9.9' not found" in said
    assert "- llama-cpp-python: not done after 2700 s" in said
    assert "llama-cpp-tomorrow 1 cannot be asked" in capsys.readouterr().err
    monkeypatch.setattr(watch, "Side", lambda _python, _library: Fake(compare, "b11739"))
    monkeypatch.setattr(compare, "CHECKS", (lambda _side, _texts: [compare.Check("x", 1, Counter(), [])],))
    assert watch.main(["--report", str(report)]) == 0
    monkeypatch.setattr(compare, "CHECKS", (lambda _side, _texts: [compare.Check("x", 1, Counter(), ["y"])],))
    assert watch.main(["--report", str(report)]) == 1


def library():
    pytest.importorskip("llama_cpp", reason="needs a build of llama.cpp")
    for folder in FOLDERS:
        sys.path.insert(0, folder)
    from library import find_library

    return find_library()


@pytest.mark.process
def test_a_build_is_asked_through_its_c_interface(compare, tmp_path):
    from asking import Side, packed

    with Side(Path(sys.executable), library()) as side:
        file = tmp_path / "v.gguf"
        file.write_bytes(vocab(compare))
        ids, facts = side.answers(file, [["encode", packed(b"abba"), False, False], ["facts"]])
        assert ids == [2, 1, 0]
        assert len(facts["attributes"]) == 4
        assert side.accepted("pre", ["gpt-2", "nobody knows"]) == {"gpt-2"}
        file.write_bytes(b"GGUF")
        assert side.answers(file, [["facts"]]) == [{"error": "refused"}]


@pytest.mark.process
@pytest.mark.usefixtures("compare")
def test_a_library_that_does_not_load_says_why(tmp_path):
    from asking import Side

    with pytest.raises(RuntimeError, match=r"nothing.so: cannot open shared object file"):
        Side(Path(sys.executable), str(tmp_path / "nothing.so"))
