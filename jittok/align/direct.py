"""Spans that follow from the ids alone: most text of BPE, SPM, RWKV and PLaMo-2.

Where a text passes unchanged but for its spaces, each token covers as many bytes as its text has. A fragment is done
when the lengths of its tokens add up to its own (see `lengths`: then nothing else is possible); all others are listed
for the slower ways.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok._jit import I32, I64, U8, OutI64, helper, kernel
from jittok._raw import Window, get_i32, get_i64, get_u8, get_u16, get_word, put_i64, trailing_zeros, window
from jittok.align.lengths import Lengths
from jittok.fragments import TEXT_PREFIXED
from jittok.models.bpe.text import first_malformed

_ASCII = np.uint64(0x8080808080808080)
"""The bit of each byte that ASCII does not have."""
_TWO, _IS_TWO, _TWO_LEAST = (np.uint64(n) for n in (0xC0E0, 0x80C0, 0x1E))
"""Bits of a sequence of two bytes, the first one lowest: the fixed ones, their values, those that cannot all be 0."""
_THREE, _IS_THREE, _THREE_LEAST = (np.uint64(n) for n in (0xC0C0F0, 0x8080E0, 0x200F))
_FOUR, _IS_FOUR = (np.uint64(n) for n in (0xC0C0C0F8, 0x808080F0))


class DirectRules(NamedTuple):
    """Flags, 0 or 1: what a fragment must be like for its spans to follow from its ids."""

    prefix: int  # a fragment at the start or behind a special token gets a space in front
    well_formed: int  # it must be well-formed UTF-8
    no_mark: int  # it must not begin with a byte order mark


@kernel
def direct_spans(
    lengths: Lengths, rules: DirectRules, data: U8, document_starts: I64, first: int, last: int, document_ends: I64,
    starts: I64, stops: I64, tokens: I32, ends: I64, ids: I32, spans: OutI64, left: OutI64,
) -> int:  # fmt: skip
    """Spans of the tokens of documents first .. last - 1.

    document_starts: int64[documents] in `data`; document_ends: int64[last - first] fragments up to the end of each
    starts, stops: int64[fragments], tokens: int32[fragments] as `jittok.fragments` says
    ends: int64[fragments] places in `ids` where the ids of each end; ids: int32[n], each -1 or in the vocabulary
    spans: int64[2 * n] start and stop of each token, counted from the start of its document
    left: int64[2 * fragments] receives fragment and start of the document of each fragment that has to be done in
    another way (its spans mean nothing yet)

    Returns how many of these there are. Linear in tokens, and in bytes where well-formedness counts.
    """
    text, numbers, sizes, out = window(data), window(ids), window(lengths.source), window(spans)
    count, fragment, k = 0, 0, 0
    for document in range(first, last):
        origin = document_starts[document]
        while fragment < document_ends[document - first]:
            start, stop, end = starts[fragment] - origin, stops[fragment] - origin, ends[fragment]
            if tokens[fragment] >= 0:
                put_i64(out, 2 * k, start)
                put_i64(out, 2 * k + 1, stop)
            else:
                at = start - 1 if rules.prefix and tokens[fragment] == TEXT_PREFIXED else start
                if (
                    not lengths.direct
                    or not _walk(sizes, numbers, out, k, end, start, at, stop)
                    or (rules.well_formed and not is_well_formed(text, start + origin, stop + origin))
                    or (rules.no_mark and begins_with_mark(text, start + origin, stop + origin))
                ):
                    left[2 * count], left[2 * count + 1] = fragment, origin
                    count += 1
            k, fragment = end, fragment + 1
    return count


@helper
def _walk(sizes: Window, ids: Window, spans: Window, k: int, end: int, start: int, at: int, stop: int) -> bool:
    """Spans of ids k .. end - 1, which cover text[start:stop] from `at` on (which may be before `start`, where a space
    was put in front); whether they do so exactly."""
    if k < end:
        at += get_u16(sizes, get_i32(ids, k) + 1)
        put_i64(spans, 2 * k, start)
        put_i64(spans, 2 * k + 1, at)
        k += 1
    while k < end:
        put_i64(spans, 2 * k, at)
        at += get_u16(sizes, get_i32(ids, k) + 1)
        put_i64(spans, 2 * k + 1, at)
        k += 1
    return at == stop


@helper
def is_well_formed(text: Window, i: int, stop: int) -> bool:
    """Whether text[i:stop] is UTF-8 in shortest form, of code points up to U+10FFFF; surrogates count as well formed.

    A character is judged with one load of eight bytes, as long as there are so many.
    """
    while i + 8 <= stop:
        word = get_word(text, i)
        if word & _ASCII == np.uint64(0):
            i += 8
            while i + 32 <= stop:
                word = get_word(text, i) | get_word(text, i + 8) | get_word(text, i + 16) | get_word(text, i + 24)
                if word & _ASCII != np.uint64(0):
                    break
                i += 32
        elif word & np.uint64(0x80) == np.uint64(0):
            i += trailing_zeros(word & _ASCII) >> 3
        elif word & _THREE == _IS_THREE:
            if word & _THREE_LEAST == np.uint64(0):
                return False
            i += 3
        elif word & _TWO == _IS_TWO:
            if word & _TWO_LEAST == np.uint64(0):
                return False
            i += 2
        elif word & _FOUR == _IS_FOUR:
            plane = np.int64((word & np.uint64(7)) << np.uint64(2) | word >> np.uint64(12) & np.uint64(3))
            if not 1 <= plane <= 16:
                return False
            i += 4
        else:
            return False
    return first_malformed(text, i, stop) == stop


@helper
def begins_with_mark(text: Window, i: int, stop: int) -> bool:
    """Whether text[i:stop] begins with U+FEFF."""
    return i + 3 <= stop and get_u8(text, i) == 0xEF and get_u8(text, i + 1) == 0xBB and get_u8(text, i + 2) == 0xBF


@helper
def first_id(ends: Window, fragment: int) -> int:
    """Where the ids of a fragment begin."""
    return get_i64(ends, fragment - 1) if fragment > 0 else 0
