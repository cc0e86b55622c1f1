"""Kernels of Unigram's training: seeds from sorted suffixes, the lattice of each word, its best path.

Words are rows of character ranks. A word's edges are all pieces that begin at each of its characters, by length
ascending; they are found once and only grow fewer. Where no piece of one character begins, an unknown edge stands for
it.
"""

from __future__ import annotations

import math

import numpy as np

from jittok._jit import I32, I64, OutF64, OutI32, OutI64, helper, kernel, wide
from jittok._raw import multiply
from jittok.train.pairs import ABSENT, ANY, BYTE, K1, S32, SAME

NONE = -1e300
LOG_CUT = 50.0
NO_PIECE = 1 << 18
"""In the kind of a character that stands in no piece."""


@helper
def _valid(text: I32, kinds: I32, start: int, size: int) -> bool:
    """Whether characters start .. start + size - 1 may be a piece; kinds as in `pairs.Texts`."""
    script = ANY
    for k in range(size):
        kind = wide(kinds[text[start + k]])
        if kind & NO_PIECE != 0 or (kind >> 17 & 1 != 0 and size > 1) or (kind & 1 != 0 and k > 0):
            return False
        own = kind >> 1 & BYTE
        if own != SAME:
            if own != ANY and script != ANY and own != script:  # noqa: PLR1714
                return False
            script = own
    return True


@kernel
def find_seeds(
    text: I32, kinds: I32, order: I64, weights: I64, longest: int, stack: OutI64, starts: OutI64, sizes: OutI64,
    sums: OutI64,
) -> int:  # fmt: skip
    """Texts that go on in more than one way: where each begins, its length, how often it occurs; how many.

    text: ranks of all words, each with what follows it (0: the end of a line) and -1 behind
    order: suffixes of it, sorted by longest + 2 characters; weights: of each suffix in that order, summed, 0 in front
    stack: int64[2 * (longest + 4)]
    """
    top, count = 0, 0
    stack[0], stack[1] = 0, 0  # depth, first suffix
    for i in range(1, order.size + 1):
        shared = 0
        if i < order.size:
            a, b = order[i - 1], order[i]
            while shared <= longest and text[a + shared] == text[b + shared] and text[a + shared] >= 0:
                shared += 1
        first = i - 1
        while stack[2 * top] > shared:
            size, first = stack[2 * top], stack[2 * top + 1]
            if size > 1 and size <= longest and _valid(text, kinds, order[first], size):
                starts[count], sizes[count] = order[first], size
                sums[count] = weights[i] - weights[first]
                count += 1
            top -= 1
        if stack[2 * top] < shared:
            top += 1
            stack[2 * top], stack[2 * top + 1] = shared, first
    return count


@helper
def _slot(node: int, c: int, mask: int) -> int:
    h = multiply(np.uint64(node << 21 | c), K1)
    return np.int64((h ^ h >> S32) & np.uint64(mask))


@kernel
def build_trie(text: I32, starts: I64, sizes: I64, keys: OutI64, nodes: OutI32, tokens: OutI32) -> int:
    """A trie of pieces as a hash table: keys[slot] is parent << 21 | character (-1: empty), nodes[slot] the child.

    tokens: int32[nodes] the piece that ends at each node, or ABSENT. Piece k is text[starts[k]:starts[k] + sizes[k]].
    """
    used, mask = 1, keys.size - 1
    for k in range(starts.size):
        node = 0
        for i in range(starts[k], starts[k] + sizes[k]):
            c = wide(text[i])
            slot = _slot(node, c, mask)
            while keys[slot] >= 0 and keys[slot] != (node << 21 | c):
                slot = slot + 1 & mask
            if keys[slot] < 0:
                keys[slot] = node << 21 | c
                nodes[slot] = used
                tokens[used] = ABSENT
                used += 1
            node = wide(nodes[slot])
        tokens[node] = k
    return used


@kernel
def find_edges(
    text: I32, ends: I64, keys: I64, nodes: I32, tokens: I32, at: OutI64, lengths: OutI32, ids: OutI32
) -> int:
    """Pieces that begin at each character of words text[ends[w]:ends[w + 1]]; how many, or -1: there is no more room.

    at: int64[characters + 1] where the edges of each begin; lengths, ids: of each edge
    """
    count, mask = 0, keys.size - 1
    for w in range(ends.size - 1):
        for i in range(ends[w], ends[w + 1]):
            at[i] = count
            node, j = 0, i
            while j < ends[w + 1]:
                c = wide(text[j])
                if c < 0:
                    break
                slot = _slot(node, c, mask)
                while keys[slot] >= 0 and keys[slot] != (node << 21 | c):
                    slot = slot + 1 & mask
                if keys[slot] < 0:
                    break
                node = wide(nodes[slot])
                j += 1
                if tokens[node] != ABSENT:
                    if count >= ids.size:
                        return -1
                    lengths[count], ids[count] = j - i, tokens[node]
                    count += 1
    at[ends[ends.size - 1]] = count
    return count


@helper
def _log_sum(x: float, y: float) -> float:
    low, high = min(x, y), max(x, y)
    if high > low + LOG_CUT:
        return high
    return high + math.log(math.exp(low - high) + 1.0)


@kernel
def expect(
    ends: I64, counts: I64, at: I64, lengths: I32, ids: I32, scores: OutF64, unknown: OutF64, first: int, last: int,
    alpha: OutF64, beta: OutF64, expected: OutF64,
) -> int:  # fmt: skip
    """Adds the expected count of each piece in words first .. last - 1. alpha, beta: float64[longest word + 1]."""
    for w in range(first, last):
        begin, size = ends[w], ends[w + 1] - ends[w]
        for p in range(size + 1):
            alpha[p], beta[p] = NONE, NONE
        alpha[0], beta[size] = 0.0, 0.0
        for p in range(size):
            single = False
            for e in range(at[begin + p], at[begin + p + 1]):
                q = p + wide(lengths[e])
                single |= q == p + 1
                x = alpha[p] + scores[ids[e]]
                alpha[q] = x if alpha[q] == NONE else _log_sum(alpha[q], x)
            if not single:
                x = alpha[p] + unknown[0]
                alpha[p + 1] = x if alpha[p + 1] == NONE else _log_sum(alpha[p + 1], x)
        for p in range(size - 1, -1, -1):
            single = False
            for e in range(at[begin + p], at[begin + p + 1]):
                q = p + wide(lengths[e])
                single |= q == p + 1
                x = beta[q] + scores[ids[e]]
                beta[p] = x if beta[p] == NONE else _log_sum(beta[p], x)
            if not single:
                x = beta[p + 1] + unknown[0]
                beta[p] = x if beta[p] == NONE else _log_sum(beta[p], x)
        whole = alpha[size]
        for p in range(size):
            single = False
            for e in range(at[begin + p], at[begin + p + 1]):
                q = p + wide(lengths[e])
                single |= q == p + 1
                expected[ids[e]] += counts[w] * math.exp(alpha[p] + scores[ids[e]] + beta[q] - whole)
            if not single:  # what is unknown counts for the first piece, as in sentencepiece
                expected[0] += counts[w] * math.exp(alpha[p] + unknown[0] + beta[p + 1] - whole)
    return last


@kernel
def best_paths(
    ends: I64, at: I64, lengths: I32, ids: I32, scores: OutF64, unknown: OutF64, skip: int, first: int, last: int,
    best: OutF64, back: OutI64, out: OutI32, out_ends: OutI64, totals: OutF64,
) -> int:  # fmt: skip
    """The best segmentation of words first .. last - 1: its pieces (0 for an unknown character) behind each other.

    skip: 1 leaves out the piece that is the whole word. out_ends: int64[words + 1]; totals: the score of each word.
    best, back: [longest word + 1]. The number of pieces so far; the first of the best wins.
    """
    count = out_ends[first]
    for w in range(first, last):
        begin, size = ends[w], ends[w + 1] - ends[w]
        for p in range(size + 1):
            best[p], back[p] = NONE, -1
        best[0] = 0.0
        for p in range(size):
            single = False
            for e in range(at[begin + p], at[begin + p + 1]):
                length = wide(lengths[e])
                single |= length == 1
                if skip != 0 and length == size:
                    continue
                x = best[p] + scores[ids[e]]
                if x > best[p + length]:
                    best[p + length] = x
                    back[p + length] = e
            if not single:
                x = best[p] + unknown[0]
                if x > best[p + 1]:
                    best[p + 1] = x
                    back[p + 1] = -1
        totals[w] = best[size]
        p, number = size, 0
        while p > 0 and best[size] > NONE:
            e = back[p]
            out[count + number] = ids[e] if e >= 0 else 0
            number += 1
            p -= wide(lengths[e]) if e >= 0 else 1
        for k in range(number // 2):
            other = count + number - 1 - k
            out[count + k], out[other] = out[other], out[count + k]
        count += number
        out_ends[w + 1] = count
    return count
