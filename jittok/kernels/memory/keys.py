"""Keys of pieces and the ids after them: 16 bytes made, compared and copied at once. Each operation has a checked
twin."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from jittok.kernels.jit import helper, intrinsic
from jittok.kernels.memory.elements import _I8, _I16, _I32, _I64, Window, _both, _inside, _place, get_word

_W2, _W4, _W8 = ir.VectorType(_I64, 2), ir.VectorType(_I32, 4), ir.VectorType(_I64, 8)
_FOUR_KEYS = 0x55
"""The bits of a line of four slots of two words that belong to keys."""
_S8, _IDS8 = ir.VectorType(_I16, 8), ir.VectorType(_I32, 8)


@intrinsic
def _put_key_raw(_context: Any, _records: Any, _at: Any, _text: Any, _i: Any, _masks: Any, _n: Any) -> Any:
    def codegen(context: Any, b: Any, signature: Any, args: Any) -> Any:
        records, at, text, i, masks, n = args
        row = b.shl(n, ir.Constant(_I64, 2))
        vector = b.load(_place(b, text, i, 1, _W2), align=1)
        vector = b.and_(vector, b.load(_place(b, masks, row, 8, _W2), align=8))
        vector = b.or_(vector, b.load(_place(b, masks, b.add(row, ir.Constant(_I64, 2)), 8, _W2), align=8))
        b.store(vector, _place(b, records, at, 8, _W2), align=8)
        words = [b.extract_element(vector, ir.Constant(_I32, k)) for k in range(2)]
        return context.make_tuple(b, signature.return_type, words)

    n = types.int64
    return types.UniTuple(types.uint64, 2)(n, n, n, n, n, n), codegen


@helper
def _put_key_checked(records: Window, at: int, text: Window, i: int, masks: Window, n: int) -> Any:
    _inside(records, at, 2)
    _inside(masks, 4 * n, 4)
    low = get_word(text, i) & masks[4 * n] | masks[4 * n + 2]
    high = get_word(text, i + 8) & masks[4 * n + 1] | masks[4 * n + 3]
    records[at], records[at + 1] = low, high
    return low, high


put_key = _both(_put_key_raw, _put_key_checked)
"""The key of n % 16 bytes of a uint8 window from i on, n < 32: the bytes, zero-padded, and n in the last of the 16.
Written to two uint64 words and returned as these. masks: see `key_masks`. Reads 16 bytes."""


def _vector_copy(kind: Any, size: int, change: Any, result: Any) -> Any:
    """`copy(ids, at, source, i)`: a vector of `kind` from the elements of `size` bytes at i, as `change` makes it one
    of `result`, to the int32 elements from `at` on."""

    @intrinsic
    def copy(_context: Any, _ids: Any, _at: Any, _source: Any, _i: Any) -> Any:
        def codegen(context: Any, b: Any, _signature: Any, args: Any) -> Any:
            vector = b.load(_place(b, args[2], args[3], size, kind), align=size)
            b.store(change(b, vector), _place(b, args[0], args[1], 4, result), align=4)
            return context.get_dummy_value()

        n = types.int64
        return types.void(n, n, n, n), codegen

    return copy


@helper
def _copy_ids_checked(ids: Window, at: int, words: Window, i: int) -> None:
    _inside(ids, at, 4)
    _inside(words, i, 2)
    for k in range(4):
        mask = np.uint64(0xFFFFFF if k == 0 else 0xFFFFFFFF)
        value = np.int64(words[i + (k >> 1)] >> np.uint64(32 * (k & 1)) & mask)
        ids[at + k] = value - (value >> 31 << 32)  # bit 31 is the sign


_ONE_BYTE_LESS = ir.Constant(_W4, [0xFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF])
copy_ids = _both(_vector_copy(_W4, 8, lambda b, v: b.and_(v, _ONE_BYTE_LESS), _W4), _copy_ids_checked)
"""Four ids from two uint64 words to ids[at .. at + 3]; the top byte of the first is left out (a count lives there)."""


@helper
def _copy_narrow_checked(ids: Window, at: int, words: Window, i: int) -> None:
    _inside(ids, at, 8)
    _inside(words, i, 2)
    for k in range(8):
        ids[at + k] = np.int64(words[i + (k >> 2)] >> np.uint64(16 * (k & 3)) & np.uint64(0xFFFF))


copy_narrow = _both(_vector_copy(_S8, 8, lambda b, v: b.zext(v, _IDS8), _IDS8), _copy_narrow_checked)
"""Eight ids of 16 bits from two uint64 words to ids[at .. at + 7]."""


@helper
def _copy_four_checked(ids: Window, at: int, source: Window, i: int) -> None:
    _inside(ids, at, 4)
    _inside(source, i, 4)
    for k in range(4):
        ids[at + k] = source[i + k]


copy_four = _both(_vector_copy(_W4, 4, lambda _b, v: v, _W4), _copy_four_checked)
"""source[i .. i + 3] to ids[at .. at + 3], both int32."""


@intrinsic
def _match_pair_raw(_context: Any, _words: Any, _i: Any, _records: Any, _at: Any, _places: Any) -> Any:
    def codegen(_c: Any, b: Any, _signature: Any, args: Any) -> Any:
        vector = b.load(_place(b, args[0], args[1], 8, _W8), align=8)
        key = b.load(_place(b, args[2], args[3], 8, _W2), align=8)
        keys = b.shuffle_vector(key, ir.Constant(_W2, ir.Undefined), ir.Constant(ir.VectorType(_I32, 8), [0, 1] * 4))
        bits = b.zext(b.bitcast(b.icmp_unsigned("==", vector, keys), _I8), _I64)
        # a table, not a choice: which of the two it is cannot be predicted, so there must be no branch on it
        return b.zext(b.load(_place(b, args[4], bits, 1, _I8), align=1), _I64)

    n = types.int64
    return n(n, n, n, n, n), codegen


@helper
def _match_pair_checked(words: Window, i: int, records: Window, at: int, addresses: Window) -> int:
    _inside(words, i, 8)
    _inside(records, at, 2)
    bits = 0
    for k in range(8):
        if words[i + k] == records[at + (k & 1)]:
            bits |= 1 << k
    return np.int64(addresses[bits])


match_pair = _both(_match_pair_raw, _match_pair_checked)
"""Of two slots of four words at i: 0 when the first begins with the two words of `records` at `at`, 4 when the second
does, else NO_MATCH. places: see `pair_places`."""


@intrinsic
def _match_four_raw(_context: Any, _words: Any, _i: Any, _key: Any) -> Any:
    def codegen(_c: Any, b: Any, _signature: Any, args: Any) -> Any:
        words, i, key = args
        undefined = ir.Constant(_W8, ir.Undefined)
        keys = b.insert_element(undefined, key, ir.Constant(_I32, 0))
        keys = b.shuffle_vector(keys, undefined, ir.Constant(ir.VectorType(_I32, 8), [0] * 8))
        equal = b.icmp_unsigned("==", b.load(_place(b, words, i, 8, _W8), align=8), keys)
        bits = b.and_(b.bitcast(equal, _I8), ir.Constant(_I8, _FOUR_KEYS))
        # without a branch: whether a pair is there cannot be foreseen
        position = b.cttz(b.or_(bits, ir.Constant(_I8, 0x80)), ir.Constant(ir.IntType(1), 1))
        position = b.or_(b.zext(position, _I64), ir.Constant(_I64, 1))
        value = b.load(_place(b, words, b.add(i, position), 8, _I64), align=8)
        return b.or_(value, b.sext(b.icmp_unsigned("==", bits, ir.Constant(_I8, 0)), _I64))

    n = types.int64
    return types.uint64(n, n, types.uint64), codegen


@helper
def _match_four_checked(words: Window, i: int, key: np.uint64) -> np.uint64:
    _inside(words, i, 8)
    for k in range(0, 8, 2):
        if words[i + k] == key:
            return words[i + k + 1]
    return np.uint64(0xFFFFFFFFFFFFFFFF)


match_four = _both(_match_four_raw, _match_four_checked)
"""Of four slots of two words at i: the second word of the first one that begins with `key`; all ones when none does."""
