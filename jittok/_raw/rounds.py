"""One merge in each of 16 lists at once, by gathers and scatters; without AVX-512 these go element by element.

The lists stand beside each other: element 16 * k + lane belongs to place k of a lane. Places are 0 to 30; place 31 is
nowhere, and what stands there merges with nothing. Which places of a lane still hold a symbol is a mask of 32 bits, so
neighbours are found by counting zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from jittok._jit import helper, intrinsic
from jittok._raw.blocks import _W16, HAS_COMPRESS, _in_all_lanes, _splat
from jittok._raw.memory import (
    _I1,
    _I8,
    _I32,
    _I64,
    Window,
    _both,
    _place,
    get_i32,
    get_u32,
    get_u64,
    leading_zeros,
    multiply,
    put_i32,
    put_u32,
    put_u64,
    trailing_zeros,
)

_NOWHERE = 31
_NEVER, _NO_WORD = 1 << 31, 0xFFFFFFFF
_BITS, _Q8 = ir.VectorType(_I1, 16), ir.VectorType(_I64, 8)
_ALL, _END, _0, _1, _6, _32, _63 = (np.uint64(k) for k in (0xFFFFFFFF, 1 << 31, 0, 1, 6, 32, 63))


class _Vectors:
    """Sixteen lanes as LLVM's vectors."""

    def __init__(self, builder: Any) -> None:
        self.b = builder

    def words(self, value: int) -> Any:
        return _splat(_I32, 16, value)

    def pointer(self, base: Any) -> Any:
        return self.b.inttoptr(base, _I8.as_pointer())

    def load(self, base: Any, at: int = 0) -> Any:
        return self.b.load(_place(self.b, base, ir.Constant(_I64, 16 * at), 4, _W16), align=4)

    def store(self, vector: Any, base: Any, at: int = 0) -> None:
        self.b.store(vector, _place(self.b, base, ir.Constant(_I64, 16 * at), 4, _W16), align=4)

    def lower(self, x: Any, y: Any) -> Any:
        return self.b.select(self.b.icmp_unsigned("<", x, y), x, y)

    def highest_bit(self, x: Any) -> Any:
        """The place of the highest bit of each word; NOWHERE of 0."""
        function = cgutils.get_or_insert_function(
            self.b.module, ir.FunctionType(_W16, (_W16, _I1)), f"llvm.ctlz.v{_W16.count}i32"
        )
        zeros = self.b.call(function, (x, ir.Constant(_I1, 0)))
        return self.b.and_(self.b.sub(self.words(_NOWHERE), zeros), self.words(_NOWHERE))

    def lowest_bit(self, x: Any) -> Any:
        """The lowest bit of each word alone."""
        return self.b.and_(x, self.b.sub(self.words(0), x))

    def places(self, k: Any) -> Any:
        """Where in the arrays place k of each lane is."""
        lanes = ir.Constant(_W16, list(range(16)))
        return self.b.or_(self.b.shl(k, self.words(4)), lanes)

    def _elements(self, vector: Any) -> list[Any]:
        return [self.b.extract_element(vector, ir.Constant(_I32, k)) for k in range(vector.type.count)]

    def _call(self, name: str, result: Any, *arguments: Any) -> Any:
        kind = ir.FunctionType(result, [each.type for each in arguments])
        function = cgutils.get_or_insert_function(self.b.module, kind, f"llvm.x86.avx512.mask.{name}.512")
        return self.b.call(function, arguments)

    def gather(self, base: Any, at: Any, name: str = "gather.dpi") -> Any:
        """The elements of an array that a vector of places says: 16 of 32 bits, or 8 of 64."""
        kind, size = at.type, at.type.element.width // 8
        if HAS_COMPRESS:
            every = ir.Constant(ir.VectorType(_I1, kind.count), [1] * kind.count)
            nothing = ir.Constant(kind, [0] * kind.count)
            return self._call(name, kind, nothing, self.pointer(base), at, every, ir.Constant(_I32, size))
        found = ir.Constant(kind, ir.Undefined)
        for k, each in enumerate(self._elements(at)):
            index = each if size == 8 else self.b.zext(each, _I64)
            element = self.b.load(_place(self.b, base, index, size, kind.element), align=size)
            found = self.b.insert_element(found, element, ir.Constant(_I32, k))
        return found

    def scatter(self, base: Any, at: Any, values: Any) -> None:
        """Sixteen words to the elements of an array."""
        if HAS_COMPRESS:
            every = ir.Constant(_BITS, [1] * 16)
            self._call("scatter.dpi", ir.VoidType(), self.pointer(base), every, at, values, ir.Constant(_I32, 4))
            return
        for index, value in zip(self._elements(at), self._elements(values), strict=True):
            self.b.store(value, _place(self.b, base, self.b.zext(index, _I64), 4, _I32), align=4)

    def eight(self, vector: Any, half: int) -> Any:
        """Half of the words, as words of 64 bits."""
        chosen = ir.Constant(ir.VectorType(_I32, 8), list(range(8 * half, 8 * half + 8)))
        part = self.b.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), chosen)
        return self.b.zext(part, _Q8)


@intrinsic
def _round_raw(
    _context: Any,
    _symbols: Any,
    _merged: Any,
    _ranks: Any,
    _alive: Any,
    _rows: Any,
    _bits: Any,
    _line_shift: Any,
    _bit_shift: Any,
    _mix: Any,
    _keys: Any,
    _lines: Any,
    _places: Any,
) -> Any:
    def codegen(_c: Any, b: Any, _signature: Any, args: Any) -> Any:
        symbols, merged, ranks, alive, rows, bits, line_shift, bit_shift, mix, keys, lines, places = args
        v = _Vectors(b)
        one, nowhere, none = v.words(1), v.words(_NOWHERE), v.words(_NO_WORD)
        lowest, result = cgutils.alloca_once(b, _W16), cgutils.alloca_once(b, _I64)
        b.store(none, lowest)
        b.store(ir.Constant(_I64, -1), result)
        with cgutils.for_range(b, rows) as loop:
            row = b.load(_place(b, ranks, b.shl(loop.index, ir.Constant(_I64, 4)), 4, _W16), align=4)
            b.store(v.lower(b.load(lowest), row), lowest)
        best = b.load(lowest)
        busy = b.icmp_signed(">=", best, v.words(0))
        active = b.zext(b.bitcast(busy, ir.IntType(16)), _I64)
        with b.if_then(b.icmp_unsigned("!=", active, ir.Constant(_I64, 0)), likely=True):
            k = b.select(busy, b.and_(best, nowhere), nowhere)
            bit, here = b.shl(one, k), v.load(alive)
            # 2 << 31 is 0, so nothing is above NOWHERE
            above = b.and_(here, b.sub(v.words(0), b.add(bit, bit)))
            above = b.select(busy, above, v.words(0))
            first = v.lowest_bit(above)
            right, after = v.highest_bit(first), v.highest_bit(v.lowest_bit(b.xor(above, first)))
            here = b.xor(here, first)
            v.store(here, alive)
            before = b.select(busy, v.highest_bit(b.and_(here, b.sub(bit, one))), nowhere)
            at, at_before = v.places(k), v.places(before)
            new = v.gather(merged, at)
            behind, in_front = v.gather(symbols, v.places(after)), v.gather(symbols, at_before)
            v.scatter(symbols, at, new)
            for each in (at, v.places(right), at_before):
                v.scatter(ranks, each, none)
            v.store(at, places)
            v.store(at_before, places, 1)
            new, behind, in_front = (b.add(each, one) for each in (new, behind, in_front))
            asked = ir.Constant(_I64, 0)
            for number, (x, y, half) in enumerate(
                ((new, behind, 0), (new, behind, 1), (in_front, new, 0), (in_front, new, 1))
            ):
                key = b.or_(b.shl(v.eight(x, half), ir.Constant(_Q8, [32] * 8)), v.eight(y, half))
                mixed = b.mul(key, _in_all_lanes(b, mix, _Q8))
                place = b.lshr(mixed, _in_all_lanes(b, bit_shift, _Q8))
                word = v.gather(bits, b.lshr(place, ir.Constant(_Q8, [6] * 8)), "gather.qpq")
                there = b.trunc(b.lshr(word, b.and_(place, ir.Constant(_Q8, [63] * 8))), ir.VectorType(_I1, 8))
                there = b.zext(b.bitcast(there, _I8), _I64)
                asked = b.or_(asked, b.shl(there, ir.Constant(_I64, 8 * number)))
                where = ir.Constant(_I64, 8 * number)
                b.store(key, _place(b, keys, where, 8, _Q8), align=8)
                line = b.lshr(mixed, _in_all_lanes(b, line_shift, _Q8))
                b.store(line, _place(b, lines, where, 8, _Q8), align=8)
            both = b.or_(active, b.shl(active, ir.Constant(_I64, 16)))
            b.store(b.and_(asked, both), result)
        return b.load(result)

    n, word = types.int64, types.uint64
    return n(n, n, n, n, n, n, n, n, word, n, n, n), codegen


@helper
def _note(
    bits: Window,
    line_shift: int,
    bit_shift: int,
    mix: np.uint64,
    keys: Window,
    lines: Window,
    number: int,
    left: int,
    right: int,
) -> np.uint64:
    """Note a look-up; its bit, or 0 where there is no such pair."""
    key = np.uint64(left + 1) << _32 | np.uint64(right + 1)
    mixed = multiply(key, mix)
    place = mixed >> np.uint64(bit_shift)
    put_u64(keys, number, key)
    put_u64(lines, number, mixed >> np.uint64(line_shift))
    return (get_u64(bits, np.int64(place >> _6)) >> (place & _63) & _1) << np.uint64(number)


@helper
def _round_checked(
    symbols: Window,
    merged: Window,
    ranks: Window,
    alive: Window,
    rows: int,
    bits: Window,
    line_shift: int,
    bit_shift: int,
    mix: np.uint64,
    keys: Window,
    lines: Window,
    places: Window,
) -> int:
    asked, busy = _0, False
    for lane in range(16):
        best = np.int64(_NO_WORD)
        for k in range(rows):
            best = min(best, get_u32(ranks, 16 * k + lane))
        if best >= _NEVER:
            continue
        busy = True
        k = best & _NOWHERE
        here = np.uint64(get_u32(alive, lane))
        above = here & (_ALL << np.uint64(k + 1))
        right = trailing_zeros(above)
        above &= above - _1
        after = trailing_zeros(above | _END)
        here ^= _1 << np.uint64(right)
        put_u32(alive, lane, np.int64(here))
        below = here & ((_1 << np.uint64(k)) - _1)
        before = 63 - leading_zeros(below) & _NOWHERE  # of no bit -1
        at, at_before = 16 * k + lane, 16 * before + lane
        new = get_u32(merged, at)
        put_i32(symbols, at, new)
        put_u32(ranks, at, _NO_WORD)
        put_u32(ranks, 16 * right + lane, _NO_WORD)
        put_u32(ranks, at_before, _NO_WORD)
        put_u32(places, lane, at)
        put_u32(places, 16 + lane, at_before)
        behind, in_front = get_i32(symbols, 16 * after + lane), get_i32(symbols, at_before)
        asked |= _note(bits, line_shift, bit_shift, mix, keys, lines, lane, new, behind)
        asked |= _note(bits, line_shift, bit_shift, mix, keys, lines, 16 + lane, in_front, new)
    return np.int64(asked) if busy else np.int64(-1)


merge_round = _both(_round_raw, _round_checked)
"""In each of 16 lanes the pair of the lowest rank becomes one symbol; -1 where no lane has a pair, else which of 32
look-ups are to be made: bit `lane` for the pair of the new symbol and the one behind it, bit 16 + lane for the one in
front of it and the new symbol.

symbols: int32[512], -1 at place 31; merged: uint32[512] what the pair of a place and the next one becomes; ranks:
uint32[512] rank << 8 | place of that pair, 1 << 31 or more for none, as it is set for those that are looked up;
alive: uint32[16] a bit for each place with a symbol; rows: places that have pairs.
bits: the filter of the pair table; mix, line_shift, bit_shift: what its keys are hashed by.
keys, lines: uint64[32] of each look-up the key and the line; places: uint32[32] the element its answer belongs to.
Symbols and places are as the caller has proved them."""
