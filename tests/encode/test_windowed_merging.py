"""A long text that sentencepiece's normalizer rewrites is encoded in parts: any parts give the ids of the whole."""

import random

import pytest
from charsmap import build_charsmap
from small_files import sentencepiece_of

import jittok
from jittok.encode import limits, prepared_texts
from jittok.kernels.jit import JIT

BPE, NORMAL, UNKNOWN, USER_DEFINED, BYTE = 2, 1, 2, 4, 6
MAP = build_charsmap(
    {
        "\ufdfa".encode(): "صلى الله".encode(), "½".encode(): b"1/2", "\uff41".encode(): b"a", b"\t": b" ",
        "\u3000".encode(): b"  ", b"e\xcc\x81": "é".encode(), b"bb": b"", b"cab": b"c",
    }
)  # fmt: skip
PIECES = [
    "▁",
    *"abce12/صلاه",
    "▁a",
    "aa",
    "aaa",
    "ab",
    "ba",
    "abab",
    "▁▁",
    "لا",
    "لله",
    "الله",
    "a▁",
    "▁صلى",
    "1/2",
    "é",
]
UNITS = [
    "a", "b", "ab", "aaa", "c", "cab", " ", "  ", "▁", "\ufdfa", "½", "\uff41", "\t", "\u3000", "e\u0301", "e", "☃",
    "ā", "bb", "q", "é", "\x00", "12", "aab", "aabcca", "1",
]  # fmt: skip


USERS = ["12", "▁▁▁", "aab", "aabcca", "aabccaaabcca", "صلى", "e2"]  # "1/2" is 1, /, 2 where 12 is a piece


def loaded(fallback=False, squeeze=True, prefix=True, users=()):
    pieces = [("<unk>", UNKNOWN, 0.0), *((text, NORMAL, -0.1 * (k % 17)) for k, text in enumerate(PIECES))]
    if fallback:
        pieces += [(f"<0x{byte:02X}>", BYTE, 0.0) for byte in range(256)]
    pieces += [(text, USER_DEFINED, 0.0) for text in users]
    return jittok.load(sentencepiece_of(BPE, pieces, fallback, prefix, squeeze, MAP))


@pytest.mark.parametrize("users", [0, 2, len(USERS)])
@pytest.mark.parametrize(("fallback", "squeeze", "prefix"), [(0, 1, 1), (1, 1, 0), (0, 0, 1), (1, 0, 0)])
def test_parts_give_the_ids_of_the_whole(monkeypatch, fallback, squeeze, prefix, users):
    tok, draw = loaded(bool(fallback), bool(squeeze), bool(prefix), USERS[:users]), random.Random(5)
    asked, whole = 0, 0
    encode = prepared_texts.WindowedMerger.encode

    def counted(*args, **named):
        nonlocal asked, whole
        found = encode(*args, **named)
        asked, whole = asked + 1, whole + (found is None)
        return found

    monkeypatch.setattr(prepared_texts.WindowedMerger, "encode", counted)
    for _ in range((20 if users else 60) if JIT else 6):
        pool = draw.sample(UNITS, draw.randrange(1, 8))
        text = "".join(draw.choice(pool) * draw.choice((1, 1, 2, 9)) for _ in range(draw.randrange(1, 40)))
        for name in ("WINDOWED_TEXT", "WINDOWED_CUT_TEXT"):
            monkeypatch.setattr(limits, name, 1 << 20)
        expected = tok.encode(text).tolist()
        for name in ("WINDOWED_TEXT", "WINDOWED_CUT_TEXT"):
            monkeypatch.setattr(limits, name, 4)
        part = draw.choice((1, 5, 16))
        for name in ("WINDOW", "CUT_WINDOW"):
            monkeypatch.setattr(limits, name, part)
        monkeypatch.setattr(prepared_texts, "OVERLAP_TOKENS", draw.choice((1, 2, 5)))
        assert tok.encode(text).tolist() == expected
        assert [row.tolist() for row in tok.encode_batch([text, "a", "", text], threads=1)][::3] == [expected] * 2
    assert asked
    assert whole < asked / 10


def test_special_tokens_stay_between_the_parts(monkeypatch):
    pieces = [("<unk>", UNKNOWN, 0.0), ("<x>", 4, 0.0), *((text, NORMAL, -0.1) for text in PIECES)]
    tok = jittok.load(sentencepiece_of(BPE, pieces, False, True, True, MAP))
    texts = ["☃<x>☃ a½<x><x>", "a" * 30 + "<x>" + "☃" * 9]
    expected = [tok.encode(text).tolist() for text in texts]
    monkeypatch.setattr(limits, "WINDOWED_TEXT", 2)
    monkeypatch.setattr(limits, "WINDOWED_CUT_TEXT", 2)
    monkeypatch.setattr(limits, "WINDOW", 3)
    monkeypatch.setattr(limits, "CUT_WINDOW", 3)
    assert [tok.encode(text).tolist() for text in texts] == expected
