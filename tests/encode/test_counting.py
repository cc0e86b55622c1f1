"""Counting a long text, whose ids are released part by part, gives as many as encoding it."""

import mmap
import random

import pytest
from small_files import sentencepiece_of

import jittok
from jittok.encode import buffers, limits, prepared_texts
from jittok.kernels.jit import CHECKED, JIT

LETTERS = [("<unk>", 2, 0.0), ("\u2581", 1, -0.1), *((text, 1, -0.1) for text in ("a", "b", "ab", "aba", "\ufdfa"))]
TEXTS = ["ab", "aabab b", "a\ufdfa这 b", "\ufdfaa", " ", "这"]


@pytest.fixture
def dropped(monkeypatch):
    """Parts of a few bytes, ids in mappings however few they are; what is given back is noted here."""
    for module, name, value in (
        (limits, "WINDOWED_TEXT", 1 << 9), (limits, "WINDOW", 1 << 8), (prepared_texts,
        "OVERLAP_TOKENS", 8), (limits, "LONG_TEXT", 1 << 9), (buffers, "LEAST_IDS", 1), (buffers, "HUGE",
        mmap.PAGESIZE),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    found, drop = [], buffers.BufferPool.drop
    monkeypatch.setattr(buffers.BufferPool, "drop", lambda *args: found.append(drop(*args)) or found[-1])
    return found


@pytest.mark.skipif(not buffers.POSSIBLE, reason="only Linux takes pages back")
@pytest.mark.parametrize("byte_fallback", [False, True])
def test_as_many_ids_are_counted_as_there_are(byte_fallback, dropped):
    rows = [*LETTERS, *((f"<0x{byte:02X}>", 6, 0.0) for byte in range(256 * byte_fallback))]
    tok = jittok.load(sentencepiece_of(2, rows, byte_fallback, True, True))
    rng = random.Random(byte_fallback)
    for _ in range(12 if JIT and not CHECKED else 2):
        text = "".join(rng.choice(TEXTS) * rng.randint(1, 900) for _ in range(rng.randint(2, 6)))
        assert tok.count(text) == tok.encode(text).size
    text = "ab" * 9000
    assert tok.count(text) == tok.encode(text).size
    assert max(dropped) > 0


def test_what_cannot_be_encoded_cannot_be_counted(monkeypatch):
    monkeypatch.setattr(limits, "LONG_TEXT", 8)
    tok = jittok.load(sentencepiece_of(2, LETTERS, False, True, True))
    for bad in (b"abababababab\xff", "abababababab\ud800", ["ab"] * 9, 5):
        with pytest.raises((jittok.JittokError, TypeError, ValueError)) as encoded:
            tok.encode(bad)
        with pytest.raises(type(encoded.value)) as counted:
            tok.count(bad)
        assert str(counted.value) == str(encoded.value)


@pytest.mark.usefixtures("dropped")
def test_ids_are_lost_only_where_they_are_counted():
    tok = jittok.load(sentencepiece_of(2, LETTERS, False, True, True))
    text = "aab\ufdfa " * 3000
    before = tok.encode(text)
    tok.count(text)
    assert (tok.encode(text) == before).all()
    assert tok.count_batch([text, "ab", text]).tolist() == [before.size, tok.encode("ab").size, before.size]
