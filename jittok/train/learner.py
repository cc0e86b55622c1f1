"""Merges of counted words: the driver of the kernels, which makes room when they ask for it.

Only pairs of at least a threshold have an entry: a pair that is made later has its full count when it is made, and can
only fall. The threshold is low enough that one scan usually does; when the best pair falls below it, the line is
scanned again with an eighth of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import frozen
from jittok.train.merging import (
    BELOW,
    BEST,
    DONE,
    ID,
    IN_QUEUE,
    MERGES,
    NEED,
    NEED_PAIRS,
    NEED_POOL,
    NEED_QUEUE,
    NEED_TABLE,
    NEXT,
    PAIRS,
    PAUSE,
    USED,
    WATCH,
    Made,
    NeighborSums,
    merge_bpe,
    merge_pieces,
)
from jittok.train.pairs import (
    ABSENT,
    DENSE,
    FULL_PAIRS,
    FULL_TABLE,
    K1,
    LOW,
    PAIR_SHIFT,
    STEP,
    Line,
    PairCounts,
    Queue,
    Rules,
    SymbolTexts,
    compact,
    count_dense,
    count_pairs,
    enter_pairs,
    fill_queue,
    lay_out,
    list_dense,
    list_pairs,
    sum_pairs,
)

UNBOUNDED = 1 << 60
MOST_PLACES = (1 << 31) - 1
FIRST_PAIRS, FIRST_SLOTS = 1 << 16, 1 << 18
FEWER = 8
"""The next threshold is this much lower."""
OF_WEIGHT = 64
MANY_SUMS = 1 << 20
"""By which pairs of low counts are told before any is entered: 8 MB."""
WATCHED = 1 << 12
_NO_I64, _NO_I32 = np.zeros(0, np.int64), np.zeros(0, np.int32)


@dataclass
class WordCounts:
    """Counted words as symbols."""

    starts: NDArray[np.int64]  # int64[words + 1]
    counts: NDArray[np.int64]  # int64[words]
    data: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))  # bytes of the words, and
    ids: NDArray[np.int32] = field(default_factory=lambda: _NO_I32)  # the symbol of each byte; or else
    symbols: NDArray[np.int32] = field(default_factory=lambda: _NO_I32)  # the symbols of the words

    @property
    def weight(self) -> int:
        """Symbols of all occurrences."""
        return int(((self.starts[1:] - self.starts[:-1]) * self.counts).sum())


@dataclass
class LearnedMerges:
    """Merges in their order."""

    pairs: NDArray[np.int32]  # int32[merges, 2] left, right
    counts: NDArray[np.int64]  # int64[merges] how often the pair stood side by side when it was chosen
    done: NDArray[np.int64]  # int64[merges] how often it was merged
    ids: NDArray[np.int32]  # int32[merges] what it became
    best_left: int = 0  # the count of the best pair that was not merged; 0 for none


@dataclass
class PieceRules:
    """What sentencepiece's rule needs of first symbols; ranks are their order as texts."""

    ranks: NDArray[np.int32]  # int32[base]
    kinds: NDArray[np.int32]  # int32[base] see `pairs.SymbolTexts`
    longest: int  # symbols of the longest piece


@dataclass
class _Arrays:
    """All arrays of one training."""

    line: Line
    pairs: PairCounts
    queue: Queue
    texts: SymbolTexts
    rules: Rules
    near: NeighborSums
    made: Made
    state: NDArray[np.int64]


def learn(
    words: WordCounts,
    base: int,
    target: int,
    *,
    min_frequency: int = 0,
    longest: int | None = None,
    known: Mapping[bytes, int] | None = None,
    first_texts: Sequence[bytes] = (),
    forced: Any = None,
    pieces: PieceRules | None = None,
    threshold: int | None = None,
    watch_all: bool = False,
) -> LearnedMerges:
    """Merges until there are `target` ids, `base` of which exist before the first.

    longest: a merge makes a symbol of fewer first symbols than this
    known: texts that exist already and that a merge could make, with their ids; -1: such a pair is not merged
    first_texts: text of each first id
    forced: [n, 2] pairs to merge first, in this order
    threshold: pairs of lower counts are left out until they are needed; the result does not depend on it
    watch_all: first symbols have texts of any length, so each merge may make a text that exists already
    """
    forced = _NO_I32 if forced is None else np.ascontiguousarray(forced, np.int32).reshape(-1)
    known = known or {}
    if base >= target:
        return LearnedMerges(np.zeros((0, 2), np.int32), _NO_I64, _NO_I64, _NO_I32)
    arrays, total = _arrays(words, base, target, longest, known, forced, pieces, watch_all)
    last = max(min_frequency, 1)
    chosen = total // (OF_WEIGHT * (target - base)) if threshold is None else threshold
    least = 1 if forced.size else max(last, chosen)
    trainer = _Trainer(arrays, words.ids, pieces is not None, dict(known), list(first_texts))
    code = BELOW if arrays.line.symbols.size < 3 else trainer.run(least)
    while code == BELOW and least > last:
        least = max(last, least // FEWER)
        code = trainer.run(least)
    made, count = trainer.a.made, int(arrays.state[MERGES])
    return LearnedMerges(
        made.pairs[: 2 * count].reshape(-1, 2), made.counts[:count], made.done[:count], made.ids[:count],
        trainer.best_left() if code == BELOW and last > 1 else 0,
    )  # fmt: skip


def _arrays(
    words: WordCounts, base: int, target: int, longest: int | None, known: Mapping[bytes, int], forced: Any,
    pieces: PieceRules | None,
    watch_all: bool,
) -> tuple[_Arrays, int]:  # fmt: skip
    line, total = _line(words, target)
    capacity = target - base + len(known)
    watched = np.zeros(WATCHED if watch_all else max(map(len, known), default=0) + 1, np.uint8)
    watched[slice(None) if watch_all else [len(text) for text in known]] = 1
    limit = UNBOUNDED if longest is None else longest
    texts = _texts(None, 0, 0)
    if pieces is not None:
        texts, limit = _texts(pieces, base, target), pieces.longest + 1
    rules = Rules(1, limit, target, frozen(forced, np.int32), frozen(watched, np.uint8))
    pairs = PairCounts(np.full(FIRST_SLOTS, ABSENT, np.int32), *_columns(FIRST_PAIRS), np.empty(0, np.int32))
    queue = Queue(np.empty(1 << 16, np.int64), np.empty(1 << 16, np.int32))
    most = target + 1
    near = NeighborSums(
        np.zeros(2 * most, np.int64), np.zeros(2 * most, np.int64), np.empty(most, np.int32), np.empty(most, np.int32),
        np.empty(2, np.int32), np.empty(2, np.int32),
    )  # fmt: skip
    made = Made(
        np.empty(2 * capacity, np.int32),
        np.empty(capacity, np.int64),
        np.zeros(capacity, np.int64),
        np.empty(capacity, np.int32),
    )
    state = np.zeros(8, np.int64)
    state[NEXT], state[BEST] = base, -1
    return _Arrays(line, pairs, queue, texts, rules, near, made, state), total


def _line(words: WordCounts, target: int) -> tuple[Line, int]:
    """(the words of more than one symbol, highest count first; the symbols of all their occurrences)."""
    sizes = words.starts[1:] - words.starts[:-1]
    kept = np.flatnonzero((sizes > 1) & (words.counts > 0))
    order = kept[np.argsort(-words.counts[kept], kind="stable")]
    positions = int(sizes[order].sum()) + order.size + 1
    if positions > MOST_PLACES:
        raise MemoryError(f"distinct words: found {positions} symbols, expected at most {MOST_PLACES}")
    counts = words.counts[order]
    distinct = 1 + int((np.diff(counts) != 0).sum()) if order.size else 0
    level_at, level_count = np.zeros(distinct + 1, np.int64), np.zeros(distinct, np.int64)
    symbols = np.empty(positions, np.int32)
    lay_out(words.data, words.ids, words.symbols, words.starts, order, words.counts, symbols, level_at, level_count)
    line = Line(symbols, np.ones(target + 1, np.int32), frozen(level_at, np.int64), frozen(level_count, np.int64))
    return line, int((sizes[order] * counts).sum())


def _texts(pieces: PieceRules | None, base: int, target: int) -> SymbolTexts:
    if pieces is None:
        return SymbolTexts(
            np.zeros(1, np.int64),
            *(np.zeros(0, np.int32),),
            np.zeros(0, np.uint64),
            np.zeros(1, np.int32),
            _NO_I32.copy(),
            0,
        )
    most = target + 1
    at = np.zeros(most + 1, np.int64)
    at[: base + 1] = np.arange(base + 1)
    ranks = np.empty(base + pieces.longest * (most - base) + 16, np.int32)
    ranks[:base] = pieces.ranks
    hashes = np.zeros(most, np.uint64)
    known = np.full(1 << (2 * most).bit_length(), ABSENT, np.int32)
    for token, rank in enumerate(pieces.ranks.tolist()):
        h = _hash_of_rank(rank)
        hashes[token] = h
        i = h & (known.size - 1)
        while known[i] != ABSENT:
            i = (i + 1) & (known.size - 1)
        known[i] = token
    kinds = np.zeros(most, np.int32)
    kinds[:base] = pieces.kinds
    return SymbolTexts(at, ranks, hashes, known, kinds, pieces.longest)


def _hash_of_rank(rank: int) -> int:
    """`pairs.mixed` of nothing and a rank."""
    h = (rank + 1) * int(K1) % (1 << 64)
    return h ^ h >> 32


def _columns(count: int) -> tuple[NDArray[np.int64], ...]:
    return tuple(np.empty(count, np.int64) for _ in range(4))


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    out = np.empty(size, array.dtype)
    out[: array.size] = array
    return out


class _Trainer:
    """One line with its pairs."""

    def __init__(
        self, arrays: _Arrays, ids: NDArray[np.int32], pieces: bool, known: dict[bytes, int], first: list[bytes]
    ) -> None:
        self.a, self.pieces, self.known = arrays, pieces, known
        self.texts, self.told = dict(enumerate(first)), 0  # texts of ids; merges whose texts are among them
        seen = ids[ids >= 0]
        self.low = int(seen.min()) if seen.size else 0
        self.dense = bool(seen.size and int(seen.max()) - self.low < DENSE)
        self.merge: Callable[..., int] = merge_pieces if pieces else merge_bpe

    def run(self, least: int) -> int:
        """Scan with this threshold, then merge: DONE, or BELOW when the best pair fell below it."""
        a = self.a
        a.rules = a.rules._replace(least=least)
        if self.dense and not self.pieces and int(a.state[MERGES]) == 0:
            self._scan_dense(least)
        else:
            self._scan(least)
        count = int(a.state[PAIRS])
        capacity = max(2 * count, 1 << 16)
        a.queue = Queue(np.empty(capacity, np.int64), np.empty(capacity, np.int32))
        a.state[IN_QUEUE] = fill_queue(a.line, a.pairs, a.queue, a.texts, a.rules, int(self.pieces), count)
        noted = 2 * int(a.pairs.size[:count].max(initial=0)) + 2
        a.near = a.near._replace(symbols=np.empty(noted, np.int32), positions=np.empty(noted, np.int32))
        while True:
            code = self.merge(a.line, a.pairs, a.queue, a.texts, a.rules, a.near, a.made, a.state)
            if code in (DONE, BELOW):
                return code
            if code == WATCH:
                a.state[ID] = self.known.get(self._watched_text(), int(a.state[NEXT]))
            elif code != PAUSE:
                self._grow(code)

    def best_left(self) -> int:
        """The count of the best pair that is left, all pairs seen."""
        self._scan(1)
        return int(self.a.pairs.counts[: int(self.a.state[PAIRS])].max(initial=0))

    def _enter(self, keys: Any, counts: Any, at: Any, sizes: Any, used: int) -> None:
        """These pairs, and no others."""
        a, n = self.a, keys.size
        capacity = max(FIRST_PAIRS, 2 * n)
        columns = [_longer(np.ascontiguousarray(column, np.int64), capacity) for column in (keys, counts, at, sizes)]
        table = np.empty(max(1 << (4 * n).bit_length(), FIRST_SLOTS), np.int32)
        pool = a.pairs.pool if a.pairs.pool.size >= used else np.empty(used * 5 // 4 + 1024, np.int32)
        a.pairs = PairCounts(table, *columns, pool)
        enter_pairs(a.pairs, n)
        a.state[PAIRS], a.state[USED] = n, used

    def _scan_dense(self, least: int) -> None:
        a, positions = self.a, self.a.line.symbols.size - 1
        sums, numbers = np.zeros(DENSE**2, np.int64), np.zeros(DENSE**2, np.int64)
        at = 0
        while at < positions:
            at = count_dense(a.line, self.low, sums, numbers, at, at + STEP)
        kept = np.flatnonzero((sums >= least) & (numbers > 0))
        keys = (kept // DENSE + self.low) << PAIR_SHIFT | (kept % DENSE + self.low)
        begins = np.cumsum(numbers[kept]) - numbers[kept]
        self._enter(keys, sums[kept], begins, numbers[kept], int(numbers[kept].sum()))
        targets, at = np.full(DENSE**2, -1, np.int64), 0
        targets[kept] = begins
        while at < positions:
            at = list_dense(a.line, self.low, targets, self.a.pairs.pool, at, at + STEP)

    def _scan(self, least: int) -> None:
        a, positions = self.a, self.a.line.symbols.size - 1
        a.pairs = PairCounts(a.pairs.table, *a.pairs[1:5], np.empty(0, np.int32))  # what it held is in the line
        a.pairs.table[:] = ABSENT
        state = np.array([1, 0], np.int64)
        sums = np.zeros(1 << min(max(positions // 8, MANY_SUMS >> 8), MANY_SUMS - 1).bit_length(), np.int64)
        while state[0] < positions:
            sum_pairs(a.line, a.pairs, a.queue, a.texts, a.rules, int(self.pieces), sums, state)
        numbers, state = np.empty(a.pairs.keys.size, np.int64), np.array([1, 0], np.int64)
        while state[0] < positions:
            code = count_pairs(
                a.line, a.pairs, a.queue, a.texts, a.rules, int(self.pieces), numbers, sums, least, state
            )
            if code == FULL_PAIRS:
                a.state[PAIRS], a.state[NEED] = state[1], 1
                self._grow(NEED_PAIRS)
                numbers = _longer(numbers, a.pairs.keys.size)
            elif code == FULL_TABLE:
                a.state[PAIRS], a.state[NEED] = state[1], 1
                self._grow(NEED_TABLE)
        count = int(state[1])
        kept = np.flatnonzero(a.pairs.counts[:count] >= least)
        sizes = numbers[kept]
        begins = np.cumsum(sizes) - sizes
        self._enter(a.pairs.keys[kept], a.pairs.counts[kept], begins, np.zeros(kept.size, np.int64), int(sizes.sum()))
        state[0] = 1
        while state[0] < positions:
            list_pairs(a.line, a.pairs, a.queue, a.texts, a.rules, state)

    def _grow(self, code: int) -> None:
        a = self.a
        need, count = int(a.state[NEED]), int(a.state[PAIRS])
        pairs = a.pairs
        if code == NEED_POOL:
            used = compact(a.line, pairs, count)
            a.state[USED] = used
            if used + need > 3 * pairs.pool.size // 4:
                pool = _longer(pairs.pool, max(pairs.pool.size * 3 // 2, used + need) + 1024)
                a.pairs = pairs._replace(pool=pool)
        elif code == NEED_PAIRS:
            capacity = max(2 * pairs.keys.size, count + need)
            columns = (_longer(column, capacity) for column in (pairs.keys, pairs.counts, pairs.at, pairs.size))
            a.pairs = PairCounts(pairs.table, *columns, pairs.pool)
        elif code == NEED_TABLE:
            slots = 1 << (4 * (count + need)).bit_length()
            a.pairs = pairs._replace(table=np.empty(slots, np.int32))
            enter_pairs(a.pairs, count)
        else:
            assert code == NEED_QUEUE
            size = 2 * a.queue.counts.size + need
            a.queue = Queue(_longer(a.queue.counts, size), _longer(a.queue.pairs, size))

    def _watched_text(self) -> bytes:
        """The text of the pair that the kernel asks about."""
        key, made, texts = int(self.a.state[BEST]), self.a.made, self.texts
        for k in range(self.told, int(self.a.state[MERGES])):
            texts[int(made.ids[k])] = texts[int(made.pairs[2 * k])] + texts[int(made.pairs[2 * k + 1])]
        self.told = int(self.a.state[MERGES])
        return texts[key >> PAIR_SHIFT] + texts[key & LOW]
