"""sentencepiece's Unigram (`unigram_model_trainer.cc`): seeds, expectation and maximization, pruning.

Seeds are the characters and all texts that go on in more than one way and are pieces, scored by frequency times
length. Then, in turns: expected counts over all segmentations of all words, scores from them, twice; and pruning by
what the likelihood loses when a piece is taken away. Sums are 64-bit and in the order of pieces and words, so the
result does not depend on threads; sentencepiece's are 32-bit in slices, and its last digits depend on their number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok._jit import frozen
from jittok.errors import CorpusError
from jittok.train.characters import characters_of
from jittok.train.counting import How, count
from jittok.train.counts import Counts
from jittok.train.lattice import NO_PIECE, best_paths, build_trie, expect, find_edges, find_seeds
from jittok.train.spm import NORMAL, UNKNOWN_MARK, SpmOptions, SpmTrained, first_pieces, piece_kinds
from jittok.train.spm import required_characters as characters_kept
from jittok.unicode.characters import SPACE_MARK_CODE

FOLLOWED = r"[^ \n]+ ?"
"""A run and the space behind it: whether a text goes on in more than one way depends on that."""
SEEDS, SUB_STEPS, SHRINKS, TOO_FEW, SPARE = 1_000_000, 2, 0.75, 0.5, 1.1
PENALTY, PENALTY_STEP = 10.0, 0.0001
STEP = 1 << 14
"""Words a kernel does before it answers."""


@dataclass
class _Words:
    """Distinct words as ranks, in the order of (count falling, text)."""

    text: NDArray[np.int32]
    ends: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def longest(self) -> int:
        return int((self.ends[1:] - self.ends[:-1]).max(initial=0))


@dataclass
class _Edges:
    """All pieces that begin at each character of words."""

    at: NDArray[np.int64]
    lengths: NDArray[np.int32]
    ids: NDArray[np.int32]

    def keep(self, new: NDArray[np.int32]) -> None:
        """Only pieces with a new number, which is -1 for those that go."""
        ids = new[self.ids]
        kept = ids >= 0
        self.at = np.concatenate([[0], np.cumsum(kept)])[self.at]
        self.lengths, self.ids = self.lengths[kept], ids[kept]


@dataclass
class _Model:
    """Pieces by where their texts stand, with scores."""

    text: NDArray[np.int32]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    scores: NDArray[np.float64]
    sizes_seen: list[int] = field(default_factory=list)

    def keep(self, kept: Any) -> None:
        """Only these pieces."""
        self.starts, self.sizes, self.scores = self.starts[kept], self.sizes[kept], self.scores[kept]

    @property
    def unknown(self) -> NDArray[np.float64]:
        return np.array([self.scores.min() - PENALTY])


def train_unigram(
    texts: Any = None, size: int = 8000, *, words: Counts | None = None, threads: int | None = None,
    memory: int | None = None, **options: Any,
) -> SpmTrained:  # fmt: skip
    """Train sentencepiece's Unigram on texts (lines are sentences), or on runs with the space behind them.

    options: fields of `SpmOptions`; `byte_fallback` is off if not given.
    """
    chosen = SpmOptions(size, **{"byte_fallback": False, **options})
    if words is None:
        words = count(texts, how=How(runs=FOLLOWED, lines=chosen.max_sentence_length, threads=threads, memory=memory))
    return train_unigram_counts(words, chosen)


def train_unigram_counts(counts: Counts, options: SpmOptions) -> SpmTrained:
    """The pieces of counted runs. CorpusError when the size is below symbols and characters."""
    texts, ranks, required, kinds = _texts(counts, options)
    heads, scores, types = first_pieces(options)
    wanted = options.size - len(heads)
    if wanted < len(required):
        expected = f"{len(heads) + len(required)} or more: {len(heads)} symbols and {len(required)} characters"
        raise CorpusError("train: size", options.size, expected)
    model = _seeds(texts, kinds, options)
    words = _distinct_words(texts)
    edges = _edges(model, words)
    goal = int(options.size * SPARE)
    while True:
        for _ in range(SUB_STEPS):
            _maximize(model, edges, _expected(model, words, edges))
            model.sizes_seen.append(model.starts.size)
        if model.starts.size <= goal:
            break
        before = model.starts.size
        _prune(model, words, edges, goal)
        if model.starts.size <= goal or model.starts.size == before:
            break
    pieces = _final(model, ranks, required, wanted)
    said = [] if len(pieces) == wanted else [f"{len(heads) + len(pieces)} pieces: no others are left"]
    return SpmTrained(
        [*heads, *(text for text, _ in pieces)], [*scores, *(score for _, score in pieces)],
        [*types, *([NORMAL] * len(pieces))], options, None, said, "unigram",
    )  # fmt: skip


@dataclass
class _Texts:
    """Runs as ranks: U+2581, the run, what follows it, -1."""

    text: NDArray[np.int32]
    starts: NDArray[np.int64]  # of each run, where the one behind it begins included
    counts: NDArray[np.int64]


def _texts(counts: Counts, options: SpmOptions) -> tuple[_Texts, NDArray[np.int64], list[int], NDArray[np.int32]]:
    """(the runs, code point of each rank, code points that must be pieces, kinds of ranks)."""
    found = characters_of(counts)
    sizes = np.diff(found.starts)
    last = found.points[np.maximum(found.starts[1:] - 1, 0)] if found.points.size else found.points
    first = found.points[np.minimum(found.starts[:-1], max(found.points.size - 1, 0))] if found.points.size else last
    kept = (sizes > 0) & (first != 0x20) & (first != 0x0A)
    followed = (last == 0x20)[kept]
    points = found.points[np.repeat(kept, sizes)]
    points = np.where(points == 0x20, SPACE_MARK_CODE, points)
    body = sizes[kept] - followed
    starts = np.concatenate([[0], np.cumsum(body + 3)])
    flat = np.zeros(int(starts[-1]), np.int64)
    flat[starts[:-1]] = SPACE_MARK_CODE
    inside = np.ones(points.size, np.bool_)
    inside[np.cumsum(sizes[kept])[followed] - 1] = False
    places = np.arange(int(body.sum())) + np.repeat(3 * np.arange(body.size) + 1, body)
    flat[places] = points[inside]
    flat[starts[1:][followed] - 2] = SPACE_MARK_CODE
    flat[starts[1:] - 1] = -1
    weights = found.counts[kept]
    own = np.ones(flat.size, np.bool_)  # characters of the runs with the mark in front
    own[starts[1:] - 1] = own[starts[1:] - 2] = False
    required = characters_kept(type(found)(flat[own], np.concatenate([[0], np.cumsum(body + 1)]), weights), options)
    ranks = np.array(sorted({0, UNKNOWN_MARK, *required}), np.int64)
    table = np.full(0x110001, int(np.searchsorted(ranks, UNKNOWN_MARK)), np.int32)
    table[ranks], table[-1] = np.arange(ranks.size), -1
    kinds = piece_kinds(ranks, options)
    kinds[(ranks == 0) | (ranks == UNKNOWN_MARK)] |= NO_PIECE
    return _Texts(table[flat], starts, weights), ranks, required, kinds


def _seeds(texts: _Texts, kinds: NDArray[np.int32], options: SpmOptions) -> _Model:
    longest = options.max_piece_length
    text = np.concatenate([texts.text, np.full(longest + 2, -1, np.int32)])
    order = _sorted_suffixes(text, texts.text.size, longest + 2)
    each = np.repeat(texts.counts, np.diff(texts.starts))
    order = order[texts.text[order] >= 0]
    weights = np.concatenate([[0], np.cumsum(each[order])])
    starts, sizes, sums = (np.empty(order.size + 1, np.int64) for _ in range(3))
    number = find_seeds(
        frozen(text, np.int32), kinds, order, weights, longest, np.zeros(2 * (longest + 4), np.int64), starts, sizes,
        sums,
    )  # fmt: skip
    scores = sums[:number] * sizes[:number]
    best = np.argsort(-scores, kind="stable")[:SEEDS]
    own = np.ones(texts.text.size, np.bool_)
    own[texts.starts[1:] - 1] = own[texts.starts[1:] - 2] = False
    single = np.bincount(texts.text[own], weights=each[own].astype(np.float64), minlength=kinds.size).astype(np.int64)
    where = np.zeros(kinds.size, np.int64)
    where[texts.text[own]] = np.flatnonzero(own)
    characters = [k for k in np.argsort(-single, kind="stable").tolist() if single[k] and not kinds[k] & NO_PIECE]
    total = np.concatenate([single[characters], scores[best]]).astype(np.float64)
    return _Model(
        text, np.concatenate([where[characters], starts[best]]),
        np.concatenate([np.ones(len(characters), np.int64), sizes[best]]), np.log(total) - np.log(total.sum()),
    )  # fmt: skip


def _sorted_suffixes(text: NDArray[np.int32], count: int, depth: int) -> NDArray[np.int64]:
    """int64[count]: suffixes sorted by their first `depth` characters or more, by doubling."""
    rank = text.astype(np.int64) + 1
    order, width = np.argsort(rank[:count], kind="stable"), 1
    while width < depth:
        behind = np.zeros(rank.size, np.int64)
        behind[: rank.size - width] = rank[width:]
        key = rank * (int(rank.max()) + 1) + behind
        order = np.argsort(key[:count], kind="stable")
        steps = np.concatenate([[0], np.diff(key[order]) != 0])
        fresh = np.zeros(rank.size, np.int64)
        fresh[order] = np.cumsum(steps) + 1
        rank, width = fresh, 2 * width
    return order


def _distinct_words(texts: _Texts) -> _Words:
    """Runs without what follows them, equal ones together."""
    sums: dict[bytes, int] = {}
    raw, ends = texts.text.tobytes(), (4 * texts.starts).tolist()
    for k, number in enumerate(texts.counts.tolist()):
        word = raw[ends[k] : ends[k + 1] - 8]
        sums[word] = sums.get(word, 0) + number
    parts = sorted(sums, key=lambda word: (-sums[word], np.frombuffer(word, np.int32).astype(">i4").tobytes()))
    flat = np.frombuffer(b"".join(parts), np.int32)
    sizes = np.fromiter(map(len, parts), np.int64, len(parts)) // 4
    counts = np.fromiter((sums[part] for part in parts), np.int64, len(parts))
    return _Words(flat.copy(), np.concatenate([[0], np.cumsum(sizes)]), counts)


def _edges(model: _Model, words: _Words) -> _Edges:
    total = int(model.sizes.sum()) + 2
    slots = 1 << (2 * total).bit_length()
    keys, nodes = np.full(slots, -1, np.int64), np.empty(slots, np.int32)
    tokens = np.full(total, -1, np.int32)
    build_trie(model.text, model.starts, model.sizes, keys, nodes, tokens)
    at, room = np.zeros(words.text.size + 1, np.int64), 8 * words.text.size + 64
    while True:
        lengths, ids = np.empty(room, np.int32), np.empty(room, np.int32)
        number = find_edges(words.text, words.ends, keys, nodes, tokens, at, lengths, ids)
        if number >= 0:
            return _Edges(at, lengths[:number].copy(), ids[:number].copy())
        room *= 2


def _expected(model: _Model, words: _Words, edges: _Edges) -> NDArray[np.float64]:
    expected = np.zeros(model.starts.size, np.float64)
    alpha, beta = np.empty(words.longest + 1), np.empty(words.longest + 1)
    for first in range(0, words.counts.size, STEP):
        last = min(first + STEP, words.counts.size)
        expect(
            words.ends, words.counts, edges.at, edges.lengths, edges.ids, model.scores, model.unknown, first, last,
            alpha, beta, expected,
        )  # fmt: skip
    return expected


def _digamma(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of positive numbers, by sentencepiece's series."""
    x, out = x.copy(), np.zeros_like(x)
    while (low := x < 7).any():
        out[low] -= 1 / x[low]
        x[low] += 1
    x -= 0.5
    z = 1 / (x * x)
    return out + np.log(x) + z / 24 - 7 / 960 * z**2 + 31 / 8064 * z**3 - 127 / 30720 * z**4


def _maximize(model: _Model, edges: _Edges, expected: NDArray[np.float64]) -> None:
    kept = expected >= TOO_FEW
    new = np.full(kept.size, -1, np.int32)
    new[kept] = np.arange(int(kept.sum()))
    model.keep(kept)
    edges.keep(new)
    left = expected[kept]
    model.scores = _digamma(left) - _digamma(np.array([left.sum()]))


def _paths(
    model: _Model, words: _Words, edges: _Edges, skip: bool
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
    out, ends = np.empty(words.text.size, np.int32), np.zeros(words.counts.size + 1, np.int64)
    totals = np.zeros(words.counts.size, np.float64)
    best, back = np.empty(words.longest + 1), np.empty(words.longest + 1, np.int64)
    for first in range(0, words.counts.size, STEP):
        last = min(first + STEP, words.counts.size)
        best_paths(
            words.ends, edges.at, edges.lengths, edges.ids, model.scores, model.unknown, int(skip), first, last,
            best, back, out, ends, totals,
        )  # fmt: skip
    return out[: int(ends[-1])], ends, totals


def _prune(model: _Model, words: _Words, edges: _Edges, goal: int) -> None:
    """Keep the pieces whose loss would cost most, three quarters of them but no fewer than the goal."""
    count = model.starts.size
    places = np.repeat(model.starts - (np.cumsum(model.sizes) - model.sizes), model.sizes) + np.arange(
        model.sizes.sum()
    )
    own = _Words(model.text[places].copy(), np.concatenate([[0], np.cumsum(model.sizes)]), np.ones(count, np.int64))
    own_edges = _edges(model, own)
    others, other_ends, totals = _paths(model, own, own_edges, True)
    split = np.diff(other_ends)
    never = (split > 0) & (totals > model.scores)  # its own text is better cut in two
    path, path_ends, _ = _paths(model, words, edges, False)
    freq = np.bincount(path, weights=np.repeat(words.counts, np.diff(path_ends)).astype(np.float64), minlength=count)
    total = freq.sum()
    kept = (freq > 0) & ~never & (split == 0)
    open_ = np.flatnonzero((freq > 0) & ~never & (split > 0))
    with np.errstate(divide="ignore"):
        own_log = np.log(freq) - np.log(total)
    rows = np.repeat(np.arange(count), split)
    with np.errstate(divide="ignore"):
        each = np.log(freq[others] + freq[rows])
    sums = np.bincount(rows, weights=each, minlength=count) if rows.size else np.zeros(count)
    alternative = sums - split * np.log(total + freq * (split - 1.0))
    loss = freq[open_] / float(words.counts.sum()) * (own_log[open_] - alternative[open_])
    room = max(goal, int(SHRINKS * count)) - int(kept.sum())
    kept[open_[np.argsort(-loss, kind="stable")[: max(room, 0)]]] = True
    new = np.full(count, -1, np.int32)
    new[kept] = np.arange(int(kept.sum()))
    model.keep(kept)
    edges.keep(new)


def _final(model: _Model, ranks: NDArray[np.int64], required: list[int], wanted: int) -> list[tuple[str, float]]:
    """Characters that must be there, then the best pieces; by (score falling, text)."""
    scores = {}
    for start, size, score in zip(model.starts.tolist(), model.sizes.tolist(), model.scores.tolist(), strict=True):
        scores["".join(chr(c) for c in ranks[model.text[start : start + size]].tolist())] = score
    chosen: dict[str, float] = {}
    lowest, penalty = min(scores.values(), default=0.0), 0.0
    for c in required:
        if chr(c) in scores:
            chosen[chr(c)] = scores[chr(c)]
        else:
            chosen[chr(c)] = lowest + penalty
            penalty += PENALTY_STEP
    for text, score in sorted(scores.items(), key=lambda row: (-row[1], row[0].encode())):
        if len(chosen) == wanted:
            break
        chosen.setdefault(text, score)
    return sorted(chosen.items(), key=lambda row: (-row[1], row[0].encode()))
