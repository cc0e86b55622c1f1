"""Unigram files made up: many equal scores and near ones, tokens of one character repeated, all normalizers."""

from __future__ import annotations

import base64
import json
import random
import struct
from typing import Any

from charsmap import build_charsmap
from drawn_files import drawn_text
from small_files import _field

LETTERS = [*"abcde-=.,'`10", "é", "か", "中", "각", "ـ", "\u0301", "\u200d", "{"]
MAP = {
    b"\t": b" ", b"\n": b" ", b"\r": b" ", b"\r\n": b" ", "▁".encode(): b" ", "\u3000".encode(): b" ", b"\x01": b"",
    "\u200d".encode(): b" ", "\xa0".encode(): b" ", "e\u0301".encode(): "é".encode(), "a\u0301".encode(): "á".encode(),
    "ﬁ".encode(): b"fi", "½".encode(): "1\u20442".encode(), "¨".encode(): " \u0308".encode(), "①".encode(): b"1",
    "①\u0301".encode(): b"x", "か\u3099".encode(): "が".encode(), "\u1100\u1161".encode(): "가".encode(), b"B": b"b",
    "\u200c".encode(): b" ", "C\u0301".encode(): "ć".encode(), "ﷺ".encode(): "صلى الله عليه وسلم".encode(),
}  # fmt: skip
PARTS = [
    "e\u0301", "a\u0301\u0302", "a\u0301\u0302\u0323", "C\u0301\u200d", "①\u0301", "①", "か\u3099",
    "\u1100\u1161\u11a8",
    "क\u094dष\u0301", "❤\ufe0f\u200d🔥", "👩\u200d❤\u0301", "\u0600e\u0301", "\u06dd", "\r\n\u0301", "\u0301", "が",
    "ﬁ",
    "¨", "½", "\x01", "\x00", "▁", "▁▁", " ▁", "\x85", "\u2028", "  ", "\t \n", " ", "-----", "=-=-=", "....", "''",
    "```",
    "{", "☃", "☃☃", "<unk>", "<0x41>", "<x>", "the", "abcde", "é", "中文", "각", "ـ", "ﷺ", "İ", "Ⅷ", "ｶﾞ", "\u0345",
    "\U0001d25c", "\u200c\u0301", "\u0340", "-", "=", "a", "b", "B", "10", "<x", "a b",
]  # fmt: skip


def _pieces(draw: random.Random) -> list[tuple[str, float]]:
    """Tokens and scores, some equal, some a hair apart, some multiples of one another."""
    texts = dict.fromkeys(["▁", *draw.sample(LETTERS, 14)])
    for _ in range(120):
        letters = [draw.choice(LETTERS)] * 9 if draw.random() < 0.3 else draw.choices(LETTERS, k=9)
        text = "".join(letters[: draw.randrange(1, 7)])
        texts["▁" + text if draw.random() < 0.3 else text] = None
    if draw.random() < 0.2:
        texts["▁▁"] = texts["<0x41>x"] = None
    scale = draw.choice([1.0, 1.0, 30.0])
    values = [-draw.choice([1.5, 3.25, 2.1, 2.1000001, 4.3, 0.7, 5.0 + draw.random()]) * scale for _ in texts]
    return list(zip(texts, values, strict=True))


def drawn_unigram(draw: random.Random) -> bytes:
    """A tokenizer.json."""
    fallback = draw.random() < 0.4
    rows: list[tuple[str, float]] = [("<unk>", 0.0), ("<x>", 0.0), *_pieces(draw)]
    if fallback:
        rows += [(f"<0x{byte:02X}>", -9.0) for byte in range(256)]
    marks: dict[str, Any] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    charsmap = base64.b64encode(build_charsmap(MAP)).decode()
    runs = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": draw.choice([" ", "▁"])}
    literals = [{"type": "Replace", "pattern": {"String": text}, "content": '"'} for text in ("``", "''")]
    accents: list[dict[str, Any]] = [{"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]
    steps: list[dict[str, Any]] = draw.choice([
        [{"type": "Precompiled", "precompiled_charsmap": charsmap}],
        [{"type": "Precompiled", "precompiled_charsmap": charsmap}, {"type": "Lowercase"}],
        [*literals, *accents, *accents],
        [{"type": "Nmt"}, {"type": draw.choice(["NFKC", "NFC", "NFD"])}],
    ])  # fmt: skip
    words: dict[str, Any] = marks
    if draw.random() < 0.5:
        words = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, marks]}
    elif draw.random() < 0.6:
        steps = [*steps, {"type": "Strip", "strip_left": False, "strip_right": True}, runs]
    else:
        steps = [*steps, runs]
    flags = {"special": True, "normalized": False, "single_word": False, "lstrip": draw.random() < 0.5}
    added = [{"id": 1, "content": "<x>", "rstrip": draw.random() < 0.5, **flags}]
    return json.dumps({
        "added_tokens": added, "normalizer": {"type": "Sequence", "normalizers": steps}, "pre_tokenizer": words,
        "decoder": marks, "model": {"type": "Unigram", "vocab": rows, "unk_id": 0, "byte_fallback": fallback},
    }).encode()  # fmt: skip


def drawn_model(draw: random.Random) -> bytes:
    """A sentencepiece model."""
    fallback, squeeze, users = draw.random() < 0.4, draw.random() < 0.6, draw.random() < 0.5
    rows = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), *((text, score, 1) for text, score in _pieces(draw))]
    if users:
        rows = [
            (text, score, draw.choice([1] * 20 + [5]) if len(text) > 1 and kind == 1 else kind)
            for text, score, kind in rows
        ]
        rows += [("<x>", 0.0, 4), ("=-", 0.0, 4), ("a b", 0.0, 4), ("①x", 0.0, 4)]
    if fallback:
        rows += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
    out = b"".join(
        _field(1, _field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + bytes([0x18, kind]))
        for text, score, kind in {row[0]: row for row in rows}.values()
    )
    trainer = bytes([3 << 3, 1]) + (b"\x98\x02\x01" if fallback else b"")
    map_ = build_charsmap(MAP) if draw.random() < 0.7 else b""
    prefix = squeeze or draw.random() < 0.5
    settings = bytes([0x18, prefix, 0x20, squeeze, 0x28, 1])
    normalizer = _field(1, b"mine") + (_long_field(2, map_) if map_ else b"") + settings
    return out + _field(2, trainer) + _long_field(3, normalizer)


def _long_field(number: int, payload: bytes) -> bytes:
    size, head = len(payload), [number << 3 | 2]
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    return bytes([*head, size]) + payload


def drawn_words(draw: random.Random) -> str:
    """A text for such files."""
    parts = [
        draw.choice([*PARTS, drawn_text(draw)[:20]]) * draw.choice([1, 1, 1, 2, 5]) for _ in range(draw.randrange(16))
    ]
    return draw.choice(["", " "]).join(parts)
