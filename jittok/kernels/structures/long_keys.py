"""Long tokens, found in a text from right to left, in time linear in the text.

Walks through the trie of all tokens, one from each offset, take time in proportion to the text times the longest token:
a text of one letter may match nearly all of a long token at every offset. So a walk stops after LONG bytes. Longer
tokens are found by an automaton of their reversed texts (Aho and Corasick 1975), which reads each byte once. It runs
only if a text and some token are longer than LONG; few vocabularies have such a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, frozen, helper, kernel
from jittok.kernels.memory import Window, get_f64, get_i32, get_i64, get_u8, put_i32, put_i64, window
from jittok.kernels.structures.double_array import (
    BASE,
    NO_VALUE,
    PARENT,
    ROOT,
    UNIT,
    VALUE,
    DoubleArray,
    build_double_array,
)
from jittok.kernels.structures.pages import scratch

F64 = Annotated[NDArray[np.float64], ("f8", "in")]
LONG = 256
"""Bytes of a token up to which walks through the trie find it."""
NONE = -1
"""No long token begins here."""
UNSET = -2


class LongKeys(NamedTuple):
    """Invariant: `fails` and `outs` have an entry for each slot of the trie, and lead to its nodes."""

    count: int
    trie: DoubleArray  # reversed texts -> row
    fails: I32  # [slots] the longest proper suffix of a node's text that is a node
    outs: I32  # [slots] the node of the longest suffix that is a token, or NONE
    values: I32  # [rows]
    lengths: I32  # [rows] bytes
    scores: F64  # [rows]


class LongWindow(NamedTuple):
    """The same as windows."""

    count: int
    units: Window
    fails: Window
    outs: Window
    values: Window
    lengths: Window
    scores: Window


def long_keys(texts: Mapping[bytes, int], scores: Mapping[bytes, float] | None = None) -> LongKeys:
    """The tokens of more than LONG bytes among these: text -> value, 0 or more; text -> score, 0 when left out."""
    rows = {text[::-1]: value for text, value in texts.items() if len(text) > LONG}
    lengths = np.array([len(text) for text in rows], np.int32)
    data = frozen(np.frombuffer(b"".join(rows), np.uint8), np.uint8)
    offsets = frozen(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), np.int64)
    trie = build_double_array(data, offsets, np.arange(len(rows), dtype=np.int32))
    slots = trie.units.size // UNIT
    fails, outs = np.full(slots, UNSET, np.int32), np.full(slots, NONE, np.int32)
    if rows:
        order = np.argsort(-lengths, kind="stable").astype(np.int64)
        link_suffixes(trie, data, offsets, frozen(order, np.int64), fails, outs, np.full(len(rows), ROOT, np.int32))
    values = np.array([*rows.values()], np.int32)
    own = np.array([scores[text[::-1]] for text in rows] if scores else np.zeros(len(rows)), np.float64)
    return LongKeys(
        len(rows), trie, frozen(fails, np.int32), frozen(outs, np.int32), frozen(values, np.int32),
        frozen(lengths, np.int32), frozen(own, np.float64),
    )  # fmt: skip


@kernel
def link_suffixes(
    trie: DoubleArray, data: U8, offsets: I64, order: I64, fails: OutI32, outs: OutI32, nodes: OutI32
) -> int:
    """The links of an automaton, node by node from the root on. Linear in the bytes of the tokens.

    data, offsets: the reversed texts; order: int64[rows] of them, longest first
    fails: int32[slots] UNSET; outs: int32[slots] NONE; nodes: int32[rows] ROOT, scratch: the current node of each text
    """
    units, texts, links, ends = window(trie.units), window(data), window(fails), window(outs)
    put_i32(links, ROOT, ROOT)
    depth, rows = 0, order.size
    while rows > 0:
        while rows > 0 and offsets[order[rows - 1] + 1] - offsets[order[rows - 1]] <= depth:
            rows -= 1
        for k in range(rows):
            row = order[k]
            parent, byte = np.int64(nodes[row]), get_u8(texts, offsets[row] + depth)
            node = get_i32(units, UNIT * parent + BASE) ^ byte
            nodes[row] = node
            if get_i32(links, node) == UNSET:
                link = ROOT if parent == ROOT else _step(units, links, get_i32(links, parent), byte)
                put_i32(links, node, link)
                own = get_i32(units, UNIT * node + VALUE) != NO_VALUE
                put_i32(ends, node, node if own else get_i32(ends, link))
        depth += 1
    return depth


@helper
def _step(units: Window, fails: Window, node: int, byte: int) -> int:
    """The node of the longest suffix of a node's text and a byte."""
    while True:
        position = get_i32(units, UNIT * node + BASE) ^ byte
        if get_i32(units, UNIT * position + PARENT) == node:
            return position
        if node == ROOT:
            return ROOT
        node = get_i32(fails, node)


@helper
def open_long(own: LongKeys) -> LongWindow:
    """Windows onto the arrays."""
    return LongWindow(
        own.count,
        window(own.trie.units),
        window(own.fails),
        window(own.outs),
        window(own.values),
        window(own.lengths),
        window(own.scores),
    )


@helper
def find_long(own: LongWindow, text: Window, start: int, stop: int, found: Window, at: int) -> None:
    """Write the node of the longest token that begins at each offset of text[start:stop], and ends in it, to found[at:]
    (see `long_value`). Linear in bytes."""
    node, i = ROOT, stop
    while i > start:
        i -= 1
        node = _step(own.units, own.fails, node, get_u8(text, i))
        put_i32(found, at + i - start, get_i32(own.outs, node))


@helper
def long_value(own: LongWindow, node: int) -> tuple[int, int]:
    """(value, bytes) of a token that was found: node is not NONE."""
    row = get_i32(own.units, UNIT * node + VALUE)
    return get_i32(own.values, row), get_i32(own.lengths, row)


@helper
def long_score(own: LongWindow, node: int) -> float:
    """Its score."""
    return get_f64(own.scores, get_i32(own.units, UNIT * node + VALUE))


@helper
def next_long(own: LongWindow, node: int) -> int:
    """The next shorter one at the same offset, or NONE."""
    return get_i32(own.outs, get_i32(own.fails, node))


# ---- look-ups at rising offsets, in a text of any length


BEGIN, KNOWN = 0, 1
"""Indices of Ahead.block: the offsets where the block begins, and up to which its tokens are known."""


class Ahead(NamedTuple):
    """The long tokens in a block of a text. It is twice as long as the longest token; its second half is read ahead."""

    found: OutI32  # [2 * the longest token] empty if there are no long tokens
    block: OutI64  # [2] BEGIN, KNOWN


class AheadWindow(NamedTuple):
    """The same as windows."""

    found: Window
    capacity: int
    block: Window


def make_ahead(own: LongKeys) -> Ahead:
    """Memory for any text, with an empty block."""
    return Ahead(scratch(2 * int(own.lengths.max(initial=0)), np.int32), np.zeros(2, np.int64))


@helper
def open_ahead(ahead: Ahead) -> AheadWindow:
    """Windows onto the arrays."""
    return AheadWindow(window(ahead.found), ahead.found.size, window(ahead.block))


@helper
def forget(ahead: AheadWindow) -> None:
    """Clear the block: another text follows, or another end of the same one."""
    put_i64(ahead.block, BEGIN, 0)
    put_i64(ahead.block, KNOWN, 0)


@helper
def long_at(own: LongWindow, ahead: AheadWindow, text: Window, i: int, stop: int) -> int:
    """The node of the longest token that begins at text[i] and ends before `stop` (see `long_value`), or NONE. For
    rising offsets each byte is read twice in total."""
    if i < get_i64(ahead.block, BEGIN) or i >= get_i64(ahead.block, KNOWN):
        end = min(stop, i + ahead.capacity)
        find_long(own, text, i, end, ahead.found, 0)
        put_i64(ahead.block, BEGIN, i)
        put_i64(ahead.block, KNOWN, end if end == stop else i + ahead.capacity // 2)
    return get_i32(ahead.found, i - get_i64(ahead.block, BEGIN))
