"""Kernels cut every text as the definition does: each pre type, in whole texts and in chunks."""
# ruff: noqa: RUF001  lists of characters

import functools

import numpy as np
import pytest
from amounts import amount
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.kernels.jit import U8, OutI32, frozen, kernel
from jittok.kernels.memory import PAD, window
from jittok.kernels.pretokenize.compile import splitter_of
from jittok.kernels.pretokenize.definition import pre_type, pre_types, stages
from jittok.kernels.pretokenize.families import GENERAL_NUMBERS, family_numbers
from jittok.kernels.pretokenize.splitters import GPT2
from jittok.kernels.pretokenize.splitters.blocks import CharacterClasses, character_classes, open_classes
from jittok.kernels.pretokenize.splitters.general import (
    Splitter,
    SplitWork,
    make_split_work,
    open_split,
    open_splitter,
    split_text,
)
from jittok.kernels.pretokenize.splitters.gpt2 import MALFORMED, split_gpt2
from jittok.kernels.pretokenize.splitters.llama3 import split_llama3

NUMBERS = [pre.number for pre in pre_types()]
FAMILIES = {
    pre.number: family_numbers(pre.family) for pre in pre_types() if family_numbers(pre.family) != GENERAL_NUMBERS
}
TEXTS = amount(25, 8, 1)
EACH = amount(2, 4, 9)
"""Of so many members of long runs one is taken for a pre type."""
CODE = "a//'c'"
"""What o200k once cut wrong: a slash is a line end to it, but only after others."""
WIDE_SPACE = "a\n" + "\u3000" * 100 + "\n"
"""What the Llama 3 family once cut wrong: white space of three bytes over two blocks, between line ends."""


@kernel
def split_all(splitter: Splitter, text: U8, size: int, work: SplitWork, well_formed: int) -> int:
    return split_text(open_splitter(splitter), window(text), 0, size, open_split(work), well_formed != 0)


@kernel
def gpt2_places(
    classes: CharacterClasses, text: U8, begin: int, end: int, size: int, places: OutI32, alone: int
) -> int:
    return split_gpt2(open_classes(classes), window(text), begin, end, size, window(places), alone)


@kernel
def llama3_places(
    classes: CharacterClasses,
    text: U8,
    begin: int,
    end: int,
    size: int,
    places: OutI32,
    group: int,
    cased: int,
    contractions: int,
) -> int:
    return split_llama3(
        open_classes(classes), window(text), begin, end, size, window(places), group, cased, contractions
    )


def defined(text: str, number: int) -> list[int]:
    """Where the pieces of the definition begin, in bytes."""
    bytes_before = np.cumsum([0, *(len(c.encode("utf-8", "surrogatepass")) for c in text)])
    pieces = stages([ord(c) for c in text], pre_type(number))[-1] if text else []
    return sorted({int(bytes_before[piece.start]) for piece in pieces if piece.start < piece.stop})


def padded(raw: bytes, filling: int = 0):
    return frozen(np.frombuffer(raw + bytes([filling]) * PAD, np.uint8), np.uint8)


def general(text: str, number: int) -> list[int]:
    raw = text.encode("utf-8", "surrogatepass")
    if not raw:
        return []
    found = []
    for well_formed in (0, 1):  # whether it is known beforehand
        splitter = splitter_of(pre_type(number).patterns)
        work = make_split_work(len(raw), splitter)
        assert split_all(splitter, padded(raw), len(raw), work, well_formed) == len(raw)
        bits = np.unpackbits(work.cuts.view(np.uint8), bitorder="little")
        assert bits[len(raw)]
        found.append(np.flatnonzero(bits[: len(raw)]).tolist())
    assert found[0] == found[1]
    return found[0]


classes_of = functools.cache(character_classes)


def fast(text: str, number: int, begin: int = 0, end: int | None = None, filling: int = 0) -> list[int] | int:
    """Places in text[begin:end] by the pre type's family, or MALFORMED."""
    raw = text.encode("utf-8", "surrogatepass")
    end = len(raw) if end is None else end
    family, alone, group, cased, contractions, letters = FAMILIES[number]
    places = np.zeros(end - begin + 64, np.int32)
    at = padded(raw, filling), begin, end, len(raw), places
    if family == GPT2:
        count = gpt2_places(classes_of(letters), *at, alone)
    else:
        count = llama3_places(classes_of(letters), *at, group, cased, contractions)
    return places[:count].tolist() if count >= 0 else count


def chunked(text: str, number: int, size: int) -> list[int]:
    """Places by chunks of `size` bytes, each begun where the last piece of the one before begins."""
    total, begin, found, length = len(text.encode("utf-8", "surrogatepass")), 0, [], size
    while begin < total:
        end = min(begin + length, total)
        places = fast(text, number, begin, end)
        if end < total:
            if len(places) < 2:
                length *= 2
                continue
            places, last = places[:-1], begin + places[-1]
        else:
            last = total
        found += [begin + place for place in places]
        begin, length = last, size
    return found


# Texts as strategy: few classes in long runs, see conftest.
MEMBERS = [*list("aBéÅ1٣Ⅷ \n\r\t\u3000\xa0\x85'/!-$漢あ́😀𝐀𝟘<_.ſ\u0378ǅ\x00ʰ"), "'s", "'LL", "'re", "  ", " \n", "ABc"]
parts = st.tuples(st.sampled_from(MEMBERS), st.sampled_from([1, 1, 1, 2, 3, 7, 21, 64, 65]))
soups = st.lists(parts, max_size=20).map(lambda drawn: "".join(text * count for text, count in drawn))


@pytest.mark.parametrize("number", NUMBERS[:: amount(1, 1, 2)])
def test_the_general_splitter_is_the_definition(number, soup):
    random = np.random.default_rng(number)
    for text in [CODE, WIDE_SPACE, "", "a", *(soup(random) for _ in range(TEXTS))]:
        assert general(text, number) == defined(text, number), text.encode("unicode_escape")


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("many", amount([512, 1400], [1400], [513]))
def test_long_runs_and_texts_in_four_stretches_are_cut_as_the_definition_says(number, many, soup):
    random = np.random.default_rng([number, many])
    for member in (" ", "\u3000", "\n", "1", "a ", "\u0301", " \n", "漢", "'s", "!")[number % EACH :: EACH]:
        text = soup(random)[:40] + member * many + soup(random)[:40]
        assert general(text, number) == defined(text, number), text.encode("unicode_escape")


@pytest.mark.parametrize("number", FAMILIES)
def test_the_splitter_of_a_family_is_the_definition(number, soup):
    random = np.random.default_rng(1000 + number)
    for text in [CODE, WIDE_SPACE, "a", *(soup(random) for _ in range(2 * TEXTS))]:
        assert fast(text, number) == defined(text, number), text.encode("unicode_escape")


@given(st.sampled_from(NUMBERS), soups | st.text(max_size=40))
@example(29, CODE)
@example(1, WIDE_SPACE)
def test_drawn_texts_are_cut_by_the_general_splitter_as_by_the_definition(number, text):
    assert general(text, number) == defined(text, number)


@given(st.sampled_from(sorted(FAMILIES)), soups | st.text(max_size=40), st.integers(1, 150))
@example(29, CODE, 64)
@example(41, "a\n/\n" + "/" * 70 + "'c'", 64)
@example(1, WIDE_SPACE, 64)
@example(11, WIDE_SPACE, 100)
@example(46, "\u0301" * 90 + "a\u0301", 64)
@example(29, "aB" * 80, 64)
def test_drawn_texts_are_cut_by_families_as_by_the_definition_whole_and_in_chunks(number, text, size):
    expected = defined(text, number)
    if text:
        assert fast(text, number) == expected
    assert chunked(text, number, size) == expected


@given(st.sampled_from(sorted(FAMILIES)), soups, st.sampled_from([0, 0x0A, 0x20, 0x27, 0x31, 0x61, 0x80, 0xE4, 0xFF]))
def test_bytes_behind_the_text_do_not_count(number, text, filling):
    if text:
        assert fast(text, number, filling=filling) == defined(text, number)


MALFORMED_ENDS = [
    b"\xff",
    b"\xc3",
    b"\xe4\xb8",
    b"\xf0\x9f\x98",
    b"\x80",
    b"\xc0\x80",
    b"\xe0\x80\x80",
    b"\xf4\x90\x80\x80",
    b"\xf8\x88\x80\x80\x80",
]


@given(
    st.sampled_from(sorted(FAMILIES)),
    st.integers(0, 140),
    st.sampled_from(MALFORMED_ENDS),
    st.sampled_from(["", "a", "é"]),
)
def test_families_answer_malformed_wherever_a_byte_is_out_of_place(number, before, wrong, behind):
    raw = b"x" * before + wrong + behind.encode()
    family, alone, group, cased, contractions, letters = FAMILIES[number]
    places = np.zeros(len(raw) + 64, np.int32)
    at = padded(raw), 0, len(raw), len(raw), places
    if family == GPT2:
        count = gpt2_places(classes_of(letters), *at, alone)
    else:
        count = llama3_places(classes_of(letters), *at, group, cased, contractions)
    assert count == MALFORMED


def test_every_pre_type_of_a_family_has_the_alphabet_of_bytes():
    assert all(pre_type(number).byte_encode for number in FAMILIES)
