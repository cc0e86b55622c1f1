"""Links of a charsmap: which labels are below each base, as the units say."""

import numpy as np
import pytest

from jittok.kernels.jit import frozen
from jittok.kernels.normalize.charsmap.xcda import CHECK, LEVELS, ends_soon, find_cycle, links_of


@pytest.mark.parametrize("size", [0, 1, 255, 256, 300, 1000])
def test_the_labels_below_a_base_are_those_of_the_units(size):
    draw = np.random.default_rng(size)
    units = frozen(
        draw.integers(0, 1 << 32, size, dtype=np.uint32) & draw.choice([0xFFFFFFFF, 0x7FFFFF0F], size), np.uint32
    )
    begins, labels = links_of(units)
    expected: dict[int, list[int]] = {}
    for place, unit in enumerate(units.tolist()):
        if 0 < unit & CHECK < 256:
            expected.setdefault(place ^ unit & 0xFF, []).append(unit & 0xFF)
    for base in range(begins.size - 1):
        assert labels[begins[base] : begins[base + 1]].tolist() == sorted(expected.get(base, []))


def cycle_of(units: list[int]) -> int:
    """By looking at every label of every base, from the root on."""
    done, path = set[int](), list[int]()

    def walk(base: int) -> int:
        for label in range(1, 256):
            node = base ^ label
            if node >= len(units) or units[node] & CHECK != label or node in done:
                continue
            if node in path:
                return node
            path.append(node)
            found = walk(node ^ units[node] >> 10 << ((units[node] & 0x200) >> 6))
            if found >= 0:
                return found
            done.add(path.pop())
        return -1

    return walk(units[0] >> 10 << ((units[0] & 0x200) >> 6))


def test_cycles_are_those_that_looking_at_every_label_finds():
    draw, cycles = np.random.default_rng(11), 0
    for _ in range(60):
        size = int(draw.integers(2, 40))
        labels = draw.integers(1, 9, size)
        places = draw.integers(0, size + 3, size) ^ np.arange(size) * draw.integers(0, 2)
        units = [int(place) << 10 | int(label) for place, label in zip(places, labels, strict=True)]
        array = frozen(units, np.uint32)
        found = find_cycle(array, *links_of(array), np.zeros(size, np.uint8), np.empty(2 * size + 2, np.int64))
        assert found == cycle_of(units)
        assert ends_soon(array, *links_of(array)) == (found < 0)  # no path here is as long as LEVELS
        cycles += found >= 0
    assert 5 < cycles < 55


@pytest.mark.parametrize(("length", "soon"), [(0, True), (1, True), (LEVELS, True), (LEVELS + 1, False), (900, False)])
def test_a_longer_path_is_left_to_the_kernel(length, soon):
    units = [1024 << 10] + [0] * 4095  # each unit on the path is the child of the one before, under the label 1
    base = 1024
    for k in range(length):
        node = base ^ 1
        base = 1026 + 2 * k if k + 1 < length else 0
        units[node] = (node ^ base) << 10 | 1
    array = frozen(units, np.uint32)
    links = links_of(array)
    assert ends_soon(array, *links) == soon
    assert find_cycle(array, *links, np.zeros(array.size, np.uint8), np.empty(2 * array.size + 2, np.int64)) < 0
