"""The merges of a tokenizer.json, or of merges.txt, as ids.

A vocabulary of 200,000 tokens has 450,000 merges, so parts and results are looked up all at once, in a table of the
tokens' texts. What that cannot do (parts that lose a prefix, and whatever is an error) goes one by one.
"""

from __future__ import annotations

from itertools import chain, repeat
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.pipeline import packed_texts, read_only_array
from jittok.files.json_nodes import Node
from jittok.files.scan import ScannedTexts
from jittok.kernels.jit import I64, U8, frozen
from jittok.kernels.structures.bytes_table import (
    ABSENT,
    KEYS,
    BytesTable,
    build_bytes_table,
    fill_bytes_table,
    find_all,
    find_rows,
    slot_count,
)

SPACE, CUT = 0x20, 0
"""What is between the parts of a line, and between lines that are put one after the other."""


class NotAtOnce(Exception):
    """A file whose large parts were read at once is to be read one by one: something in it is not as it should be."""


class KnownTexts:
    """The ids of texts that a table has, as far as a dictionary is asked for them."""

    def __init__(self, table: BytesTable, count: int) -> None:
        self.table, self._count = table, count

    def __len__(self) -> int:
        return self._count

    def get(self, text: str, default: Any = None) -> Any:
        """The id of a text."""
        found = int(find_rows(self.table, [text.encode()])[0])
        return default if found == ABSENT else found

    def of(self, texts: list[str]) -> dict[str, int]:
        """Those of many texts that have one."""
        rows = find_rows(self.table, [text.encode() for text in texts]).tolist()
        return {text: row for text, row in zip(texts, rows, strict=True) if row != ABSENT}


def distinct_bytes_table(data: U8, offsets: I64) -> BytesTable | None:
    """The table of texts that are all different; None where two are equal."""
    slots = np.zeros(slot_count(offsets.size - 1), np.int32)
    if fill_bytes_table(data, offsets, slots, KEYS) != ABSENT:
        return None
    return BytesTable(data, offsets, frozen(slots, np.int32), KEYS)


class Vocabulary(NamedTuple):
    """Token texts by id."""

    ids: dict[str, int] | KnownTexts  # of equal texts the last
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
    if isinstance(node.value, ScannedTexts):
        columns = None if prefix else _looked_up(frozen(node.value.data, np.uint8), node.value.offsets, vocabulary)
        if columns is None:
            raise NotAtOnce
    else:
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
    """The columns of all merges; None where one is not as it should be, or cannot be told from another here."""
    if find_all.waits():
        return None
    parts = _parts(merges)
    return None if parts is None else _looked_up(*parts, vocabulary)


def _looked_up(data: U8, offsets: I64, vocabulary: Vocabulary) -> list[NDArray[np.int32]] | None:
    """The same of left and right parts in turns."""
    if vocabulary.holes.size and not np.diff(vocabulary.token_offsets).all():
        return None  # a hole has the text of a token that is empty
    table = vocabulary.ids.table if isinstance(vocabulary.ids, KnownTexts) else build_bytes_table(
        frozen(vocabulary.token_bytes, np.uint8), frozen(vocabulary.token_offsets, np.int64)
    )  # fmt: skip
    found, merged = np.empty(offsets.size - 1, np.int32), np.empty(offsets.size // 2, np.int32)
    find_all(table, data, offsets, found)
    find_all(table, data, frozen(offsets[::2].copy(), np.int64), merged)
    columns = [found[0::2], found[1::2], merged]
    return columns if all(column.min(initial=0) >= 0 for column in columns) else None


def _parts(merges: list[Any]) -> tuple[U8, I64] | None:
    """(bytes, offsets) of left and right parts in turns; None where a merge has not two."""
    if _are_pairs(merges):
        data, offsets = packed_texts(list(chain.from_iterable(merges)))
        return frozen(data, np.uint8), frozen(offsets, np.int64)
    if set(map(type, merges)) != {str}:
        return None
    joined = np.frombuffer("\0".join(merges).encode(), np.uint8)
    ends = np.flatnonzero((joined == SPACE) | (joined == CUT))
    # there are as many cuts as lines but one, so a space at every other place leaves no others
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


def _one_by_one(
    merges: list[Any], ids: dict[str, int] | KnownTexts, prefix: str, location: _Merge
) -> list[NDArray[np.int32]]:
    """The columns of all merges. MalformedVocab for the first that is not as it should be."""
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
    """Places of the last of each set of equal keys, rising."""
    in_order = np.sort(keys)  # several times as fast as telling places, and keys are rarely equal
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
