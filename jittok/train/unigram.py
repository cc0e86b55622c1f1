"""sentencepiece's Unigram (0.2.3, `unigram_model_trainer.cc`): seeds, expectation and maximization, pruning.

Seeds are the characters and all texts that go on in more than one way and are pieces, scored by frequency times
length. Then, in turns: expected counts over all segmentations of all words, scores from them, twice; and pruning by
what the likelihood loses when a piece is taken away. Numbers have 32 bits, and words are added in slices, where
sentencepiece does so: in as many as it has threads, 16 if no one says otherwise. The number of slices changes last
digits; the threads that do the work change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import frozen
from jittok.corpus.cancellation import Cancellation, stoppable_pool
from jittok.encode.stretches import thread_count
from jittok.errors import CorpusError, InWords
from jittok.train.counting import How, count
from jittok.train.counts import Counts
from jittok.train.exponents import tables
from jittok.train.lattice import (
    ALTERNATIVES,
    ONE_WAY,
    SegmentEnds,
    TrainingLattice,
    TwoBestAgenda,
    count_best,
    expected_counts,
    find_shadowed,
    two_best,
)
from jittok.train.seed_kernels import (
    FACTS,
    NO_PIECE,
    count_edges,
    find_seeds,
    keep_edges,
    put_edges,
    sort_suffixes,
    valid_text,
)
from jittok.train.sentences import FOLLOWED, Sentences, sentences_of
from jittok.train.shared_parts import Shared, shared_parts
from jittok.train.spm import NORMAL, UNKNOWN_MARK, SpmOptions, SpmTrained, first_pieces, piece_kinds, runs_of, too_long

F = np.float32
Floats = NDArray[np.float32]
SEEDS, SUB_STEPS, SHRINKS, TOO_FEW, SPARE = 1_000_000, 2, F(0.75), F(0.5), 1.1
PENALTY, PENALTY_STEP = F(10.0), F(0.0001)
STEP = 1 << 14
"""Words a kernel does before it answers."""


class UnigramStep(NamedTuple):
    """A line of the log: after a maximization."""

    turn: int
    pieces: int
    objective: np.float32
    tokens: int


@dataclass
class _TrainingModel:
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


def train_unigram(
    texts: Any = None, size: int = 8000, *, words: Counts | None = None, threads: int | None = None,
    memory: int | None = None, log: Callable[[UnigramStep], None] | None = None, **options: Any,
) -> SpmTrained:  # fmt: skip
    """Train sentencepiece's Unigram on texts (lines are sentences), or on runs with the space after them.

    log: is told every maximization. options: fields of `SpmOptions`; `byte_fallback` is off if not given.
    """
    chosen = SpmOptions(size, **{"byte_fallback": False, **options})
    if words is None:
        words = count(texts, how=followed_of(chosen, threads, memory))
    return train_unigram_counts(words, chosen, threads, log)


def followed_of(options: SpmOptions, threads: int | None = None, memory: int | None = None) -> How:
    """How words are counted for this trainer."""
    return replace(runs_of(options, threads, memory), runs=FOLLOWED)


def train_unigram_counts(
    counts: Counts, options: SpmOptions, threads: int | None = None, log: Callable[[UnigramStep], None] | None = None
) -> SpmTrained:
    """The pieces of counted runs. CorpusError when there are none, or the size is below symbols and characters."""
    sentences = sentences_of(counts, options)
    if not sentences.required:
        raise CorpusError("texts", InWords("no characters to learn from"), "lines with words in them")
    heads, scores, types = first_pieces(options)
    wanted = options.size - len(heads)
    if wanted < len(sentences.required):
        expected = f"{len(heads) + len(sentences.required)} or more: {len(heads)} symbols and "
        raise CorpusError("--size", options.size, f"{expected}{len(sentences.required)} characters")
    model = seeds(sentences, options)
    model.threads = thread_count(threads)
    goal = int(options.size * SPARE)
    while True:
        for turn in range(SUB_STEPS):
            tokens = 0 if log is None else int(_best_counts(model, options.slices)[1])
            expected_counts, objective = expectation(model, options.slices)
            _maximize(model, expected_counts)
            if log is not None:
                log(UnigramStep(turn, model.spots.size, objective, tokens))
        before = model.spots.size
        _prune(model, goal, options.slices)
        if model.spots.size <= goal or model.spots.size == before:
            break
    shadowed = np.empty(model.spots.size, np.uint8)
    find_shadowed(model.lattice, model.spots, model.sizes, np.empty(options.max_piece_length + 1, F), shadowed)
    kept = np.flatnonzero(shadowed == 0)
    model.take(kept, model.scores[kept])
    pieces = _final(model, sentences.required, wanted)
    said = [] if len(pieces) == wanted else [f"{len(heads) + len(pieces)} pieces: no others are left"]
    said += too_long(counts, options.max_sentence_length)
    return SpmTrained(
        [*heads, *(text for text, _ in pieces)], [*scores, *(score for _, score in pieces)],
        [*types, *([NORMAL] * len(pieces))], options, None, said, "unigram",
    )  # fmt: skip


def seeds(sentences: Sentences, options: SpmOptions) -> _TrainingModel:
    """Characters by count, then the best texts, with the logarithms of their shares; and all their edges."""
    longest = options.max_piece_length
    kinds = piece_kinds(sentences.characters, options)
    kinds[sentences.characters == UNKNOWN_MARK] |= NO_PIECE
    points = sentences.characters.tolist()
    leads = np.array([chr(c).encode()[0] for c in points], np.int32)
    parts = shared_parts(sentences, kinds, leads)
    text, ends = parts.text, parts.ends
    letters = np.diff(ends)
    word_of = np.repeat(np.arange(letters.size), letters)
    rest = (ends[1:][word_of] - np.arange(text.size)).astype(np.int32)
    order, other, grouped = (np.empty(text.size, np.int32) for _ in range(3))
    depth = longest + 2 + longest % 2
    capacity, groups = np.zeros(len(points) + 1, np.int64), np.zeros(depth + 2, np.int64)
    sort_suffixes(text, rest, depth, capacity, groups, grouped, order, other)
    each = parts.counts[word_of]
    weights = np.concatenate([[0], np.cumsum(each[order])])
    most, number = text.size // 2 + 64, -1
    while number < 0:
        firsts, lasts, sizes = (np.empty(most, np.int64) for _ in range(3))
        number = find_seeds(
            text, rest, parts.after[word_of], kinds, leads, order, weights, longest,
            np.zeros(FACTS * (longest + 4), np.int64), firsts, lasts, sizes,
        )  # fmt: skip
        most *= 2
    firsts, lasts, sizes = firsts[:number], lasts[:number], sizes[:number]
    sums = weights[lasts] - weights[firsts]
    firsts, lasts, sizes, sums = _with_last(sentences, parts, kinds, order, rest, longest, (firsts, lasts, sizes, sums))
    scores = sums.astype(F) * sizes.astype(F)
    long = np.array([len(chr(c).encode()) for c in points], np.int64)
    through = np.concatenate([[0], np.cumsum(long[text])])
    raw = through[order[firsts] + sizes] - through[order[firsts]]
    best = np.lexsort((firsts, -raw, -scores))[:SEEDS]
    firsts, lasts, sizes, scores = firsts[best], lasts[best], sizes[best], scores[best]
    found = np.bincount(text, weights=each, minlength=len(points)).astype(np.int64)
    found[sentences.characters == UNKNOWN_MARK] = 0
    alone = np.argsort(-found, kind="stable")[: np.count_nonzero(found)]
    where = np.zeros(len(points), np.int64)
    where[text] = np.arange(text.size)
    single = np.full(len(points), -1, np.int32)
    single[alone] = np.arange(alone.size)
    ids_of = np.arange(alone.size, alone.size + best.size, dtype=np.int32)
    values = np.concatenate([found[alone].astype(F), scores]).astype(np.float64)
    shares = (np.log(values) - np.log(np.cumsum(values)[-1])).astype(F)
    at = np.empty(text.size + 1, np.int64)
    total = count_edges(text, order, single, firsts, lasts, at)
    lengths, ids = np.empty(total, np.uint16), np.empty(total, np.int32)
    put_edges(
        text, order, single, firsts, lasts, sizes, np.argsort(sizes, kind="stable"), ids_of, at,
        np.zeros(text.size, np.int32), lengths, ids,
    )  # fmt: skip
    spots = np.concatenate([where[alone], order[firsts]])
    sizes = np.concatenate([np.ones(alone.size, np.int64), sizes])
    return _TrainingModel(sentences, parts, spots, sizes, shares, at, lengths, ids)


def _with_last(
    sentences: Sentences, parts: Shared, kinds: Any, order: Any, rest: Any, longest: int, found: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Seeds with what the last line adds. Nothing is after that line. So a text that it ends with goes on in more than
    one way if another line ends with it too. Then the text counts as often as there are such lines."""
    firsts, lasts, sizes, sums = found
    text, word = parts.text, frozen(sentences.last, np.int32)
    stops = sentences.ends[1:]
    for size in range(2, min(word.size, longest) + 1):
        own = word[word.size - size :]
        if not valid_text(own, kinds, 0, size):
            continue
        long = np.flatnonzero(np.diff(sentences.ends) >= size)
        for k in range(size):
            long = long[sentences.text[stops[long] - size + k] == own[k]]
        lines = int(sentences.lines[long].sum())
        if lines < 2:
            continue
        here = np.flatnonzero(rest >= size)
        for k in range(size):
            here = here[text[here + k] == own[k]]
        inside = np.zeros(text.size, np.bool_)
        inside[here] = True
        positions = np.flatnonzero(inside[order])
        first, last = int(positions[0]), int(positions[-1]) + 1
        same = np.flatnonzero((firsts == first) & (sizes == size))
        if same.size:
            sums[same[0]] += lines
        else:
            firsts, lasts = np.append(firsts, first), np.append(lasts, last)
            sizes, sums = np.append(sizes, size), np.append(sums, lines)
    return firsts, lasts, sizes, sums


def _slices(model: _TrainingModel, slices: int, run: Callable[[int], Any]) -> Iterator[Any]:
    """What `run` answers for each slice, in their order; on several threads."""
    if model.threads == 1:
        yield from map(run, range(slices))
        return
    with stoppable_pool(min(model.threads, slices), Cancellation()) as pool:
        yield from pool.map(run, range(slices))


def expectation(model: _TrainingModel, slices: int) -> tuple[Floats, np.float32]:
    """(expected counts of all pieces, the negated log-likelihood of a word)."""
    words, lattice = model.sentences, model.lattice
    total = np.array([words.counts.sum()], F)

    def run(part: int) -> tuple[Floats, Floats]:
        own, objective = np.zeros(model.spots.size, F), np.zeros(1, F)
        alpha, beta = np.empty(words.longest + 1, F), np.empty(words.longest + 1, F)
        for first in range(part, words.counts.size, STEP * slices):
            last = min(first + STEP * slices, words.counts.size)
            expected_counts(lattice, tables(), total, first, last, slices, alpha, beta, own, objective)
        return own, objective

    parts = _slices(model, slices, run)
    expected, objective = next(parts)
    for own, its in parts:
        expected += own
        objective += its
    return expected, objective[0]


def _best_counts(model: _TrainingModel, slices: int) -> tuple[Floats, int]:
    """(how often each piece is in the best segmentations, pieces of all of them)."""
    words, lattice = model.sentences, model.lattice

    def run(part: int) -> tuple[Floats, int]:
        own, tokens = np.zeros(model.spots.size, F), 0
        best, back = np.empty(words.longest + 1, F), np.empty(words.longest + 1, np.int64)
        for first in range(part, words.counts.size, STEP * slices):
            last = min(first + STEP * slices, words.counts.size)
            tokens += count_best(lattice, first, last, slices, best, back, own)
        return own, tokens

    freq, tokens = np.zeros(model.spots.size, F), 0
    for own, number in _slices(model, slices, run):
        freq += own
        tokens += number
    return freq, tokens


def digamma(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of positive numbers, by sentencepiece's series."""
    x, out = x.copy(), np.zeros_like(x)
    while (low := x < 7).any():
        out[low] -= 1 / x[low]
        x[low] += 1
    x -= 0.5
    a = 1 / x
    b = a * a
    c = b * b
    return out + (np.log(x) + (1 / 24) * b - (7 / 960) * c + (31 / 8064) * c * b - (127 / 30720) * c * c)


def _maximize(model: _TrainingModel, expected: Floats) -> None:
    kept = np.flatnonzero(expected >= TOO_FEW)
    left = expected[kept]
    whole = F(digamma(np.cumsum(left, dtype=F)[-1:].astype(np.float64))[0])
    model.take(kept, (digamma(left.astype(np.float64)) - np.float64(whole)).astype(F))


def _prune(model: _TrainingModel, goal: int, slices: int) -> None:
    """Keep pieces that nothing else can stand for, then those whose loss would cost most: three quarters of all."""
    count = model.spots.size
    freq, _ = _best_counts(model, slices)
    total = F(np.cumsum(freq.astype(np.float64))[-1])
    ways, others, ends = _alternatives(model, freq)
    kept = np.flatnonzero((freq > 0) & (ways == ONE_WAY))
    open_ = np.flatnonzero((freq > 0) & (ways == ALTERNATIVES))
    own, split = freq[open_], (ends[open_ + 1] - ends[open_])
    own_log = (np.log(own.astype(np.float64)) - np.float64(F(np.log(np.float64(total))))).astype(F)
    whole = np.log((total + own * (split - 1).astype(F)).astype(np.float64)).astype(F)
    other_log = np.zeros(open_.size, F)
    for k in range(int(split.max(initial=0))):
        rows = np.flatnonzero(split > k)
        both = (freq[others[ends[open_[rows]] + k]] + own[rows]).astype(np.float64)
        other_log[rows] = (other_log[rows] + (np.log(both) - whole[rows].astype(np.float64))).astype(F)
    loss = (own / total) * (own_log - other_log)
    capacity = max(goal, int(SHRINKS * F(count))) - kept.size
    best = open_[np.argsort(-loss, kind="stable")[: max(capacity, 0)]]
    pieces = np.concatenate([kept, best])
    model.take(pieces, model.scores[pieces])


def _alternatives(model: _TrainingModel, freq: Floats) -> tuple[Any, Any, Any]:
    """(what each piece could be cut into: ways, ids, where those of each piece begin)."""
    longest, count = int(model.sizes.max()), model.spots.size
    edges = longest * (longest + 1) // 2 + longest

    def i32(size: int) -> NDArray[np.int32]:
        return np.empty(size, np.int32)

    def f32(size: int) -> Floats:
        return np.empty(size, F)

    ends = SegmentEnds(f32(longest + 1), i32(longest + 1), i32(longest + 1), i32(edges), i32(edges), i32(edges),
    f32(edges),
                f32(edges))  # fmt: skip
    capacity = 1 << 12
    ways, out, out_ends = np.empty(count, np.uint8), i32(4 * count + 64), np.zeros(count + 1, np.int64)
    lattice, done = model.lattice, 0
    while done < count:
        last = min(done + STEP, count)
        agenda = TwoBestAgenda(
            i32(capacity),
            f32(capacity),
            f32(capacity),
            i32(capacity),
            i32(capacity),
            i32(capacity),
            np.zeros(2, np.int64),
        )
        came = two_best(lattice, model.spots, model.sizes, freq, done, last, ends, agenda, ways, out, out_ends)
        if came < last:
            capacity *= 2
            out = np.concatenate([out, i32(out.size + longest)])
        done = came
    return ways, out, out_ends


def _final(model: _TrainingModel, required: list[int], wanted: int) -> list[tuple[str, float]]:
    """Characters that must be there, then the best pieces; by (score falling, text)."""
    scores = dict(zip(model.texts(), model.scores.tolist(), strict=True))
    chosen: dict[str, float] = {}
    lowest, penalty = model.scores.min(), F(0)
    for c in required:
        if chr(c) in scores:
            chosen[chr(c)] = scores[chr(c)]
        else:
            chosen[chr(c)] = float(F(lowest + penalty))
            penalty = F(penalty + PENALTY_STEP)
    for text, score in sorted(scores.items(), key=lambda row: (-row[1], row[0])):
        if text not in chosen:
            if len(chosen) == wanted:
                break
            chosen[text] = score
    return sorted(chosen.items(), key=lambda row: (-row[1], row[0]))
