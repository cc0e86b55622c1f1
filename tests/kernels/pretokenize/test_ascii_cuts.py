"""Where a text may be cut in two without changing its words: shown by cutting it there."""

from __future__ import annotations

import random

import pytest

from jittok.kernels.pretokenize.compile import stages_of_patterns
from jittok.kernels.pretokenize.definition import pre_type, split
from jittok.kernels.pretokenize.tables import ASCII, ascii_cuts
from jittok.vocab.keys import pre_names

LETTERS = "aZst '.,/;\n\r\t-(1<=\u00e9\u6f22\u3000\u0301\ufffd"
NUMBERS = sorted({entry["pre_type"] for entry in pre_names().values() if pre_type(entry["pre_type"]).byte_encode})
TEXTS = 25


def words(text: str, number: int) -> list[bytes]:
    return list(split(text.encode(), pre_type(number)))


@pytest.mark.parametrize("number", NUMBERS)
def test_both_parts_have_the_words_of_the_whole(number: int) -> None:
    pairs = ascii_cuts(stages_of_patterns(pre_type(number).patterns))
    chosen, tried = random.Random(number), 0
    for _ in range(TEXTS):
        text = "".join(chosen.choices(LETTERS, k=chosen.randrange(2, 24)))
        whole = words(text, number)
        for at in range(1, len(text)):
            a, b = ord(text[at - 1]), ord(text[at])
            if a < ASCII and b < ASCII and pairs[a, b]:
                assert words(text[:at], number) + words(text[at:], number) == whole, (text, at)
                tried += 1
    assert tried


def test_white_space_in_front_of_a_letter_stays_with_it_where_the_pattern_looks_behind_it() -> None:
    pairs = ascii_cuts(stages_of_patterns(pre_type(pre_names()["gpt-2"]["pre_type"]).patterns))
    assert pairs[ord("a"), ord(" ")]
    assert pairs[ord("a"), ord("\n")]
    assert not pairs[ord(" "), ord("a")]
    assert not pairs[ord("\n"), ord("a")]  # at the end of a text two newlines are one word
    assert not pairs[ord("\n"), ord("\n")]
