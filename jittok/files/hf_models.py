"""The model of a tokenizer.json: its vocabulary as flat arrays, merges as ids."""

from __future__ import annotations

import json
from itertools import repeat
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.files.contents import not_json
from jittok.files.numbers import as_read
from jittok.files.places import Node
from jittok.pipeline.models import NO_TOKEN, Merges, Model, Unigram, WordPiece, Words
from jittok.pipeline.pipeline import fixed, packed

MOST_TOKENS = 1 << 23
ROOM = 1 << 16
"""Ids may leave this many holes, and as many again as there are tokens."""


class Vocabulary(NamedTuple):
    """Token texts by id."""

    ids: dict[str, int]  # of equal texts the last
    token_bytes: NDArray[np.uint8]
    token_offsets: NDArray[np.int64]
    holes: NDArray[np.int32]


def read_vocabulary(node: Node) -> Vocabulary:
    """The vocabulary of a JSON object from texts to ids. Each id stands once; holes are allowed, not far ones."""
    ids = node.of(dict)
    numbers = list(ids.values())
    for text, number in ids.items():
        if type(number) is not int or number < 0:
            raise Node(node.file, f"{node.place}[{text!r}]", None).bad(number, "an id, 0 or more")
    most = max(numbers, default=-1)
    if most >= min(2 * len(numbers) + ROOM, MOST_TOKENS):
        raise node.bad(f"the id {most} for one of {len(numbers)} tokens", f"ids below {2 * len(numbers) + ROOM}")
    if most + 1 == len(numbers) and numbers == list(range(len(numbers))):
        return Vocabulary(ids, *packed([text.encode() for text in ids]), fixed([], np.int32))
    texts: list[str | None] = [None] * (most + 1)
    for text, number in ids.items():
        if texts[number] is not None:
            raise Node(node.file, f"{node.place}[{text!r}]", None).bad(number, f"an id that {texts[number]!r} has not")
        texts[number] = text
    holes = [number for number, text in enumerate(texts) if text is None]
    return Vocabulary(ids, *packed([(text or "").encode() for text in texts]), fixed(holes, np.int32))


def read_model(node: Node, content: bytes) -> tuple[Vocabulary, Model]:
    """The vocabulary and the model of the part "model"; `content`: the whole file, for numbers as it writes them."""
    kind = node.get("type", str, None) or _old_type(node)
    if kind == "BPE":
        vocabulary = read_vocabulary(node.child("vocab"))
        return vocabulary, _bpe(node, vocabulary.ids)
    if kind == "Unigram":
        return _unigram(node, content)
    if kind == "WordPiece":
        vocabulary = read_vocabulary(node.child("vocab"))
        unknown = vocabulary.ids.get(node.get("unk_token", str), NO_TOKEN)
        longest = node.count("max_input_chars_per_word")
        return vocabulary, WordPiece(unknown, node.get("continuing_subword_prefix", str), longest)
    if kind == "WordLevel":
        vocabulary = read_vocabulary(node.child("vocab"))
        return vocabulary, Words(vocabulary.ids.get(node.get("unk_token", str), NO_TOKEN))
    raise node.child("type").unknown(kind, "BPE, Unigram, WordPiece or WordLevel")


def _old_type(node: Node) -> str:
    """What a model without "type" is, by its keys."""
    if node.has("merges"):
        return "BPE"
    if isinstance(node.child("vocab").value, list):
        return "Unigram"
    return "WordPiece" if node.has("max_input_chars_per_word") else "WordLevel"


def _bpe(node: Node, ids: dict[str, int]) -> Merges:
    dropout = node.get("dropout", float, 0.0)
    if dropout:
        raise node.child("dropout").unknown(dropout, "none: ids would be drawn by chance")
    unknown_text = node.get("unk_token", str, None)
    unknown = NO_TOKEN if unknown_text is None else ids.get(unknown_text, NO_TOKEN)
    if unknown_text is not None and unknown == NO_TOKEN:
        raise node.child("unk_token").bad(unknown_text, "a token of the vocabulary")
    prefix = node.get("continuing_subword_prefix", str, "")
    left, right, merged = resolve_merges(node.child("merges"), ids, prefix)
    return Merges(
        left, right, merged, unknown,
        node.get("fuse_unk", bool, False), node.get("byte_fallback", bool, False),
        node.get("ignore_merges", bool, False), prefix, node.get("end_of_word_suffix", str, ""),
    )  # fmt: skip


def resolve_merges(
    node: Node, ids: dict[str, int], prefix: str, first_line: int = 1
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """(left, right, merged) ids of a list of merges, lines or pairs, by rank. Of equal pairs the last one counts.

    A line that begins with "#version" is passed over. Every part and what they make must be in the vocabulary.
    """
    merges = node.of(list)
    place = _Merge(node, first_line)
    if set(map(type, merges)) == {str}:
        lines = merges
        if "#version" in merges[0] or "\n#version" in "\n".join(merges):
            lines = [line for line in merges if not line.startswith("#version")]
        if not set(map(str.count, lines, repeat(" "))) <= {1}:
            raise place.bad_line(merges)
        place = place._replace(skipped=len(merges) - len(lines))  # they stand in front
        parts = " ".join(lines).split(" ") if lines else []
        lefts, rights = parts[0::2], parts[1::2]
    else:
        for k, merge in enumerate(merges):
            if type(merge) is not list or len(merge) != 2 or type(merge[0]) is not str or type(merge[1]) is not str:
                raise place.at(k).bad(merge, "a pair of texts")
        lefts, rights = [merge[0] for merge in merges], [merge[1] for merge in merges]
    whole = list(map(add, lefts, [text[len(prefix) :] for text in rights] if prefix else rights))
    columns = [list(map(ids.get, texts)) for texts in (lefts, rights, whole)]
    for texts, column in zip((lefts, rights, whole), columns, strict=True):
        if None in column:
            k = column.index(None)
            raise place.at(k).bad(f"{lefts[k]} {rights[k]}", f"parts and result in the vocabulary, not {texts[k]!r}")
    left, right, merged = (np.array(column, np.int64) for column in columns)
    last = _last_of_equal(left << 32 | right)
    return fixed(left[last], np.int32), fixed(right[last], np.int32), fixed(merged[last], np.int32)


def _last_of_equal(keys: NDArray[np.int64]) -> Any:
    """Places of the last of each set of equal keys, rising."""
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    ends = np.append(sorted_keys[1:] != sorted_keys[:-1], True)[: keys.size]
    return slice(None) if ends.all() else np.sort(order[ends])


class _Merge(NamedTuple):
    """Where a merge stands."""

    node: Node
    first_line: int
    skipped: int = 0

    def at(self, k: int) -> Node:
        k += self.skipped
        return Node(self.node.file, f"{self.node.place}[{k}] (line {k + self.first_line})", None)

    def bad_line(self, merges: list[str]) -> Exception:
        for k, line in enumerate(merges):
            if not line.startswith("#version") and line.count(" ") != 1:
                return self.at(k).bad(line, "two parts with one space between them")
        raise AssertionError("every line has one space")


def _unigram(node: Node, content: bytes) -> tuple[Vocabulary, Unigram]:
    rows = node.child("vocab").of(list)
    for k, row in enumerate(rows):
        if type(row) is not list or len(row) != 2 or type(row[0]) is not str or type(row[1]) not in (int, float):
            raise Node(node.file, f"{node.place}.vocab[{k}]", None).bad(row, "a text and its score")
    if len(rows) > MOST_TOKENS:
        raise node.child("vocab").bad(f"{len(rows)} tokens", f"at most {MOST_TOKENS}")
    scores = _scores(node, content, rows)
    unknown = NO_TOKEN if node.child("unk_id").value is None else node.count("unk_id")
    if unknown >= len(rows):
        raise node.child("unk_id").bad(unknown, f"an id below {len(rows)}")
    ids = {row[0]: k for k, row in enumerate(rows)}
    vocabulary = Vocabulary(ids, *packed([row[0].encode() for row in rows]), fixed([], np.int32))
    return vocabulary, Unigram(fixed(scores, np.float64), unknown, node.get("byte_fallback", bool, False))


def _scores(node: Node, content: bytes, rows: list[list[Any]]) -> list[float]:
    """The scores, each from its digits as tokenizers reads them."""
    if not any(type(row[1]) is float for row in rows):
        return [float(row[1]) for row in rows]
    try:
        again = json.loads(content, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise not_json(node.file, content, error) from None
    scores: list[float] = []
    texts = [str(row[1]) for row in again["model"]["vocab"]]
    try:
        scores.extend(map(as_read, texts))
    except (OverflowError, ValueError):
        k = len(scores)
        raise Node(node.file, f"{node.place}.vocab[{k}]", None).bad(texts[k], "a finite score") from None
    return scores
