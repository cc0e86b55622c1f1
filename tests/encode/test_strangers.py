"""Characters that no token has are one token in a row: BPE after sentencepiece's normalizer sees a byte for a row."""

import random

import numpy as np
import pytest
from charsmap import build_charsmap
from small_files import sentencepiece_of

import jittok
from jittok.encode import limits
from jittok.encode.plan import FragmentTexts
from jittok.kernels.fragments import PAD, TEXT
from jittok.kernels.jit import JIT, frozen
from jittok.kernels.normalize.sentencepiece import STRANGE, known_characters
from jittok.reference.pipeline import Runner

BPE, NORMAL, UNKNOWN, USER, BYTE = 2, 1, 2, 4, 6
KEYS = {"δ\u0301": "é", "½": "1/2", "\u3000": " ", "ﷺ": "صلى", "ж": "", "\t": " ", "中\u0301": "b"}
MAP = build_charsmap({key.encode(): image.encode() for key, image in KEYS.items()})
PIECES = ["▁", *"ab12/صلé", "ab", "▁a", "b▁", "éa", "xж", "語y", "▁▁"]
ASCII = tuple(c for c in map(chr, range(1, 0x80)) if c != " " and c not in PIECES)
UNITS = [*"abx12é▁ ☃δβжя中文語ص字½\u0301\u3000\t\x00\x01\x02\x7f😀𠀀", "  ", "ﷺ", "δ\u0301", "ab"]


def content(fallback=False, squeeze=True, user=()):
    pieces = [("<unk>", UNKNOWN, 0.0), *((text, NORMAL, -0.1 * (k % 7)) for k, text in enumerate(PIECES))]
    pieces += [(text, USER, 0.0) for text in user]
    if fallback:
        pieces += [(f"<0x{byte:02X}>", BYTE, 0.0) for byte in range(256)]
    return sentencepiece_of(BPE, pieces, fallback, True, squeeze, MAP)


def table_of(tok):
    return tok._encoder.plan.normalize[0].tables[0]


@pytest.mark.parametrize("squeeze", [True, False])
@pytest.mark.parametrize("user", [(), ("☃", "я中"), ASCII], ids=["none", "wide", "ascii"])
def test_rows_of_strangers_give_the_ids_of_the_reference(squeeze, user, monkeypatch):
    tok, draw = jittok.load(content(False, squeeze, user), cache=False), random.Random(len(user))
    assert tok.runs == "kernels"
    plain = Runner(tok._encoder.vocab)
    texts = ["".join(draw.choices(UNITS, k=draw.randrange(24))) for _ in range(1500 if JIT else 60)]
    wanted = [plain.encode(text, False) for text in texts]
    assert tok.encode_batch(texts, threads=1).to_list() == wanted
    monkeypatch.setattr(limits, "WINDOWED_TEXT", 4)
    for part in (1, 7):
        monkeypatch.setattr(limits, "WINDOW", part)
        assert tok.encode_batch(texts[::3], threads=1).to_list() == wanted[::3]


def test_a_row_of_strangers_becomes_one_byte_and_what_tokens_know_stays():
    tok = jittok.load(content(user=["я"]), cache=False)
    strange = table_of(tok).begins & STRANGE
    assert [bool(strange[ord(c)]) for c in "δβж中語жяé\u2581ص"] == [1, 1, 0, 1, 0, 0, 0, 0, 0, 0]
    raw = "a βδ中文☃😀🙂βяβ☃b δ中".encode()
    places = (np.array([0]), np.array([len(raw)]), np.array([TEXT], np.int32))
    starts, stops, tokens = (frozen(each, each.dtype.type) for each in places)
    with tok._encoder.workspace() as workspace:
        made = tok._encoder.plan.normalize[0].run(
            workspace, FragmentTexts(np.frombuffer(raw + bytes(PAD), np.uint8), starts, stops, tokens)
        )
    stranger = chr(table_of(tok).stranger)
    wanted = f" a {stranger}😀🙂{stranger}я{stranger}b {stranger}"
    assert made.data[: made.stops[0]].tobytes().decode() == wanted


def test_where_bytes_are_tokens_nothing_is_a_stranger():
    assert not (table_of(jittok.load(content(True), cache=False)).begins & STRANGE).any()


def test_characters_of_texts_that_are_no_text_are_not_known():
    assert known_characters(b"ab\xff") is None
    found = known_characters("aé中😀".encode())
    assert np.flatnonzero(found).tolist() == [0, 0x20, 0x61, 0xE9, 0x4E2D]
