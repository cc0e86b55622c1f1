"""Traces of the pre-tokenizers that write more than the text has, or cut by rules of their own: mmbert, k2-horizon."""

import base64
import functools
import json
import lzma
from pathlib import Path

import pytest
from pair_vocab import pair_vocab
from write_gguf import vocab_file

import jittok

DATA = Path(__file__).parents[1] / "data"
MARK = "\u2581"
CASES = {
    "mmbert": [
        ("a b\n\n c", [("▁a", 0, 1), ("▁b", 1, 3), ("\n\n", 3, 5), ("▁c", 5, 7)]),
        ("a  b", [("▁a", 0, 1), ("▁", 1, 2), ("▁b", 2, 4)]),
        ("\n▁x▁", [("\n", 0, 1), ("▁x", 1, 5), ("▁", 5, 8)]),
        ("x\n", [("▁x", 0, 1), ("\n", 1, 2)]),
    ],
    "k2-horizon": [
        ("it'\u017f 1234", [("it", 0, 2), ("'\u017f", 2, 5), (" ", 5, 6), ("123", 6, 9), ("4", 9, 10)]),
        (".\u0301a ..\u0301a", [(".\u0301a", 0, 4), (" ..\u0301", 4, 9), ("a", 9, 10)]),
        ("x\u200dy\u200c 1\u0301", [("x\u200dy\u200c", 0, 8), (" ", 8, 9), ("1", 9, 10), ("\u0301", 10, 12)]),
        ("a  b\r\n\r\n  c", [("a", 0, 1), (" ", 1, 2), (" b", 2, 4), ("\r\n\r\n", 4, 8), (" ", 8, 9), (" c", 9, 11)]),
    ],
}
"""pre -> texts, each with its words and where they stand."""


@functools.cache
def tokenizer(pre):
    return jittok.load(pair_vocab(pre), cache=False)


def written(pre, word):
    """A word as traces show it."""
    return jittok.common.unicode.tables.byte_encode(word.encode()).decode() if pre == "k2-horizon" else word


@pytest.mark.parametrize(("pre", "text", "words"), [(pre, *case) for pre in CASES for case in CASES[pre]])
def test_words_and_their_places(pre, text, words):
    trace = tokenizer(pre).trace(text)
    rows = [(row["text"], row["offset"], row["offset"] + row["length"]) for row in trace.words]
    assert rows == [(written(pre, word), start, stop) for word, start, stop in words]
    of_words = {row["word"]: row["final"] for row in trace.symbols}
    assert [i for row in trace.words for part in of_words[row["word"]] for i in part["ids"]] == trace.ids.tolist()


@pytest.mark.parametrize("pre", CASES)
def test_traces_have_the_ids_of_llama_cpp(pre):
    packed = (DATA / "golden" / "b11739" / "pre.jsonl.xz").read_bytes()
    rows = [json.loads(row) for row in lzma.decompress(packed).splitlines()]
    asked = 0
    for row in (row for row in rows if row["kind"] == "text"):
        text = row["text"] if isinstance(row["text"], str) else base64.b64decode(row["text"]["b64"])
        (ids,) = [answer["ids"] for answer in row["answers"] if pre in answer["pre"]]
        trace = tokenizer(pre).trace(text)
        assert trace.ids.tolist() == ids
        assert trace.spans.tolist() == tokenizer(pre).align(text).spans.tolist()
        asked += 1
    assert asked > 30


def test_spaces_that_become_marks_are_words_of_model_whitespace():
    merges = ["▁ ▁".encode(), "▁ a".encode()]
    tokens = ["▁", "a", "b", "▁▁", "▁a"]
    file = vocab_file("whitespace", [token.encode() for token in tokens], pre="mmbert", merges=merges)
    trace = jittok.load(file, cache=False).trace(" a  b\tb ")
    assert [row["text"] for row in trace.words] == ["▁a", "▁", "▁b", "▁b", "▁"]
    assert [row["text"] for row in trace.normalized] == ["▁a▁▁b", "▁b▁"]
    assert trace.ids.tolist() == [4, 0, 0, 2, 0, 2, 0]
