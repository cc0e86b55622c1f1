"""64 bytes to a mask: characters of Indic scripts that NFC never changes. Their second and third bytes decide, so three
blocks are looked at together."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from jittok.kernels.jit import helper, intrinsic
from jittok.kernels.memory.blocks import _V64, _between, _bits_of, _equal, _load_block
from jittok.kernels.memory.elements import _I64, Window, _both, _inside

_1 = np.uint64(1)
_LEAD, _SECOND, _SECONDS = 0xE0, 0xA4, 18
"""The first byte of these scripts, the lowest second one and how many there are: U+0900 .. U+0D7F."""
_NUKTA, _AA, _LATE, _LATES = 0xBC, 0xBE, 0x91, 15
"""Third bytes. After an even second one: of the nukta, and of the sign AA. After an odd one: from where on, and how
many, stand marks, parts of vowel signs, and letters with a nukta."""
_NO_AA = 0xA4, 0xAA, 0xB0
"""Second bytes of scripts whose sign AA composes with nothing: Devanagari, Gujarati, Telugu."""
_ODD_ONES = (0xA7, 0xBE), (0xA8, 0xB3), (0xA8, 0xB6), (0xB3, 0x82)
"""A mark of Bengali, two letters of Gurmukhi with a nukta, a vowel sign of Kannada."""


@intrinsic
def _settled_raw(_context: Any, _base: Any, _i: Any) -> Any:
    def codegen(_c: Any, b: Any, _signature: Any, args: Any) -> Any:
        text, i = args
        lead, second, third = (_load_block(b, text, b.add(i, ir.Constant(_I64, k))) for k in range(3))
        ones = ir.Constant(_V64, [1] * 64)
        odd = b.icmp_unsigned("==", b.and_(second, ones), ones)
        no_aa = _equal(b, second, _NO_AA[0])
        for byte in _NO_AA[1:]:
            no_aa = b.or_(no_aa, _equal(b, second, byte))
        even = b.or_(_equal(b, third, _NUKTA), b.and_(_equal(b, third, _AA), b.not_(no_aa)))
        changes = b.or_(b.and_(odd, _between(b, third, _LATE, _LATES)), b.and_(b.not_(odd), even))
        for byte, last in _ODD_ONES:
            changes = b.or_(changes, b.and_(_equal(b, second, byte), _equal(b, third, last)))
        here = b.and_(_equal(b, lead, _LEAD), _between(b, second, _SECOND, _SECONDS))
        return _bits_of(b, b.and_(here, b.not_(changes)))

    return types.uint64(types.int64, types.int64), codegen


@helper
def _settled_checked(text: Window, i: int) -> np.uint64:
    _inside(text, i, 66)
    mask = np.uint64(0)
    for k in range(64):
        lead, second, third = np.int64(text[i + k]), np.int64(text[i + k + 1]), np.int64(text[i + k + 2])
        changes = _LATE <= third < _LATE + _LATES
        if second & 1 == 0:
            changes = third == _NUKTA or (third == _AA and second not in _NO_AA)
        for byte, last in _ODD_ONES:
            changes = changes or (second == byte and third == last)
        if lead == _LEAD and _SECOND <= second < _SECOND + _SECONDS and not changes:
            mask |= _1 << np.uint64(k)
    return mask


settled_mask = _both(_settled_raw, _settled_checked)
"""Which of bytes i .. i + 63 begin a character of U+0900 .. U+0D7F that NFC never changes. The last byte that is
read is i + 65."""
