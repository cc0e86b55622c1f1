"""64 bytes to 64 bytes: as they are, each looked up in a table of 128, two as one number, each marked by a bit of a
mask."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from jittok.kernels.jit import helper, intrinsic
from jittok.kernels.memory.blocks import _V64, _in_all_lanes, _load_block, has_feature
from jittok.kernels.memory.elements import _I16, FAST, Window, _both, _inside, _place, get_u8, put_u8, put_u16

_1 = np.uint64(1)
_MASK, _V32 = ir.VectorType(ir.IntType(1), 64), ir.VectorType(_I16, 32)


def _looked_up(b: Any, table: Any, first: Any, block: Any) -> Any:
    """Of each of 64 bytes the element of a table of 128 that its lower seven bits say."""
    kind = ir.FunctionType(_V64, (_V64, _V64, _V64))
    function = cgutils.get_or_insert_function(b.module, kind, "llvm.x86.avx512.vpermi2var.qi.512")
    low, high = (_load_block(b, table, b.add(first, ir.Constant(first.type, k))) for k in (0, 64))
    return b.call(function, (low, block, high))


@intrinsic
def _map_raw(_context: Any, _table: Any, _first: Any, _text: Any, _i: Any, _beyond: Any, _out: Any, _at: Any) -> Any:
    def codegen(context: Any, b: Any, _signature: Any, args: Any) -> Any:
        table, first, text, i, beyond, out, at = args
        block = _load_block(b, text, i)
        found = _looked_up(b, table, first, block)
        high = b.icmp_signed("<", block, ir.Constant(_V64, [0] * 64))
        b.store(b.select(high, _in_all_lanes(b, beyond, _V64), found), _place(b, out, at, 1, _V64), align=1)
        return context.get_dummy_value()

    n = types.int64
    return types.void(n, n, n, n, n, n, n), codegen


@helper
def _map_plain(table: Window, first: int, text: Window, i: int, beyond: int, out: Window, at: int) -> None:
    for k in range(64):
        byte = get_u8(text, i + k)
        put_u8(out, at + k, get_u8(table, first + byte) if byte < 0x80 else beyond)


@helper
def _map_checked(table: Window, first: int, text: Window, i: int, beyond: int, out: Window, at: int) -> None:
    _inside(table, first, 128)
    _inside(text, i, 64)
    _inside(out, at, 64)
    _map_plain(table, first, text, i, beyond, out, at)


HAS_PERMUTE = FAST and has_feature("avx512vbmi")
map_block = _both(_map_raw if HAS_PERMUTE else _map_plain, _map_checked)
"""out[at + k] = table[first + text[i + k]] for k < 64, or `beyond` where that byte is not ASCII. The uint8 window
`table` has 128 elements from `first` on."""


@intrinsic
def _pairs_raw(
    _context: Any, _table: Any, _first: Any, _classes: Any, _i: Any, _width: Any, _out: Any, _at: Any
) -> Any:
    def codegen(context: Any, b: Any, _signature: Any, args: Any) -> Any:
        table, first, classes, i, width, out, at = args
        block, ones = _load_block(b, classes, i), ir.Constant(_V64, [1] * 64)
        found = b.or_(_looked_up(b, table, first, b.lshr(block, ones)), b.and_(block, ones))
        both = b.bitcast(found, _V32)
        widths = _in_all_lanes(b, width, _V32)
        left = b.and_(both, ir.Constant(_V32, [0xFF] * 32))
        right = b.lshr(both, ir.Constant(_V32, [8] * 32))
        b.store(b.add(b.mul(left, widths), right), _place(b, out, at, 2, _V32), align=2)
        return context.get_dummy_value()

    n = types.int64
    return types.void(n, n, n, n, n, n, n), codegen


@helper
def _pairs_plain(table: Window, first: int, classes: Window, i: int, width: int, out: Window, at: int) -> None:
    for k in range(32):
        a, b = get_u8(classes, i + 2 * k), get_u8(classes, i + 2 * k + 1)
        left, right = get_u8(table, first + (a >> 1)) | a & 1, get_u8(table, first + (b >> 1)) | b & 1
        put_u16(out, at + k, left * width + right)


@helper
def _pairs_checked(table: Window, first: int, classes: Window, i: int, width: int, out: Window, at: int) -> None:
    _inside(table, first, 128)
    _inside(classes, i, 64)
    _inside(out, at, 32)
    _pairs_plain(table, first, classes, i, width, out, at)


pair_block = _both(_pairs_raw if HAS_PERMUTE else _pairs_plain, _pairs_checked)
"""out[at + k] = x * width + y for k < 32. x and y come from bytes i + 2 * k and i + 2 * k + 1 of `classes`: the
lowest bit of a byte is kept, the others are looked up in the 128 even elements of `table` from `first` on."""


@intrinsic
def _mark_raw(_context: Any, _out: Any, _at: Any, _mask: Any) -> Any:
    def codegen(context: Any, b: Any, _signature: Any, args: Any) -> Any:
        position = _place(b, args[0], args[1], 1, _V64)
        marks = b.zext(b.bitcast(args[2], _MASK), _V64)
        b.store(b.or_(b.load(position, align=1), marks), position, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.uint64), codegen


@helper
def _mark_checked(out: Window, at: int, mask: np.uint64) -> None:
    _inside(out, at, 64)
    for k in range(64):
        if mask >> np.uint64(k) & _1 != np.uint64(0):
            out[at + k] |= 1


mark_block = _both(_mark_raw, _mark_checked)
"""The lowest bit of out[at + k] is set for every set bit k of mask."""


@intrinsic
def _copy_raw(_context: Any, _text: Any, _i: Any, _out: Any, _at: Any) -> Any:
    def codegen(context: Any, b: Any, _signature: Any, args: Any) -> Any:
        text, i, out, at = args
        b.store(_load_block(b, text, i), _place(b, out, at, 1, _V64), align=1)
        return context.get_dummy_value()

    n = types.int64
    return types.void(n, n, n, n), codegen


@helper
def _copy_checked(text: Window, i: int, out: Window, at: int) -> None:
    _inside(text, i, 64)
    _inside(out, at, 64)
    for k in range(64):
        out[at + k] = text[i + k]


copy_block = _both(_copy_raw, _copy_checked)
"""out[at + k] = text[i + k] for k < 64, of two uint8 windows that do not overlap."""
