"""Tables of several threads become one list of words; tables that grow where they are; texts that are read in place."""

from __future__ import annotations

import random
from collections import Counter as Tally
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jittok.errors import EncodingFailed
from jittok.kernels.inputs import documents
from jittok.kernels.jit import JIT
from jittok.kernels.memory.python_objects import wide_texts
from jittok.train.counting import table
from jittok.train.counting.count import count, shares_of
from jittok.train.counting.counter import Counter
from jittok.train.counting.counts import Counts, of_table
from jittok.train.counting.splitters import cutter_of
from jittok.train.counting.table import make_table

WORDS = st.dictionaries(st.binary(min_size=1, max_size=40), st.integers(1, 1 << 50), max_size=40)


def table_of(words: dict[bytes, int], slots: int = 128) -> table.WordTable:
    """A table that begins with few slots."""
    counter = Counter(cutter_of("gpt-2"))
    counter.table = make_table(slots, 64)
    counts = Counts.of(words)
    counter.add_words(counts.words, counts.starts, counts.counts)
    return counter.table


@given(st.lists(WORDS, min_size=1, max_size=4), st.sampled_from([1, 3]), st.integers(1, 200))
@settings(max_examples=40 if JIT else 4, deadline=None)
@example([{b"a": 1, b"x" * 20: 2}, {b"b": 1, b"x" * 20: 1}, {b"b": 4, b"a": 1}, {b"x" * 20: 7, b"b": 1}], 3, 5)
@example([{}, {}], 1, 9)
def test_words_of_several_tables_are_those_of_one_with_their_counts_added(
    parts: list[dict[bytes, int]], threads: int, at_once: int
) -> None:
    whole: Tally[bytes] = Tally()
    for part in parts:
        whole.update(part)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "SLOTS_PER_STEP", at_once)
        found = of_table(*map(table_of, parts), threads=threads)
    assert len(found) == len(whole)
    assert found.to_dict() == whole


def test_a_part_that_is_written_late_leaves_the_part_behind_it_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short words are written sixteen bytes at a time where there is capacity for them."""

    def backwards(write: Any, parts: Any) -> Any:
        return [write(part) for part in reversed([*parts])][::-1]

    monkeypatch.setattr(table, "SLOTS_PER_STEP", 1)
    words = {bytes([65 + k]) * (1 + k % 15): k + 1 for k in range(26)}
    found = table._words_of([table_of(words)], backwards)
    ends = found[1].tolist()
    assert {found[0][i:j].tobytes(): n for i, j, n in zip(ends[:-1], ends[1:], found[2].tolist(), strict=True)} == words


@pytest.mark.parametrize("reserved", [128, 256, 1 << 12] if JIT else [256])
def test_a_table_that_grows_keeps_every_word_where_it_is_found(monkeypatch: pytest.MonkeyPatch, reserved: int) -> None:
    monkeypatch.setattr(table, "RESERVED", reserved)
    for seed in range(30 if JIT else 2):
        chosen = random.Random(seed)
        words = [
            chosen.randbytes(chosen.choice((3, 9, 15, 16, 30)))
            for _ in range(chosen.choice((79, 200, 900 if JIT else 100)))
        ]
        counter = Counter(cutter_of("gpt-2"))
        counter.table = make_table(128, 64)
        for _ in range(2):  # a word that is not found where it should be would be there twice
            counts = Counts.of(Tally(words))
            counter.add_words(counts.words, counts.starts, counts.counts)
        assert of_table(counter.table).to_dict() == {word: 2 * n for word, n in Tally(words).items()}


@pytest.mark.parametrize("reserved", [128, 1 << 12])
def test_no_slot_lies_on_two_cache_lines(monkeypatch: pytest.MonkeyPatch, reserved: int) -> None:
    monkeypatch.setattr(table, "RESERVED", reserved)
    kept = []  # one may be where it should be by chance
    for _ in range(8):
        found = make_table(128, 64)
        for code in (table.NEED_SHORT, table.NEED_LONG, table.NEED_SHORT, table.NEED_LONG):
            kept.append(found)
            assert found.short.ctypes.data % 64 == found.long.ctypes.data % 64 == 0
            found = table.grown(found, code)


@given(
    st.lists(st.integers(0, 9) | st.sampled_from([1 << 18, 1 << 21]), max_size=30), st.integers(2, 5), st.integers(1, 9)
)
@settings(max_examples=60, deadline=None)
def test_threads_take_every_text_once_and_less_towards_the_end(sizes: list[int], threads: int, sampled: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jittok.train.counting.count.SAMPLED_TEXTS", sampled)
        shares = shares_of([bytes(size) for size in sizes], threads)
    assert [len(text) for share in shares for _, texts in share for text in texts] == sizes[: len(sizes) * bool(shares)]
    assert len(shares) <= threads
    at = 0
    for share in shares:
        for first, texts in share:
            assert first == at
            at += len(texts)
        taken = [len(texts) for _, texts in share[:-1]]
        assert taken == sorted(taken, reverse=True)


def test_words_that_stand_around_the_end_of_a_table_are_found_when_it_has_doubled() -> None:
    for seed in range(200):
        chosen = random.Random(seed)
        slots, hashes = np.zeros(4 * 16, np.uint64), chosen.sample(range(256), 6)
        for h in hashes:  # of long words, whose slots begin with their hash
            i = h & 7
            while slots[4 * i + 2]:
                i = i + 1 & 7
            slots[4 * i : 4 * i + 4] = h, 3 * h, h + 1, 5 * h
        table.spread_slots(slots, table.KEYS, 1)
        for h in hashes:
            i = h & 15
            while slots[4 * i + 2] and slots[4 * i] != h:
                i = i + 1 & 15
            assert slots[4 * i : 4 * i + 4].tolist() == [h, 3 * h, h + 1, 5 * h]
        assert np.count_nonzero(slots[2::4]) == 6


@pytest.mark.skipif(not wide_texts.FAST, reason="no text is read in place")
@given(
    st.lists(st.text(max_size=40) | st.binary(max_size=9) | st.just("\xe9" * 2000) | st.just("a b" * 900), max_size=8)
)
@settings(max_examples=60, deadline=None)
@example(["\x80", "\u07ff\u0800a", "\uffff", "\U00010000\U0010ffff", "abcdefgh\xff", "abcd\u20acabcdefg", "x" * 5000])
def test_texts_of_any_width_are_counted_as_their_bytes(texts: list[Any]) -> None:
    plain = [text.encode() if isinstance(text, str) else text for text in texts]
    for threads in (1, 2):
        found, expected = (count(each, pre="gpt-2", threads=threads) for each in (texts, plain))
        assert found.to_dict() == expected.to_dict()
        assert (found.text_bytes, found.documents) == (expected.text_bytes, expected.documents)


@pytest.mark.skipif(not wide_texts.FAST, reason="no text is read in place")
def test_texts_that_are_not_ascii_are_read_where_they_are() -> None:
    texts = ["\xe9 a", "\u20ac", "plain", "\U0001f600", b"bytes"]
    (docs,) = documents(texts, in_place=True, wide=True)
    assert docs.widths is not None
    assert docs.widths.tolist() == [1, 2, 0, 4, 0]
    assert (docs.stops - docs.starts).tolist() == [3, 2, 5, 4, 5]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_first_text_that_is_bad_is_named_whoever_counts_it(threads: int) -> None:
    texts: list[Any] = ["fine \u20ac"] * 40
    texts[11] = texts[37] = "\u20ac \ud800"
    with pytest.raises(EncodingFailed, match="document 11, offset 2"):
        count(texts, threads=threads)
    texts[11] = 5
    with pytest.raises(TypeError, match="document 11"):
        count(texts, threads=threads)
