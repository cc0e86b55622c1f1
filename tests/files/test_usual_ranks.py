"""Ranks of tekken.json read all at once: those that are read row by row, and the same errors."""

import json
import random

import numpy as np
import pytest
import small_files

from jittok.common.unicode.tables import ENCODED_BYTE
from jittok.errors import MalformedVocab
from jittok.files import ranks as files
from jittok.kernels.jit import JIT
from jittok.kernels.models.bpe.files import spelled_in_bytes

TEKKEN = small_files.tekken()


def said(read, content: bytes) -> object:
    try:
        return read("f", content)
    except MalformedVocab as error:
        return str(error)


@pytest.fixture
def one_by_one(monkeypatch):
    def read(kind, content):
        with monkeypatch.context() as patch:
            patch.setattr(files, "_usual_rows", lambda _: None)
            return said(kind, content)

    return read


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rank", 7),
        ("rank", True),
        ("rank", 1.0),
        ("rank", "1"),
        ("rank", None),
        ("token_bytes", "AA=="),
        ("token_bytes", "AR=="),
        ("token_bytes", ""),
        ("token_bytes", "\u00e9"),
        ("token_bytes", 1),
        ("token_str", 5),
    ],
)
def test_rows_of_tekken_are_read_as_one_by_one(key, value, one_by_one):
    whole = json.loads(TEKKEN)
    assert files._usual_rows(whole["vocab"]) is not None
    whole["vocab"][1][key] = value
    content = json.dumps(whole).encode()
    found, expected = said(files.read_tekken, content), one_by_one(files.read_tekken, content)
    assert getattr(found, "fingerprint", found) == getattr(expected, "fingerprint", expected)


def test_texts_are_spelled_in_the_byte_alphabet():
    draw = random.Random(3)
    texts = [draw.randbytes(draw.randrange(6)) for _ in range(300 if JIT else 30)]
    offsets = np.cumsum([0, *map(len, texts)])
    data, ends = spelled_in_bytes(np.frombuffer(b"".join(texts), np.uint8), offsets)
    expected = [b"".join(ENCODED_BYTE[byte] for byte in text) for text in texts]
    assert data.tobytes() == b"".join(expected)
    assert ends.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
