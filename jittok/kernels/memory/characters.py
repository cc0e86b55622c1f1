"""Characters of one, two or four bytes, as Python keeps them, to UTF-8: 32 or 16 at once, see `blocks`.

Each operation is there for each width.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from jittok.kernels.jit import helper, intrinsic
from jittok.kernels.memory.blocks import _V64, HAS_COMPRESS, _splat
from jittok.kernels.memory.elements import (
    _I8,
    _I16,
    _I32,
    _I64,
    Window,
    _both,
    _inside,
    _place,
    get_u8,
    get_u16,
    get_u32,
    put_u8,
)

SURROGATES = 0xD800 >> 11
_TYPES = {1: _I8, 2: _I16, 4: _I32}
_GET = {1: get_u8, 2: get_u16, 4: get_u32}


def _characters(b: Any, width: int, count: int, base: Any, i: Any) -> Any:
    kind = ir.VectorType(_TYPES[width], count)
    return b.load(_place(b, base, i, width, kind), align=width)


def _narrow_of(width: int) -> Any:
    @intrinsic
    def narrow(_context: Any, _source: Any, _i: Any, _out: Any, _at: Any) -> Any:
        def codegen(_c: Any, b: Any, _signature: Any, args: Any) -> Any:
            source, i, out, at = args
            found, bytes_ = _characters(b, width, 32, source, i), ir.VectorType(_I8, 32)
            packed = found if width == 1 else b.trunc(found, bytes_)
            b.store(packed, _place(b, out, at, 1, bytes_), align=1)
            high = b.icmp_unsigned(">=", found, _splat(_TYPES[width], 32, 0x80))
            return b.zext(b.bitcast(high, _I32), _I64)

        n = types.int64
        return types.uint64(n, n, n, n), codegen

    get = _GET[width]

    @helper
    def checked(source: Window, i: int, out: Window, at: int) -> np.uint64:
        _inside(source, i, 32)
        _inside(out, at, 32)
        high = np.uint64(0)
        for k in range(32):
            c = get(source, i + k)
            put_u8(out, at + k, c & 0xFF)
            if c >= 0x80:
                high |= np.uint64(1) << np.uint64(k)
        return high

    return _both(narrow, checked)


def _packed(b: Any, made: Any, out: Any, at: Any) -> Any:
    """Write the bytes of 16 words that are not 0, and one of each word; the offset after them."""
    made = b.bitcast(made, _V64)
    firsts = ir.Constant(_V64, [1, 0, 0, 0] * 16)  # so that a NUL is kept
    kept = b.icmp_unsigned("!=", b.or_(made, firsts), _splat(_I8, 64, 0))
    kind = ir.FunctionType(_V64, (_V64, _V64, kept.type))
    compress = cgutils.get_or_insert_function(b.module, kind, "llvm.x86.avx512.mask.compress.v64i8")
    packed = b.call(compress, (made, _splat(_I8, 64, 0), kept))
    b.store(packed, _place(b, out, at, 1, _V64), align=1)
    return b.add(at, b.ctpop(b.bitcast(kept, _I64)))


def _one_by_one(b: Any, made: Any, c: Any, out: Any, at: Any) -> Any:
    """The same, one word after the other; c: the characters, which say how many bytes each word has."""
    sizes = _splat(_I32, 16, 1)
    for limit in (0x80, 0x800, 0x10000):
        sizes = b.add(sizes, b.zext(b.icmp_unsigned(">=", c, _splat(_I32, 16, limit)), sizes.type))
    words, counts = (cgutils.alloca_once(b, made.type) for _ in range(2))
    b.store(made, words)
    b.store(sizes, counts)
    for k in range(16):
        word, count = (b.load(cgutils.gep_inbounds(b, b.bitcast(a, _I32.as_pointer()), k)) for a in (words, counts))
        b.store(word, _place(b, out, at, 1, _I32), align=1)
        at = b.add(at, b.zext(count, _I64))
    return at


def _spell_of(width: int) -> Any:
    @intrinsic
    def spell(_context: Any, _source: Any, _i: Any, _out: Any, _at: Any) -> Any:
        def codegen(_c: Any, b: Any, _signature: Any, args: Any) -> Any:
            source, i, out, at = args
            words = ir.VectorType(_I32, 16)

            def same(value: int) -> Any:
                return _splat(_I32, 16, value)

            def tail(shift: int, to: int) -> Any:
                return b.shl(b.and_(b.lshr(c, same(shift)), same(0x3F)), same(to))

            def below(limit: int) -> Any:
                return b.icmp_unsigned("<", c, same(limit))

            c = _characters(b, width, 16, source, i)
            c = c if width == 4 else b.zext(c, words)
            made = b.or_(b.or_(b.lshr(c, same(6)), same(0x80C0)), tail(0, 8))
            if width > 1:
                three = b.or_(b.or_(b.lshr(c, same(12)), same(0x8080E0)), b.or_(tail(6, 8), tail(0, 16)))
                made = b.select(below(0x800), made, three)
            if width > 2:
                four = b.or_(b.or_(b.lshr(c, same(18)), same(0x808080F0)), b.or_(tail(12, 8), tail(6, 16)))
                made = b.select(below(0x10000), made, b.or_(four, tail(0, 24)))
            made = b.select(below(0x80), c, made)
            after = _packed(b, made, out, at) if HAS_COMPRESS else _one_by_one(b, made, c, out, at)
            if width == 1:
                return after
            odd = b.icmp_unsigned("==", b.lshr(c, same(11)), same(SURROGATES))
            none = b.icmp_unsigned("==", b.bitcast(odd, _I16), ir.Constant(_I16, 0))
            return b.select(none, after, ir.Constant(_I64, -1))

        n = types.int64
        return n(n, n, n, n), codegen

    get = _GET[width]

    @helper
    def checked(source: Window, i: int, out: Window, at: int) -> int:
        _inside(source, i, 16)
        _inside(out, at, 64)
        for k in range(16):
            c = get(source, i + k)
            if c >> 11 == SURROGATES:
                return -1
            size = 1 if c < 0x80 else 2 if c < 0x800 else 3 if c < 0x10000 else 4
            for position in range(size - 1, 0, -1):
                put_u8(out, at + position, 0x80 | c & 0x3F)
                c >>= 6
            put_u8(out, at, c | (0 if size == 1 else 0xF00 >> size & 0xFF))
            at += size
        return at

    return _both(spell, checked)


narrow_8, narrow_16, narrow_32 = map(_narrow_of, _TYPES)
"""32 characters from the i-th on, the low byte of each, to out[at:]; a uint64 whose bit k says that character i + k is
not ASCII."""
spell_8, spell_16, spell_32 = map(_spell_of, _TYPES)
"""UTF-8 of 16 characters from the i-th on to out[at:]; the offset after it, -1 where one is a surrogate. 64 bytes may
be written."""
