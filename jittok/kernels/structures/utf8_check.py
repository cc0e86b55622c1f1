"""Validation of UTF-8, 64 bytes at a time. The libraries of files other than GGUF refuse invalid UTF-8, so it is found
before encoding."""

from __future__ import annotations

import numpy as np

from jittok.kernels.jit import I32, I64, U8, helper, kernel
from jittok.kernels.memory import Window, equal_mask, get_u8, get_word, trailing_zeros, utf8_masks, window

VALID = -1
NONE, ONE = np.uint64(0), np.uint64(1)
HIGH = np.uint64(0x8080808080808080)
B2, B3 = np.uint64(2), np.uint64(3)


@helper
def _second_is_bad(lead: int, second: int) -> bool:
    """Whether this second byte makes an overlong form, a surrogate, or a number above U+10FFFF; or the lead does."""
    if lead < 0xC2 or lead > 0xF4:
        return True
    if lead == 0xE0:
        return second < 0xA0
    if lead == 0xED:
        return second > 0x9F
    if lead == 0xF0:
        return second < 0x90
    return lead == 0xF4 and second > 0x8F


@helper
def _block_is_bad(text: Window, i: int, owed: int) -> tuple[bool, int]:
    """(whether text[i:i + 64] is bad, the number of bytes that its last character needs from the next block).

    Reads 65 bytes: if the last byte is a lead, the second byte of its character is checked, too.
    """
    follower, c0, e0, f0, f8 = utf8_masks(text, i)
    promised = c0 << ONE | e0 << B2 | f0 << B3 | ((ONE << np.uint64(owed)) - ONE)
    if (promised ^ follower | f8) != NONE:
        return True, 0
    odd = equal_mask(text, i, 0xC0) | equal_mask(text, i, 0xC1) | equal_mask(text, i, 0xE0) | equal_mask(text, i, 0xED)
    odd |= f0
    while odd != NONE:
        k = i + trailing_zeros(odd)
        odd &= odd - ONE
        if _second_is_bad(get_u8(text, k), get_u8(text, k + 1)):
            return True, 0
    owed = np.int64(c0 >> np.uint64(63)) + np.int64(e0 >> np.uint64(63)) + np.int64(e0 >> np.uint64(62) & ONE)
    owed += np.int64(f0 >> np.uint64(63)) + np.int64(f0 >> np.uint64(62) & ONE) + np.int64(f0 >> np.uint64(61) & ONE)
    return False, owed


@helper
def _rest_is_bad(text: Window, i: int, stop: int, owed: int) -> bool:
    """The same of text[i:stop], byte by byte but for ASCII."""
    while i < stop and owed > 0:
        if get_u8(text, i) & 0xC0 != 0x80:
            return True
        i, owed = i + 1, owed - 1
    while i < stop:
        if i + 8 <= stop and get_word(text, i) & HIGH == NONE:
            i += 8
            continue
        lead = get_u8(text, i)
        i += 1
        if lead < 0x80:
            continue
        size = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        if i + size > stop or _second_is_bad(lead, get_u8(text, i)):
            return True
        for k in range(size):
            if get_u8(text, i + k) & 0xC0 != 0x80:
                return True
        i += size
    return owed > 0


@helper
def is_malformed(text: Window, i: int, stop: int) -> bool:
    """Whether text[i:stop] is invalid UTF-8. Nothing outside of it is read."""
    owed = 0
    while i + 65 <= stop:
        bad, owed = _block_is_bad(text, i, owed)
        if bad:
            return True
        i += 64
    return _rest_is_bad(text, i, stop, owed)


@kernel
def first_malformed(data: U8, starts: I64, stops: I64, tokens: I32, first: int, last: int) -> int:
    """The first of texts first .. last - 1 that is invalid UTF-8, or VALID.

    starts, stops: int64[], tokens: int32[] fragments, see `jittok.kernels.fragments`; ids are skipped. Nothing
    outside of a text is read.
    """
    text = window(data)
    for k in range(first, last):
        if tokens[k] < 0 and is_malformed(text, starts[k], stops[k]):
            return k
    return VALID
