"""Parts put after one another are what concatenating them gives, whatever their sizes."""

import numpy as np
import pytest

from jittok.common.rows.growing_array import Growing


@pytest.mark.parametrize("sizes", [[], [0], [3], [0, 3], [3, 0], [1, 2, 3], [5, 1, 1, 1, 100, 0, 2], [1] * 50])
def test_parts_are_behind_one_another(sizes):
    parts = [np.arange(k, k + size, dtype=np.int64) for k, size in enumerate(sizes)]
    grown = Growing(np.int64)
    for k, part in enumerate(parts):
        grown.add(part)
        assert grown.size == sum(sizes[: k + 1])
    whole = grown.detach()
    assert whole.dtype == np.int64
    assert whole.tolist() == [number for part in parts for number in part.tolist()]
    assert not whole.flags.writeable


def test_a_single_part_is_not_copied():
    part = np.arange(10, dtype=np.int32)
    grown = Growing(np.int32)
    grown.add(part)
    assert np.shares_memory(grown.detach(), part)
    assert part.flags.writeable
