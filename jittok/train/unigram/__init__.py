"""sentencepiece's Unigram (0.2.3, `unigram_model_trainer.cc`): seeds, expectation and maximization, pruning.

Seeds are the characters and all texts that go on in more than one way and are pieces, scored by frequency times
length. Then, in turns: expected counts over all segmentations of all words, scores from them, twice; and pruning by
what the likelihood loses when a piece is taken away. Numbers have 32 bits, and words are added in slices, where
sentencepiece does so: in as many as it has threads, by default 16. The number of slices changes last
digits; the threads that do the work change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.display.progress import Bar, Show
from jittok.encode.threads.stretches import thread_count
from jittok.errors import CorpusError, InWords
from jittok.kernels.jit.pool import Cancellation, stoppable_pool
from jittok.train.counting.count import How, count
from jittok.train.counting.counts import Counts
from jittok.train.spm import NORMAL, SpmOptions, SpmTrained, check_keywords, first_pieces, runs_of, too_long
from jittok.train.unigram.lattice import (
    ALTERNATIVES,
    ONE_WAY,
    F,
    Floats,
    SegmentEnds,
    TrainingModel,
    TwoBestAgenda,
    count_best,
    expected_counts,
    find_shadowed,
    tables,
    two_best,
)
from jittok.train.unigram.seeds import seed_model
from jittok.train.unigram.sentences import FOLLOWED, sentences_of

SUB_STEPS, SHRINKS, TOO_FEW, SPARE = 2, F(0.75), F(0.5), 1.1
PENALTY_STEP = F(0.0001)
STEP = 1 << 14
"""Words of one call of a kernel."""


class UnigramStep(NamedTuple):
    """A line of the log: after a maximization."""

    turn: int
    pieces: int
    objective: np.float32
    tokens: int


def train_unigram(
    texts: Any = None, size: int = 8000, *, words: Counts | None = None, threads: int | None = None,
    memory: int | None = None, log: Callable[[UnigramStep], None] | None = None, progress: Show = "auto",
    **options: Any,
) -> SpmTrained:  # fmt: skip
    """Train sentencepiece's Unigram on texts (lines are sentences), or on runs with the space after them.

    log: is called after every maximization. progress: as for `jittok.train`. options: fields of
    `SpmOptions`; `byte_fallback` is off if not given.
    """
    check_keywords(train_unigram, options)
    chosen = SpmOptions(size, **{"byte_fallback": False, **options})
    if words is None:
        words = count(texts, how=followed_of(chosen, threads, memory), progress=progress)
    return train_unigram_counts(words, chosen, threads, log, progress)


def followed_of(options: SpmOptions, threads: int | None = None, memory: int | None = None) -> How:
    """How words are counted for this trainer."""
    return replace(runs_of(options, threads, memory), runs=FOLLOWED)


def train_unigram_counts(
    counts: Counts, options: SpmOptions, threads: int | None = None, log: Callable[[UnigramStep], None] | None = None,
    progress: Show = False,
) -> SpmTrained:  # fmt: skip
    """The pieces of counted runs. CorpusError when there are none, or the size is below symbols and characters."""
    sentences = sentences_of(counts, options)
    if not sentences.required:
        raise CorpusError("texts", InWords("no characters to learn from"), "lines with words in them")
    heads, scores, types = first_pieces(options)
    wanted = options.size - len(heads)
    if wanted < len(sentences.required):
        expected = f"{len(heads) + len(sentences.required)} or more: {len(heads)} symbols and "
        raise CorpusError("--size", options.size, f"{expected}{len(sentences.required)} characters")
    model = seed_model(sentences, options)
    model.threads = thread_count(threads)
    _learn(model, int(options.size * SPARE), options.slices, log, progress)
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


def _learn(
    model: TrainingModel, goal: int, slices: int, log: Callable[[UnigramStep], None] | None, progress: Show
) -> None:
    """Expectation, maximization and pruning, in turns, until there are no more pieces than the goal."""
    rounds = max(1, math.ceil(math.log(max(model.spots.size, 1) / max(goal, 1), 1 / SHRINKS)))
    with Bar("train", rounds, "rounds", progress) as bar:
        while True:
            for turn in range(SUB_STEPS):
                tokens = 0 if log is None else int(_best_counts(model, slices)[1])
                expected_counts, objective = expectation(model, slices)
                _maximize(model, expected_counts)
                if log is not None:
                    log(UnigramStep(turn, model.spots.size, objective, tokens))
                bar.update(1 / (SUB_STEPS + 1))
            before = model.spots.size
            _prune(model, goal, slices)
            bar.update(1 / (SUB_STEPS + 1))
            if model.spots.size <= goal or model.spots.size == before:
                return


def _slices(model: TrainingModel, slices: int, run: Callable[[int], Any]) -> Iterator[Any]:
    """The results of `run` for each slice, in their order; on several threads."""
    if model.threads == 1:
        yield from map(run, range(slices))
        return
    with stoppable_pool(min(model.threads, slices), Cancellation()) as pool:
        yield from pool.map(run, range(slices))


def expectation(model: TrainingModel, slices: int) -> tuple[Floats, np.float32]:
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


def _best_counts(model: TrainingModel, slices: int) -> tuple[Floats, int]:
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


def _maximize(model: TrainingModel, expected: Floats) -> None:
    kept = np.flatnonzero(expected >= TOO_FEW)
    left = expected[kept]
    whole = F(digamma(np.cumsum(left, dtype=F)[-1:].astype(np.float64))[0])
    model.take(kept, (digamma(left.astype(np.float64)) - np.float64(whole)).astype(F))


def _prune(model: TrainingModel, goal: int, slices: int) -> None:
    """Keep pieces that nothing else can replace, then those whose loss would cost most: three quarters of all."""
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


def _alternatives(model: TrainingModel, freq: Floats) -> tuple[Any, Any, Any]:
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


def _final(model: TrainingModel, required: list[int], wanted: int) -> list[tuple[str, float]]:
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
