"""Elements, unaligned words and bits: the plain part of raw memory. Each operation has a checked twin.

A kernel turns each array into a *window* once (`window(array)`) and hands windows to its helpers. In fast code a window
is the array's address. An int64 costs no reference counting, no descriptor in registers and no wrap-around of negative
indices. (Numba counts references of every array that is passed to a helper inside a loop. That takes half of the time
of a short loop.) In checked code (JITTOK_CHECKED=1, NUMBA_BOUNDSCHECK=1) and without the compiler (NUMBA_DISABLE_JIT=1)
a window *is* the array, and every operation tests its place against the array's size. So one source gives both, and the
whole suite passes in checked code first.

A fast operation is an intrinsic itself, not a helper around one: a helper costs the compiler a hundredth of a second.

Who calls an operation proves that its place is inside the array the window was made of; who makes a window keeps the
array alive. Places are counted in elements of the array, as in `array[i]`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from jittok.kernels.jit import CHECKED, JIT, helper, intrinsic

FAST = JIT and not CHECKED
Window: TypeAlias = Any

_I1, _I8, _I16, _I32, _I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
_F32, _F64 = ir.FloatType(), ir.DoubleType()
_MASK64 = (1 << 64) - 1


@intrinsic
def _address(_context: Any, array: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(context.make_array(signature.args[0])(context, builder, args[0]).data, _I64)

    return types.int64(array), codegen


@helper
def _window_checked(array: Any) -> Window:
    return array


window = _address if FAST else _window_checked
"""The window onto a C-contiguous array."""


def _place(builder: Any, base: Any, index: Any, size: int, kind: Any) -> Any:
    offset = index if size == 1 else builder.mul(index, ir.Constant(_I64, size))
    return builder.inttoptr(builder.add(base, offset), kind.as_pointer())


def _element_load(kind: Any, size: int, result: Any, widen: Any) -> Any:
    """`load(window, i)`: element i, widened to 64 bits."""

    @intrinsic
    def load(_context: Any, _base: Any, _i: Any) -> Any:
        def codegen(_c: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return widen(builder, builder.load(_place(builder, args[0], args[1], size, kind), align=size))

        return result(types.int64, types.int64), codegen

    return load


def _element_store(kind: Any, size: int, given: Any, narrow: Any) -> Any:
    """`store(window, i, value)`."""

    @intrinsic
    def store(_context: Any, _base: Any, _i: Any, _value: Any) -> Any:
        def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            builder.store(narrow(builder, args[2]), _place(builder, args[0], args[1], size, kind), align=size)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, given), codegen

    return store


@helper
def _inside(array: Any, i: int, count: int) -> None:
    """IndexError unless elements i .. i + count - 1 exist (a negative index would wrap without a word)."""
    if i < 0 or i + count > array.size:
        raise IndexError("raw access outside its array")


@helper
def _load_int_checked(array: Any, i: int) -> Any:
    _inside(array, i, 1)
    return np.int64(array[i])


@helper
def _load_word_checked(array: Any, i: int) -> Any:
    _inside(array, i, 1)
    return np.uint64(array[i])


@helper
def _load_float_checked(array: Any, i: int) -> Any:
    _inside(array, i, 1)
    return np.float64(array[i])


@helper
def _store_checked(array: Any, i: int, value: Any) -> None:
    _inside(array, i, 1)
    array[i] = value


def _both(fast: Any, checked: Any) -> Any:
    return fast if FAST else checked


# Element loads, as int64 (uint64 for get_u64, float64 for the floats).
get_u8 = _both(_element_load(_I8, 1, types.int64, lambda b, v: b.zext(v, _I64)), _load_int_checked)
get_u16 = _both(_element_load(_I16, 2, types.int64, lambda b, v: b.zext(v, _I64)), _load_int_checked)
get_u32 = _both(_element_load(_I32, 4, types.int64, lambda b, v: b.zext(v, _I64)), _load_int_checked)
get_i32 = _both(_element_load(_I32, 4, types.int64, lambda b, v: b.sext(v, _I64)), _load_int_checked)
get_i64 = _both(_element_load(_I64, 8, types.int64, lambda _b, v: v), _load_int_checked)
get_u64 = _both(_element_load(_I64, 8, types.uint64, lambda _b, v: v), _load_word_checked)
get_f32 = _both(_element_load(_F32, 4, types.float64, lambda b, v: b.fpext(v, _F64)), _load_float_checked)
get_f64 = _both(_element_load(_F64, 8, types.float64, lambda _b, v: v), _load_float_checked)

# Element stores.
put_u8 = _both(_element_store(_I8, 1, types.int64, lambda b, v: b.trunc(v, _I8)), _store_checked)
put_u16 = _both(_element_store(_I16, 2, types.int64, lambda b, v: b.trunc(v, _I16)), _store_checked)
put_u32 = _both(_element_store(_I32, 4, types.int64, lambda b, v: b.trunc(v, _I32)), _store_checked)
put_i32 = _both(_element_store(_I32, 4, types.int64, lambda b, v: b.trunc(v, _I32)), _store_checked)
put_i64 = _both(_element_store(_I64, 8, types.int64, lambda _b, v: v), _store_checked)
put_u64 = _both(_element_store(_I64, 8, types.uint64, lambda _b, v: v), _store_checked)
put_f64 = _both(_element_store(_F64, 8, types.float64, lambda _b, v: v), _store_checked)


# ---- words of bytes


@intrinsic
def _word_raw(_context: Any, _base: Any, _i: Any) -> Any:
    def codegen(_c: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.load(_place(builder, args[0], args[1], 1, _I64), align=1)

    return types.uint64(types.int64, types.int64), codegen


@helper
def _word_checked(text: Window, i: int) -> np.uint64:
    _inside(text, i, 8)
    word = np.uint64(0)
    for k in range(8):
        word |= np.uint64(text[i + k]) << np.uint64(8 * k)
    return word


get_word = _both(_word_raw, _word_checked)
"""Bytes i .. i + 7 of a uint8 window as a little-endian uint64, aligned or not."""


@helper
def _behind_fast(text: Window, stop: int, count: int) -> bool:
    return (text + stop - 1 & _PAGE - 1) + count < _PAGE


@helper
def _behind_nothing(_text: Window, _stop: int, _count: int) -> bool:
    return False


_PAGE = 4096
readable_behind = _both(_behind_fast, _behind_nothing)
"""Whether `count` bytes from `stop` on can be loaded although they belong to somebody else: they lie in the page of
byte stop - 1, and memory is readable by whole pages. What is there means nothing and may change at any time."""


# ---- an int32 window as other elements


@helper
def _from_fast(base: Window, i: int, _count: int) -> Window:
    return base + 4 * i


def _bytes_checked(base: Window, i: int, count: int) -> Window:
    _inside(base, i, count)
    return base[i : i + count].view(np.uint8)


def _halves_checked(base: Window, i: int, count: int) -> Window:
    _inside(base, i, count)
    return base[i : i + count].view(np.uint16)


as_bytes = _both(_from_fast, _bytes_checked)
"""Elements i .. i + count - 1 of an int32 window as one of uint8. Not in compiled code that checks: kernels make no
arrays there."""
as_halves = _both(_from_fast, _halves_checked)
"""The same as one of uint16."""


# ---- arithmetic that NumPy's scalars would warn about


@helper
def _multiply_fast(a: np.uint64, b: np.uint64) -> np.uint64:
    return a * b


def _multiply_plain(a: Any, b: Any) -> Any:
    return np.uint64(int(a) * int(b) & _MASK64)


multiply = _multiply_fast if JIT else _multiply_plain
"""a * b modulo 2**64; without the compiler NumPy would warn of the overflow that a hash is made of."""


@helper
def _add_fast(a: np.uint64, b: np.uint64) -> np.uint64:
    return a + b


def _add_plain(a: Any, b: Any) -> Any:
    return np.uint64((int(a) + int(b)) & _MASK64)


add = _add_fast if JIT else _add_plain
"""a + b modulo 2**64."""


# ---- bits


def _bit_count(name: str) -> Any:
    @intrinsic
    def count(_context: Any, _x: Any) -> Any:
        def codegen(_c: Any, builder: Any, _signature: Any, args: Any) -> Any:
            if name == "ctpop":
                return builder.ctpop(args[0])
            return getattr(builder, name)(args[0], ir.Constant(_I1, 0))

        return types.int64(types.uint64), codegen

    return count


def _trailing_zeros_plain(x: Any) -> int:
    x = int(x)
    return (x & -x).bit_length() - 1 if x else 64


def _leading_zeros_plain(x: Any) -> int:
    return 64 - int(x).bit_length()


def _popcount_plain(x: Any) -> int:
    return bin(int(x)).count("1")


trailing_zeros = _bit_count("cttz") if JIT else _trailing_zeros_plain
"""Zero bits below the lowest set bit of a uint64; 64 for 0."""
leading_zeros = _bit_count("ctlz") if JIT else _leading_zeros_plain
"""Zero bits above the highest set bit of a uint64; 64 for 0."""
popcount = _bit_count("ctpop") if JIT else _popcount_plain
"""Set bits of a uint64."""


# ---- hints


@intrinsic
def _prefetch_raw(_context: Any, _address: Any) -> Any:
    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], _I8.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), (pointer.type, _I32, _I32, _I32))
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, (pointer, ir.Constant(_I32, 0), ir.Constant(_I32, 3), ir.Constant(_I32, 1)))
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@helper
def _prefetch_fast(base: Window, i: int, size: int) -> None:
    _prefetch_raw(base + i * size)


@helper
def _prefetch_nothing(base: Window, i: int, size: int) -> None:
    pass


prefetch = _both(_prefetch_fast, _prefetch_nothing)
"""Bring the cache line of element i (of `size` bytes) close; never faults, changes nothing."""
