"""Long words from the left: each symbol of a merged word is right if it may be next to its neighbor.

Merging by rank (`queue`) looks at the whole word. Its result can be checked by looking at neighbors alone. Let B(x) be
the symbols that a list x is merged to.

- No merge crosses the border of two symbols of B(x). So on either side the same merges happen as without the other
  side, and any run of neighbors in B(x) is B of the part of x that it stands for.
- If in a list of symbols each two neighbors are B of their part of x, the list is B(x): take the first merge that
  would cross a border. Until then both neighbors went through the steps that they go through alone, so it
  would cross the border there as well.

So B(x) is the only list of symbols with that property, and it can be searched from the left. At each place take the
longest symbol of the text that may be after the last one; if that leads nowhere, go back and take a shorter one.
Only one list leads to each place, so no place is tried twice. The search is linear, whatever the text.

Whether b may be after a is answered from how both were made. Undo their merges, the latest first. Look at each pair
of symbols that faced each other across the border. The border was crossed if the pair has a rank and its turn came
before either side was merged further. This works for symbols whose merges happen in the order of their ranks, nearly
all in real vocabularies. Others are *unordered*, and merged on trial. Answers are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jittok._jit import I32, U64, OutI32, OutU64, helper
from jittok._raw import Window, get_i32, get_u8, get_u64, multiply, put_i32, put_u64, window
from jittok.fragments import LONG_WORD
from jittok.merging.queue import (
    SCAN_SYMBOLS,
    MergeWindow,
    MergeWork,
    make_merge_work,
    merge_symbols,
    open_merge,
)
from jittok.structures.pair_table import NO_PAIR, PairTable, find_pair

IMPOSSIBLE, BUILD_ON_DEMAND, READY = 0, 1, 2
"""States of a chain: words are merged by the queue; a long word is to be refused, so that the caller makes the chain;
it is there."""
LONG_WORD_SYMBOLS = 4096
"""Symbols of a word that is worth making the chain for."""
MOST_SYMBOL_BASES = 1024
"""Bases of a symbol; vocabularies with longer ones have no chain."""
LEFT, RIGHT, RANK, SHORTER, LENGTH, UNORDERED, ROW = 0, 1, 2, 3, 4, 5, 8
"""Columns of a row. LEFT, RIGHT, RANK: the two symbols that it was made of, and the rank of that merge (a base: its
number, NONE, NONE). SHORTER: the next shorter symbol that it begins with, or NONE. LENGTH: its bases, 0 if no text is
merged to this symbol. UNORDERED: whether it, or a part of it, has a lower rank than one of its own parts."""
NONE = -1
ROOTS = 256
"""Bases whose first two steps are read from a table."""
VERDICT_BITS = 15
_MIX = np.uint64(0x9E3779B97F4A7C15)
_0, _1, _2, _16, _24, _32 = (np.uint64(k) for k in (0, 1, 2, 16, 24, 32))
_CHILD, _LOW = np.uint64((1 << 24) - 1), np.uint64(0xFFFFFFFF)


class LongWordTables(NamedTuple):
    """The trie of all symbols over *bases*, which lists of symbols begin with, and how symbols are made.

    Nodes below rows.size // ROW are symbols, others lead to some. Invariants, by construction:
    - numbers of bases are below bases.size <= 1 << 16, nodes below 1 << 24;
    - edges.size == 1 << edge_bits, and at least a third of them is 0;
    - the symbols in rows and bases have rows.
    """

    state: int
    rows: I32  # [ROW * symbols]
    bases: I32  # [numbers] the symbol of each base
    roots: I32  # [ROOTS * ROOTS] the node after two bases below ROOTS, or NONE
    edges: (
        U64  # [1 << edge_bits] node << 40 | number << 24 | child; 0 where free (node 0 with base 0 has no such child)
    )
    edge_bits: int


class LongWordWindow(NamedTuple):
    """The same as windows."""

    state: int
    rows: Window
    bases: Window
    roots: Window
    edges: Window
    edge_bits: int
    symbols: int


class PairTableWindow(NamedTuple):
    """The pair table as windows."""

    slots: Window
    filter: Window
    slot_bits: int
    filter_bits: int


class MergerWork(NamedTuple):
    """Scratch of one thread for one vocabulary."""

    queue: MergeWork
    trial: OutI32  # [2 * LONGEST]
    verdicts: OutU64  # [1 << VERDICT_BITS] left << 26 | right << 2 | 2 | whether it may be there; 0 where free


class Merger(NamedTuple):
    """What merges lists of symbols: the scratch, the pair table and the chain, as windows."""

    queue: MergeWindow
    trial: Window
    verdicts: Window
    chain: LongWordWindow


def make_merger_work(longest: int, queued: int | None = None) -> MergerWork:
    """Scratch for up to `longest` symbols, of which the queue merges up to `queued` (see `make_merge_work`)."""
    queue = make_merge_work(longest, queued)
    return MergerWork(queue, np.empty(2 * MOST_SYMBOL_BASES, np.int32), np.zeros(1 << VERDICT_BITS, np.uint64))


@helper
def open_merger(work: MergerWork, pairs: PairTable, chain: LongWordTables) -> Merger:
    """Windows onto the arrays."""
    return Merger(open_merge(work.queue, pairs), window(work.trial), window(work.verdicts), _open_chain(chain))


@helper
def _open_chain(chain: LongWordTables) -> LongWordWindow:
    """Windows onto the arrays."""
    return LongWordWindow(
        chain.state,
        window(chain.rows),
        window(chain.bases),
        window(chain.roots),
        window(chain.edges),
        chain.edge_bits,
        chain.rows.size // ROW,
    )


@helper
def edge_slot(key: np.uint64, bits: int) -> int:
    """Where the search for an edge begins; key: node << 16 | number."""
    return np.int64(multiply(key, _MIX) >> np.uint64(64 - bits))


@helper
def next_node(edges: Window, bits: int, node: int, number: int) -> int:
    """The node after `node` by the base of this number, or NONE."""
    key = np.uint64(node) << _16 | np.uint64(number)
    at = edge_slot(key, bits)
    while True:
        found = get_u64(edges, at)
        if found >> np.uint64(24) == key and found != _0:
            return np.int64(found & _CHILD)
        if found == _0:
            return NONE
        at = (at + 1) & ((1 << bits) - 1)


@helper
def spell(rows: Window, symbol: int, out: Window, start: int) -> int:
    """The numbers of a symbol's bases to out[start:]; the offset after them.

    From the last one on. What is still to be split is at the beginning: each of these has one base at least,
    so they end before the place that is written next.
    """
    depth, at = 1, get_i32(rows, ROW * symbol + LENGTH)
    stop = start + at
    put_i32(out, start, symbol)
    while depth > 0:
        top = get_i32(out, start + depth - 1)
        if get_i32(rows, ROW * top + RIGHT) < 0:
            depth -= 1
            at -= 1
            put_i32(out, start + at, get_i32(rows, ROW * top + LEFT))
        else:
            put_i32(out, start + depth - 1, get_i32(rows, ROW * top + LEFT))
            put_i32(out, start + depth, get_i32(rows, ROW * top + RIGHT))
            depth += 1
    return stop


@helper
def merge_on_trial(
    rows: Window, bases: Window, pairs: PairTableWindow, trial: Window, a: int, b: int, fewest: int
) -> int:
    """Merge what a and b stand for, in `trial`, as long as there are more than `fewest` symbols; how many are left.
    O(n^2) look-ups, for few symbols."""
    count = spell(rows, b, trial, spell(rows, a, trial, 0))
    for k in range(count):
        put_i32(trial, k, get_i32(bases, get_i32(trial, k)))
    while count > fewest:
        best, at = NO_PAIR, NONE
        for k in range(count - 1):
            f = find_pair(
                pairs.slots, pairs.filter, pairs.slot_bits, pairs.filter_bits, get_i32(trial, k), get_i32(trial, k + 1)
            )
            if f >> _32 < best >> _32:
                best, at = f, k
        if at == NONE:
            break
        put_i32(trial, at, np.int64(best & _LOW))
        count -= 1
        for k in range(at + 1, count):
            put_i32(trial, k, get_i32(trial, k + 1))
    return count


@helper
def may_be_adjacent(rows: Window, pairs: PairTableWindow, a: int, b: int, joined: bool) -> bool:
    """Whether merging what two ordered symbols stand for ends with them. joined: whether it comes to them alone, before
    it joins them.

    Each step takes back a merge, the latest first, and looks at the pair at the border that this merge ended. If that
    pair has a lower rank than the merge, it was merged before. If the merge is one of b, equal ranks are enough,
    because the pair is on the left. So twice its rank is compared with twice the other, or with one more.
    """
    bound = np.int64(1) << 62
    while True:
        if not joined:
            f = find_pair(pairs.slots, pairs.filter, pairs.slot_bits, pairs.filter_bits, a, b)
            if f != NO_PAIR and 2 * np.int64(f >> _32) < bound:
                return False
        joined = False
        rank_a, rank_b = get_i32(rows, ROW * a + RANK), get_i32(rows, ROW * b + RANK)
        if rank_b >= rank_a:  # of equal ranks the left one is merged first, so b's came later
            if rank_b < 0:
                return True
            bound = 2 * rank_b + 1
            b = get_i32(rows, ROW * b + LEFT)
        else:
            bound = 2 * rank_a
            a = get_i32(rows, ROW * a + RIGHT)


@helper
def _judge(rows: Window, bases: Window, pairs: PairTableWindow, trial: Window, a: int, b: int) -> bool:
    """Whether b may be after a."""
    if get_i32(rows, ROW * a + UNORDERED) | get_i32(rows, ROW * b + UNORDERED):
        left = merge_on_trial(rows, bases, pairs, trial, a, b, 1)
        return left == 2 and get_i32(trial, 0) == a and get_i32(trial, 1) == b
    return may_be_adjacent(rows, pairs, a, b, False)


def _make_merge(number_at: Callable[[Window, int], int], in_place: bool) -> Callable[..., int]:
    """What merges numbers[at:stop] to queue.symbols. in_place: they are at the beginning of queue.symbols."""

    @helper
    def longest(
        bases: Window, roots: Window, edges: Window, bits: int, symbols: int, numbers: Window, at: int, stop: int
    ) -> int:
        """The longest symbol that numbers[at:stop] begin with; the first is none of NONE."""
        number = number_at(numbers, at)
        found = get_i32(bases, number)
        at += 1
        if at == stop or number_at(numbers, at) < 0:
            return found
        second = number_at(numbers, at)
        if max(number, second) < ROOTS:
            node = get_i32(roots, ROOTS * number + second)
        else:
            node = next_node(edges, bits, found, second)
        while node != NONE:
            if node < symbols:
                found = node
            at += 1
            if at == stop or number_at(numbers, at) < 0:
                break
            node = next_node(edges, bits, node, number_at(numbers, at))
        return found

    @helper
    def merge(own: Merger, numbers: Window, at: int, stop: int) -> int:
        """numbers[at:stop], of bases or NONE, as symbols to queue.symbols; how many. NONE stays, and merges with
        nothing. The chain is READY.

        Linear: only one list leads to a place, so none is come to twice, and at each as many symbols are tried as one
        begins with another. In place, what is written never reaches what is still to be read, as a symbol stands for
        one number at least. What was written may are anywhere in the numbers of a symbol that is taken back, so all
        of these are written again. Helpers that are called at each step get few arguments, as those that the compiler
        leaves out of line get them on the stack.
        """
        rows, bases, verdicts, out = own.chain.rows, own.chain.bases, own.verdicts, own.queue.symbols
        pairs = PairTableWindow(own.queue.slots, own.queue.filter, own.queue.slot_bits, own.queue.filter_bits)
        left, last = 0, NONE
        while at < stop:
            if number_at(numbers, at) < 0:
                put_i32(out, left, NONE)
                left += 1
                at += 1
                last = NONE
                continue
            symbol = longest(
                bases, own.chain.roots, own.chain.edges, own.chain.edge_bits, own.chain.symbols, numbers, at, stop
            )
            while True:
                if symbol == NONE:  # nothing goes on here: the last one must be shorter. There is one, as B(x) exists
                    left -= 1
                    symbol = last
                    at -= get_i32(rows, ROW * symbol + LENGTH)
                    last = get_i32(out, left - 1) if left > 0 else NONE
                    if in_place:
                        spell(rows, symbol, out, at)
                elif last == NONE:
                    break
                else:
                    key = np.uint64(last) << _24 | np.uint64(symbol)
                    position = np.int64(multiply(key, _MIX) >> np.uint64(64 - VERDICT_BITS))
                    known = get_u64(verdicts, position)
                    if known >> _2 != key or known == _0:
                        good = _judge(rows, bases, pairs, own.trial, last, symbol)
                        known = key << _2 | _2 | np.uint64(good)
                        put_u64(verdicts, position, known)
                    if known & _1 != _0:
                        break
                symbol = get_i32(rows, ROW * symbol + SHORTER)
            put_i32(out, left, symbol)
            left += 1
            at += get_i32(rows, ROW * symbol + LENGTH)
            last = symbol
        return left

    return merge


merge_numbers = _make_merge(get_i32, True)
merge_text = _make_merge(get_u8, False)
"""The same of bytes, which are the numbers of their bases."""


@helper
def must_queue(own: Merger, count: int) -> bool:
    """Whether the queue merges so many symbols, because there is no chain, or it is not worth making one."""
    return own.chain.state == IMPOSSIBLE or (own.chain.state == BUILD_ON_DEMAND and count <= LONG_WORD_SYMBOLS)


@helper
def merge_list(own: Merger, count: int) -> int:
    """What `merge_symbols` makes of queue.symbols[:count] and queue.places; or LONG_WORD."""
    if count <= SCAN_SYMBOLS or must_queue(own, count):
        return merge_symbols(own.queue, count) if count <= own.queue.capacity else LONG_WORD
    if own.chain.state == BUILD_ON_DEMAND:
        return LONG_WORD
    rows, symbols, positions = own.chain.rows, own.queue.symbols, own.queue.positions
    end = get_i32(positions, count)
    for k in range(count):
        symbol = get_i32(symbols, k)
        put_i32(symbols, k, get_i32(rows, ROW * symbol + LEFT) if symbol >= 0 else NONE)
    left = merge_numbers(own, symbols, 0, count)
    at = 0
    for k in range(left):
        symbol = get_i32(symbols, k)
        put_i32(positions, k, get_i32(positions, at))
        at += get_i32(rows, ROW * symbol + LENGTH) if symbol >= 0 else 1
    put_i32(positions, left, end)
    return left
