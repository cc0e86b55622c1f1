import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unicode_tables import build_tables

from jittok.common.unicode import tables

SOURCE = """
const std::vector<std::pair<uint32_t, uint16_t>> unicode_ranges_flags = {  // start, flags
{0x000000, 0x0080},
{0x000041, 0x0004},
{0x000061, 0x0004},
{0x00007B, 0x0001},
{0x110000, 0x0000},
};
const std::unordered_set<uint32_t> unicode_set_whitespace = {
0x000020,
0x000009,
};
const std::initializer_list<std::pair<uint32_t, uint32_t>> unicode_map_lowercase = {
{0x000041, 0x000061},
};
const std::initializer_list<std::pair<uint32_t, uint32_t>> unicode_map_uppercase = {
{0x000061, 0x000041},
};
const std::initializer_list<range_nfd> unicode_ranges_nfd = {  // start, last, nfd
{0x0000C0, 0x0000C5, 0x000041},
};
"""


def test_every_code_point_has_exactly_one_category() -> None:
    categories = tables.flag_table() & tables.CATEGORY
    assert categories.size == 0x110000
    assert np.all((categories != 0) & (categories & (categories - 1) == 0))


def test_white_space_is_the_25_code_points_of_unicode() -> None:
    white = [c for c in range(0x110000) if tables.is_whitespace(c)]
    assert white == [
        *range(9, 14),
        0x20,
        0x85,
        0xA0,
        0x1680,
        *range(0x2000, 0x200B),
        0x2028,
        0x2029,
        0x202F,
        0x205F,
        0x3000,
    ]
    assert white == tables.load_tables()["whitespace"].tolist()


def test_categories_are_those_that_python_knows_too() -> None:
    # Python's version of Unicode may be another one; what both know has never changed
    bits = {"N": 2, "L": 4, "Z": 8, "M": 16, "P": 32, "S": 64, "C": 128}
    for c in range(0x30000):
        category = unicodedata.category(chr(c))
        flags = tables.flags(c) & tables.CATEGORY
        if category != "Cn" and flags != tables.UNDEFINED:
            assert flags == bits[category[0]], hex(c)


def test_lower_case_is_pythons_but_for_the_dotted_i() -> None:
    before, after = tables.lower_map()
    assert before.size == 1433
    assert np.all(np.diff(before) > 0)
    differ = [c for c, to in zip(before.tolist(), after.tolist(), strict=True) if chr(c).lower() != chr(to)]
    assert differ in ([], [0x130])
    assert (tables.lower(0x130), tables.lower(0x1E9E), tables.lower(0x61)) == (0x69, 0xDF, 0x61)


def test_only_the_first_code_point_of_a_decomposition_is_known() -> None:
    assert (tables.nfd(0xC5), tables.nfd(0xAC00), tables.nfd(0x958), tables.nfd(0x41)) == (0x41, 0x1100, 0x915, 0x41)
    before, after = tables.nfd_map()
    assert np.all(np.diff(before) > 0)
    known = [
        (c, to) for c, to in zip(before.tolist(), after.tolist(), strict=True) if unicodedata.decomposition(chr(c))
    ]
    assert all(ord(unicodedata.normalize("NFD", chr(c))[0]) == to for c, to in known)
    assert len(known) > 2000


def test_above_unicode_everything_is_undefined() -> None:
    assert tables.flags(0x110000) == tables.flags(0x1FFFFF) == tables.UNDEFINED


@pytest.mark.parametrize(
    ("text", "points"),
    [
        (b"", []),
        (b"a\x00\x7f", [0x61, 0, 0x7F]),
        ("é▁😀".encode(), [0xE9, 0x2581, 0x1F600]),
        (b"\xc0\x80\xc0\xa0\xe0\x80\xaf\xf0\x8f\xbf\xbf", [0xFFFD] * 11),  # overlong
        (b"\xc2\x80\xe0\xa0\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", [0x80, 0x800, 0x10000, 0x10FFFF]),
        (b"\xed\xa0\x80", [0xD800]),  # a surrogate
        (b"\xf4\x90\x80\x80\xf7\xbf\xbf\xbf", [0xFFFD] * 8),
        (b"\xe4\xb8a", [0xFFFD, 0xFFFD, 0x61]),  # each byte of a sequence that fails
        (b"\x80\xff\xf8\x88\x80\x80\x80", [0xFFFD] * 7),
        (b"\xf0\x9f\x98", [0xFFFD] * 3),
    ],
)
def test_bytes_are_read_as_llama_cpp_does(text: bytes, points: list[int]) -> None:
    assert tables.code_points(text) == points


def test_before_b11739_bytes_were_read_permissively() -> None:
    assert tables.code_points(b"\xc0\x80\xc0\xa0\xe0\x80\xaf", shortest=False) == [0, 0x20, 0x2F]
    assert tables.code_points(b"\xf4\x90\x80\x80\xf7\xbf\xbf\xbf", shortest=False) == [0x110000, 0x1FFFFF]


@given(st.binary(max_size=40))
def test_sequences_follow_each_other_without_gaps(text: bytes) -> None:
    found = list(tables.decode(text))
    assert [start for _, start, _ in found] == [0, *(stop for _, _, stop in found)][:-1]
    assert sum(stop - start for _, start, stop in found) == len(text)


@given(st.text(alphabet=st.characters(), max_size=20))
def test_valid_text_is_read_and_written_as_python_does(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    assert tables.code_points(data) == list(map(ord, text))
    assert b"".join(map(tables.utf8, map(ord, text))) == data


def test_what_lies_above_unicode_is_written_in_four_bytes() -> None:
    assert tables.utf8(0x110000) == b"\xf4\x90\x80\x80"
    assert tables.utf8(0x1FFFFF) == b"\xf7\xbf\xbf\xbf"


def test_length_by_the_first_byte() -> None:
    assert [tables.sequence_length(byte) for byte in (0x00, 0x7F, 0x80, 0xBF, 0xC0, 0xDF, 0xE0, 0xEF, 0xF0, 0xFF)] == [
        1, 1, 1, 1, 2, 2, 3, 3, 4, 4,
    ]  # fmt: skip


def test_each_byte_has_a_printable_character() -> None:
    shown = {0x00: 0x100, 0x20: 0x120, 0x0A: 0x10A, 0x21: 0x21, 0x7F: 0x121, 0x80: 0x122, 0xAD: 0x143, 0xFF: 0xFF}
    assert {byte: tables.CHARACTER_OF_BYTE[byte] for byte in shown} == shown
    assert [tables.BYTE_OF_CHARACTER[c] for c in tables.CHARACTER_OF_BYTE] == list(range(256))
    assert tables.byte_encode(b"a b\n").decode() == "aĠbĊ"
    assert len(tables.byte_encode(bytes(range(256))).decode()) == 256


def test_tables_are_made_from_the_initializers_of_llama_cpp() -> None:
    made = build_tables(SOURCE)
    runs = dict(zip(made["flag_start"].tolist(), made["flag_value"].tolist(), strict=True))
    nfd, upper, lower, white = tables.NFD, tables.UPPERCASE, tables.LOWERCASE, tables.WHITESPACE
    assert runs == {
        0: 0x80, 9: 0x80 | white, 10: 0x80, 0x20: 0x80 | white, 0x21: 0x80,
        0x41: 4 | upper | nfd, 0x42: 4, 0x61: 4 | lower, 0x62: 4, 0x7B: 1,
    }  # fmt: skip
    assert made["whitespace"].tolist() == [9, 32]
    assert (made["lower_from"].tolist(), made["lower_to"].tolist()) == ([0x41], [0x61])
    assert (made["nfd_first"].tolist(), made["nfd_last"].tolist(), made["nfd_to"].tolist()) == ([0xC0], [0xC5], [0x41])
    assert {name: array.dtype for name, array in made.items()} == {
        name: array.dtype for name, array in tables.load_tables().items()
    }
