"""Kernels of Unigram's training: all segmentations of each word, the best one, the two best of each piece.

A word's edges are the pieces that begin at each of its characters, shorter ones first. Where no piece of one character
begins there is an unknown edge, which counts for piece 0. Numbers have 32 bits where sentencepiece's have, and
sums are in its order. Exponentials are read from tables (`ExponentTables`), so that machine code asks for no C library.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import F32, I32, I64, OutF32, OutF64, OutI32, OutI64, OutU8, OutU16, as_int64, helper, kernel
from jittok.train.unigram.sentences import Sentences, Shared

F = np.float32
Floats = NDArray[np.float32]
PENALTY = F(10.0)
"""An unknown character scores so much less than the worst piece."""
NONE = np.float32(-3e38)
ONE_WAY, SPLIT, ALTERNATIVES = 0, 1, 2
GRID = 64
"""Values a unit: a number is at most 1 / 128 from one of them."""
CUT = 50
"""log(exp(x) + exp(y)) is x when y is below x by more."""
TERMS = 6
LEAST_EXPONENT = -87.0
"""exp of less is 0."""


class ExponentTables(NamedTuple):
    """What the functions read."""

    log_sums: OutF64  # [TERMS * (GRID * CUT + 2)] the Taylor series of log(1 + exp(-k / GRID)) for each k
    powers: OutF64  # [GRID * 88 + 2] exp(-k / GRID)


@cache
def tables() -> ExponentTables:
    """The tables."""
    rows = []
    for k in range(GRID * CUT + 2):
        x = math.exp(-k / GRID)
        s = x / (1 + x)  # the derivative, and polynomials of it are the further ones
        t = s * (1 - s)
        rows.append((
            math.log1p(x), s, t / 2, t * (1 - 2 * s) / 6, t * (1 - 6 * t) / 24, t * (1 - 2 * s) * (1 - 12 * t) / 120,
        ))  # fmt: skip
    powers = [math.exp(-k / GRID) for k in range(GRID * 88 + 2)]
    return ExponentTables(np.array(rows, np.float64).reshape(-1), np.array(powers, np.float64))


@helper
def log_sum(found: ExponentTables, x: Any, y: Any) -> Any:
    """float32: log(exp(x) + exp(y)) of two float32."""
    low, high = (x, y) if x < y else (y, x)
    if high > np.float32(low + np.float32(50.0)):
        return high
    d = np.float64(np.float32(low - high))
    k = int(0.5 - d * GRID)
    r, c, at = d + k / GRID, found.log_sums, TERMS * k
    square = r * r
    near = c[at] + r * c[at + 1]
    far = (c[at + 2] + r * c[at + 3]) + square * (c[at + 4] + r * c[at + 5])
    return np.float32(np.float64(high) + (near + square * far))


@helper
def exp(found: ExponentTables, x: Any) -> float:
    """float64: exp(x) of a float32 that is 0 or less, but for rounding."""
    if x < LEAST_EXPONENT:
        return 0.0
    d = np.float64(x)
    k = max(int(0.5 - d * GRID), 0)
    r = d + k / GRID
    square = r * r
    series = (1.0 + r) + square * ((1 / 2 + r / 6) + square * (1 / 24 + r / 120 + square / 720))
    return float(found.powers[k] * series)


class TrainingLattice(NamedTuple):
    """Words and their edges."""

    ends: I64  # [words + 1] word w is characters ends[w] .. ends[w + 1] - 1
    counts: I64  # [words]
    where: I32  # [characters of the words] which character of the shared parts each is
    at: OutI64  # [characters of the parts + 1] where the edges of each begin
    lengths: OutU16  # [edges]
    ids: OutI32  # [edges]
    scores: OutF32  # [pieces]
    unknown: OutF32  # [1]


class TwoBestAgenda(NamedTuple):
    """Hypotheses of a search for the best paths: begun at the end of a text, expanded where it leaves off."""

    heap: OutI32  # [hypotheses] those that wait, the best first
    whole: OutF32  # [hypotheses] the score that is possible at best
    after: OutF32  # [hypotheses] the score of what is settled
    position: OutI32  # [hypotheses] where it leaves off; -1: before the text
    piece: OutI32  # [hypotheses] what begins there
    next: OutI32  # [hypotheses] the hypothesis that it was made of
    state: OutI64  # [2] how many wait, how many there are


class SegmentEnds(NamedTuple):
    """The edges of a text by where they end."""

    best: OutF32  # [longest + 1]
    head: OutI32  # [longest + 1] first edge, or -1
    tail: OutI32  # [longest + 1] last edge
    next: OutI32  # [edges of a text] the next one that ends there
    begin: OutI32  # [edges of a text]
    piece: OutI32  # [edges of a text]
    score: OutF32  # [edges of a text]
    whole: OutF32  # [edges of a text] with the best of what is before


@kernel
def expected_counts(
    lattice: TrainingLattice, tables: ExponentTables, total: F32, first: int, last: int, step: int, alpha: OutF32,
    beta: OutF32, expected: OutF32, objective: OutF32,
) -> int:  # fmt: skip
    """Adds the expected count of each piece in words first, first + step .. last - 1.

    total: [1] occurrences of all words; alpha, beta: [longest word + 1]; objective: [1] gets the negated likelihoods.
    """
    at, lengths, ids, scores, unknown = lattice.at, lattice.lengths, lattice.ids, lattice.scores, lattice.unknown[0]
    where = lattice.where
    for w in range(first, last, step):
        begin, size = lattice.ends[w], lattice.ends[w + 1] - lattice.ends[w]
        for p in range(size + 1):
            alpha[p], beta[p] = NONE, NONE
        alpha[0], beta[size] = 0.0, 0.0
        for p in range(size):
            single = False
            c = as_int64(where[begin + p])
            for e in range(at[c], at[c + 1]):
                q = p + as_int64(lengths[e])
                single |= q == p + 1
                x = np.float32(scores[ids[e]] + alpha[p])
                alpha[q] = x if alpha[q] == NONE else log_sum(tables, alpha[q], x)
            if not single:
                x = np.float32(unknown + alpha[p])
                alpha[p + 1] = x if alpha[p + 1] == NONE else log_sum(tables, alpha[p + 1], x)
        for p in range(size - 1, -1, -1):
            single, sum_ = False, NONE
            c = as_int64(where[begin + p])
            for e in range(at[c], at[c + 1]):
                q = p + as_int64(lengths[e])
                single |= q == p + 1
                x = np.float32(scores[ids[e]] + beta[q])
                sum_ = x if sum_ == NONE else log_sum(tables, sum_, x)
            if not single:
                x = np.float32(unknown + beta[p + 1])
                sum_ = x if sum_ == NONE else log_sum(tables, sum_, x)
            beta[p] = sum_
        whole = alpha[size]
        count = np.float32(lattice.counts[w])
        for p in range(size):
            single = False
            c = as_int64(where[begin + p])
            for e in range(at[c], at[c + 1]):
                q = p + as_int64(lengths[e])
                single |= q == p + 1
                k = ids[e]
                x = np.float32(np.float32(np.float32(alpha[p] + scores[k]) + beta[q]) - whole)
                expected[k] = np.float32(np.float64(expected[k]) + np.float64(count) * exp(tables, x))
            if not single:
                x = np.float32(np.float32(np.float32(alpha[p] + unknown) + beta[p + 1]) - whole)
                expected[0] = np.float32(np.float64(expected[0]) + np.float64(count) * exp(tables, x))
        objective[0] = np.float32(objective[0] - np.float32(np.float32(count * whole) / total[0]))
    return last


@kernel
def count_best(
    lattice: TrainingLattice, first: int, last: int, step: int, best: OutF32, back: OutI64, freq: OutF32
) -> int:
    """Adds how often each piece is in the best segmentations of words first, first + step .. last - 1; their pieces.

    best, back: [longest word + 1]. The first of the best wins.
    """
    at, lengths, ids, scores, unknown = lattice.at, lattice.lengths, lattice.ids, lattice.scores, lattice.unknown[0]
    where = lattice.where
    tokens = 0
    for w in range(first, last, step):
        begin, size = lattice.ends[w], lattice.ends[w + 1] - lattice.ends[w]
        for p in range(size + 1):
            best[p] = NONE
        best[0] = 0.0
        for p in range(size):
            single = False
            c = as_int64(where[begin + p])
            for e in range(at[c], at[c + 1]):
                q = p + as_int64(lengths[e])
                single |= q == p + 1
                x = np.float32(best[p] + scores[ids[e]])
                if x > best[q]:
                    best[q], back[q] = x, e
            if not single:
                x = np.float32(best[p] + unknown)
                if x > best[p + 1]:
                    best[p + 1], back[p + 1] = x, -1
        count, p = np.float32(lattice.counts[w]), size
        while p > 0:
            e = back[p]
            k = as_int64(ids[e]) if e >= 0 else 0
            freq[k] = np.float32(freq[k] + count)
            tokens += lattice.counts[w]
            p -= as_int64(lengths[e]) if e >= 0 else 1
    return tokens


@kernel
def find_shadowed(lattice: TrainingLattice, spots: I64, sizes: I64, best: OutF32, shadowed: OutU8) -> int:
    """1 for pieces whose text has a better segmentation than the piece itself.

    spots: where in the parts each piece is, sizes: its characters; best: [longest piece + 1]
    """
    at, lengths, ids, scores, unknown = lattice.at, lattice.lengths, lattice.ids, lattice.scores, lattice.unknown[0]
    for k in range(spots.size):
        begin, size = spots[k], sizes[k]
        for p in range(size + 1):
            best[p] = NONE
        best[0] = 0.0
        for p in range(size):
            single = False
            for e in range(at[begin + p], at[begin + p + 1]):
                length = as_int64(lengths[e])
                single |= length == 1
                if p + length > size:
                    break
                if length < size:
                    best[p + length] = max(best[p + length], np.float32(best[p] + scores[ids[e]]))
            if not single:
                best[p + 1] = max(best[p + 1], np.float32(best[p] + unknown))
        shadowed[k] = int(best[size] > scores[k])
    return 0


@helper
def _put_edge(ends: SegmentEnds, number: int, begin: int, end: int, piece: int, score: float) -> None:
    x = np.float32(ends.best[begin] + score)
    ends.next[number], ends.begin[number], ends.piece[number] = -1, begin, piece
    ends.score[number], ends.whole[number] = score, x
    if ends.head[end] < 0:
        ends.head[end] = number
    else:
        ends.next[ends.tail[end]] = number
    ends.tail[end] = number
    ends.best[end] = max(ends.best[end], x)


@helper
def _push(agenda: TwoBestAgenda, whole: float, after: float, position: int, piece: int, before: int) -> None:
    """A new hypothesis; the heap is that of C++'s `std::push_heap`, which decides between equals."""
    h, i = agenda.state[1], agenda.state[0]
    agenda.whole[h], agenda.after[h], agenda.position[h] = whole, after, position
    agenda.piece[h], agenda.next[h] = piece, before
    agenda.state[0], agenda.state[1] = i + 1, h + 1
    _rise(agenda, i, h)


@helper
def _rise(agenda: TwoBestAgenda, i: int, h: int) -> None:
    heap, whole = agenda.heap, agenda.whole
    while i > 0 and whole[heap[(i - 1) // 2]] < whole[h]:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = h


@helper
def _pop(agenda: TwoBestAgenda) -> int:
    """The best hypothesis, as `std::pop_heap` takes it: the hole goes down to a leaf, the last one up from there."""
    heap, whole = agenda.heap, agenda.whole
    top, size = as_int64(heap[0]), agenda.state[0] - 1
    h = as_int64(heap[size])
    agenda.state[0] = size
    if size > 0:
        i, child = 0, 0
        while child < (size - 1) // 2:
            child = 2 * (child + 1)
            if whole[heap[child]] < whole[heap[child - 1]]:
                child -= 1
            heap[i] = heap[child]
            i = child
        if size % 2 == 0 and child == (size - 2) // 2:
            child = 2 * (child + 1)
            heap[i] = heap[child - 1]
            i = child - 1
        _rise(agenda, i, h)
    return top


@helper
def _list_edges(lattice: TrainingLattice, begin: int, size: int, ends: SegmentEnds) -> int:
    """The edges of the text of `size` characters from `begin` on, by where they end; how many."""
    for p in range(size + 1):
        ends.best[p], ends.head[p] = NONE, -1
    ends.best[0] = 0.0
    number = 0
    for p in range(size):
        single = False
        for e in range(lattice.at[begin + p], lattice.at[begin + p + 1]):
            length = as_int64(lattice.lengths[e])
            single |= length == 1
            if p + length > size:
                break
            piece = as_int64(lattice.ids[e])
            _put_edge(ends, number, p, p + length, piece, lattice.scores[piece])
            number += 1
        if not single:
            _put_edge(ends, number, p, p + 1, 0, lattice.unknown[0])
            number += 1
    return number


@helper
def _second_best(agenda: TwoBestAgenda, ends: SegmentEnds, size: int, edges: int) -> tuple[int, int]:
    """(ONE_WAY, SPLIT or ALTERNATIVES; for the last one the first hypothesis of the second best path). (-1, 0) if the
    agenda needs more capacity."""
    agenda.state[0], agenda.state[1] = 0, 0
    _push(agenda, ends.best[size], np.float32(0.0), size, -1, -1)
    found = False
    while agenda.state[0] > 0:
        if agenda.state[1] + edges + 1 > agenda.heap.size:
            return -1, 0
        h = _pop(agenda)
        position, after = as_int64(agenda.position[h]), agenda.after[h]
        if position < 0:  # hypotheses of a path: before, its pieces, the end
            h = as_int64(agenda.next[h])
            if found:
                return ALTERNATIVES, h
            if agenda.next[agenda.next[h]] >= 0:
                return SPLIT, 0
            found = True
            continue
        if position == 0:
            _push(agenda, after, after, -1, -1, h)
            continue
        e = as_int64(ends.head[position])
        while e >= 0:
            whole, rest = np.float32(ends.whole[e] + after), np.float32(ends.score[e] + after)
            _push(agenda, whole, rest, as_int64(ends.begin[e]), as_int64(ends.piece[e]), h)
            e = as_int64(ends.next[e])
    return ONE_WAY, 0


@kernel
def two_best(
    lattice: TrainingLattice, spots: I64, sizes: I64, freq: F32, first: int, last: int, ends: SegmentEnds,
    agenda: TwoBestAgenda, ways: OutU8, out: OutI32, out_ends: OutI64,
) -> int:  # fmt: skip
    """What else pieces first .. last - 1 could be cut into. Returns the piece it came to.

    ways: ONE_WAY, SPLIT (its best segmentation is another), ALTERNATIVES (those of its second best, in `out`).
    Pieces that are never used (`freq` is 0) are left out. Less than `last`: the agenda or `out` needs more capacity.
    """
    count = out_ends[first]
    for k in range(first, last):
        out_ends[k + 1], ways[k] = count, ONE_WAY
        if freq[k] == 0:
            continue
        edges = _list_edges(lattice, spots[k], sizes[k], ends)
        way, h = _second_best(agenda, ends, sizes[k], edges)
        if way < 0:
            return k
        ways[k] = way
        if way == ALTERNATIVES:
            while agenda.next[h] >= 0:
                if count >= out.size:
                    return k
                out[count] = agenda.piece[h]
                count += 1
                h = as_int64(agenda.next[h])
            out_ends[k + 1] = count
    return last


@kernel
def keep_edges(number: I32, at: OutI64, lengths: OutU16, ids: OutI32) -> int:
    """Edges of pieces with a new number, which is -1 for those that go; how many are left. Written in place."""
    done, begin = 0, at[0]
    for i in range(at.size - 1):
        stop = at[i + 1]
        at[i] = done
        for e in range(begin, stop):
            k = as_int64(number[ids[e]])
            if k >= 0:
                lengths[done], ids[done] = lengths[e], k
                done += 1
        begin = stop
    at[at.size - 1] = done
    return done


@dataclass
class TrainingModel:
    """Pieces by where their texts are in the parts of words, with scores, and the edges they are."""

    sentences: Sentences
    parts: Shared
    spots: NDArray[np.int64]
    sizes: NDArray[np.int64]
    scores: Floats
    at: NDArray[np.int64]
    lengths: NDArray[np.uint16]
    ids: NDArray[np.int32]
    threads: int = 1

    @property
    def lattice(self) -> TrainingLattice:
        """What kernels look at."""
        words, where, unknown = self.sentences, self.parts.where, np.array([self.scores.min() - PENALTY], F)
        return TrainingLattice(words.ends, words.counts, where, self.at, self.lengths, self.ids, self.scores, unknown)

    def take(self, pieces: NDArray[np.int64], scores: Floats) -> None:
        """Only these pieces, in this order, with these scores."""
        number = np.full(self.spots.size, -1, np.int32)
        number[pieces] = np.arange(pieces.size, dtype=np.int32)
        left = keep_edges(number, self.at, self.lengths, self.ids)
        self.lengths, self.ids = self.lengths[:left], self.ids[:left]
        self.spots, self.sizes, self.scores = self.spots[pieces], self.sizes[pieces], scores

    def texts(self) -> list[str]:
        """The text of each piece."""
        words, ends = self.sentences, np.cumsum(self.sizes)
        positions = np.repeat(self.spots - ends + self.sizes, self.sizes) + np.arange(ends[-1])
        text = words.characters[self.parts.text[positions]].astype("<u4").tobytes().decode("utf-32-le")
        return [text[i:j] for i, j in zip((ends - self.sizes).tolist(), ends.tolist(), strict=True)]
