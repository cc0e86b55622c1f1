"""Builder of the tables of left-to-right BPE: the symbols that merging can make, their parts, their trie."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import I32, I64, U64, OutI32, OutI64, OutU64, as_int64, frozen, helper, kernel
from jittok.kernels.memory import Window, get_i32, get_u64, put_i32, put_u64, window
from jittok.kernels.merging.left_to_right import (
    IMPOSSIBLE,
    LEFT,
    LENGTH,
    MOST_SYMBOL_BASES,
    NONE,
    RANK,
    READY,
    RIGHT,
    ROOTS,
    ROW,
    SHORTER,
    UNORDERED,
    LongWordTables,
    PairTableWindow,
    edge_slot,
    may_be_adjacent,
    merge_on_trial,
    next_node,
    spell,
)
from jittok.kernels.structures.bytes_table import BytesTable
from jittok.kernels.structures.pages import in_huge_pages
from jittok.kernels.structures.pair_table import PairTable

AMBIGUOUS, TOO_LONG, TOO_MANY_STEPS = -1, -2, -3
"""No tables: a symbol has two texts; a symbol has more than MOST_SYMBOL_BASES bases; too many steps."""
STEPS_PER_PAIR, LEAST_STEPS = 16, 1 << 22
"""Steps of judging that are taken: real vocabularies need seven a pair, and a file of any kind loads soon."""
MOST_NODES, MOST_BASES = 1 << 24, 1 << 16
_24, _32, _40, _0 = np.uint64(24), np.uint64(32), np.uint64(40), np.uint64(0)
_LOW = np.uint64(0xFFFFFFFF)


def no_chain() -> LongWordTables:
    """Empty tables, for vocabularies that have none."""
    return LongWordTables(
        IMPOSSIBLE, frozen([], np.int32), frozen([], np.int32), frozen([], np.int32), frozen(np.zeros(16), np.uint64), 4
    )


def character_rows(texts: BytesTable) -> NDArray[np.int32]:
    """int32[characters]: the rows of single characters, in the order of their bytes. The first byte gives the length;
    a truncated character counts as well.
    """
    lengths = np.diff(texts.offsets)
    rows = np.flatnonzero((lengths > 0) & (lengths <= 4))
    padded = np.append(texts.data, np.zeros(4, np.uint8)).astype(np.int64)
    keys = np.zeros(rows.size, np.int64)
    for k in range(4):
        keys = keys << 8 | np.where(k < lengths[rows], padded[texts.offsets[rows] + k], 0)
    chosen = lengths[rows] <= np.array([1] * 12 + [2, 2, 3, 4])[keys >> 28]
    return rows[chosen][np.argsort(keys[chosen], kind="stable")].astype(np.int32)


def made_symbols(pairs: PairTable, bases: NDArray[np.int32], symbols: int) -> NDArray[np.int32] | None:
    """The rows of all symbols, without SHORTER (see `find_symbols`); None if they cannot be determined.

    bases: int32[numbers] the distinct symbols of words before any merge; symbols: all symbols are below this number
    """
    if bases.size > MOST_BASES or symbols > MOST_NODES:
        return None
    filled = np.flatnonzero(pairs.slots[::2]).astype(np.uint64)
    # sorting numbers takes a tenth of the time of sorting places by them
    order = (np.sort(pairs.slots[1::2][filled] & ~_LOW | filled) & _LOW).astype(np.int64)
    rows = np.zeros(ROW * symbols, np.int32)
    most = LEAST_STEPS + STEPS_PER_PAIR * filled.size
    rounds = find_symbols(pairs, np.empty(2 * MOST_SYMBOL_BASES, np.int32), order, frozen(bases, np.int32), rows, most)
    return rows if rounds >= 0 else None


def build_chain(pairs: PairTable, bases: NDArray[np.int32], symbols: int) -> LongWordTables:
    """The tables of a vocabulary; empty if its merges do not allow the pairwise check, see `made_symbols`."""
    rows = made_symbols(pairs, bases, symbols)
    if rows is None:
        return no_chain()
    lengths = rows[LENGTH::ROW]
    total = int(lengths.sum(dtype=np.int64))
    if symbols + total > MOST_NODES:
        return no_chain()
    by_length = np.flatnonzero(lengths > 1)
    by_length = by_length[np.argsort(lengths[by_length], kind="stable")]
    bits = max(4, (3 * total // 2).bit_length())
    edges, roots = np.zeros(1 << bits, np.uint64), np.full(ROOTS * ROOTS, NONE, np.int32)
    scratch = np.empty(int(lengths.max(initial=1)), np.int32)
    count = insert_symbols(frozen(by_length, np.int64), rows, roots, edges, bits, scratch)
    fewer = max(4, (3 * count // 2).bit_length())
    if fewer < bits:
        more, edges = frozen(edges, np.uint64), np.zeros(1 << fewer, np.uint64)
        move_edges(more, edges, fewer)
        bits = fewer
    return LongWordTables(
        READY,
        frozen(rows, np.int32),
        frozen(bases, np.int32),
        frozen(roots, np.int32),
        in_huge_pages(frozen(edges, np.uint64)),
        bits,
    )


@kernel
def find_symbols(pairs: PairTable, trial: OutI32, order: OutI64, bases: I32, rows: OutI32, most: int) -> int:
    """Fill the rows of all symbols that merging can make, without SHORTER. Returns the number of rounds, or a code.

    trial: int32[2 * MOST_SYMBOL_BASES] scratch
    order: int64[pairs] filled slots by rising rank, scratch
    rows: int32[ROW * symbols], zeroed
    most: steps that judging may take: at most one for each base of ordered symbols, else one for each two bases

    A pair makes a symbol if both can be made, and merging their bases reaches just these two. This is decided once. A
    symbol usually has a higher rank than its parts, so few pairs need a second round.
    """
    slots, numbers, table = window(pairs.slots), window(bases), window(rows)
    found_pairs = PairTableWindow(slots, window(pairs.filter), pairs.slot_bits, pairs.filter_bits)
    scratch = window(trial)
    for k in range(bases.size):
        row = ROW * as_int64(bases[k])
        rows[row + LEFT], rows[row + RIGHT], rows[row + RANK], rows[row + SHORTER] = k, NONE, NONE, NONE
        rows[row + LENGTH] = 1
    rounds, found, waiting, steps = 0, 1, order.size, 0
    while found > 0:
        found = 0
        rounds += 1
        here, waiting = waiting, 0
        for k in range(here):
            key = get_u64(slots, 2 * order[k])
            left, right = np.int64(key >> _32) - 1, np.int64(key & _LOW) - 1
            if rows[ROW * left + LENGTH] == 0 or rows[ROW * right + LENGTH] == 0:
                order[waiting] = order[k]
                waiting += 1
                continue
            value = get_u64(slots, 2 * order[k] + 1)
            rank, row = np.int64(value >> _32), ROW * np.int64(value & _LOW)
            made = rows[row + LENGTH] != 0
            length = as_int64(rows[ROW * left + LENGTH]) + as_int64(rows[ROW * right + LENGTH])
            unordered = as_int64(rows[ROW * left + UNORDERED]) | as_int64(rows[ROW * right + UNORDERED])
            if length > MOST_SYMBOL_BASES:
                return TOO_LONG
            steps += length if unordered == 0 else length * length
            if steps > most:
                return TOO_MANY_STEPS
            if unordered != 0:
                count = merge_on_trial(table, numbers, found_pairs, scratch, left, right, 2)
                if count != 2 or get_i32(scratch, 0) != left or get_i32(scratch, 1) != right:
                    continue
            elif not may_be_adjacent(table, found_pairs, left, right, True):
                continue
            if made:  # a second reachable pair: the symbol has more than one text
                return AMBIGUOUS
            if rank < max(as_int64(rows[ROW * left + RANK]), as_int64(rows[ROW * right + RANK])):
                unordered = 1
            rows[row + LEFT], rows[row + RIGHT], rows[row + RANK], rows[row + SHORTER] = left, right, rank, NONE
            rows[row + LENGTH], rows[row + UNORDERED] = length, unordered
            found += 1
    return rounds


@helper
def _enter_edge(edges: Window, bits: int, edge: np.uint64) -> None:
    at = edge_slot(edge >> _24, bits)
    while get_u64(edges, at) != _0:
        at = (at + 1) & ((1 << bits) - 1)
    put_u64(edges, at, edge)


@kernel
def insert_symbols(by_length: I64, rows: OutI32, roots: OutI32, edges: OutU64, bits: int, scratch: OutI32) -> int:
    """Insert all symbols of two bases or more, shorter ones first. Returns the number of edges.

    roots: int32[ROOTS * ROOTS] of NONE, edges: uint64[1 << bits], zeroed; scratch: int32[longest]. Fills SHORTER. A
    symbol's left part is in the trie already, so its path begins there.
    """
    table, out, spelled = window(rows), window(edges), window(scratch)
    symbols = rows.size // ROW
    nodes, count = symbols, 0
    for k in range(by_length.size):
        symbol = by_length[k]
        node = get_i32(table, ROW * symbol + LEFT)
        shorter = node
        length = spell(table, get_i32(table, ROW * symbol + RIGHT), spelled, 0)
        for j in range(length):
            number = get_i32(spelled, j)
            child = next_node(out, bits, node, number)
            if child == NONE:
                child = symbol
                if j + 1 < length:
                    child = nodes
                    nodes += 1
                _enter_edge(out, bits, np.uint64(node) << _40 | np.uint64(number) << _24 | np.uint64(child))
                count += 1
                if node < symbols and get_i32(table, ROW * node + RIGHT) < 0:
                    first = get_i32(table, ROW * node + LEFT)
                    if max(first, number) < ROOTS:
                        roots[ROOTS * first + number] = child
            node = child
            if node < symbols and node != symbol:
                shorter = node
        put_i32(table, ROW * symbol + SHORTER, shorter)
    return count


@kernel
def move_edges(edges: U64, fewer: OutU64, bits: int) -> int:
    """Insert all edges into another table. Returns its size."""
    old, new = window(edges), window(fewer)
    for k in range(edges.size):
        edge = get_u64(old, k)
        if edge != _0:
            _enter_edge(new, bits, edge)
    return fewer.size
