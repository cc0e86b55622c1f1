"""Arguments of the wrong kind are a TypeError that says what is expected."""

from __future__ import annotations

import array
import json
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jittok
from jittok.cli import ABOUT, build_parser
from jittok.vocab.bundled import bundled_source


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: jittok.load(5), "found int, expected the path of a file"),
        (lambda: jittok.from_tokenizers(5), "found int, expected a tokenizers.Tokenizer"),
        (lambda: jittok.from_tiktoken("cl100k_base"), "found 'cl100k_base', expected a tiktoken.Encoding"),
        (lambda: jittok.from_sentencepiece(None), "found NoneType, expected a sentencepiece"),
        (lambda: jittok.corpus.compile_corpus("texts", None, "out"), r"found one name, expected a list: \['texts'\]"),
        (lambda: jittok.corpus.Options(formats="npy"), r"found a text, expected a tuple: \('npy',\)"),
    ],
    ids=["load", "tokenizers", "tiktoken", "sentencepiece", "inputs", "formats"],
)
def test_an_argument_of_the_wrong_kind_says_what_is_expected(call: Callable[[], Any], said: str) -> None:
    pytest.importorskip("filelock")
    with pytest.raises(TypeError, match=said):
        call()


def test_help_names_what_is_bundled() -> None:
    names = ", ".join(jittok.bundled_names())
    assert names in ABOUT
    shown = " ".join(build_parser()._subparsers._group_actions[0].choices["encode"].format_help().split())  # type: ignore[union-attr,index]
    assert names in shown


@pytest.fixture(scope="module")
def tok() -> jittok.Tokenizer:
    return jittok.bundled("gpt-2")


NUMBERS = memoryview(np.array([1, 2], np.int32))
SQUARE = memoryview(np.zeros((2, 2), np.uint8))
MASKED = np.ma.array([1, 99], mask=[0, 1])
ROWS = jittok.TokenArray([1, 2], [0, 2])


@pytest.mark.parametrize("view", [NUMBERS, SQUARE, memoryview(np.array([1.5]))])
def test_numbers_are_no_text(tok: jittok.Tokenizer, view: Any) -> None:
    for call in (tok.encode, tok.count, tok.align, lambda text: tok.encode_batch([text], threads=1)):
        with pytest.raises(TypeError, match="memoryview"):
            call(view)
    with pytest.raises(TypeError, match="memoryview"):
        jittok.Ragged(view, [0, view.nbytes])
    assert tok.encode(memoryview(b"ab")).tolist() == tok.encode("ab").tolist()
    assert tok.encode(memoryview(b"a.b.")[::2]).tolist() == tok.encode("ab").tolist()


@pytest.mark.parametrize("texts", [mmap.mmap(-1, 4), array.array("B", b"ab")], ids=["mmap", "array"])
def test_one_text_of_many_bytes_is_not_many_texts(tok: jittok.Tokenizer, texts: Any) -> None:
    for call in (tok.encode_batch, tok.count_batch, tok.align_batch, lambda texts: list(tok.encode_stream(texts))):
        with pytest.raises(TypeError, match="expected a sequence of texts"):
            call(texts)


@pytest.mark.parametrize("name", ["add_special", "parse_special"])
@pytest.mark.parametrize("value", ["no", b"", np.array([1, 2])])
def test_what_is_neither_true_nor_false_is_refused(tok: jittok.Tokenizer, name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name}: found .*, expected True or False"):
        tok.encode("a", **{name: value})
    assert tok.encode("a", **{name: np.True_}).tolist() == tok.encode("a", **{name: 1}).tolist()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: jittok.TokenArray(MASKED, [0, 2]), "masked"),
        (lambda: jittok.TokenArray([1, 2], np.ma.array([0, 2], mask=[0, 1])), "masked"),
        (lambda: jittok.TokenArray([[1, 2], [3]], [0, 2]), "several lengths"),
        (lambda: jittok.TokenArray.concat([[1, 2]]), "found list, expected TokenArrays"),  # type: ignore[list-item]
        (lambda: ROWS.to_padded(3, pad_id=1.5), "pad_id: found float"),  # type: ignore[arg-type]
        (lambda: ROWS.to_padded(3, pad_id=[1, 2, 3]), "pad_id: found list"),  # type: ignore[arg-type]
        (lambda: ROWS.to_padded(3, pad_id=1 << 64), "pad_id: found 18446744073709551616"),
        (lambda: ROWS.to_padded(3.7, pad_id=0), "length: found float"),  # type: ignore[call-overload]
        (lambda: ROWS.to_padded(1, pad_id=0, truncate=True, closing=0.5), "closing: found float"),
        (lambda: ROWS[0.5], "row: found float"),  # type: ignore[call-overload]
        (lambda: ROWS["0"], "row: found str"),  # type: ignore[call-overload]
        (lambda: jittok.bundled("gpt-2").token_to_id(5), "token: found int"),  # type: ignore[arg-type]
        (lambda: jittok.bundled("gpt-2").decode([[1, 2], [3]]), "decode_batch takes rows"),
    ],
)
def test_an_argument_is_not_bent_until_it_fits(call: Callable[[], Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        call()


@pytest.mark.parametrize("thing", [None, 5, "ab", [[1]]])
def test_what_is_no_arrow_array_is_told(thing: Any) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(TypeError, match="expected an Arrow list of integers"):
        jittok.TokenArray.from_arrow(thing)


def test_a_file_in_a_stepped_view_is_read() -> None:
    raw = bundled_source("gpt-2")
    stepped = np.repeat(np.frombuffer(raw, np.uint8), 2)[::2]
    assert jittok.load(stepped).fingerprint == jittok.bundled("gpt-2").fingerprint


def test_what_is_said_of_ids_of_an_array_is_json(tok: jittok.Tokenizer) -> None:
    assert json.dumps(tok.describe(tok.encode("ab"))) == json.dumps(tok.describe(tok.encode("ab").tolist()))


def test_a_folder_may_be_named_in_bytes(tmp_path: Any) -> None:
    ROWS.save(bytes(tmp_path / "ids"))
    assert jittok.TokenArray.load(bytes(tmp_path / "ids")) == ROWS
