"""Every block of README.md and docs/ runs as it is printed, over small stand-ins for a reader's data.

Languages: `python` (with `>>>` what it shows is compared), `sh` (each line must end well). A block of `sh` marked
"# network" installs something: that its extras, and targets of make, exist is looked at here. `text` is no code.
"""

from __future__ import annotations

import doctest
import gzip
import json
import lzma
import os
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import jittok

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
NETWORK = "# network"


class Block(NamedTuple):
    """A fenced block."""

    file: Path
    line: int
    language: str
    code: str


def blocks(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    assert text.count("```") == 2 * len(FENCE.findall(text)), "a fence that is not closed, or inside another block"
    return [Block(path, text.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in FENCE.finditer(text)]


ALL = [block for path in FILES for block in blocks(path)]


def names(chosen: list[Block]) -> list[str]:
    return [f"{block.file.name}:{block.line}" for block in chosen]


def chosen(language: str) -> list[Block]:
    return [block for block in ALL if block.language == language]


def test_every_block_says_its_language() -> None:
    assert {block.language for block in ALL} <= {"python", "sh", "text"}
    assert len(chosen("python")) >= 4
    assert len(chosen("sh")) >= 4


def test_what_needs_a_network_is_said_and_exists() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert "pip install 'jittok" not in text, "on the package index that name is another project's"
        for extras in re.findall(r"pip install '\.\[([\w,]+)\]'", text):
            for extra in extras.split(","):
                assert re.search(rf"^{extra} = \[", project, re.M), extra
        for block in blocks(path):
            if block.language == "sh" and re.search(r"^(pip|make) ", block.code, re.M):
                assert NETWORK in block.code, block
                for target in re.findall(r"^make (\w+)", block.code, re.M):
                    assert re.search(rf"^{target}:", makefile, re.M), target


def test_no_name_of_the_package_index_is_told_anywhere() -> None:
    kept = [ROOT / "jittok", ROOT / "docs", ROOT / "notebooks", ROOT / "examples", ROOT / "bench"]
    for path in [path for folder in kept for path in folder.rglob("*") if path.suffix in (".py", ".md", ".ipynb")]:
        assert "pip install 'jittok" not in path.read_text(encoding="utf-8"), path
        assert "pip install jittok" not in path.read_text(encoding="utf-8"), path


def test_an_image_without_the_compiler_has_all_other_dependencies() -> None:
    if sys.version_info < (3, 11):
        pytest.skip("tomllib is of Python 3.11")
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {re.split(r"\W", name)[0] for name in project["dependencies"]} - {"numba"}
    (told,) = re.findall(r"^RUN pip install ([\w ]+) &&", (ROOT / "docs" / "install.md").read_text("utf-8"), re.M)
    assert set(told.split()) == needed


def test_the_readme_names_what_there_is() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("tok.align(", "tok.align_batch(", "docs/defaults.md", "docs/corpus.md"):
        assert name in readme
    for link in re.findall(r"\]\(([^)#:]+)\)", readme):
        assert (ROOT / link).exists(), link


def many_words() -> str:
    """Words drawn from few letters, each line twice: 64,000 merges can be learned of them, in seconds."""
    draw = random.Random(1)
    words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(3, 12))) for _ in range(40_000)]
    return "".join(" ".join(words[at : at + 10]) + ".\n" for at in range(0, len(words), 10)) * 2


MANY_WORDS = many_words()


def stand_ins(folder: Path) -> None:
    """data/ with some documents of each kind, folders to train on, model.gguf, and commands named jittok and python."""
    import pyarrow as pa
    import pyarrow.parquet

    data = folder / "data"
    data.mkdir()
    texts = [f"Document {n}: the tokens of a text.\n" * (n % 7) for n in range(60)]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (data / "a.txt").write_text(texts[5], encoding="utf-8")
    (data / "b.jsonl").write_text(lines, encoding="utf-8")
    with gzip.open(data / "c.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(lines)
    pyarrow.parquet.write_table(pa.table({"text": texts}), data / "d.parquet")
    packed = (Path(jittok.__file__).parent / "vocab" / "data" / "gpt-2.gguf.xz").read_bytes()
    (folder / "model.gguf").write_bytes(lzma.decompress(packed))
    for name in ("texts", "part1", "part2", "swahili", "docs"):
        (folder / name).mkdir()
        (folder / name / "a.txt").write_text(MANY_WORDS, encoding="utf-8")
    for name in ("other.txt", "README.md"):
        (folder / name).write_text(texts[6], encoding="utf-8")
    (folder / "bin").mkdir()
    for name, command in (("jittok", "-m jittok"), ("python", "")):
        path = folder / "bin" / name
        path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {command} "$@"\n', encoding="utf-8")
        path.chmod(0o755)


@pytest.mark.process
@pytest.mark.parametrize("block", chosen("sh"), ids=names(chosen("sh")))
def test_shell_blocks_run_as_they_are_printed(block: Block, tmp_path: Path) -> None:
    lines = [line for line in block.code.splitlines() if not re.match(r"pip |make |#", line)]
    if not lines:
        assert NETWORK in block.code
        return
    pytest.importorskip("pyarrow")
    pytest.importorskip("filelock")
    if ".model" in block.code:
        pytest.importorskip("sentencepiece")
        pytest.importorskip("google.protobuf")
    stand_ins(tmp_path)
    if "tokenizer.json" in block.code:  # of the same vocabulary as model.gguf
        jittok.convert(tmp_path / "model.gguf", tmp_path / "tokenizer.json")
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    given = {
        "PATH": path,
        "PYTHONPATH": os.pathsep.join([str(Path(jittok.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", "\n".join(lines)],
        cwd=tmp_path, env={**os.environ, **given}, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert done.stderr == ""


class Dataset:
    """As much of a dataset of Hugging Face, or of Ray Data, as the blocks use."""

    def __init__(self, rows: dict[str, list[str]]) -> None:
        self.rows: dict[str, Any] = rows

    def map(self, function: Any, *, batched: bool) -> Dataset:
        assert batched
        return Dataset({**self.rows, **function(self.rows)})

    def map_batches(self, encoder: Any, *, fn_constructor_args: tuple[Any, ...], **how: Any) -> Dataset:
        import pyarrow as pa

        assert how["batch_format"] == "pyarrow"
        return Dataset(encoder(*fn_constructor_args)(pa.table(self.rows)).to_pydict())


WITH_PYTHON = list(dict.fromkeys(block.file for block in chosen("python")))


@pytest.mark.parametrize("path", WITH_PYTHON, ids=[path.name for path in WITH_PYTHON])
def test_python_blocks_run_as_they_are_printed(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of one file in one namespace, in order."""
    code = [block for block in blocks(path) if block.language == "python"]
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    stand_ins(tmp_path)
    monkeypatch.chdir(tmp_path)
    texts = {"text": ["one text", "", "and another"]}
    place: dict[str, Any] = {"dataset": Dataset(texts), "ds": Dataset(texts), "table": pa.table(texts)}
    place["frame"] = pl.DataFrame(texts)
    place["texts"] = MANY_WORDS.splitlines()[:100]  # few, for when kernels run as plain Python
    expected = jittok.bundled("gpt-2").encode_batch(texts["text"]).to_list()
    for block in code:
        if "jittok.ray" in block.code:
            pytest.importorskip("ray")
        if ">>>" in block.code:
            test = doctest.DocTestParser().get_doctest(block.code, place, path.name, str(path), block.line)
            test.globs = place
            runner = doctest.DocTestRunner(verbose=False)
            told: list[str] = []
            runner.run(test, out=told.append, clear_globs=False)
            assert not told, "".join(told)
        else:
            exec(compile("\n" * block.line + block.code, str(path), "exec"), place)
    if "frame" in "".join(block.code for block in code):
        assert place["frame"]["ids"].to_list() == expected
        assert place["table"].column("input_ids").to_pylist() == expected
        assert place["dataset"].rows["input_ids"] == place["ds"].rows["input_ids"] == expected
