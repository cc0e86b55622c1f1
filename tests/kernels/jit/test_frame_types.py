"""NamedTuples that a kernel is called with, and what it reads of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jittok.kernels.jit import F32, U8, OutF64, OutI64, frozen, helper, kernel


class Inner(NamedTuple):
    low: U8
    factor: float
    count: int


class Outer(NamedTuple):
    before: int
    inner: Inner
    scores: F32
    out: OutF64
    after: int


@helper
def of_inner(inner, at):
    return inner.low[at] * inner.factor + inner.count


@kernel
def read_all(first: int, outer: Outer, second: Outer, sizes: OutI64, last: float) -> int:
    inner = outer.inner
    for k in range(inner.low.size):
        outer.out[k] = of_inner(inner, k) + outer.scores[k] + last
    sizes[0], sizes[1], sizes[2] = outer.before, second.after, second.inner.count
    sizes[3], sizes[4] = outer.scores.size, second.inner.low.size
    return first + outer.after


numbers = st.integers(-(2**63), 2**63 - 1)
small = st.integers(-(2**31), 2**31)


@given(st.binary(min_size=1, max_size=9), st.floats(-1e9, 1e9), small, numbers, numbers, st.floats(-1e9, 1e9))
def test_fields_are_where_the_frame_has_them(data, factor, count, before, behind, last):
    scores = np.linspace(-1, 1, len(data), dtype=np.float32)
    inner = Inner(frozen([*data], np.uint8), factor, count)
    outer = Outer(before, inner, frozen(scores, np.float32), np.zeros(len(data)), 40)
    empty = Outer(0, Inner(frozen([], np.uint8), 0.0, -count), frozen([], np.float32), np.zeros(0), behind)
    sizes = np.zeros(5, np.int64)
    assert read_all(2, outer, empty, sizes, last) == 42
    assert sizes.tolist() == [before, behind, -count, len(data), 0]
    expected = [byte * factor + count + float(score) + last for byte, score in zip(data, scores, strict=True)]
    np.testing.assert_allclose(outer.out, expected)
