"""64 bytes to masks: the classes that spans are cut by, bytes that a vocabulary names, and single bits of the bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from jittok.kernels.jit import helper, intrinsic
from jittok.kernels.memory.blocks import _V64, _between, _bits_of, _equal, _in_all_lanes, _load_block, _masks_of
from jittok.kernels.memory.elements import _I64, Window, _both, _inside

_1 = np.uint64(1)


def _span_masks(b: Any, block: Any) -> list[Any]:
    high = b.icmp_signed("<", block, ir.Constant(_V64, [0] * 64))
    letter = _between(b, b.or_(block, ir.Constant(_V64, [0x20] * 64)), 0x61, 26)
    control = b.or_(_between(b, block, 0, 0x20), _equal(b, block, 0x7F))
    return [high, letter, _between(b, block, 0x30, 10), control, _equal(b, block, 0x20)]


@helper
def _span_masks_checked(text: Window, i: int) -> Any:
    _inside(text, i, 64)
    high = letter = digit = control = space = np.uint64(0)
    for k in range(64):
        c, bit = np.int64(text[i + k]), _1 << np.uint64(k)
        if c >= 0x80:
            high |= bit
        if 0x61 <= c | 0x20 <= 0x7A:
            letter |= bit
        if 0x30 <= c <= 0x39:
            digit |= bit
        if c < 0x20 or c == 0x7F:
            control |= bit
        if c == 0x20:
            space |= bit
    return high, letter, digit, control, space


span_masks = _both(_masks_of(_span_masks, 5), _span_masks_checked)
"""(not ASCII, ASCII letter, digit, control, space) of bytes i .. i + 63."""


@intrinsic
def _equal_raw(_context: Any, _base: Any, _i: Any, _byte: Any) -> Any:
    def codegen(_c: Any, b: Any, _signature: Any, args: Any) -> Any:
        same = _in_all_lanes(b, args[2], _V64)
        return _bits_of(b, b.icmp_unsigned("==", _load_block(b, args[0], args[1]), same))

    return types.uint64(types.int64, types.int64, types.int64), codegen


@helper
def _equal_checked(text: Window, i: int, byte: int) -> np.uint64:
    _inside(text, i, 64)
    mask = np.uint64(0)
    for k in range(64):
        if np.int64(text[i + k]) == byte:
            mask |= _1 << np.uint64(k)
    return mask


equal_mask = _both(_equal_raw, _equal_checked)
"""Which of bytes i .. i + 63 are `byte` (0 .. 255)."""


def _sequence_mask(size: int) -> Any:
    """`mask(text, i, wanted, at)` for sequences of `size` bytes."""

    @intrinsic
    def raw(_context: Any, _text: Any, _i: Any, _wanted: Any, _at: Any) -> Any:
        def codegen(_c: Any, b: Any, _signature: Any, args: Any) -> Any:
            text, i, wanted, at = args
            mask = ir.Constant(ir.VectorType(ir.IntType(1), 64), [1] * 64)
            for k in range(size):
                block = _load_block(b, text, b.add(i, ir.Constant(_I64, k)))
                same = _load_block(b, wanted, b.add(at, ir.Constant(_I64, 64 * k)))
                mask = b.and_(mask, b.icmp_unsigned("==", block, same))
            return _bits_of(b, mask)

        n = types.int64
        return types.uint64(n, n, n, n), codegen

    @helper
    def checked(text: Window, i: int, wanted: Window, at: int) -> np.uint64:
        _inside(text, i, 63 + size)
        _inside(wanted, at, 64 * size)
        mask = np.uint64(0)
        for k in range(64):
            same = _1
            for j in range(size):
                same &= np.uint64(text[i + j + k] == wanted[at + 64 * j + k])
            mask |= same << np.uint64(k)
        return mask

    return _both(raw, checked)


one_mask, two_mask, three_mask = _sequence_mask(1), _sequence_mask(2), _sequence_mask(3)
"""Which of bytes i .. i + 63 begin a sequence of one, two or three bytes: wanted[at:] has each of these 64 times."""


def _bit_masks(b: Any, block: Any) -> list[Any]:
    zero = ir.Constant(_V64, [0] * 64)
    return [b.icmp_unsigned("!=", b.and_(block, ir.Constant(_V64, [1 << k] * 64)), zero) for k in range(5)]


@helper
def _bit_masks_checked(text: Window, i: int) -> Any:
    _inside(text, i, 64)
    m0 = m1 = m2 = m3 = m4 = np.uint64(0)
    for k in range(64):
        c, position = np.uint64(text[i + k]), np.uint64(k)
        m0 |= (c & _1) << position
        m1 |= (c >> _1 & _1) << position
        m2 |= (c >> np.uint64(2) & _1) << position
        m3 |= (c >> np.uint64(3) & _1) << position
        m4 |= (c >> np.uint64(4) & _1) << position
    return m0, m1, m2, m3, m4


bit_masks = _both(_masks_of(_bit_masks, 5), _bit_masks_checked)
"""Bits 0, 1, 2, 3 and 4 of bytes i .. i + 63, each as one mask."""


def _string_masks(b: Any, block: Any) -> list[Any]:
    ends = b.or_(_equal(b, block, 0x22), _equal(b, block, 0x5C))
    return [b.or_(ends, _between(b, block, 0, 0x20)), b.icmp_signed("<", block, ir.Constant(_V64, [0] * 64))]


@helper
def _string_masks_checked(text: Window, i: int) -> Any:
    _inside(text, i, 64)
    special = high = np.uint64(0)
    for k in range(64):
        c = np.int64(text[i + k])
        if c < 0x20 or c in (0x22, 0x5C):
            special |= _1 << np.uint64(k)
        if c >= 0x80:
            high |= _1 << np.uint64(k)
    return special, high


string_masks = _both(_masks_of(_string_masks, 2), _string_masks_checked)
"""(quotation mark, backslash or control character: where a plain part of a JSON string ends; not ASCII) of bytes i ..
i + 63."""


@intrinsic
def _any_bit_raw(_context: Any, _base: Any, _i: Any, _bits: Any) -> Any:
    def codegen(_c: Any, b: Any, _signature: Any, args: Any) -> Any:
        there = b.and_(_load_block(b, args[0], args[1]), _in_all_lanes(b, args[2], _V64))
        return _bits_of(b, b.icmp_unsigned("!=", there, ir.Constant(_V64, [0] * 64)))

    return types.uint64(types.int64, types.int64, types.int64), codegen


@helper
def _any_bit_checked(text: Window, i: int, bits: int) -> np.uint64:
    _inside(text, i, 64)
    mask = np.uint64(0)
    for k in range(64):
        if np.int64(text[i + k]) & bits != 0:
            mask |= _1 << np.uint64(k)
    return mask


any_bit_mask = _both(_any_bit_raw, _any_bit_checked)
"""Which of bytes i .. i + 63 have one of the bits `bits` (0 .. 255)."""


_COMPOSING = ((0xC0, 2), (0xCC, 3), (0xD2, 1), (0xD6, 14), (0xEA, 4), (0xEF, 17))


def _composing_leads(b: Any, block: Any) -> list[Any]:
    found = _between(b, block, *_COMPOSING[0])
    for first, count in _COMPOSING[1:]:
        found = b.or_(found, _between(b, block, first, count) if count > 1 else _equal(b, block, first))
    return [found, ir.Constant(found.type, [0] * 64)]


@helper
def _composing_leads_checked(text: Window, i: int) -> Any:
    _inside(text, i, 64)
    mask = np.uint64(0)
    for k in range(64):
        c = np.int64(text[i + k])
        found = np.uint64(0xC0 <= c <= 0xC1 or 0xCC <= c <= 0xCE or 0xD6 <= c <= 0xE3 or c >= 0xEF)
        mask |= (found | np.uint64(c == 0xD2 or 0xEA <= c <= 0xED)) << np.uint64(k)
    return mask, np.uint64(0)


composing_leads = _both(_masks_of(_composing_leads, 2), _composing_leads_checked)
"""(which of bytes i .. i + 63 begin a character that a normal form may change, judged by that byte alone; 0)."""


_FREE = (
    (0xCE, 1, 0x88, 0x38), (0xD7, 1, 0x88, 0x38), (0xD8, 2, 0x80, 11), (0xD8, 2, 0xA0, 16), (0xD8, 2, 0xB1, 15),
    (0xDA, 1, 0x80, 64), (0xDB, 1, 0x80, 22), (0xDE, 1, 0x80, 64), (0xE1, 1, 0xBA, 2), (0xE3, 1, 0x81, 1),
    (0xE3, 1, 0x83, 1), (0xEA, 1, 0xAC, 20), (0xEB, 2, 0x80, 64), (0xED, 1, 0x80, 32), (0xEF, 1, 0xB9, 7),
)  # fmt: skip
"""(first bytes: from, how many; second bytes: from, how many) of characters that NFC never changes: most of Greek,
Hebrew, Arabic, Vietnamese, Kana, Hangul."""
_CONTINUED = 0x80, 64
"""All second bytes."""


@intrinsic
def _composed_raw(_context: Any, _base: Any, _i: Any) -> Any:
    def codegen(_c: Any, b: Any, _signature: Any, args: Any) -> Any:
        text, i = args
        block, after = _load_block(b, text, i), _load_block(b, text, b.add(i, ir.Constant(_I64, 1)))
        found = ir.Constant(ir.VectorType(ir.IntType(1), 64), [0] * 64)
        for first, count, second, seconds in _FREE:
            here = _between(b, block, first, count) if count > 1 else _equal(b, block, first)
            if (second, seconds) != _CONTINUED:
                here = b.and_(here, _between(b, after, second, seconds))
            found = b.or_(found, here)
        return _bits_of(b, found)

    return types.uint64(types.int64, types.int64), codegen


@helper
def _composed_checked(text: Window, i: int) -> np.uint64:
    _inside(text, i, 65)
    mask = np.uint64(0)
    for k in range(64):
        c, d = np.int64(text[i + k]), np.int64(text[i + k + 1])
        free = False
        for first, count, second, seconds in _FREE:
            free = free or (first <= c < first + count and second <= d < second + seconds)
        if free:
            mask |= _1 << np.uint64(k)
    return mask


composed_mask = _both(_composed_raw, _composed_checked)
"""Which of bytes i .. i + 63 begin a character that NFC never changes, as the byte after tells: byte i + 64 is read,
too. NFC changes few of the others either."""
