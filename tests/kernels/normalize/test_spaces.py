"""The rules for spaces, against llama.cpp's description of them for every combination of flags."""

import numpy as np
import pytest

from jittok.common.pipeline.steps import SqueezeLlama
from jittok.kernels.jit import standalone
from jittok.kernels.normalize import spaces
from jittok.kernels.normalize.spaces import OUTSIDE, SpaceRules, space_rules

put_byte, put_space = standalone(spaces.put_byte), standalone(spaces.put_space)


def spaced(rules: SpaceRules, text: bytes, room: int = 100) -> tuple[bytes, int]:
    out, at, state = np.zeros(room, np.uint8), 0, OUTSIDE
    for byte in text:
        state, at = put_byte(rules, state, byte, out, at)
    if rules.append:
        at = put_space(rules, out, at)
    return out[:at].tobytes(), at


@pytest.mark.parametrize(
    ("prefix", "merge", "text", "expected"),
    [
        (0, 0, "", ""),
        (0, 0, "a", "a"),
        (0, 0, "  a  b ", "__a__b_"),
        (1, 0, "", ""),
        (1, 0, "a", "_a"),
        (1, 0, "  a  b ", "___a__b_"),
        (1, 0, "  ", "__"),
        (0, 1, "a", "_a"),
        (0, 1, "  a  b ", "_a_b"),
        (1, 1, "  a  b ", "_a_b"),
        (1, 1, "   ", ""),
    ],
)
def test_prefix_and_merge(prefix, merge, text, expected):
    escaped, _ = spaced(SpaceRules(prefix, 0, merge, 1), text.encode())
    assert escaped.decode() == expected.replace("_", "\u2581")
    plain, _ = spaced(SpaceRules(prefix, 0, merge, 0), text.encode())
    assert plain.decode() == expected.replace("_", " ")


@pytest.mark.parametrize(
    ("prefix", "suffix", "rules"), [(0, 0, (0, 0)), (1, 0, (1, 0)), (1, 1, (0, 1)), (0, 1, (0, 0))]
)
def test_the_space_in_front_goes_behind_where_spaces_are_suffixes(prefix, suffix, rules):
    how = SqueezeLlama(
        np.zeros(0, np.uint8), bool(prefix), squeeze=True, escape=False, suffix=bool(suffix), shortest=True
    )
    assert space_rules(how) == (*rules, 1, 0)


def test_a_suffix_comes_at_the_end():
    assert spaced(SpaceRules(0, 1, 0, 0), b"a b")[0] == b"a b "
    assert spaced(SpaceRules(0, 1, 1, 0), b" a  b ")[0] == b" a b "


def test_bytes_are_counted_where_there_is_no_room():
    for room in range(12):
        written, size = spaced(SpaceRules(1, 1, 0, 1), b"a b", room)
        assert size == 11
        assert len(written) == min(room, 11)
