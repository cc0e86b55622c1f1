"""Spans of Unigram: walk the ids over the normalized text.

A token covers the bytes of its text. The unknown token covers a run of unknown characters of any length. A character
that is a token is never unknown, so the run ends at the first such character, or where the text of the next id begins.
If that text begins with a character that may also be unknown, the best path is found again in the lattice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.align.direct_spans import first_id
from jittok.align.lengths import Lengths
from jittok.align.unigram_normalizer import (
    BROKEN,
    NORMAL,
    USER_DEFINED,
    Normal,
    SourcePosition,
    UnigramRules,
    can_match,
    normalize,
    trie_of,
)
from jittok.kernels.fragments import FOUND, FRAGMENT, NEED, OUT_OF_WORK
from jittok.kernels.jit import I32, I64, U8, OutF64, OutI32, OutI64, OutU8, as_int64, frozen, helper, kernel
from jittok.kernels.memory import Window, get_i32, get_i64, get_u8, put_i64, put_u8, window
from jittok.kernels.structures.double_array import NO_NODE, NO_VALUE, ROOT, DoubleArray, child, score_at, value_at
from jittok.kernels.structures.utf8 import lead_length
from jittok.vocab import Vocab

UNKNOWN_PENALTY = 10.0
FAR = 1 << 62
CHUNK_BYTES = 1 << 16
"""Bytes of normalized text that are walked at a time if no lattice is needed."""
LOWEST = -float(np.finfo(np.float64).max)


class UnknownRunLattice(NamedTuple):
    """The tables for finding the best path."""

    trie: DoubleArray  # tokens that can match -> id and score
    unk_id: int
    unk_score: float


def build_lattice(vocab: Vocab) -> UnknownRunLattice:
    """The trie and the score of an unknown character. Source: llama.cpp, `llm_tokenizer_ugm`."""
    scores = np.where(vocab.attributes & USER_DEFINED, np.float32(0), vocab.scores)
    normal = vocab.scores[vocab.file_attributes & NORMAL != 0]
    lowest = np.min(normal[~np.isnan(normal)], initial=np.finfo(np.float32).max)
    return UnknownRunLattice(
        trie_of(vocab, can_match(vocab), scores),
        vocab.unk_id,
        float(np.float32(lowest) - np.float32(UNKNOWN_PENALTY)),
    )


def no_lattice() -> UnknownRunLattice:
    """An empty lattice, for calls that need none."""
    return UnknownRunLattice(DoubleArray(frozen([], np.int32)), 0, 0.0)


class UnknownRun(NamedTuple):
    """The state of a walk."""

    k: int  # index of the next id
    at: int  # offset in the normalized text where it begins, or continues
    start: int  # if it is the unknown token: start of its span so far; -1: nothing so far
    stop: int


class UnigramWork(NamedTuple):
    """Scratch for normalized texts of up to text.size bytes with a lattice; without, half of it is used at a time."""

    text: OutU8
    starts: OutI64  # byte k comes from data[starts[k]:stops[k]]
    stops: OutI64
    sums: OutF64  # [that + 1] with a lattice: best sum of scores up to each offset; else empty
    tokens: OutI32  # the last token of the best path to each offset
    origins: OutI64  # where that token begins


def make_unigram_work(capacity: int, lattice: bool) -> UnigramWork:
    """Scratch for normalized texts of up to `capacity` bytes."""
    cells = capacity + 1 if lattice else 0
    return UnigramWork(
        np.empty(capacity, np.uint8), np.empty(capacity, np.int64), np.empty(capacity, np.int64),
        np.empty(cells, np.float64), np.empty(cells, np.int32), np.empty(cells, np.int64),
    )  # fmt: skip


@kernel
def unigram_spans(
    lengths: Lengths, rules: UnigramRules, lattice: UnknownRunLattice, use_lattice: int, work: UnigramWork, data: U8,
    starts: I64, stops: I64, ends: I64, ids: I32, spans: OutI64, left: OutI64, item: int, count: int, kept: int,
    report: OutI64,
) -> int:  # fmt: skip
    """Write the spans of the tokens of the fragments left[2 * item : 2 * count], a list made by `direct_spans`.

    use_lattice: 1: find the best path again in `lattice`; 0: `lattice` may be empty
    kept: number of fragments from earlier calls that stay in `left`
    report: int64[4]; the other arrays are those of `direct_spans`

    Returns the number of fragments that stay in `left`, as their ids do not determine the spans. OUT_OF_WORK: number
    report[FRAGMENT] of the list needs report[NEED] bytes of normalized text, and report[FOUND] fragments stay so far.
    BROKEN: the ids are not those of the text. Linear in bytes; with the lattice, times the longest match.
    """
    numbers, sizes, out = window(ids), window(lengths.output), window(spans)
    text = Normal(window(work.text), window(work.starts), window(work.stops), work.text.size)
    while item < count:
        fragment, origin = left[2 * item], left[2 * item + 1]
        start, stop, k, end = starts[fragment], stops[fragment], first_id(window(ends), fragment), ends[fragment]
        report[FRAGMENT], report[FOUND] = item, kept
        told = use_lattice == 0 and rules.always == 0
        if told:
            code = _walk_text(rules, sizes, text, data, start, stop, numbers, k, end, origin, out)
            if code < 0:
                report[NEED] = 2 * work.text.size
                return BROKEN if code == BROKEN else OUT_OF_WORK
            told = code == 1
        if use_lattice:
            position = normalize(rules, text, data, SourcePosition(start, 0, 0, 0, -1, -1), stop, FAR)
            size = position.at
            if position.i == BROKEN:
                return BROKEN
            if size > work.text.size:
                report[NEED] = size
                return OUT_OF_WORK
            _find_path(lattice, work, text.text, size)
            if not _walk_path(lattice, work, text, size, numbers, k, end, origin, out):
                return BROKEN
        elif not told:
            left[2 * kept], left[2 * kept + 1] = fragment, origin
            kept += 1
        item += 1
    return kept


@helper
def _put_span(out: Normal, at: int, after: int, spans: Window, k: int, origin: int) -> None:
    """The span of id k, which covers bytes at .. after - 1 of the normalized text."""
    put_i64(spans, 2 * k, get_i64(out.starts, at) - origin)
    put_i64(spans, 2 * k + 1, get_i64(out.stops, after - 1) - origin)


@helper
def _walk_text(
    rules: UnigramRules, sizes: Window, out: Normal, data: U8, start: int, stop: int, ids: Window, k: int, end: int,
    origin: int, spans: Window,
) -> int:  # fmt: skip
    """Write the spans of ids k .. end - 1, which cover data[start:stop], half a buffer at a time; 1, or 0 if the ids do
    not determine them, or BROKEN or OUT_OF_WORK."""
    position, limit = SourcePosition(start, 0, 0, 0, -1, -1), out.capacity >> 1
    run = UnknownRun(k, 0, -1, -1)
    while True:
        position = normalize(rules, out, data, position, stop, limit)
        if position.i == BROKEN:
            return BROKEN
        size, last = position.at, position.i == stop
        if size > out.capacity:
            return OUT_OF_WORK
        run = _walk(rules, sizes, out, size, last, ids, run, end, origin, spans)
        if run.at < 0:
            return 0
        if last:
            return 1 if run.at == size and run.k == end else 0
        for j in range(run.at, size):
            put_u8(out.text, j - run.at, get_u8(out.text, j))
            put_i64(out.starts, j - run.at, get_i64(out.starts, j))
            put_i64(out.stops, j - run.at, get_i64(out.stops, j))
        size -= run.at
        if 2 * size > limit:
            return OUT_OF_WORK
        position = SourcePosition(
            position.i, size, position.inside, position.prepended, position.gap_start, position.gap_stop
        )


@helper
def _walk(
    rules: UnigramRules, sizes: Window, out: Normal, size: int, last: bool, ids: Window, run: UnknownRun, end: int,
    origin: int, spans: Window,
) -> UnknownRun:  # fmt: skip
    """Write the spans of ids run.k .. end - 1, as far as the first `size` normalized bytes determine them. last: there
    are no more bytes. In the result, `at` is where the next token begins or the unknown one continues, or -1 if the ids
    do not determine the spans."""
    at, k, first, behind_run = 0, run.k, run.start, run.stop
    while k < end:
        token = get_i32(ids, k)
        if token != rules.unk_id:
            following = at + get_i32(sizes, token + 1)
            if following > size:
                return UnknownRun(k, -1 if last else at, -1, -1)
            if following == at:
                return UnknownRun(k, -1, -1, -1)
            _put_span(out, at, following, spans, k, origin)
            at, k = following, k + 1
            continue
        while at < size:
            following = at + lead_length(get_u8(out.text, at))
            if following > size and not last:
                return UnknownRun(k, at, first, behind_run)
            if not _may_be_unknown(rules, out, at, size):
                break
            if first >= 0 and k + 1 < end:
                after = get_i32(ids, k + 1)
                if not last and after >= 0 and at + as_int64(rules.offsets[after + 1] - rules.offsets[after]) > size:
                    return UnknownRun(k, at, first, behind_run)
                if _token_matches_at(rules, out, at, size, after):
                    return UnknownRun(k, -1, -1, -1)
            following = min(following, size)
            first = get_i64(out.starts, at) if first < 0 else first
            behind_run, at = get_i64(out.stops, following - 1), following
        if at == size and not last:
            return UnknownRun(k, at, first, behind_run)
        if first < 0:
            return UnknownRun(k, -1, -1, -1)
        put_i64(spans, 2 * k, first - origin)
        put_i64(spans, 2 * k + 1, behind_run - origin)
        k, first = k + 1, -1
    return UnknownRun(k, at if last or at == size else -1, -1, -1)


@helper
def _may_be_unknown(rules: UnigramRules, out: Normal, at: int, size: int) -> bool:
    """Whether the character at `at` is not a token by itself."""
    node = ROOT
    for i in range(at, min(at + lead_length(get_u8(out.text, at)), size)):
        node = child(rules.characters, node, get_u8(out.text, i))
        if node == NO_NODE:
            return True
    return value_at(rules.characters, node) == NO_VALUE


@helper
def _token_matches_at(rules: UnigramRules, out: Normal, at: int, size: int, token: int) -> bool:
    """Whether the text of a token is at offset `at`."""
    if token < 0:
        return False
    start, length = as_int64(rules.offsets[token]), as_int64(rules.offsets[token + 1] - rules.offsets[token])
    if at + length > size:
        return False
    for i in range(length):
        if get_u8(out.text, at + i) != rules.texts[start + i]:
            return False
    return True


@helper
def _find_path(lattice: UnknownRunLattice, work: UnigramWork, text: Window, size: int) -> None:
    """Find the last token of the best path to each offset. Sums are doubles; only a strictly higher one wins.

    Source: llama.cpp, `llm_tokenizer_ugm_session::tokenize`.
    """
    for p in range(size + 1):
        work.sums[p], work.tokens[p], work.origins[p] = LOWEST, lattice.unk_id, 0
    work.sums[0] = 0.0
    p = 0
    while p < size:
        after, here, whole, node = min(p + lead_length(get_u8(text, p)), size), work.sums[p], False, ROOT
        for stop in range(p + 1, size + 1):
            node = child(lattice.trie, node, get_u8(text, stop - 1))
            if node == NO_NODE:
                break
            token = value_at(lattice.trie, node)
            if token != NO_VALUE:
                whole = whole or stop == after
                total = here + score_at(lattice.trie, node)
                if total > work.sums[stop]:
                    work.sums[stop], work.tokens[stop], work.origins[stop] = total, token, p
        if not whole and here + lattice.unk_score > work.sums[after]:
            work.sums[after], work.tokens[after], work.origins[after] = here + lattice.unk_score, lattice.unk_id, p
        p = after


@helper
def _walk_path(
    lattice: UnknownRunLattice, work: UnigramWork, out: Normal, size: int, ids: Window, k: int, end: int, origin: int,
    spans: Window,
) -> bool:  # fmt: skip
    """Spans of ids k .. end - 1, from the last one back along the best path; whether the ids are those of the path."""
    at, after, joined = end, size, False  # joined: the token after is unknown, so an unknown one joins it
    last = size
    while after > 0:
        token, before = as_int64(work.tokens[after]), work.origins[after]
        unknown = token == lattice.unk_id
        if not (joined and unknown):
            at, last = at - 1, after
            if at < k or get_i32(ids, at) != token:
                return False
        _put_span(out, before, last, spans, at, origin)
        after, joined = before, unknown
    return at == k
