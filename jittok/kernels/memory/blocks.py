"""64 bytes to bit masks, 16 or 32 words to their minimum: what one vector instruction does and Numba has no words for.

The vectors are LLVM's own (<64 x i8>), which become AVX-512, AVX2, SSE or NEON as the machine has them. Three
operations only some x86 processors have, `bit_places`, `byte_maps.map_block` and `byte_maps.pair_block`; they have
plain twins that run everywhere else (JITTOK_PLAIN=1 chooses them here too). Every operation has a checked twin over
arrays.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from jittok.kernels.jit import PLAIN, helper, intrinsic
from jittok.kernels.memory.elements import (
    _I8,
    _I32,
    _I64,
    FAST,
    Window,
    _both,
    _inside,
    _place,
    popcount,
    put_i32,
    trailing_zeros,
)

_V64, _W16 = ir.VectorType(_I8, 64), ir.VectorType(_I32, 16)
_1 = np.uint64(1)
EIGHT = 8
"""Places that are written at once where no instruction writes all."""


def _splat(kind: Any, count: int, value: int) -> Any:
    return ir.Constant(ir.VectorType(kind, count), [value] * count)


def _in_all_lanes(b: Any, value: Any, kind: Any) -> Any:
    """A vector of this type whose elements all are the lowest bits of an integer."""
    undefined = ir.Constant(kind, ir.Undefined)
    one = b.insert_element(undefined, b.trunc(value, kind.element), ir.Constant(_I32, 0))
    return b.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(_I32, kind.count), [0] * kind.count))


def _equal(b: Any, block: Any, byte: int) -> Any:
    return b.icmp_unsigned("==", block, _splat(_I8, 64, byte))


def _between(b: Any, block: Any, low: int, count: int) -> Any:
    return b.icmp_unsigned("<", b.sub(block, _splat(_I8, 64, low)), _splat(_I8, 64, count))


def _load_block(b: Any, base: Any, index: Any) -> Any:
    return b.load(_place(b, base, index, 1, _V64), align=1)


def _bits_of(b: Any, mask: Any) -> Any:
    """A vector of 64 bits as an integer.

    On a processor without registers for such vectors, LLVM must not see where the integer comes from. Otherwise it
    would do what follows with vectors of bits, and take these apart bit by bit where branches meet.
    """
    bits = b.bitcast(mask, _I64)
    if HAS_COMPRESS:
        return bits
    return b.asm(ir.FunctionType(_I64, (_I64,)), "", "=r,0", (bits,), side_effect=False)


def _masks_of(build: Any, count: int) -> Any:
    """`masks(text, i)`: `count` uint64 whose bit k speaks of byte i + k."""

    @intrinsic
    def masks(_context: Any, _base: Any, _i: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            bits = [_bits_of(builder, mask) for mask in build(builder, _load_block(builder, *args))]
            return context.make_tuple(builder, signature.return_type, bits)

        return types.UniTuple(types.uint64, count)(types.int64, types.int64), codegen

    return masks


def _class_masks(b: Any, block: Any) -> list[Any]:
    return [
        b.icmp_signed("<", block, _splat(_I8, 64, 0)),
        _between(b, b.or_(block, _splat(_I8, 64, 0x20)), 0x61, 26),
        _between(b, block, 0x30, 10),
        b.or_(_between(b, block, 9, 5), _equal(b, block, 0x20)),
        _equal(b, block, 0x20),
        b.or_(_equal(b, block, 10), _equal(b, block, 13)),
        _equal(b, block, 0x27),
        _between(b, block, 0x41, 26),
        _equal(b, block, 0x2F),
    ]


@helper
def _class_masks_checked(text: Window, i: int) -> Any:
    _inside(text, i, 64)
    high = letter = digit = white = space = line = quote = capital = slash = np.uint64(0)
    for k in range(64):
        c, bit = np.int64(text[i + k]), _1 << np.uint64(k)
        if c >= 0x80:
            high |= bit
        if 0x61 <= c | 0x20 <= 0x7A:
            letter |= bit
        if 0x30 <= c <= 0x39:
            digit |= bit
        if 9 <= c <= 13 or c == 0x20:
            white |= bit
        if c == 0x20:
            space |= bit
        if c in (10, 13):
            line |= bit
        if c == 0x27:
            quote |= bit
        if 0x41 <= c <= 0x5A:
            capital |= bit
        if c == 0x2F:
            slash |= bit
    return high, letter, digit, white, space, line, quote, capital, slash


class_masks = _both(_masks_of(_class_masks, 9), _class_masks_checked)
"""(not ASCII, ASCII letter, digit, ASCII white space, space, CR or LF, apostrophe, capital, slash) of bytes i .. i +
63."""


def _utf8_masks(b: Any, block: Any) -> list[Any]:
    def least(low: int) -> Any:
        return b.icmp_unsigned(">=", block, _splat(_I8, 64, low))

    return [b.icmp_signed("<", block, _splat(_I8, 64, 0xC0)), least(0xC0), least(0xE0), least(0xF0), least(0xF8)]


@helper
def _utf8_masks_checked(text: Window, i: int) -> Any:
    _inside(text, i, 64)
    follower = c0 = e0 = f0 = f8 = np.uint64(0)
    for k in range(64):
        c, bit = np.int64(text[i + k]), _1 << np.uint64(k)
        if 0x80 <= c < 0xC0:
            follower |= bit
        if c >= 0xC0:
            c0 |= bit
        if c >= 0xE0:
            e0 |= bit
        if c >= 0xF0:
            f0 |= bit
        if c >= 0xF8:
            f8 |= bit
    return follower, c0, e0, f0, f8


utf8_masks = _both(_masks_of(_utf8_masks, 5), _utf8_masks_checked)
"""(continuation bytes, bytes C0 and up, E0 and up, F0 and up, F8 and up) of bytes i .. i + 63."""


@intrinsic
def _contraction_raw(_context: Any, _base: Any, _i: Any, _fold: Any) -> Any:
    def codegen(context: Any, b: Any, signature: Any, args: Any) -> Any:
        fold = _in_all_lanes(b, args[2], _V64)
        first, second = (b.or_(_load_block(b, args[0], b.add(args[1], ir.Constant(_I64, k))), fold) for k in (1, 2))
        is_1 = {c: _equal(b, first, ord(c)) for c in "stdmrvl"}
        is_2 = {c: _equal(b, second, ord(c)) for c in "el"}
        one = b.or_(b.or_(is_1["s"], is_1["t"]), b.or_(is_1["d"], is_1["m"]))
        two = b.or_(b.and_(b.or_(is_1["r"], is_1["v"]), is_2["e"]), b.and_(is_1["l"], is_2["l"]))
        return context.make_tuple(b, signature.return_type, [b.bitcast(one, _I64), b.bitcast(two, _I64)])

    return types.UniTuple(types.uint64, 2)(types.int64, types.int64, types.uint64), codegen


@helper
def _contraction_checked(text: Window, i: int, fold: np.uint64) -> Any:
    _inside(text, i, 66)
    one = two = np.uint64(0)
    for k in range(64):
        a, c = np.int64(text[i + k + 1]) | np.int64(fold), np.int64(text[i + k + 2]) | np.int64(fold)
        if a in (0x73, 0x74, 0x64, 0x6D):
            one |= _1 << np.uint64(k)
        if (a in (0x72, 0x76) and c == 0x65) or (a == 0x6C and c == 0x6C):
            two |= _1 << np.uint64(k)
    return one, two


contraction_masks = _both(_contraction_raw, _contraction_checked)
"""For a quote at byte i + k: (one letter of s t d m follows, one of re ve ll follows), both bytes OR `fold` first.
Reads 66 bytes."""


# ---- 16 or 32 words


def _words(count: int) -> Any:
    return ir.VectorType(_I32, count)


def _lowest(b: Any, vector: Any) -> Any:
    name = f"llvm.vector.reduce.umin.v{vector.type.count}i32"
    function = cgutils.get_or_insert_function(b.module, ir.FunctionType(_I32, (vector.type,)), name)
    return b.zext(b.call(function, (vector,)), _I64)


def _lowest_of(count: int) -> Any:
    @intrinsic
    def lowest(_context: Any, _base: Any, _i: Any) -> Any:
        def codegen(_c: Any, b: Any, _signature: Any, args: Any) -> Any:
            return _lowest(b, b.load(_place(b, args[0], args[1], 4, _words(count)), align=4))

        return types.int64(types.int64, types.int64), codegen

    @helper
    def checked(words: Window, i: int) -> int:
        _inside(words, i, count)
        low = np.int64(words[i])
        for k in range(1, count):
            low = min(low, np.int64(words[i + k]))
        return low

    return _both(lowest, checked)


def _set_three_of(count: int) -> Any:
    @intrinsic
    def set_three(_context: Any, _base: Any, _i: Any, _a: Any, _x: Any, _b: Any, _y: Any, _c: Any, _z: Any) -> Any:
        def codegen(_context: Any, b: Any, _signature: Any, args: Any) -> Any:
            position = _place(b, args[0], args[1], 4, _words(count))
            vector = b.load(position, align=4)
            lanes = ir.Constant(_words(count), list(range(count)))
            for at, value in ((2, 3), (4, 5), (6, 7)):
                here = b.icmp_unsigned("==", lanes, _in_all_lanes(b, args[at], _words(count)))
                vector = b.select(here, _in_all_lanes(b, args[value], _words(count)), vector)
            b.store(vector, position, align=4)
            return _lowest(b, vector)

        n = types.int64
        return n(n, n, n, n, n, n, n, n), codegen

    @helper
    def checked(words: Window, i: int, a: int, x: int, b: int, y: int, c: int, z: int) -> int:
        _inside(words, i, count)
        low = np.int64(0xFFFFFFFF)
        for k in range(count):
            if k == a:
                words[i + k] = x
            if k == b:
                words[i + k] = y
            if k == c:
                words[i + k] = z
            low = min(low, np.int64(words[i + k]))
        return low

    return _both(set_three, checked)


lowest_16, lowest_32 = _lowest_of(16), _lowest_of(32)
"""The smallest of elements i .. i + 15 (i + 31) of a uint32 window."""
set_three_lowest_16, set_three_lowest_32 = _set_three_of(16), _set_three_of(32)
"""Of the 16 (32) words from i on, a, b and c become x, y and z (a place that is none of theirs changes nothing); the
smallest then.

One whole load and store: the next call's load is forwarded from this store, which it would not be from three small
ones.
"""


# ---- bit mask -> places


def has_feature(name: str) -> bool:
    """Whether code is compiled for x86 processors with this extension: Numba's settings if they name one, else this
    machine's. False where the plain twins are asked for."""
    if PLAIN:
        return False
    if numba.config.CPU_NAME or numba.config.CPU_FEATURES:
        return f"+{name}" in (numba.config.CPU_FEATURES or "")
    try:
        return bool(llvm.get_host_cpu_features().get(name))
    except RuntimeError:
        return False


HAS_COMPRESS = FAST and has_feature("avx512vbmi2")


@intrinsic
def _bit_places_raw(_context: Any, _out: Any, _at: Any, _first: Any, _mask: Any) -> Any:
    def codegen(_c: Any, b: Any, _signature: Any, args: Any) -> Any:
        out, at, first, mask = args
        bits = ir.VectorType(ir.IntType(1), 64)
        kind = ir.FunctionType(_V64, (_V64, _V64, bits))
        function = cgutils.get_or_insert_function(b.module, kind, "llvm.x86.avx512.mask.compress.v64i8")
        lanes = ir.Constant(_V64, list(range(64)))
        packed = b.call(function, (lanes, ir.Constant(_V64, [0] * 64), b.bitcast(mask, bits)))
        base = _in_all_lanes(b, first, _W16)

        def store(k: int) -> None:
            part = b.shuffle_vector(
                packed, ir.Constant(_V64, ir.Undefined), ir.Constant(_W16, list(range(16 * k, 16 * k + 16)))
            )
            position = _place(b, out, b.add(at, ir.Constant(_I64, 16 * k)), 4, _W16)
            b.store(b.add(b.zext(part, _W16), base), position, align=4)

        store(0)
        store(1)
        count = b.ctpop(mask)
        with b.if_then(b.icmp_unsigned(">", count, ir.Constant(_I64, 32)), likely=False):
            store(2)
            store(3)
        return b.add(at, count)

    n = types.int64
    return n(n, n, n, types.uint64), codegen


@helper
def _bit_places_plain(out: Window, at: int, first: int, mask: np.uint64) -> int:
    after = at + popcount(mask)
    while mask != np.uint64(0):  # eight at once: how many there are cannot be predicted. Those too many are overwritten
        for k in range(EIGHT):
            put_i32(out, at + k, first + trailing_zeros(mask))
            mask &= mask - _1
        at += EIGHT
    return after


@helper
def _bit_places_checked(out: Window, at: int, first: int, mask: np.uint64) -> int:
    _inside(out, at, popcount(mask) + EIGHT - 1 & ~(EIGHT - 1))
    while mask != np.uint64(0):
        put_i32(out, at, first + trailing_zeros(mask))
        mask &= mask - _1
        at += 1
    return at


bit_places = _both(_bit_places_raw if HAS_COMPRESS else _bit_places_plain, _bit_places_checked)
"""first + k for every set bit k of mask, ascending, to the int32 window `out` from `at` on; returns the place after
them. Up to 64 elements from `at` on may be overwritten."""
