"""Kernels of Unigram's seeds: texts that go on in more than one way, and where in the words each of them is.

Words (or parts of them, see `shared_parts`) are rows of character ranks. Their suffixes are sorted; nodes of the tree
over them are texts that several suffixes begin with. What may come after a text are its next characters' first bytes
(sentencepiece sorts bytes: two characters that begin alike are one way), a space, or the end of a line.
"""

from __future__ import annotations

from jittok._jit import I32, I64, OutI32, OutI64, OutU16, as_int64, helper, kernel
from jittok.train.pairs import ANY, BYTE, SAME

NO_PIECE = 1 << 18
"""In the kind of a character that is in no piece."""
LINE_ENDS, SPACE_FOLLOWS = 1, 2
"""After a word, as flags."""
NOTHING, SEVERAL = -1, -2
"""First bytes after a text: none is known yet, more than one."""
END_BYTE, SPACE_BYTE = 0x00, 0xE2
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


@helper
def merged_after(after: int, byte: int) -> int:
    """What is after a text of which one is after some, the other after others."""
    return byte if after in (NOTHING, byte) else SEVERAL


@kernel
def find_seeds(
    text: I32, rest: I32, after: I32, kinds: I32, leads: I32, order: I32, weights: I64, longest: int, stack: OutI64,
    firsts: OutI64, lasts: OutI64, sizes: OutI64,
) -> int:  # fmt: skip
    """Texts of two characters or more that go on in several ways; how many, or -1: there is no more room.

    after: the first byte after the part of each character, or SEVERAL; leads: the first byte of each character
    order: sorted suffixes; weights: int64[n + 1] how often the words of those before each occur
    stack: int64[FACTS * (longest + 4)]; firsts, lasts: the suffixes (places in `order`) that begin with each text
    """
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
            several = stack[FACTS * top + AFTER] == SEVERAL and weights[i] - weights[first] > 1
            if several and 1 < size <= longest and _valid(text, kinds, begin, size):
                if count >= sizes.size:
                    return -1
                firsts[count], lasts[count], sizes[count] = first, i, size
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
def count_edges(text: I32, order: I32, single: I32, firsts: I64, lasts: I64, at: OutI64) -> int:
    """How many pieces begin at each character, summed: at[i] is where those of character i begin; how many in all.

    single: the piece of each character alone, or -1; piece k begins at the characters order[firsts[k]:lasts[k]]
    """
    at[0] = 0
    for i in range(text.size):
        at[i + 1] = int(single[text[i]] >= 0)
    for k in range(firsts.size):
        for i in range(firsts[k], lasts[k]):
            at[order[i] + 1] += 1
    for i in range(text.size):
        at[i + 1] += at[i]
    return at[text.size]


@kernel
def put_edges(
    text: I32, order: I32, single: I32, firsts: I64, lasts: I64, sizes: I64, by_size: I64, number: I32, at: I64,
    fill: OutI32, lengths: OutU16, ids: OutI32,
) -> int:  # fmt: skip
    """The pieces that begin at each character, shorter ones first.

    by_size: pieces from short to long; number: the id of each; fill: int32[characters] zeroed; others as above
    """
    for i in range(text.size):
        k = as_int64(single[text[i]])
        if k >= 0:
            lengths[at[i]], ids[at[i]], fill[i] = 1, k, 1
    for j in range(by_size.size):
        k = by_size[j]
        for i in range(firsts[k], lasts[k]):
            position = as_int64(order[i])
            e = at[position] + fill[position]
            lengths[e], ids[e] = sizes[k], number[k]
            fill[position] += 1
    return 0


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
