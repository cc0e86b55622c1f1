"""64 bytes to 64 bytes: each looked up in a table of 128, each marked by a bit of a mask."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from jittok._jit import helper, intrinsic
from jittok._raw.blocks import _V64, _load_block, has_feature
from jittok._raw.memory import _I8, _I32, FAST, Window, _both, _inside, _place, get_u8, put_u8

_1 = np.uint64(1)
_MASK = ir.VectorType(ir.IntType(1), 64)


def _splat_byte(b: Any, value: Any) -> Any:
    one = b.insert_element(ir.Constant(_V64, ir.Undefined), b.trunc(value, _I8), ir.Constant(_I32, 0))
    return b.shuffle_vector(one, ir.Constant(_V64, ir.Undefined), ir.Constant(ir.VectorType(_I32, 64), [0] * 64))


@intrinsic
def _map_raw(_context: Any, _table: Any, _first: Any, _text: Any, _i: Any, _beyond: Any, _out: Any, _at: Any) -> Any:
    def codegen(context: Any, b: Any, _signature: Any, args: Any) -> Any:
        table, first, text, i, beyond, out, at = args
        kind = ir.FunctionType(_V64, (_V64, _V64, _V64))
        function = cgutils.get_or_insert_function(b.module, kind, "llvm.x86.avx512.vpermi2var.qi.512")
        halves = [_load_block(b, table, b.add(first, ir.Constant(first.type, k))) for k in (0, 64)]
        block = _load_block(b, text, i)
        found = b.call(function, (halves[0], block, halves[1]))
        high = b.icmp_signed("<", block, ir.Constant(_V64, [0] * 64))
        b.store(b.select(high, _splat_byte(b, beyond), found), _place(b, out, at, 1, _V64), align=1)
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
def _mark_raw(_context: Any, _out: Any, _at: Any, _mask: Any) -> Any:
    def codegen(context: Any, b: Any, _signature: Any, args: Any) -> Any:
        place = _place(b, args[0], args[1], 1, _V64)
        marks = b.zext(b.bitcast(args[2], _MASK), _V64)
        b.store(b.or_(b.load(place, align=1), marks), place, align=1)
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
