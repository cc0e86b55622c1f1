"""Character maps made by hand, unit by unit: what no real file shows."""

import pytest

from jittok.errors import EncodingFailed
from jittok.reference.normalize.xcda import CharacterMap, base

LEAF, WIDE, VALUE = 1 << 8, 1 << 9, 1 << 31


def unit(label: int, base: int, flags: int = 0) -> int:
    return label | flags | base << 10


def charsmap(units: dict[int, int], replacements: bytes = b"A\0\0BC\0") -> CharacterMap:
    return CharacterMap(tuple(units.get(node, VALUE) for node in range(max(units) + 1)), replacements)


def a_and_ab() -> CharacterMap:
    """a -> A, ab -> (nothing); unit 0 has base 4."""
    at_a, at_b = 4 ^ ord("a"), 4 ^ ord("a") ^ 8 ^ ord("b")
    return charsmap({
        0: unit(0, 4),
        at_a: unit(ord("a"), 8, LEAF), at_a ^ 8: VALUE,
        at_b: unit(ord("b"), 1, LEAF), at_b ^ 1: VALUE | 2,
    })  # fmt: skip


def test_the_longest_key_wins_and_a_replacement_may_be_empty() -> None:
    chars = a_and_ab()
    assert chars.longest_key(b"aab", 0) == (1, 0)
    assert chars.longest_key(b"aab", 1) == (2, 2)
    assert (chars.replacement(0, 0), chars.replacement(2, 0), chars.replacement(3, 0)) == (b"A", b"", b"BC")
    assert [step.then for step in chars.walk(b"ax", 0)] == [4 ^ ord("a") ^ 8, 0]


def test_a_wide_base_is_shifted_by_eight() -> None:
    assert (base(unit(1, 3)), base(unit(1, 3, WIDE))) == (3, 3 << 8)
    at_a = (1 << 8) ^ ord("a")
    assert charsmap({0: unit(0, 1, WIDE), at_a: unit(ord("a"), 1, LEAF), at_a ^ 1: VALUE}).longest_key(b"a", 0) == (
        1,
        0,
    )


def test_nul_ends_a_walk_even_if_a_unit_would_match() -> None:
    chars = charsmap({0: unit(0, 1), 1: unit(0, 2, LEAF), 3: VALUE})
    assert chars.longest_key(b"\0", 0) == (0, 0)
    assert list(chars.walk(b"\0", 0)) == []


def test_a_unit_with_a_value_matches_no_byte() -> None:
    at_a = 4 ^ ord("a")
    assert charsmap({0: unit(0, 4), at_a: VALUE | unit(ord("a"), 0, LEAF)}).longest_key(b"a", 0) == (0, 0)


@pytest.mark.parametrize(
    "units",
    [
        {0: unit(0, 1000)},  # the first link
        {0: unit(0, 4), 4 ^ ord("a"): unit(ord("a"), 1000)},  # the second
        {0: unit(0, 4), 4 ^ ord("a"): unit(ord("a"), 1000, LEAF)},  # the value
    ],
)
def test_links_that_lead_outside_are_refused(units: dict[int, int]) -> None:
    with pytest.raises(EncodingFailed, match=r"offset 1: found 'unit .*a character map whose links stay inside"):
        charsmap(units).longest_key(b"xaa", 1)


@pytest.mark.parametrize(("value", "replacements"), [(3, b"ab\0"), (2, b"a\0b"), (0, b"")])
def test_replacements_that_lie_outside_or_do_not_end_are_refused(value: int, replacements: bytes) -> None:
    with pytest.raises(EncodingFailed, match=f"offset 5: found 'replacement {value}'"):
        CharacterMap((), replacements).replacement(value, 5)


def test_without_units_nothing_matches() -> None:
    assert CharacterMap((), b"").longest_key(b"abc", 0) == (0, 0)
