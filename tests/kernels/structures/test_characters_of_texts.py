"""Characters of many texts at once: what Python decodes in one go is what the long way finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jittok.kernels.safe_cuts import rules

WELL = ["a", "", "né", "\u4f60\U0001f600", "\x00", "\x7f\x80"]
ILL = [b"\x80", b"a\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc0\x80", b"\xff", b"\xe4\xbd"]


def found(texts, chosen):
    data = np.frombuffer(b"".join(texts), np.uint8)
    offsets = np.cumsum([0, *map(len, texts)])
    return [each.tolist() for each in rules.characters(data, offsets, np.array(chosen, bool))]


def by_the_long_way(texts, chosen):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "_all_well_formed", lambda *_: None)
        return found(texts, chosen)


def test_well_formed_texts_are_decoded_at_once():
    texts = [text.encode() for text in WELL]
    code, owner, bad = found(texts, [True] * len(WELL))
    assert code == [ord(c) for text in WELL for c in text]
    assert owner == [k for k, text in enumerate(WELL) for _ in text]
    assert bad == [False] * len(WELL)


def test_two_halves_of_a_character_are_no_character():
    whole = "\u00e9".encode()
    assert found([whole[:1], whole[1:]], [True, True]) == [[], [], [True, True]]
    assert found([whole, whole[1:]], [True, False]) == [[0xE9], [0], [False, False]]


@given(st.lists(st.tuples(st.sampled_from([t.encode() for t in WELL] * 3 + ILL), st.booleans()), max_size=8))
def test_both_ways_find_the_same(drawn):
    texts, chosen = [text for text, _ in drawn], [each for _, each in drawn]
    assert found(texts, chosen) == by_the_long_way(texts, chosen)
