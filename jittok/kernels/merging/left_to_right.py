"""Left-to-right BPE for long words: a list of symbols is the result of merging if and only if each adjacent pair is.

(The algorithm of the `bpe` crate in github/rust-gems.) Merging by rank (`queue`) needs the whole word, but its result
can be checked pair by pair. Let B(x) be the symbols that a list x is merged to.

- No merge crosses the border of two symbols of B(x). So on either side the same merges happen as without the other
  side, and any run of adjacent symbols in B(x) is B of its part of x.
- If in a list of symbols each adjacent pair is B of its part of x, the list is B(x): consider the first merge that
  would cross a border. Until then both neighbors have gone through the same steps as alone, so it would cross the
  border there as well.

So B(x) is the only list of symbols with that property, and it can be found from left to right. At each offset take the
longest symbol of the text that may follow the last one; at a dead end, go back and take a shorter one. Only one list
leads to each offset, so no offset is tried twice. The search is linear, whatever the text.

Whether b may follow a is decided by the merges that made them. Undo these, the latest first, and look at each pair of
symbols that were adjacent across the border. The border was crossed if the pair has a rank and was merged before
either side was merged further. This holds for symbols whose merges happen in the order of their ranks, which are nearly
all in real vocabularies. Others are *unordered*, and merged on trial. Verdicts are cached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jittok.kernels.fragments import LONG_WORD
from jittok.kernels.jit import I32, U64, OutI32, OutU64, helper
from jittok.kernels.memory import Window, get_i32, get_u8, get_u64, multiply, put_i32, put_u64, window
from jittok.kernels.merging.queue import (
    SCAN_SYMBOLS,
    MergeWindow,
    MergeWork,
    make_merge_work,
    merge_symbols,
    open_merge,
)
from jittok.kernels.structures.pair_table import NO_PAIR, PairTable, find_pair

IMPOSSIBLE, BUILD_ON_DEMAND, READY = 0, 1, 2
"""States of the tables: the queue merges all words; a long word returns LONG_WORD, so that the caller builds them; they
are built."""
LONG_WORD_SYMBOLS = 4096
"""Symbols of the longest word for which the tables are not built."""
MOST_SYMBOL_BASES = 1024
"""Bases of a symbol; vocabularies with longer symbols have no tables."""
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
    """The trie of all symbols over *bases* (the symbols of words before any merge), and the merges that make symbols.

    Nodes below rows.size // ROW are symbols, others are prefixes of some. Invariants, by construction:
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
    trial: OutI32  # [2 * MOST_SYMBOL_BASES]
    verdicts: OutU64  # [1 << VERDICT_BITS] left << 26 | right << 2 | 2 | whether right may follow left; 0 where free


class Merger(NamedTuple):
    """Windows onto the scratch, the pair table and the tables of left-to-right BPE."""

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
    """The slot where the search for an edge begins. key: node << 16 | number."""
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
    """Write the numbers of a symbol's bases to out[start:]. Returns the offset after them.

    They are written from the last to the first. The symbols that are still to be split are at the beginning of the same
    memory: each of these has at least one base, so they end before the next offset that is written.
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
    """Merge the bases of a and b, in `trial`, while there are more than `fewest` symbols. Returns how many are left.
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
    """Whether merging the bases of two ordered symbols ends with these two. joined: whether it reaches just these two
    before it merges them, too.

    Each step undoes a merge, the latest first, and looks at the pair at the border that existed before it. If that pair
    has a lower rank than the merge, it was merged first. If the merge is one of b, an equal rank is enough, because the
    pair is further left. So twice its rank is compared with twice the other, or with one more.
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
    """Whether b may follow a."""
    if get_i32(rows, ROW * a + UNORDERED) | get_i32(rows, ROW * b + UNORDERED):
        left = merge_on_trial(rows, bases, pairs, trial, a, b, 1)
        return left == 2 and get_i32(trial, 0) == a and get_i32(trial, 1) == b
    return may_be_adjacent(rows, pairs, a, b, False)


def _make_longest(number_at: Callable[[Window, int], int]) -> Callable[..., int]:
    @helper
    def longest(
        bases: Window, roots: Window, edges: Window, bits: int, symbols: int, numbers: Window, at: int, stop: int
    ) -> int:
        """The longest symbol that numbers[at:stop] begin with; the first number must not be NONE."""
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

    return longest


def _make_merge(number_at: Callable[[Window, int], int], in_place: bool) -> Callable[..., int]:
    """The helper that merges numbers[at:stop] to queue.symbols. in_place: the numbers are in queue.symbols, too."""
    longest = _make_longest(number_at)

    @helper
    def merge(own: Merger, numbers: Window, at: int, stop: int) -> int:
        """Merge numbers[at:stop], of bases or NONE, to queue.symbols. Returns the number of symbols. NONE stays, and
        merges with nothing. The tables must be READY.

        Linear: only one list leads to an offset, so none is reached twice, and at each one the symbols that are
        prefixes of each other are tried. In place, writing never overtakes reading, as a symbol has at least one
        number. The numbers of a symbol that is taken back may have been overwritten, so all of them are written again.
        Helpers that are called at each step have few arguments: where the compiler does not inline them, arguments are
        passed on the stack.
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
                if symbol == NONE:  # a dead end: the last one must be shorter. There is one, as B(x) exists
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
"""The same for bytes, which are the numbers of their bases."""


@helper
def must_queue(own: Merger, count: int) -> bool:
    """Whether the queue merges `count` symbols, because there are no tables, or too few symbols to build them for."""
    return own.chain.state == IMPOSSIBLE or (own.chain.state == BUILD_ON_DEMAND and count <= LONG_WORD_SYMBOLS)


@helper
def merge_list(own: Merger, count: int) -> int:
    """`merge_symbols` of queue.symbols[:count] and queue.positions, by either algorithm; or LONG_WORD."""
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
