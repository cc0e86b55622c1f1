"""Merges of counted words: the driver of the kernels, which grows arrays when they need more capacity.

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

from jittok.common.display.progress import Bar, Show
from jittok.kernels.jit import frozen
from jittok.kernels.structures.bytes_table import KEYS
from jittok.train.merging import (
    BEST,
    ID,
    IN_QUEUE,
    MERGES,
    NEED,
    NEXT,
    PAIRS,
    USED,
    Made,
    NeighborSums,
    merge_bpe,
    merge_pieces,
)
from jittok.train.pairs import (
    ABSENT,
    BELOW,
    DENSE,
    DONE,
    LOW,
    NEED_PAIRS,
    NEED_POOL,
    NEED_QUEUE,
    NEED_TABLE,
    PAIR_SHIFT,
    PAUSE,
    STEP,
    WATCH,
    Line,
    PairCounts,
    Queue,
    Rules,
    SymbolTexts,
    Training,
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
"""Sums by which pairs of low counts are recognized before any is entered: 8 MB."""
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


@dataclass(frozen=True)
class MergeRules:
    """What decides the merges of counted words."""

    min_frequency: int = 0
    longest: int | None = None  # a merge makes a symbol of fewer first symbols than this
    known: Mapping[bytes, int] = field(default_factory=dict)
    """Texts that exist already and that a merge could make, with their ids; -1: such a pair is not merged."""
    first_texts: Sequence[bytes] = ()  # of each first id
    watch_all: bool = False  # first symbols have texts of any length, so each merge may make a text that exists already
    forced: Any = None  # [n, 2] pairs to merge first, in this order
    pieces: PieceRules | None = None
    threshold: int | None = None
    """Pairs of lower counts are left out until they are needed; the result does not depend on it."""


def learn(words: WordCounts, base: int, target: int, rules: MergeRules, progress: Show = False) -> LearnedMerges:
    """Merges until there are `target` ids, `base` of which exist before the first."""
    if base >= target:
        return LearnedMerges(np.zeros((0, 2), np.int32), _NO_I64, _NO_I64, _NO_I32)
    with Bar("train", target - base, "merges", progress) as bar:
        return _learned(_Trainer(words, base, target, rules, bar.reach), base, target, rules)


def _learned(trainer: _Trainer, base: int, target: int, rules: MergeRules) -> LearnedMerges:
    last = max(rules.min_frequency, 1)
    least = trainer.total // (OF_WEIGHT * (target - base)) if rules.threshold is None else rules.threshold
    least = 1 if trainer.arrays.rules.forced.size else max(last, least)
    code = BELOW if trainer.arrays.line.symbols.size < 3 else trainer.run(least)
    while code == BELOW and least > last:
        least = max(last, least // FEWER)
        code = trainer.run(least)
    made, count = trainer.made, int(trainer.state[MERGES])
    return LearnedMerges(
        made.pairs[: 2 * count].reshape(-1, 2), made.counts[:count], made.done[:count], made.ids[:count],
        trainer.best_left() if code == BELOW and last > 1 else 0,
    )  # fmt: skip


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
        none = np.zeros(0, np.int32)
        return SymbolTexts(np.zeros(1, np.int64), none, np.zeros(0, np.uint64), np.zeros(1, np.int32), none.copy(), 0)
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
    """`pairs.mixed` of a rank after the secret."""
    seed, factor = KEYS.tolist()
    h = (seed ^ (rank + 1)) * factor % (1 << 64)
    return int(h ^ h >> 32)


def _watched(rules: MergeRules) -> NDArray[np.uint8]:
    """uint8[lengths]: see `Rules`."""
    watched = np.zeros(WATCHED if rules.watch_all else max(map(len, rules.known), default=0) + 1, np.uint8)
    watched[slice(None) if rules.watch_all else [len(text) for text in rules.known]] = 1
    return watched


def _queue(capacity: int) -> Queue:
    return Queue(np.empty(capacity, np.int64), np.empty(capacity, np.int32))


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    out = np.empty(size, array.dtype)
    out[: array.size] = array
    return out


class _Trainer:
    """One line with its pairs."""

    def __init__(
        self, words: WordCounts, base: int, target: int, rules: MergeRules, on_merges: Callable[[int], object]
    ) -> None:
        line, self.total = _line(words, target)
        texts, limit = _texts(rules.pieces, base, target), UNBOUNDED if rules.longest is None else rules.longest
        if rules.pieces is not None:
            limit = rules.pieces.longest + 1
        forced = _NO_I32 if rules.forced is None else np.ascontiguousarray(rules.forced, np.int32).reshape(-1)
        columns = (np.empty(FIRST_PAIRS, np.int64) for _ in range(4))
        pairs = PairCounts(np.full(FIRST_SLOTS, ABSENT, np.int32), *columns, np.empty(0, np.int32), KEYS)
        checked = Rules(1, limit, target, frozen(forced, np.int32), frozen(_watched(rules), np.uint8))
        self.arrays = Training(line, pairs, _queue(1 << 16), texts, checked)
        most, capacity = target + 1, target - base + len(rules.known)
        self.near = NeighborSums(
            np.zeros(2 * most, np.int64), np.zeros(2 * most, np.int64), np.empty(most, np.int32),
            np.empty(most, np.int32), np.empty(2, np.int32), np.empty(2, np.int32),
        )  # fmt: skip
        self.made = Made(
            np.empty(2 * capacity, np.int32), np.empty(capacity, np.int64), np.zeros(capacity, np.int64),
            np.empty(capacity, np.int32),
        )  # fmt: skip
        self.state = np.zeros(8, np.int64)
        self.state[NEXT], self.state[BEST] = base, -1
        self.pieces, self.known = int(rules.pieces is not None), rules.known
        self.on_merges = on_merges
        self.texts, self.told = dict(enumerate(rules.first_texts)), 0  # of ids; merges whose texts are among them
        seen = words.ids[words.ids >= 0]
        self.low = int(seen.min()) if seen.size else 0
        self.dense = bool(seen.size and int(seen.max()) - self.low < DENSE)
        self.merge: Callable[..., int] = merge_pieces if self.pieces else merge_bpe

    def run(self, least: int) -> int:
        """Scan with this threshold, then merge: DONE, or BELOW when the best pair fell below it."""
        self._set(rules=self.arrays.rules._replace(least=least))
        if self.dense and not self.pieces and int(self.state[MERGES]) == 0:
            self._scan_dense(least)
        else:
            self._scan(least)
        count = int(self.state[PAIRS])
        self._set(queue=_queue(max(2 * count, 1 << 16)))
        self.state[IN_QUEUE] = fill_queue(self.arrays, self.pieces, count)
        noted = 2 * int(self.arrays.pairs.size[:count].max(initial=0)) + 2
        self.near = self.near._replace(symbols=np.empty(noted, np.int32), positions=np.empty(noted, np.int32))
        while True:
            code = self.merge(self.arrays, self.near, self.made, self.state)
            self.on_merges(int(self.state[MERGES]))
            if code in (DONE, BELOW):
                return code
            if code == WATCH:
                self.state[ID] = self.known.get(self._watched_text(), int(self.state[NEXT]))
            elif code != PAUSE:
                self._grow(code)

    def _set(self, **arrays: Any) -> None:
        self.arrays = self.arrays._replace(**arrays)

    def best_left(self) -> int:
        """The count of the best pair that is left, all pairs seen."""
        self._scan(1)
        return int(self.arrays.pairs.counts[: int(self.state[PAIRS])].max(initial=0))

    def _enter(self, keys: Any, counts: Any, at: Any, sizes: Any, used: int) -> None:
        """These pairs, and no others."""
        n, pool = keys.size, self.arrays.pairs.pool
        capacity = max(FIRST_PAIRS, 2 * n)
        columns = [_longer(np.ascontiguousarray(column, np.int64), capacity) for column in (keys, counts, at, sizes)]
        table = np.empty(max(1 << (4 * n).bit_length(), FIRST_SLOTS), np.int32)
        pool = pool if pool.size >= used else np.empty(used * 5 // 4 + 1024, np.int32)
        self._set(pairs=PairCounts(table, *columns, pool, KEYS))
        enter_pairs(self.arrays.pairs, n)
        self.state[PAIRS], self.state[USED] = n, used

    def _scan_dense(self, least: int) -> None:
        line, positions = self.arrays.line, self.arrays.line.symbols.size - 1
        sums, numbers = np.zeros(DENSE**2, np.int64), np.zeros(DENSE**2, np.int64)
        at = 0
        while at < positions:
            at = count_dense(line, self.low, sums, numbers, at, at + STEP)
        kept = np.flatnonzero((sums >= least) & (numbers > 0))
        keys = (kept // DENSE + self.low) << PAIR_SHIFT | (kept % DENSE + self.low)
        begins = np.cumsum(numbers[kept]) - numbers[kept]
        self._enter(keys, sums[kept], begins, numbers[kept], int(numbers[kept].sum()))
        targets, at = np.full(DENSE**2, -1, np.int64), 0
        targets[kept] = begins
        while at < positions:
            at = list_dense(line, self.low, targets, self.arrays.pairs.pool, at, at + STEP)

    def _scan(self, least: int) -> None:
        positions = self.arrays.line.symbols.size - 1
        self._set(pairs=self.arrays.pairs._replace(pool=np.empty(0, np.int32)))  # what it held is in the line
        self.arrays.pairs.table[:] = ABSENT
        state = np.array([1, 0], np.int64)
        sums = np.zeros(1 << min(max(positions // 8, MANY_SUMS >> 8), MANY_SUMS - 1).bit_length(), np.int64)
        while state[0] < positions:
            sum_pairs(self.arrays, self.pieces, sums, state)
        numbers, state = np.empty(self.arrays.pairs.keys.size, np.int64), np.array([1, 0], np.int64)
        while state[0] < positions:
            code = count_pairs(self.arrays, self.pieces, numbers, sums, least, state)
            if code:
                self.state[PAIRS], self.state[NEED] = state[1], 1
                self._grow(code)
                numbers = _longer(numbers, self.arrays.pairs.keys.size)
        pairs, count = self.arrays.pairs, int(state[1])
        kept = np.flatnonzero(pairs.counts[:count] >= least)
        keys, counts, sizes = pairs.keys[kept], pairs.counts[kept], numbers[kept]
        del pairs  # its columns, while memory is taken for lists
        self._enter(keys, counts, np.cumsum(sizes) - sizes, np.zeros(kept.size, np.int64), int(sizes.sum()))
        state[0] = 1
        while state[0] < positions:
            list_pairs(self.arrays, state)

    def _grow(self, code: int) -> None:
        """Grow what a kernel has too little of."""
        need, count, pairs, queue = int(self.state[NEED]), int(self.state[PAIRS]), self.arrays.pairs, self.arrays.queue
        if code == NEED_POOL:
            used = compact(self.arrays.line, pairs, count)
            self.state[USED] = used
            if used + need > 3 * pairs.pool.size // 4:
                pool = _longer(pairs.pool, max(pairs.pool.size * 3 // 2, used + need) + 1024)
                self._set(pairs=pairs._replace(pool=pool))
        elif code == NEED_PAIRS:
            capacity = max(2 * pairs.keys.size, count + need)
            columns = (_longer(column, capacity) for column in (pairs.keys, pairs.counts, pairs.at, pairs.size))
            self._set(pairs=PairCounts(pairs.table, *columns, pairs.pool, KEYS))
        elif code == NEED_TABLE:
            slots = 1 << (4 * (count + need)).bit_length()
            self._set(pairs=pairs._replace(table=np.empty(slots, np.int32)))
            enter_pairs(self.arrays.pairs, count)
        else:
            assert code == NEED_QUEUE
            size = 2 * queue.counts.size + need
            self._set(queue=Queue(_longer(queue.counts, size), _longer(queue.pairs, size)))

    def _watched_text(self) -> bytes:
        """The text of the pair state[BEST]."""
        key, made, texts = int(self.state[BEST]), self.made, self.texts
        for k in range(self.told, int(self.state[MERGES])):
            texts[int(made.ids[k])] = texts[int(made.pairs[2 * k])] + texts[int(made.pairs[2 * k + 1])]
        self.told = int(self.state[MERGES])
        return texts[key >> PAIR_SHIFT] + texts[key & LOW]
