"""The kernels of packing and order are the plain reference, also where numbers are large."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jittok.corpus.reading import packing
from jittok.corpus.reading.kernels import next_fit, permute
from jittok.corpus.reading.order import NearOrder, Order, name_of
from jittok.reference.corpus import sequences as plain


@given(count=st.one_of(st.integers(1, 300), st.integers(1 << 40, 1 << 62)), seed=st.integers(0, 1 << 70))
def test_an_order_is_that_of_the_reference(count, seed):
    some = sorted({0, count - 1, count // 2, count // 3})
    found = Order(count, name_of(seed, "sequences", 3))(np.array(some, np.int64)).tolist()
    rounds = plain.keys(f"{seed}/sequences/3")
    assert found == [plain.permuted(k, count, rounds) for k in some]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 16, 17, 255, 1000, 65_537])
def test_an_order_has_each_number_once(count):
    found = Order(count, "x")(np.arange(count, dtype=np.int64))
    assert np.array_equal(np.sort(found), np.arange(count))


def test_an_order_mixes():
    """Neighbors are sent far from each other, and few stay."""
    count = 10_000
    found = Order(count, name_of(1, "sequences", 0))(np.arange(count, dtype=np.int64))
    assert 0.3 < np.abs(np.diff(found)).mean() / count < 0.37  # a third for a drawn order
    assert (found == np.arange(count)).sum() < 10
    assert abs(np.corrcoef(found, np.arange(count))[0, 1]) < 0.05


def test_the_keys_decide_the_order():
    numbers, found = np.arange(50, dtype=np.int64), np.empty((2, 50), np.int64)
    for k in range(2):
        permute(numbers, np.full(6, k, np.uint64), 50, 3, found[k])
    assert found[0].tolist() != found[1].tolist()
    assert found[0].tolist() == [plain.permuted(n, 50, [0] * 6) for n in range(50)]


@given(
    length=st.sampled_from([1, 2, 63, 64, 65, 127, 4095, 4096, 4097, 70_000]), count=st.integers(1, 200),
    seed=st.integers(0, 1 << 30), skew=st.sampled_from([1, 3, 30]),
)  # fmt: skip
def test_packing_is_that_of_the_reference(length, count, seed, skew):
    rng = random.Random(seed)
    sizes = [1 + int((length - 1) * rng.random() ** skew) for _ in range(count)]
    order, ends = packing._BestFit(length)(np.array(sizes, np.int32))
    found = np.split(order, ends[:-1])
    assert [part.tolist() for part in found] == [[row for row, _, _ in each] for each in plain.best(sizes, length)]
    place = np.empty(count, np.int64)
    room = next_fit(np.array(sizes, np.int32), length, 0, place)
    want = plain.whole(sizes, length)
    assert place.tolist() == [k for k, each in enumerate(want, 1) for _ in each]
    assert room == length - sum(piece[2] for piece in want[-1])


def test_best_fit_leaves_hundredths_of_a_percent():
    rng = np.random.default_rng(1)
    sizes = np.minimum(rng.lognormal(6, 1.2, 16_384).astype(np.int32) + 1, 2048)
    _, ends = packing._BestFit(2048)(sizes)
    assert int(sizes.sum()) > 0.999 * 2048 * ends.size
    assert ends.size < len(plain.whole(sizes.tolist(), 2048)) * 0.92


@given(count=st.integers(1, 900), within=st.integers(16, 300), seed=st.integers(0, 5))
def test_a_near_order_is_that_of_the_reference_and_has_each_number_once(count, within, seed):
    found = NearOrder(count, f"{seed}/x", within)(np.arange(count, dtype=np.int64)).tolist()
    assert found == [plain.near(k, count, within, f"{seed}/x") for k in range(count)]
    assert sorted(found) == [*range(count)]


def test_a_near_order_needs_few_runs_at_a_time():
    order = NearOrder(100_000, "x", 1600)
    for first in (0, 48_000, 80_000):
        some = order(np.arange(first, first + 1600, dtype=np.int64))
        assert len({number // 100 for number in some.tolist()}) == 16
