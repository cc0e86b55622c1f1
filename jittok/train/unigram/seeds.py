"""Unigram's seeds: texts that go on in more than one way, and where in the parts of words each of them is.

Parts (see `shared_parts`) are rows of character ranks. Their suffixes are sorted; nodes of the tree
over them are texts that several suffixes begin with. What may come after a text are its next characters' first bytes
(sentencepiece sorts bytes: two characters that begin alike are one way), a space, or the end of a line.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import I32, I64, OutI32, OutI64, OutU16, as_int64, frozen, helper, kernel
from jittok.train.pairs import ANY, BYTE, SAME
from jittok.train.spm import UNKNOWN_MARK, SpmOptions, piece_kinds
from jittok.train.unigram.lattice import F, TrainingModel
from jittok.train.unigram.sentences import NO_PIECE, NOTHING, SEVERAL, Sentences, Shared, merged_after, shared_parts

SEEDS = 1_000_000
DEPTH, FIRST, AFTER, FACTS = 0, 1, 2, 3


@helper
def _valid(text: I32, kinds: I32, start: int, size: int) -> bool:
    """Whether characters start .. start + size - 1 may be a piece; kinds as in `pairs.SymbolTexts`."""
    script = ANY
    for k in range(size):
        kind = as_int64(kinds[text[start + k]])
        if kind & NO_PIECE != 0 or (kind >> 17 & 1 != 0 and size > 1) or (kind & 1 != 0 and k > 0):
            return False
        own = kind >> 1 & BYTE
        if own != SAME:
            if own != ANY and script != ANY and own != script:  # noqa: PLR1714
                return False
            script = own
    return True


@kernel
def valid_text(text: I32, kinds: I32, start: int, size: int) -> int:
    """1 if these characters may be a piece."""
    return int(_valid(text, kinds, start, size))


@kernel
def sort_suffixes(
    text: I32, rest: I32, depth: int, sums: OutI64, groups: OutI64, grouped: OutI32, order: OutI32, other: OutI32
) -> int:
    """Suffixes of words by their first `depth` characters, ends first; `depth` must be even.

    From the last character to the first, as cards are sorted. Shorter suffixes join where they end, before all.

    rest: int32[n] of each character, how many are left in its word; sums: int64[distinct characters + 1]
    groups: int64[depth + 2] zeroed; grouped, order, other: int32[n]
    """
    size = text.size
    for i in range(size):
        groups[min(as_int64(rest[i]), depth) + 1] += 1
    for g in range(1, depth + 2):
        groups[g] += groups[g - 1]
    for i in range(size):
        g = min(as_int64(rest[i]), depth)
        grouped[groups[g]] = i
        groups[g] += 1  # from now on the end of group g
    first = size
    for turn in range(depth):
        d = depth - 1 - turn
        source, target = (order, other) if turn % 2 == 0 else (other, order)
        number = groups[d + 1] - groups[d]
        first -= number
        for k in range(number):
            source[first + k] = grouped[groups[d] + k]
        for c in range(sums.size):
            sums[c] = 0
        for i in range(first, size):
            sums[text[source[i] + d] + 1] += 1
        sums[0] = first
        for c in range(1, sums.size):
            sums[c] += sums[c - 1]
        for i in range(first, size):
            position = as_int64(source[i])
            c = as_int64(text[position + d])
            target[sums[c]] = position
            sums[c] += 1
    return 0


class Suffixes(NamedTuple):
    """The characters of all parts, each of which begins a suffix of its part, and the order of these."""

    text: I32
    rest: I32  # of each character, how many are left in its part
    after: I32  # of each character, the first byte after its part, or SEVERAL
    order: I32  # the characters at which sorted suffixes begin
    weights: I64  # [characters + 1] how often the words of the suffixes before each occur


class Seeds(NamedTuple):
    """Texts of two characters or more: text k begins at the characters order[firsts[k]:lasts[k]]."""

    firsts: OutI64
    lasts: OutI64
    sizes: OutI64  # characters

    def picked(self, rows: Any) -> Seeds:
        """Some of the texts."""
        return Seeds(*(column[rows] for column in self))


@kernel
def find_seeds(suffixes: Suffixes, kinds: I32, leads: I32, longest: int, stack: OutI64, seeds: Seeds) -> int:
    """Texts of up to `longest` characters that go on in several ways. Returns how many, or -1 for too little capacity.

    kinds, leads: of each character, its kind and its first byte; stack: int64[FACTS * (longest + 4)]
    """
    text, rest, after, order = suffixes.text, suffixes.rest, suffixes.after, suffixes.order
    top, count, limit = 0, 0, longest + 1
    stack[DEPTH], stack[FIRST], stack[AFTER] = 0, 0, NOTHING
    for i in range(order.size + 1):
        shared = 0
        if 0 < i < order.size:
            a, b = as_int64(order[i - 1]), as_int64(order[i])
            most = min(as_int64(rest[a]), as_int64(rest[b]), limit)
            while shared < most and text[a + shared] == text[b + shared]:
                shared += 1
        while stack[FACTS * top + DEPTH] > shared:
            size, first = stack[FACTS * top + DEPTH], stack[FACTS * top + FIRST]
            begin = as_int64(order[first])
            several = stack[FACTS * top + AFTER] == SEVERAL and suffixes.weights[i] - suffixes.weights[first] > 1
            if several and 1 < size <= longest and _valid(text, kinds, begin, size):
                if count >= seeds.sizes.size:
                    return -1
                seeds.firsts[count], seeds.lasts[count], seeds.sizes[count] = first, i, size
                count += 1
            top -= 1
            if stack[FACTS * top + DEPTH] < shared:
                top += 1
                stack[FACTS * top + DEPTH], stack[FACTS * top + FIRST] = shared, first
                stack[FACTS * top + AFTER] = NOTHING
            byte = as_int64(leads[text[begin + stack[FACTS * top + DEPTH]]])
            stack[FACTS * top + AFTER] = merged_after(stack[FACTS * top + AFTER], byte)
        if i < order.size:
            position = as_int64(order[i])
            size = min(as_int64(rest[position]), limit)
            if stack[FACTS * top + DEPTH] < size:
                top += 1
                stack[FACTS * top + DEPTH], stack[FACTS * top + FIRST] = size, i
                stack[FACTS * top + AFTER] = NOTHING
            if rest[position] <= longest and after[position] != NOTHING:
                stack[FACTS * top + AFTER] = merged_after(stack[FACTS * top + AFTER], as_int64(after[position]))
    return count


@kernel
def count_edges(suffixes: Suffixes, single: I32, seeds: Seeds, at: OutI64) -> int:
    """How many pieces begin at each character, summed: at[i] is where those of character i begin; how many in all.

    single: the piece of each character alone, or -1
    """
    text, order = suffixes.text, suffixes.order
    at[0] = 0
    for i in range(text.size):
        at[i + 1] = int(single[text[i]] >= 0)
    for k in range(seeds.firsts.size):
        for i in range(seeds.firsts[k], seeds.lasts[k]):
            at[order[i] + 1] += 1
    for i in range(text.size):
        at[i + 1] += at[i]
    return at[text.size]


@kernel
def put_edges(
    suffixes: Suffixes, single: I32, seeds: Seeds, by_size: I64, first_id: int, at: I64, fill: OutI32, lengths: OutU16,
    ids: OutI32,
) -> int:  # fmt: skip
    """The pieces that begin at each character, shorter ones first.

    by_size: seeds from short to long; first_id: the id of seed 0; fill: int32[characters] zeroed; others as above
    """
    text, order = suffixes.text, suffixes.order
    for i in range(text.size):
        k = as_int64(single[text[i]])
        if k >= 0:
            lengths[at[i]], ids[at[i]], fill[i] = 1, k, 1
    for j in range(by_size.size):
        k = by_size[j]
        for i in range(seeds.firsts[k], seeds.lasts[k]):
            position = as_int64(order[i])
            e = at[position] + fill[position]
            lengths[e], ids[e] = seeds.sizes[k], first_id + k
            fill[position] += 1
    return 0


def seed_model(sentences: Sentences, options: SpmOptions) -> TrainingModel:
    """Characters by count, then the best texts, with the logarithms of their shares; and all their edges."""
    points, unknown = sentences.characters, sentences.characters == UNKNOWN_MARK
    kinds = piece_kinds(points, options)
    kinds[unknown] |= NO_PIECE
    encoded = [chr(c).encode() for c in points.tolist()]
    leads = np.array([text[0] for text in encoded], np.int32)
    parts = shared_parts(sentences, kinds, leads)
    suffixes, each = _suffixes(parts, points.size, options.max_piece_length)
    text, order = suffixes.text, suffixes.order
    seeds, sums = _seeds(suffixes, kinds, leads, options.max_piece_length)
    seeds, sums = _with_last(sentences, suffixes, kinds, options.max_piece_length, (seeds, sums))
    scores = sums.astype(F) * seeds.sizes.astype(F)
    through = np.concatenate([[0], np.cumsum(np.array([*map(len, encoded)], np.int64)[text])])
    raw = through[order[seeds.firsts] + seeds.sizes] - through[order[seeds.firsts]]
    best = np.lexsort((seeds.firsts, -raw, -scores))[:SEEDS]
    seeds, scores = seeds.picked(best), scores[best]
    found = np.bincount(text, weights=each, minlength=points.size).astype(np.int64)
    found[unknown] = 0
    alone = np.argsort(-found, kind="stable")[: np.count_nonzero(found)]
    values = np.concatenate([found[alone].astype(F), scores]).astype(np.float64)
    shares = (np.log(values) - np.log(np.cumsum(values)[-1])).astype(F)
    single = np.full(points.size, -1, np.int32)
    single[alone] = np.arange(alone.size)
    at = np.empty(text.size + 1, np.int64)
    total = count_edges(suffixes, single, seeds, at)
    lengths, ids, by_size = (
        np.empty(total, np.uint16),
        np.empty(total, np.int32),
        np.argsort(seeds.sizes, kind="stable"),
    )
    put_edges(suffixes, single, seeds, by_size, alone.size, at, np.zeros(text.size, np.int32), lengths, ids)
    where = np.zeros(points.size, np.int64)
    where[text] = np.arange(text.size)
    spots = np.concatenate([where[alone], order[seeds.firsts]])
    sizes = np.concatenate([np.ones(alone.size, np.int64), seeds.sizes])
    return TrainingModel(sentences, parts, spots, sizes, shares, at, lengths, ids)


def _suffixes(parts: Shared, characters: int, longest: int) -> tuple[Suffixes, NDArray[np.int64]]:
    """(the suffixes of all parts, sorted by more characters than a piece has; how often each character occurs)."""
    text, letters = parts.text, np.diff(parts.ends)
    part_of = np.repeat(np.arange(letters.size), letters)
    rest = (parts.ends[1:][part_of] - np.arange(text.size)).astype(np.int32)
    order, other, grouped = (np.empty(text.size, np.int32) for _ in range(3))
    depth = longest + 2 + longest % 2
    sums, groups = np.zeros(characters + 1, np.int64), np.zeros(depth + 2, np.int64)
    sort_suffixes(text, rest, depth, sums, groups, grouped, order, other)
    each = parts.counts[part_of]
    weights = np.concatenate([[0], np.cumsum(each[order])])
    return Suffixes(text, rest, parts.after[part_of], order, weights), each


def _seeds(suffixes: Suffixes, kinds: NDArray[np.int32], leads: NDArray[np.int32], longest: int) -> tuple[Seeds, Any]:
    """(texts that go on in several ways, int64[texts] how often each occurs)."""
    most, number = suffixes.text.size // 2 + 64, -1
    while number < 0:
        seeds, stack = Seeds(*(np.empty(most, np.int64) for _ in range(3))), np.zeros(FACTS * (longest + 4), np.int64)
        number = find_seeds(suffixes, kinds, leads, longest, stack, seeds)
        most *= 2
    seeds = seeds.picked(slice(number))
    return seeds, suffixes.weights[seeds.lasts] - suffixes.weights[seeds.firsts]


def _with_last(
    sentences: Sentences, suffixes: Suffixes, kinds: Any, longest: int, found: tuple[Seeds, Any]
) -> tuple[Seeds, Any]:
    """Seeds with what the last line adds. Nothing is after that line. So a text that it ends with goes on in more than
    one way if another line ends with it too. Then the text counts as often as there are such lines."""
    (firsts, lasts, sizes), sums = found
    text, word = suffixes.text, frozen(sentences.last, np.int32)
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
        here = np.flatnonzero(suffixes.rest >= size)
        for k in range(size):
            here = here[text[here + k] == own[k]]
        inside = np.zeros(text.size, np.bool_)
        inside[here] = True
        positions = np.flatnonzero(inside[suffixes.order])
        first, last = int(positions[0]), int(positions[-1]) + 1
        same = np.flatnonzero((firsts == first) & (sizes == size))
        if same.size:
            sums[same[0]] += lines
        else:
            firsts, lasts = np.append(firsts, first), np.append(lasts, last)
            sizes, sums = np.append(sizes, size), np.append(sums, lines)
    return Seeds(firsts, lasts, sizes), sums
