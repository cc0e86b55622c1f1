"""Both orders are those of the C++ library; the answers were recorded from it (tests/data/libstdcxx.cpp)."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jittok.vocab.orders import BUCKETS, std_hash, std_sort, unordered_map_order

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "libstdcxx.json").read_text(encoding="utf-8"))


def longest_first(lengths):
    items = list(range(len(lengths)))
    std_sort(items, lambda a, b: lengths[a] > lengths[b])
    return items


@pytest.mark.parametrize("case", RECORDED["sort"], ids=lambda case: str(len(case["lengths"])))
def test_items_are_sorted_as_std_sort_does(case):
    assert longest_first(case["lengths"]) == case["order"]


def test_some_recorded_orders_are_not_stable():
    stable = [sorted(case["order"], key=lambda k: (-case["lengths"][k], k)) for case in RECORDED["sort"]]
    unequal = [len(order) for order, case in zip(stable, RECORDED["sort"], strict=True) if order != case["order"]]
    assert unequal
    assert min(unequal) > 16


@given(st.lists(st.integers(0, 5), max_size=80))
def test_sorting_sorts(lengths):
    order = longest_first(lengths)
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[k] for k in order] == sorted(lengths, reverse=True)
    if len(lengths) <= 16:
        assert order == sorted(order, key=lambda k: (-lengths[k], k))


@pytest.mark.parametrize("text", RECORDED["hashes"])
def test_hashes_are_those_of_std_hash(text):
    assert f"{std_hash(text.encode()):016x}" == RECORDED["hashes"][text]


@pytest.mark.parametrize("count", RECORDED["maps"])
def test_a_map_is_walked_as_unordered_map_is(count):
    assert unordered_map_order([b"k%d" % k for k in range(int(count))]) == RECORDED["maps"][count]


@given(st.sets(st.binary(max_size=9), max_size=70))
def test_a_walk_meets_every_key_once(keys):
    assert sorted(unordered_map_order(list(keys))) == list(range(len(keys)))


def test_bucket_counts_rise_by_more_than_two():
    assert all(2 * a < b for a, b in itertools.pairwise(BUCKETS))
