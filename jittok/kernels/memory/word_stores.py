"""Two and eight bytes written at once; the reading side is `elements.get_word`. A file of its own, as few kernels need
it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from jittok.kernels.jit import helper, intrinsic
from jittok.kernels.memory.elements import _I16, _I64, Window, _both, _inside, _place


@intrinsic
def _put_raw(_context: Any, _base: Any, _i: Any, _word: Any) -> Any:
    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        builder.store(args[2], _place(builder, args[0], args[1], 1, _I64), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.uint64), codegen


@helper
def _put_checked(text: Window, i: int, word: np.uint64) -> None:
    _inside(text, i, 8)
    for k in range(8):
        text[i + k] = np.uint8((word >> np.uint64(8 * k)) & np.uint64(0xFF))


put_word = _both(_put_raw, _put_checked)
"""Bytes i .. i + 7 of a uint8 window from a little-endian uint64, aligned or not."""


@intrinsic
def _put_two_raw(_context: Any, _base: Any, _i: Any, _two: Any) -> Any:
    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        builder.store(builder.trunc(args[2], _I16), _place(builder, args[0], args[1], 1, _I16), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@helper
def _put_two_checked(text: Window, i: int, two: int) -> None:
    _inside(text, i, 2)
    text[i], text[i + 1] = two & 0xFF, two >> 8 & 0xFF


put_two = _both(_put_two_raw, _put_two_checked)
"""Bytes i and i + 1 of a uint8 window from the lower 16 bits of a number, the lowest first."""
