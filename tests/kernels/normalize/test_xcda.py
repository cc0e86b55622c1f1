"""A charsmap from a file is either right, refused, or answers with a place outside of it; it is never believed."""

import struct
from itertools import pairwise

import numpy as np
import pytest
from charsmap import build_charsmap

from jittok.errors import MalformedVocab
from jittok.kernels.jit import frozen, standalone
from jittok.kernels.normalize.charsmap import keys, xcda
from jittok.kernels.normalize.charsmap.keys import charsmap_keys
from jittok.kernels.normalize.charsmap.xcda import ENDS, NO_MATCH, OUTSIDE, read_charsmap

longest_key = standalone(xcda.longest_key)

SIZE = 256


def charsmap(units: dict[int, int], replacements: bytes = b"\0", size: int | None = None) -> np.ndarray:
    array = [units.get(i, 0) for i in range(SIZE)]
    head = struct.pack("<I", 4 * SIZE if size is None else size)
    return np.frombuffer(head + struct.pack(f"<{SIZE}I", *array) + replacements, np.uint8)


def match(units: dict[int, int], text: bytes) -> tuple[int, int]:
    found = read_charsmap(charsmap(units), "file")
    data = frozen(np.frombuffer(text, np.uint8), np.uint8)
    return tuple(int(number) for number in longest_key(found, data, 0, data.size))


def unit(label: int, base: int, ends: bool = False) -> int:
    return base << 10 | (ENDS if ends else 0) | label


# "a" -> 5 and "ab" -> 7: the root's base is 1, that of "a" is 8 (value), that of "ab" is 4 (value)
AB = {
    0: unit(0, 1),
    1 ^ ord("a"): unit(ord("a"), 1 ^ ord("a") ^ 8, True),
    8: 1 << 31 | 5,
    8 ^ ord("b"): unit(ord("b"), 8 ^ ord("b") ^ 4, True),
    4: 1 << 31 | 7,
}


@pytest.mark.parametrize(
    ("text", "found"),
    [(b"a", (1, 5)), (b"ab", (2, 7)), (b"abab", (2, 7)), (b"ac", (1, 5)), (b"b", (0, 0)), (b"a\0b", (1, 5))],
)
def test_the_longest_key_counts(text, found):
    assert match(AB, text) == found


def test_more_room_is_made_for_keys_until_there_is_enough(monkeypatch):
    raw = build_charsmap({b"%03d" % k: b"x" * (k % 3) for k in range(300)})
    whole = charsmap_keys(read_charsmap(np.frombuffer(raw, np.uint8), "file"))
    monkeypatch.setattr(keys, "FIRST_CAPACITY", 2)
    small = keys._all_keys(read_charsmap(np.frombuffer(raw, np.uint8), "file"))
    assert [each.tolist() for each in small] == [each.tolist() for each in whole]
    assert whole.data.tobytes() == b"".join(b"%03d" % k for k in range(300))


def test_keys_of_up_to_so_many_bytes_are_listed_alone():
    raw = build_charsmap({b"a" * size: b"%d" % size for size in range(1, 9)} | {b"b": b"c"})
    found = read_charsmap(np.frombuffer(raw, np.uint8), "file")
    for longest in (1, 3, 8):
        short = charsmap_keys(found, longest)
        assert short.data.tobytes() == b"".join(b"a" * size for size in range(1, longest + 1)) + b"b"
        assert short.images.tobytes() == b"12345678"[:longest] + b"c"
    assert [each.tolist() for each in charsmap_keys(found)] == [each.tolist() for each in short]


@pytest.mark.parametrize(
    ("mapped", "kind"),
    [
        (b"a", keys.MAPPED),
        (b"ab", keys.MAPPED),
        (b"a\x80", keys.TIED),
        (b"a\xff", keys.TIED),
        (b"a\xcc\x81", keys.TIED),
        (b"b", keys.PLAIN),
    ],
)
def test_an_ascii_byte_is_tied_where_all_its_keys_go_on_with_a_byte_of_a_wide_character(mapped, kind):
    data = np.frombuffer(b"c" + mapped, np.uint8)
    found = keys.CharsmapKeys(data, np.array([0, 1, data.size]), np.zeros(0, np.uint8), np.zeros(3, np.int64))
    assert keys.byte_kinds(found)[ord("a")] == kind


def test_nul_ends_a_walk_even_where_a_unit_would_match_it():
    assert match({**AB, 8: ENDS | 5 << 10}, b"a\0") == (1, ENDS | 5 << 10)


def test_no_charsmap_and_no_units_match_nothing():
    assert read_charsmap(np.empty(0, np.uint8), "file").units.size == 0
    empty = read_charsmap(np.frombuffer(b"\3\0\0\0abc\0", np.uint8), "file")
    assert empty.units.size == 0
    assert longest_key(empty, frozen([97], np.uint8), 0, 1) == (NO_MATCH, 0)


def test_a_link_out_of_the_units_is_told_with_its_place():
    far = {**AB, 1 ^ ord("a"): unit(ord("a"), 1000)}
    assert match(far, b"a") == (NO_MATCH, 0)
    assert match(far, b"ab") == (OUTSIDE, 1 ^ ord("a") ^ 1000 ^ ord("b"))
    assert match({**AB, 1 ^ ord("a"): unit(ord("a"), 1000, True)}, b"a") == (OUTSIDE, 1 ^ ord("a") ^ 1000)
    assert match({**AB, 1 ^ ord("a"): unit(ord("a"), 1 ^ ord("a") ^ SIZE, True)}, b"a") == (OUTSIDE, SIZE)
    assert match({0: unit(0, SIZE ^ ord("a"))}, b"a") == (OUTSIDE, SIZE)
    assert match({0: unit(0, 1 << 21)}, b"a") == (OUTSIDE, 1 << 21 ^ ord("a"))


@pytest.mark.parametrize(
    "units",
    [
        {0: unit(0, 1), 1 ^ ord("a"): unit(ord("a"), ord("a"))},  # "a" leads to the root's base: a child of itself
        {**AB, 8 ^ ord("b"): unit(ord("b"), 1 ^ 8 ^ ord("b"), True)},  # "ab" leads to the root's base
    ],
)
def test_a_path_that_comes_back_to_itself_is_refused(units):
    with pytest.raises(MalformedVocab, match=r"precompiled_charsmap: found unit \d+ below itself"):
        read_charsmap(charsmap(units), "file")


def test_paths_that_share_an_end_are_no_cycle():
    shared = {**AB, 1 ^ ord("c"): unit(ord("c"), 1 ^ ord("c") ^ 8, True)}
    assert match(shared, b"cb") == (2, 7)


@pytest.mark.parametrize("array", [b"abc", b"\4\0\0\0abcd", b"\xff\xff\xff\xffabcd\0"])
def test_sizes_that_do_not_fit_are_refused(array):
    with pytest.raises(MalformedVocab, match="precompiled_charsmap"):
        read_charsmap(np.frombuffer(array, np.uint8), "file")


def test_where_replacements_end():
    assert read_charsmap(charsmap({}, b"ab\0c\0de"), "file").replacements_end == 5
    assert read_charsmap(charsmap({}, b"abc"), "file").replacements_end == 0


def test_all_keys_are_listed_and_those_of_another_charsmap_are_not_taken_for_them():
    def keys(units, replacements=b"ab\0\0\0xy\0"):
        found = charsmap_keys(read_charsmap(charsmap(units, replacements), "file"))
        rows = (found.data, found.offsets), (found.images, found.image_offsets)
        return [[bytes(data[a:b]) for a, b in pairwise(offsets.tolist())] for data, offsets in rows]

    other = {0: unit(0, 1), 1 ^ ord("c"): unit(ord("c"), 1 ^ ord("c") ^ 8, True), 8: 1 << 31 | 1}
    for _ in range(2):
        assert keys(AB) == [[b"a", b"ab"], [b"xy", b""]]
        assert keys(other) == [[b"c"], [b"b"]]
        assert keys(AB, b"0123456\0") == [[b"a", b"ab"], [b"56", b""]]
    outside = {**AB, 4: 1 << 31 | 8}
    assert charsmap_keys(read_charsmap(charsmap(outside, b"0123456\0"), "file")) is None
    assert charsmap_keys(read_charsmap(charsmap(AB, b"0123456\0"), "file")) is not None
