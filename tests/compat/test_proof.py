"""A tokenizer file beside its own library: equal where nothing is planted, and each planted difference is found."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded_files import HERE

import jittok
from jittok.cli import main
from jittok.compat.proof import libraries
from jittok.compat.proof.libraries import LibraryMissing, installed, kind_of, release_of
from jittok.compat.proof.prove import bundled_texts, prove, shortened
from jittok.compat.proof.spans import BUDGET, HEAD
from jittok.vocab.releases import NEWEST

SETS = sorted(path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz"))
TEXTS = [("text 1", "Hello, wörld 123"), ("text 2", "a\u0301 fi  \n<s>[CLS]x"), ("text 3", "日本語 테스트")]


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(HERE / f"{name}.tar.xz") as file:
        file.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else file.extractall(folder)
    return folder / name


def need(path: Path) -> None:
    """Skip where the own library of a file is not installed."""
    try:
        installed(kind_of(jittok.load(path).vocab))
    except LibraryMissing as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", SETS)
def test_recorded_files_are_their_librarys(name: str, tmp_path: Path) -> None:
    path = unpacked(name, tmp_path)
    need(path)
    found = prove(path, [*TEXTS, *bundled_texts()[:44]], timed=False)
    assert found.same, str(found)
    assert found.texts == len(TEXTS) + 44
    assert "equal: ids" in str(found)


@pytest.mark.parametrize("name", jittok.bundled_names())
def test_bundled_vocabularies_are_llama_cpps(name: str, tmp_path: Path) -> None:
    from jittok.vocab.bundled import bundled_source

    path = tmp_path / f"{name}.gguf"
    path.write_bytes(bundled_source(name))
    need(path)
    found = prove(path, bundled_texts()[:44], timed=False)
    assert found.same
    assert found.spans is None
    assert "llama.cpp gives no spans of tokens" in str(found)


def byte_level(folder: Path) -> dict[str, Any]:
    """A small byte-level tokenizer.json, written to a folder."""
    content: dict[str, Any] = json.loads(
        (unpacked("syn-bpe-prefix-space", folder) / "tokenizer.json").read_text("utf-8")
    )
    return content


def lowercase(content: dict[str, Any]) -> None:
    content["normalizer"] = {"type": "Lowercase"}


def cut_digits(content: dict[str, Any]) -> None:
    content["pre_tokenizer"] = {
        "type": "Sequence",
        "pretokenizers": [{"type": "Digits", "individual_digits": True}, content["pre_tokenizer"]],
    }


def fewer_merges(content: dict[str, Any]) -> None:
    content["model"]["merges"] = content["model"]["merges"][: len(content["model"]["merges"]) // 2]


def drop_letters(content: dict[str, Any]) -> None:
    content["decoder"] = {
        "type": "Sequence",
        "decoders": [content["decoder"], {"type": "Replace", "pattern": {"String": "answer"}, "content": "answers"}],
    }


def keep_spaces_in_spans(content: dict[str, Any]) -> None:
    content["post_processor"]["trim_offsets"] = not content["post_processor"]["trim_offsets"]


@pytest.mark.parametrize(
    ("plant", "about", "cause"),
    [
        (lowercase, "ids", "normalizer: "),
        (cut_digits, "ids", "split: "),
        (fewer_merges, "ids", "model: "),
        (drop_letters, "text", "decoding of the same ids"),
        (keep_spaces_in_spans, "spans", "spans of the same ids, from token "),
    ],
)
def test_a_planted_difference_is_found_and_named(
    plant: Callable[[dict[str, Any]], None],
    about: str,
    cause: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("tokenizers")
    content = byte_level(tmp_path)
    mine, other = tmp_path / "tokenizer.json", tmp_path / "other.json"
    mine.write_text(json.dumps(content), encoding="utf-8")
    plant(content)
    other.write_text(json.dumps(content), encoding="utf-8")
    read = libraries._tokenizers
    monkeypatch.setitem(libraries._READERS, "tokenizer.json", lambda _path, vocab, version: read(other, vocab, version))
    texts = [("plain", "zz"), ("a.txt:7", "Is THE answer to it 1234567 and that the others interesting?")]
    found = prove(mine, texts, timed=False)
    difference = found.difference
    assert difference is not None
    assert not found.same
    assert (difference.where, difference.about) == ("a.txt:7", about)
    assert difference.cause.startswith(cause), difference.cause
    assert len(difference.text) < 20 or about == "text"
    assert difference.jittok != difference.library
    assert "DIFFERENT: 1 of 2 texts" in str(found)
    assert found.report().startswith("```text\n")


@pytest.mark.parametrize(
    ("name", "reader"), [("spm-test-ja", "sentencepiece"), ("mistral-v1", "sentencepiece"), ("r50k_base", "tiktoken")]
)
def test_spans_are_those_that_the_library_gives(
    name: str, reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unpacked(name, tmp_path)
    need(path)
    found = prove(path, TEXTS, timed=False)
    assert found.same, str(found)
    assert found.spans == (3, sum(len(text) for _, text in TEXTS))
    assert "equal: spans of 3 of them" in str(found)
    read = libraries._READERS[reader]

    def shifted(file: Path, vocab: Any, version: str) -> libraries.Library:
        library = read(file, vocab, version)
        spans = library.spans
        assert spans is not None
        return library._replace(spans=lambda text, *way: [*spans(text, *way)[:-1], "wrong"])

    monkeypatch.setitem(libraries._READERS, reader, shifted)
    planted = prove(path, TEXTS, timed=False)
    assert planted.difference is not None
    assert (planted.difference.about, planted.differing) == ("spans", 3)
    assert "spans of encode(text)" in str(planted)


def test_spans_by_the_reference_have_a_budget(tmp_path: Path) -> None:
    path = unpacked("spm-test-ja", tmp_path)
    need(path)
    found = prove(path, [(f"text {k}", "a few words " * 300) for k in range(40)], timed=False)
    assert found.spans == (BUDGET // HEAD, BUDGET)


def test_the_status_says_whether_anything_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tokenizers")
    path = unpacked("syn-wordpiece-flags", tmp_path) / "tokenizer.json"
    data = tmp_path / "data.jsonl"
    data.write_text('{"text": "one"}\n{"text": "two three"}\n', encoding="utf-8")
    assert main(["try", str(path), str(data), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["same"] is True
    assert (said["texts"], said["bytes"]) == (2, 12)
    assert said["seconds"][0] > 0
    assert main(["try", str(path), str(data), "--bytes", "1", "--no-speed"]) == 0
    shown = capsys.readouterr()
    assert "1 texts, 3 bytes" in shown.out
    assert "stopped after 1 of DATA" in shown.err
    read = libraries._tokenizers

    def shifted(file: Path, vocab: Any, version: str) -> libraries.Library:
        found = read(file, vocab, version)
        return found._replace(encode=lambda text, *way: [token + ("two" in text) for token in found.encode(text, *way)])

    monkeypatch.setitem(libraries._READERS, "tokenizer.json", shifted)
    assert main(["try", str(path), str(data), "--report", "--no-speed"]) == 1
    assert "first in" in (shown := capsys.readouterr().out)
    assert "data.jsonl, line 2" in shown


def test_a_missing_library_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setitem(libraries.PACKAGES, "gguf", ("no_such_module", "llama-cpp-python"))
    assert main(["try", "gpt-2"]) == 2
    assert "pip install llama-cpp-python" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("version", "release", "told"), [("0.3.36", "0.3.36", False), ("0.3.99", NEWEST, True), ("0.2.1", "0.3.36", True)]
)
def test_the_release_nearest_to_an_installed_one(version: str, release: str, told: bool) -> None:
    found, remark = release_of(version)
    assert (found, bool(remark)) == (release, told)


def test_texts_shrink_to_what_still_differs() -> None:
    assert shortened("abc" * 1000 + "X" + "def" * 999, lambda part: "X" in part) == "X"
    assert shortened("ab" * 40 + "XY", lambda part: "X" in part and "Y" in part) == "XY"
    assert len(shortened("a" * 100, lambda part: len(part) > 50, most=3)) > 50  # bounded
