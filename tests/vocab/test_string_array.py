"""Strings of an array are found where a walk from length to length finds them, whatever bytes they have."""

import struct
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jittok.vocab import gguf

ODD = [b"", b"\0", b"\0" * 9, b"\5" + b"\0" * 7 + b"abcde", b"x" * 255, b"y" * 256, b"z" * 700]
TEXTS = st.lists(st.sampled_from([b"a", b"the", *ODD]) | st.binary(max_size=12), max_size=60)


def packed(texts):
    return b"".join(struct.pack("<Q", len(text)) + text for text in texts)


def one_by_one(view, at, count):
    starts = []
    while len(starts) < count and at <= len(view) - 8:
        (length,) = struct.unpack_from("<Q", view, at)
        starts.append(at + 8)
        at += 8 + length
    return starts, at


@pytest.mark.parametrize("window", [64, gguf.WINDOW])
@given(texts=TEXTS, before=st.binary(max_size=9), cut=st.integers(0, 20), more=st.integers(-3, 3))
def test_every_string_is_found_where_it_is(window, texts, before, cut, more):
    body = packed(texts)
    view = memoryview(before + body[: len(body) - cut])
    count = max(0, len(texts) + more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf, "WINDOW", window)
        patch.setattr(gguf, "LEAST_RUN", 2)
        patch.setattr(gguf, "ALONE", 3)
        starts, at, length = gguf.walk_strings(view, len(before), count)
    assert (starts.tolist(), at) == one_by_one(view, len(before), count)
    if starts.size:
        assert length == at - starts[-1]


def test_a_length_of_any_size_ends_the_walk():
    view = memoryview(packed([b"abc"] * 40) + b"\xff" * 8 + b"more")
    starts, at, length = gguf.walk_strings(view, 0, 100)
    assert starts.size == 41
    assert length == (1 << 64) - 1
    assert at == int(starts[-1]) + length


@pytest.mark.parametrize("text", [b"", b"\0", b"w" * 300], ids=["empty", "NUL", "long"])
def test_strings_that_cannot_be_found_at_once_take_no_longer_than_one_by_one(text):
    view = memoryview(packed([text] * 50_000))
    spent = []
    for work in (lambda: one_by_one(view, 0, 50_000), lambda: gguf.walk_strings(view, 0, 50_000)):
        took = []
        for _ in range(3):  # other work on the machine comes and goes
            begin = time.process_time()
            work()
            took.append(time.process_time() - begin)
        spent.append(min(took))
    assert spent[1] < 3 * spent[0] + 0.05


def test_usual_strings_are_found_in_few_steps(monkeypatch):
    texts = [b"token %d" % k for k in range(5000)]
    searched = []
    real = np.searchsorted
    monkeypatch.setattr(gguf.np, "searchsorted", lambda *given: searched.append(1) or real(*given))
    starts, _, _ = gguf.walk_strings(memoryview(packed(texts)), 0, 5000)
    assert starts.size == 5000
    assert len(searched) <= 16
