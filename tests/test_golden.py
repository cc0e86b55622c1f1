"""jittok gives what llama.cpp gave: the small recorded sets always, the large ones where they lie near."""

import base64
import functools
import hashlib
import importlib.util
import json
import lzma
import os
import sys
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pair_vocab import pair_vocab

import jittok
from jittok.vocab.keys import pre_names
from jittok.vocab.releases import RELEASES, Release, has

DATA = Path(__file__).with_name("data")
SHARED = Path(os.environ.get("JITTOK_SHARED") or Path(__file__).resolve().parents[2] / "shared")
BUNDLED = {"gpt-2": "gpt-2", "bert-bge": "bert", "t5": "t5", "mistral-v1": "mistral"}
"""Recorded set -> name in the package."""
OLDEST = "0.3.36"
"""The release of the sets in golden/ itself; those of later ones lie in folders of their names."""
NAMES = sorted(
    str(path.relative_to(DATA / "golden")).removesuffix(".jsonl.xz")
    for path in (DATA / "golden").rglob("*.jsonl.xz")
    if path.name != "pre.jsonl.xz"
)
RULES = {"ff": (False, False), "tf": (True, False), "ft": (False, True), "tt": (True, True)}
"""(add_special, parse_special)"""
UNDO_CASE = (False, False), (True, False), (False, True)
UNDO_IDS = (False, False), (False, True), (True, False), (True, True)
"""(remove_special, unparse_special)"""
PLAIN_FACTS = ("type", "pre", "vocab_size", "add_bos", "add_eos", "add_sep")

Row = dict[str, Any]


@functools.cache
def recorded(name: str) -> dict[str, list[Row]]:
    kinds: dict[str, list[Row]] = {}
    with lzma.open(DATA / "golden" / f"{name}.jsonl.xz", "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            kinds.setdefault(row["kind"], []).append(row)
    return kinds


def raw(text: str | Row) -> bytes:
    return text.encode() if isinstance(text, str) else base64.b64decode(text["b64"])


def text_of(row: Row) -> str | bytes:
    return row["text"] if "text" in row else raw(row)


def failed(answer: Any) -> bool:
    return answer is None or (isinstance(answer, dict) and "error" in answer)


@functools.cache
def tokenizer(name: str) -> jittok.Tokenizer:
    """Of a set: the vocabulary as the release reads it whose answers are recorded."""
    *folder, vocab = name.split("/")
    release = folder[0] if folder else OLDEST
    if vocab in BUNDLED:
        return jittok.bundled(BUNDLED[vocab], llama_cpp=release)
    packed = (DATA / "vocabs" / f"{vocab}.gguf.xz").read_bytes()
    return jittok.load(lzma.decompress(packed), cache=False, llama_cpp=release)


@pytest.fixture
def tok(name: str) -> jittok.Tokenizer:
    return tokenizer(name)


def test_every_recorded_set_has_cases_and_every_made_up_vocabulary_has_a_set():
    vocabs = {path.name.removesuffix(".gguf.xz") for path in (DATA / "vocabs").glob("*.gguf.xz")}
    assert {name.rpartition("/")[2] for name in NAMES} >= vocabs
    assert {name for name in NAMES if "/" not in name} >= {*BUNDLED}
    assert len(NAMES) >= 33
    for name in NAMES:
        kinds = recorded(name)
        assert min(len(kinds[kind]) for kind in ("case", "decode", "pieces")) > 0, name
        assert sum("detok" in row for row in kinds["case"]) > 10, name


each_set = pytest.mark.parametrize("name", NAMES)


def test_each_release_that_is_known_has_recorded_sets_and_the_default_is_the_newest():
    assert {path.name for path in (DATA / "golden").iterdir() if path.is_dir()} | {OLDEST} == {
        release.name for release in RELEASES
    }
    assert jittok.bundled("bert").llama_cpp == RELEASES[-1].name


@pytest.mark.every_set
@each_set
def test_ids_are_those_of_llama_cpp(name, tok):
    for row in recorded(name)["case"]:
        for key, (add, parse) in RULES.items():
            expected = row.get(key, row["ff"])
            if failed(expected):
                with pytest.raises(jittok.JittokError):
                    tok.encode(text_of(row), add_special=add, parse_special=parse)
            else:
                found = tok.encode(text_of(row), add_special=add, parse_special=parse).tolist()
                assert found == expected, (key, text_of(row))


@each_set
def test_a_batch_has_the_ids_of_llama_cpp_with_any_number_of_threads(name, tok):
    for key, (add, parse) in RULES.items():
        answers = [(text_of(row), row.get(key, row["ff"])) for row in recorded(name)["case"]]
        answers = [(text, ids) for text, ids in answers if not failed(ids)]
        for threads in (1, 3):
            rows = tok.encode_batch([t for t, _ in answers], add_special=add, parse_special=parse, threads=threads)
            assert rows.to_list() == [ids for _, ids in answers]


@each_set
def test_text_comes_back_as_from_llama_cpp(name, tok):
    kinds = recorded(name)
    asked = [
        (row.get(row["detok_of"], row["ff"]), zip(UNDO_CASE, row["detok"], strict=True))
        for row in kinds["case"]
        if row.get("detok")
    ]
    asked += [(row["ids"], zip(UNDO_IDS, row["text"], strict=True)) for row in kinds["decode"]]
    for ids, answers in asked:
        for (remove, unparse), expected in answers:
            if failed(expected):
                with pytest.raises(jittok.JittokError):
                    tok.decode_bytes(ids, remove_special=remove, unparse_special=unparse)
            else:
                assert tok.decode_bytes(ids, remove_special=remove, unparse_special=unparse) == raw(expected)


@each_set
def test_pieces_are_those_of_llama_cpp(name, tok):
    for row in recorded(name)["pieces"]:
        for special, column in ((False, row["plain"]), (True, row["special"])):
            for token, expected in zip(row["ids"], column, strict=True):
                assert tok.token_to_piece(token, special=special) == raw(expected)


@each_set
def test_facts_are_those_of_llama_cpp(name, tok):
    (facts,) = recorded(name)["facts"]
    unsure = set(facts.get("undetermined", ()))
    names = [*PLAIN_FACTS, *(key for key in facts if key.endswith("_id"))]
    assert {key: getattr(tok, key) for key in names if key not in unsure} == {
        key: facts[key] for key in names if key not in unsure
    }
    if not unsure & {"fim_pad_id", "fim_rep_id", "fim_sep_id"}:
        assert sorted(tok.eog_ids) == facts["eog_ids"]
    assert hashlib.sha256(tok.scores.astype("<f4").tobytes()).hexdigest() == facts["scores_sha256"]
    assert hashlib.sha256(tok.attributes.astype("<i4").tobytes()).hexdigest() == facts["attributes_sha256"]
    if "attributes" in facts:  # the same once more, readable when it differs
        assert [[value, len([*run])] for value, run in groupby(tok.attributes.tolist())] == facts["attributes"]


# ---- every pre string


def known_pre_strings(release: Release) -> list[str]:
    return sorted(pre for pre, entry in pre_names().items() if has(release, entry.get("since")))


def set_of(release: Release) -> str:
    return "pre" if release.name == OLDEST else f"{release.name}/pre"


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_every_pre_string_that_a_release_knows_is_recorded(release):
    assert sorted(row["pre"] for row in recorded(set_of(release))["settings"]) == known_pre_strings(release)


@pytest.mark.parametrize(
    ("release", "pre"),
    [
        pytest.param(
            each, pre, id=f"{each.name}-{pre}", marks=[pytest.mark.slow] if k % 3 and each != RELEASES[-1] else []
        )
        for each in RELEASES
        for k, pre in enumerate(known_pre_strings(each))
    ],
)
def test_words_of_a_pre_string_are_those_of_llama_cpp(release, pre):
    tok = jittok.load(pair_vocab(pre), cache=False, llama_cpp=release.name)
    rows = recorded(set_of(release))
    (settings,) = (row for row in rows["settings"] if row["pre"] == pre)
    assert tok.encode("Hello", add_special=True).tolist() == settings["with_special"]
    if settings["ids"] is not None and "decoded" in settings:
        assert tok.decode(settings["ids"]) == settings["decoded"]
    for row in rows["text"]:
        (answer,) = (answer["ids"] for answer in row["answers"] if pre in answer["pre"])
        if answer is None:
            with pytest.raises(jittok.EncodingFailed):
                tok.encode(raw(row["text"]))
        else:
            assert tok.encode(raw(row["text"])).tolist() == answer, row["text"]


# ---- the large sets


@functools.cache
def parity() -> ModuleType:
    """The program that compares jittok with the large sets."""
    sys.path.insert(0, str(SHARED / "check"))
    spec = importlib.util.spec_from_file_location("parity", SHARED / "check" / "parity.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LARGE = sorted(path.name.removesuffix(".jsonl.xz") for path in (SHARED / "golden").glob("*.jsonl.xz"))


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for unpacked vocabularies."""
    return Path(os.environ.get("JITTOK_VOCABS") or tmp_path_factory.mktemp("vocabs"))


@pytest.mark.recorded_elsewhere
@pytest.mark.skipif(not LARGE, reason="no large recorded sets beside the checkout (or in $JITTOK_SHARED)")
@pytest.mark.parametrize(
    "name",
    [name if k % 8 == 0 else pytest.param(name, marks=pytest.mark.slow) for k, name in enumerate(LARGE or ["none"])],
)
def test_a_large_set_agrees(name, unpacked):
    report = parity().check(jittok, name, SHARED / "golden", unpacked, parity().MODES, 3, OLDEST)
    assert report.cases
    assert not report.bad, "\n".join([*report.shown, f"{report.bad} differences: {dict(report.counts)}"])
