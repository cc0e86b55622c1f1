"""Where a space is prepended or appended, for every combination of a file's flags."""

import numpy as np
import pytest

from jittok.common.pipeline.steps import SqueezeLlama
from jittok.kernels.normalize.spaces import space_rules


@pytest.mark.parametrize(
    ("prefix", "suffix", "rules"), [(0, 0, (0, 0)), (1, 0, (1, 0)), (1, 1, (0, 1)), (0, 1, (0, 0))]
)
def test_the_space_in_front_goes_behind_where_spaces_are_suffixes(prefix, suffix, rules):
    how = SqueezeLlama(
        np.zeros(0, np.uint8), bool(prefix), squeeze=True, escape=False, suffix=bool(suffix), shortest=True
    )
    assert space_rules(how) == (*rules, 1, 0)
