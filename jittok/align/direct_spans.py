"""Spans from the ids alone: the fast path for BPE, SPM, RWKV and PLaMo-2.

If a text is encoded unchanged except for its spaces, each token covers as many bytes as its text has. A fragment is
done if the lengths of its tokens add up to its own length (`lengths` explains why that is sufficient); all others are
listed for the slower paths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.align.lengths import Lengths
from jittok.kernels.fragments import TEXT_PREFIXED
from jittok.kernels.jit import I32, I64, U8, OutI64, helper, kernel
from jittok.kernels.memory import (
    Window,
    equal_mask,
    get_i32,
    get_i64,
    get_u8,
    get_u16,
    put_i64,
    trailing_zeros,
    utf8_masks,
    window,
)
from jittok.kernels.models.bpe.text_reader import first_malformed

_NONE, _1, _2, _3, _61, _62, _63 = (np.uint64(n) for n in (0, 1, 2, 3, 61, 62, 63))
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class DirectRules(NamedTuple):
    """Flags, 0 or 1: the conditions under which a fragment's spans follow from its ids."""

    prefix: int  # 1: a space is put before a fragment at the start or after a special token
    well_formed: int  # 1: it must be valid UTF-8
    no_mark: int  # 1: it must not begin with a byte order mark


@kernel
def direct_spans(
    lengths: Lengths, rules: DirectRules, data: U8, document_starts: I64, first: int, last: int, document_ends: I64,
    starts: I64, stops: I64, tokens: I32, ends: I64, ids: I32, spans: OutI64, left: OutI64,
) -> int:  # fmt: skip
    """Write the spans of the tokens of documents first .. last - 1.

    document_starts: int64[documents] in `data`; document_ends: int64[last - first] fragments up to the end of each
    starts, stops: int64[fragments], tokens: int32[fragments] see `jittok.kernels.fragments`
    ends: int64[fragments] the end of each one's ids in `ids`: int32[n], each -1 or in the vocabulary
    spans: int64[2 * n] start and stop of each token, relative to the start of its document
    left: int64[2 * fragments] receives (fragment, start of its document) for each fragment that is not decided here,
    whose spans are undefined

    Returns the number of these fragments. Linear in tokens, and in bytes if UTF-8 has to be valid.
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
    """Write the spans of ids k .. end - 1, which cover text[start:stop] from `at` on (`at` is before `start` if a space
    was added); returns whether they cover it exactly."""
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
    """Whether text[i:stop] is valid UTF-8; surrogates are accepted.

    Checks 64 bytes at once: continuation bytes must be exactly where first bytes require them. Then only the few first
    bytes that restrict their second byte are tested one by one.
    """
    while i + 64 <= stop:
        followers, two, three, four, _ = utf8_masks(text, i)
        if followers | two == _NONE:
            i += 64
            continue
        if followers != two << _1 | three << _2 | four << _3:
            return False
        size = 64  # less if the last character continues after these bytes
        if two >> _63 != _NONE:
            size = 63
        elif three >> _62 != _NONE:
            size = 62
        elif four >> _61 != _NONE:
            size = 61
        picky = four | equal_mask(text, i, 0xE0) | equal_mask(text, i, 0xC0) | equal_mask(text, i, 0xC1)
        picky &= _ALL >> np.uint64(64 - size)
        while picky != _NONE:
            position = i + trailing_zeros(picky)
            first, second = get_u8(text, position), get_u8(text, position + 1)
            if (
                first <= 0xC1
                or (first == 0xE0 and second < 0xA0)
                or (first == 0xF0 and second < 0x90)
                or (first == 0xF4 and second >= 0x90)
                or first > 0xF4
            ):
                return False
            picky &= picky - _1
        i += size
    return first_malformed(text, i, stop) == stop


@helper
def begins_with_mark(text: Window, i: int, stop: int) -> bool:
    """Whether text[i:stop] begins with U+FEFF."""
    return i + 3 <= stop and get_u8(text, i) == 0xEF and get_u8(text, i + 1) == 0xBB and get_u8(text, i + 2) == 0xBF


@helper
def first_id(ends: Window, fragment: int) -> int:
    """The offset of a fragment's first id."""
    return get_i64(ends, fragment - 1) if fragment > 0 else 0
