"""Both orders are those of the C++ library; the answers were recorded from it (tests/data/libstdcxx.cpp)."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jittok.common.pipeline.pipeline import packed
from jittok.vocab.attributes import BUCKETS, _heap_sort, std_hashes, std_sort, unordered_map_order

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


@given(st.permutations(range(12)), st.integers(0, 5), st.integers(6, 12))
def test_a_part_is_sorted_by_a_heap_and_the_rest_is_left_alone(items, low, high):
    found = list(items)
    _heap_sort(found, low, high, lambda a, b: a < b)
    assert found == [*items[:low], *sorted(items[low:high]), *items[high:]]


def walk(texts):
    return unordered_map_order(*packed(texts)).tolist()


def test_hashes_are_those_of_std_hash_whatever_stands_beside():
    texts = list(RECORDED["hashes"])
    together = std_hashes(*packed([text.encode() for text in texts])).tolist()
    alone = [std_hashes(*packed([text.encode()])).tolist()[0] for text in texts]
    assert (
        [f"{value:016x}" for value in together]
        == [f"{value:016x}" for value in alone]
        == [*RECORDED["hashes"].values()]
    )


@pytest.mark.parametrize("count", RECORDED["maps"])
def test_a_map_is_walked_as_unordered_map_is(count):
    assert walk([b"k%d" % k for k in range(int(count))]) == RECORDED["maps"][count]


@given(st.lists(st.binary(max_size=9), max_size=70, unique=True))
def test_a_walk_meets_every_key_once(keys):
    assert sorted(walk(keys)) == list(range(len(keys)))


@given(st.lists(st.binary(max_size=9), min_size=1, max_size=70, unique=True))
def test_a_walk_is_that_of_a_list_which_nodes_are_put_into_one_by_one(keys):
    hashes = std_hashes(*packed(keys)).tolist()
    nodes, count = [], 1

    def put(node):
        same = [k for k, other in enumerate(nodes) if hashes[other] % count == hashes[node] % count]
        nodes.insert(same[0] if same else 0, node)

    for node in range(len(keys)):
        if len(nodes) == (0 if count == 1 else count):
            old, nodes, count = nodes, [], next(size for size in BUCKETS if size > count)
            for each in old:
                put(each)
        put(node)
    assert walk(keys) == nodes


def test_bucket_counts_rise_by_more_than_two():
    assert all(2 * a < b for a, b in itertools.pairwise(BUCKETS))
