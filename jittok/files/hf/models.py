"""The model of a tokenizer.json: its vocabulary as flat arrays, its merges as ids, its scores as tokenizers reads them.

Merges: a vocabulary of 200,000 tokens has 450,000 of them, so parts and results are looked up all at once, in a table
of the tokens' texts. What that cannot do (parts that lose a prefix, and whatever is an error) goes one by one.

Scores: serde_json puts the digits of a number into a 64-bit integer, rounds that to a double, and multiplies or divides
once by a power of ten. A quarter of the scores of real files end one unit off the nearest double so, and that decides
among equal paths of Unigram.
"""

from __future__ import annotations

import contextlib
import json
import re
from itertools import chain, repeat
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.models import MISSING, NO_TOKEN, Merges, Model, Unigram, WordPiece, Words
from jittok.common.pipeline.pipeline import packed_texts, read_only_array
from jittok.errors import InWords
from jittok.files.contents import not_json
from jittok.files.json_nodes import Node
from jittok.kernels.jit import I64, U8, frozen
from jittok.kernels.structures.bytes_table import build_bytes_table, find_all

MOST_SIGNIFICAND = (1 << 64) - 1
_POWERS = [float(f"1e{k}") for k in range(309)]


LONGEST_NUMBER = 400
_PLAIN = re.compile(r"(?:-?[0-9]{1,9}\.[0-9]{1,18},)*")
_WHOLE = 19
"""Digits that an unsigned number of 64 bits holds in any case."""


def all_as_read(texts: list[str]) -> NDArray[np.float64]:
    """`as_read` of many texts, at once where all are plain. Raises as `as_read` does for the first bad one."""
    joined = ",".join([*texts, ""])
    if not _PLAIN.fullmatch(joined):
        return np.array([*map(as_read, texts)], np.float64)
    digits = joined.replace(".", "").replace("-", "").split(",")[:-1]
    if max(map(len, digits), default=0) > _WHOLE:
        return np.array([*map(as_read, texts)], np.float64)
    after = np.fromiter(map(str.find, texts, repeat(".")), np.int64, len(texts))
    decimals = np.fromiter(map(len, texts), np.int64, len(texts)) - after - 1
    numbers: NDArray[np.float64] = np.array([*map(int, digits)], np.uint64).astype(np.float64)
    numbers /= np.array(_POWERS)[decimals]
    numbers[[text.startswith("-") for text in texts]] *= -1
    return numbers


def as_read(text: str) -> float:
    """The double that serde_json makes of a number's text. Raises OverflowError for one that is too large or long."""
    if len(text) > LONGEST_NUMBER:
        raise OverflowError(text[:LONGEST_NUMBER])
    mantissa, _, exponent_text = text.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = whole + fraction
    exponent = (int(exponent_text) if exponent_text else 0) - len(fraction)
    significand, dropped = (int(digits), 0) if len(digits) < 20 else _cut(digits)
    return _scaled(significand, exponent + dropped, text)


def _cut(digits: str) -> tuple[int, int]:
    """(as many leading digits as 64 bits hold, how many are left out)."""
    significand = 0
    for k, digit in enumerate(digits):
        more = significand * 10 + int(digit)
        if more > MOST_SIGNIFICAND:
            return significand, len(digits) - k
        significand = more
    return significand, 0


def _scaled(significand: int, exponent: int, text: str) -> float:
    number = float(significand)
    while number and exponent < -308:
        number, exponent = number / _POWERS[308], exponent + 308
    if number and exponent < 0:
        number /= _POWERS[-exponent]
    elif number:
        if exponent > 308 or number * _POWERS[exponent] == float("inf"):
            raise OverflowError(text)
        number *= _POWERS[exponent]
    return -number if text.startswith("-") else number


SPACE, CUT = 0x20, 0
"""The separator of the parts of a line, and of lines that are joined."""


class Vocabulary(NamedTuple):
    """Token texts by id."""

    ids: dict[str, int]  # of equal texts the last
    token_bytes: NDArray[np.uint8]
    token_offsets: NDArray[np.int64]
    holes: NDArray[np.int32]
    twins: tuple[tuple[str, int], ...] = ()  # texts whose id another text has too


def resolve_merges(
    node: Node, vocabulary: Vocabulary, prefix: str, first_line: int = 1
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """(left, right, merged) ids of a list of merges, lines or pairs, by rank. Of equal pairs the last one counts.

    A line that begins with "#version" is passed over. Every part and what they make must be in the vocabulary.
    """
    merges = node.of(list)
    columns = None if prefix else _at_once(merges, vocabulary)
    if columns is None:
        columns = _one_by_one(merges, vocabulary.ids, prefix, _Merge(node, first_line))
    left, right, merged = columns
    last = _last_of_equal(left.astype(np.int64) << 32 | right)
    return (
        read_only_array(left[last], np.int32),
        read_only_array(right[last], np.int32),
        read_only_array(merged[last], np.int32),
    )


def _at_once(merges: list[Any], vocabulary: Vocabulary) -> list[NDArray[np.int32]] | None:
    """The columns of all merges; None if one is malformed or ambiguous here, or the kernel is not compiled."""
    if find_all.waits():
        return None
    parts = _parts(merges)
    return None if parts is None else _looked_up(*parts, vocabulary)


def _looked_up(data: U8, offsets: I64, vocabulary: Vocabulary) -> list[NDArray[np.int32]] | None:
    """The columns for left and right parts that alternate in `data`."""
    if vocabulary.holes.size and not np.diff(vocabulary.token_offsets).all():
        return None  # a hole has the text of a token that is empty
    table = build_bytes_table(vocabulary.token_bytes, vocabulary.token_offsets)
    found, merged = np.empty(offsets.size - 1, np.int32), np.empty(offsets.size // 2, np.int32)
    find_all(table, data, offsets, found)
    find_all(table, data, frozen(offsets[::2].copy(), np.int64), merged)
    columns = [found[0::2], found[1::2], merged]
    return columns if all(column.min(initial=0) >= 0 for column in columns) else None


def _parts(merges: list[Any]) -> tuple[U8, I64] | None:
    """(bytes, offsets) of alternating left and right parts; None if a merge does not have two."""
    if _are_pairs(merges):
        data, offsets = packed_texts(list(chain.from_iterable(merges)))
        return frozen(data, np.uint8), frozen(offsets, np.int64)
    if set(map(type, merges)) != {str}:
        return None
    joined = np.frombuffer("\0".join(merges).encode(), np.uint8)
    ends = np.flatnonzero((joined == SPACE) | (joined == CUT))
    # with one cut fewer than lines, a space at every other end leaves no further spaces
    if ends.size != 2 * len(merges) - 1 or (joined[ends[::2]] != SPACE).any() or b"#version" in joined.tobytes():
        return None
    offsets = np.zeros(ends.size + 2, np.int64)
    offsets[1:-1] = ends - np.arange(ends.size)
    offsets[-1] = joined.size - ends.size
    return frozen(joined[(joined != SPACE) & (joined != CUT)], np.uint8), frozen(offsets, np.int64)


def _are_pairs(merges: list[Any]) -> bool:
    """Whether each merge is a pair of texts."""
    return (
        set(map(type, merges)) == {list}
        and set(map(len, merges)) == {2}
        and set(map(type, chain.from_iterable(merges))) == {str}
    )


def _one_by_one(merges: list[Any], ids: dict[str, int], prefix: str, location: _Merge) -> list[NDArray[np.int32]]:
    """The columns of all merges. MalformedVocab for the first malformed one."""
    if set(map(type, merges)) == {str}:
        lines = merges
        if "#version" in merges[0] or "\n#version" in "\n".join(merges):
            lines = [line for line in merges if not line.startswith("#version")]
        if not set(map(str.count, lines, repeat(" "))) <= {1}:
            raise location.bad_line(merges)
        location = location._replace(skipped=len(merges) - len(lines))  # they are before
        parts = " ".join(lines).split(" ") if lines else []
        lefts, rights = parts[0::2], parts[1::2]
    else:
        for k, merge in enumerate(() if _are_pairs(merges) else merges):
            if type(merge) is not list or len(merge) != 2 or type(merge[0]) is not str or type(merge[1]) is not str:
                raise location.at(k).bad(merge, "a pair of texts")
        lefts, rights = [merge[0] for merge in merges], [merge[1] for merge in merges]
    whole = list(map(add, lefts, [text[len(prefix) :] for text in rights] if prefix else rights))
    columns = [list(map(ids.get, texts)) for texts in (lefts, rights, whole)]
    for texts, column in zip((lefts, rights, whole), columns, strict=True):
        if None in column:
            k = column.index(None)
            raise location.at(k).bad(
                f"{lefts[k]} {rights[k]}", f"parts and result in the vocabulary, which has no {texts[k]!r}"
            )
    return [np.array(column, np.int32) for column in columns]


def _last_of_equal(keys: NDArray[np.int64]) -> Any:
    """The indices of the last of each set of equal keys, ascending."""
    in_order = np.sort(keys)  # several times as fast as argsort, and keys are rarely equal
    if (in_order[1:] != in_order[:-1]).all():
        return slice(None)
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    return np.sort(order[np.append(sorted_keys[1:] != sorted_keys[:-1], True)])


class _Merge(NamedTuple):
    """Where a merge is."""

    node: Node
    first_line: int
    skipped: int = 0

    def at(self, k: int) -> Node:
        k += self.skipped
        return Node(self.node.file, f"{self.node.position}[{k}] (line {k + self.first_line})", None)

    def bad_line(self, merges: list[str]) -> Exception:
        for k, line in enumerate(merges):
            if not line.startswith("#version") and line.count(" ") != 1:
                return self.at(k).bad(line, "two parts with one space between them")
        raise AssertionError("every line has one space")


MOST_TOKENS = 1 << 23
MOST_HOLES = 1 << 16
"""Ids may leave this many holes, and as many again as there are tokens."""


def read_vocabulary(node: Node) -> Vocabulary:
    """Texts to ids of a JSON object. Holes are allowed, not far ones. Of texts with one id the first
    is the token's."""
    ids = node.of(dict)
    numbers = list(ids.values())
    if set(map(type, numbers)) - {int} or min(numbers, default=0) < 0:
        for text, number in ids.items():
            if type(number) is not int or number < 0:
                raise Node(node.file, f"{node.position}[{text!r}]", None).bad(number, "an id, 0 or more")
    most = max(numbers, default=-1)
    if most >= min(2 * len(numbers) + MOST_HOLES, MOST_TOKENS):
        raise node.bad(
            InWords(f"the id {most} in a list of {len(numbers)} tokens"), f"ids below {2 * len(numbers) + MOST_HOLES}"
        )
    if most + 1 == len(numbers) and numbers == list(range(len(numbers))):
        return Vocabulary(ids, *packed_texts(ids), read_only_array([], np.int32))
    texts: list[str | None] = [None] * (most + 1)
    twins = []
    for text, number in ids.items():
        if texts[number] is None:
            texts[number] = text
        else:
            twins.append((text, number))
    holes = [number for number, text in enumerate(texts) if text is None]
    return Vocabulary(
        ids, *packed_texts([text or "" for text in texts]), read_only_array(holes, np.int32), tuple(twins)
    )


def read_model(node: Node, content: bytes) -> tuple[Vocabulary, Model]:
    """The vocabulary and the model of the part "model"; `content`: the whole file, for numbers as it writes them."""
    kind = node.get("type", str, None) or _old_type(node)
    if kind == "BPE":
        vocabulary = read_vocabulary(node.child("vocab"))
        return vocabulary, _bpe(node, vocabulary)
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


def _bpe(node: Node, vocabulary: Vocabulary) -> Merges:
    dropout = node.get("dropout", float, 0.0)
    if dropout:
        raise node.child("dropout").unknown(dropout, "0 or none: with dropout, ids change with each call")
    unknown_text = node.get("unk_token", str, None)
    unknown = NO_TOKEN if unknown_text is None else vocabulary.ids.get(unknown_text, MISSING)
    prefix = node.get("continuing_subword_prefix", str, "")
    left, right, merged = resolve_merges(node.child("merges"), vocabulary, prefix)
    return Merges(
        left, right, merged, unknown,
        node.get("fuse_unk", bool, False), node.get("byte_fallback", bool, False),
        node.get("ignore_merges", bool, False), prefix, node.get("end_of_word_suffix", str, ""),
    )  # fmt: skip


def _unigram(node: Node, content: bytes) -> tuple[Vocabulary, Unigram]:
    rows = node.child("vocab").of(list)
    for k, row in enumerate(rows):
        if type(row) is not list or len(row) != 2 or type(row[0]) is not str or type(row[1]) not in (int, float):
            raise Node(node.file, f"{node.position}.vocab[{k}]", None).bad(row, "a text and its score")
    if len(rows) > MOST_TOKENS:
        raise node.child("vocab").bad(InWords(f"{len(rows)} tokens"), f"at most {MOST_TOKENS}")
    scores = _scores(node, content, rows)
    unknown = NO_TOKEN if node.child("unk_id").value is None else node.count("unk_id")
    if unknown >= len(rows):
        raise node.child("unk_id").bad(unknown, f"an id below {len(rows)}")
    ids = {row[0]: k for k, row in enumerate(rows)}
    vocabulary = Vocabulary(ids, *packed_texts([row[0] for row in rows]), read_only_array([], np.int32))
    return vocabulary, Unigram(read_only_array(scores, np.float64), unknown, node.get("byte_fallback", bool, False))


def _scores(node: Node, content: bytes, rows: list[list[Any]]) -> Any:
    """The scores, each from its digits as tokenizers reads them; without the file, as an object holds them."""
    if not content or not any(type(row[1]) is float for row in rows):
        return [float(row[1]) for row in rows]
    try:
        again = json.loads(content, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise not_json(node.file, content, error) from None
    texts = [str(row[1]) for row in again["model"]["vocab"]]
    try:
        return all_as_read(texts)
    except (OverflowError, ValueError):
        scores: list[float] = []
        with contextlib.suppress(OverflowError, ValueError):
            scores.extend(map(as_read, texts))
        k = len(scores)
        raise Node(node.file, f"{node.position}.vocab[{k}]", None).bad(texts[k], "a finite score") from None
