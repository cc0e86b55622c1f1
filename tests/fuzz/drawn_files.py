"""Draws tokenizer.json files that kernels run, and texts for them."""

# ruff: noqa: RUF001  lists of characters

import json
import random
from typing import Any

from jittok.common.pipeline.known_patterns import O200K
from jittok.common.unicode.tables import CHARACTER_OF_BYTE

ALPHABET = [chr(c) for c in CHARACTER_OF_BYTE]
_END = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_BEGIN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = r"[^\r\n\p{L}\p{N}]?" + _UPPER
SPLITS = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    _BEGIN + r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _END,
    _BEGIN + r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}" + _END.replace(r"^\s\p{L}", r"^\s\p{L}\p{M}"),
    rf"{_CASED}*{_LOWER}+(?i:'s|'d)?|{_CASED}+{_LOWER}*(?i:'s|'d)?|\p{{N}}{{1,3}}"
    + _END.replace(r"\r\n]*", r"\r\n/]*"),
    O200K,
    r"\d{1,2}|[一-龥]+|[^\W\d]+",
)
PARTS = (
    "a", "b", "ab", "A", "the", "é", "e\u0301", "\u017f", "'s", "'\u017f", "'S", "'re", " ", "  ", "\u00a0", "\u3000",
    "\n", "\r\n", "1", "12345", "٣", "½", "²", "中文", "한", "\u1100\u1161", "\u0627\u064b", "\u0301", "\u0323\u0302",
    "c\u030c", "\u200d", "-", "...", "/", "<", "<x>", "<xy>", "y>", "_", "\U0001f600", "Ǆ", "ÀÉ", "\u1c89",
    "\U00016d40", "\u0897", "▁", "\x00", "\t", "\u0085", "\u2028",
)  # fmt: skip


def drawn_json(draw: random.Random) -> bytes:
    """A tokenizer.json: byte-level BPE with any of the splits, or BPE over characters with U+2581 for spaces."""
    return _bytes_json(draw) if draw.random() < 0.7 else _characters_json(draw)


def _merges(draw: random.Random, tokens: list[str], vocab: dict[str, int], count: int) -> list[list[str]]:
    merges = []
    for _ in range(count):
        a, b = draw.choice(tokens), draw.choice(tokens)
        if a + b not in vocab:
            vocab[a + b] = len(vocab)
            tokens.append(a + b)
        merges.append([a, b])
    draw.shuffle(merges)
    return merges


def _added(draw: random.Random, first: int, normalized: bool) -> list[dict[str, Any]]:
    texts = draw.sample(
        ["<x>", "<xy>", "y>", "<", "ab", "  ", "中", "e\u0301", "\n\n", "the", "a<x"], draw.randrange(6)
    )
    rows = []
    for text in texts:
        flags = {name: draw.random() < 0.25 for name in ("lstrip", "rstrip")}
        later = normalized and draw.random() < 0.4
        row = {"id": first + len(rows), "content": text, "special": draw.random() < 0.5, "normalized": later}
        rows.append({**row, "single_word": False, **flags})
    return rows


def _bytes_json(draw: random.Random) -> bytes:
    vocab = {c: k for k, c in enumerate(ALPHABET)}
    tokens = [*(ALPHABET[byte] for byte in " abethsABxy<>.中é\u0301'123\n\u00a0".encode())]
    merges = _merges(draw, tokens, vocab, draw.randrange(60))
    nfc = draw.random() < 0.4
    splits = [
        {"type": "Split", "pattern": {"Regex": draw.choice(SPLITS)}, "behavior": "Isolated", "invert": False}
        for _ in range(draw.choice([1, 1, 1, 2]))
    ]
    steps = [*splits, {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]
    return json.dumps({
        "added_tokens": _added(draw, len(vocab), not nfc),
        "normalizer": {"type": "NFC"} if nfc else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "ignore_merges": draw.random() < 0.5},
    }).encode()  # fmt: skip


def byte_level_json(pattern: str, form: str | None) -> bytes:
    """A tokenizer.json of single bytes, cut by one pattern."""
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    steps = [split, {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]
    return json.dumps({
        "normalizer": form and {"type": form},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "model": {"type": "BPE", "vocab": {c: k for k, c in enumerate(ALPHABET)}, "merges": []},
    }).encode()  # fmt: skip


def _characters_json(draw: random.Random) -> bytes:
    vocab = {f"<0x{byte:02X}>": byte for byte in range(256)}
    tokens = list("▁abethsABxy<>.中é\u0301'123\n")
    vocab |= {c: 256 + k for k, c in enumerate(tokens)}
    merges = _merges(draw, tokens, vocab, draw.randrange(80))
    escape = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    steps = [{"type": "Prepend", "prepend": "▁"}, escape] if draw.random() < 0.5 else [escape]
    return json.dumps({
        "added_tokens": _added(draw, len(vocab), False),
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "byte_fallback": True, "fuse_unk": True},
    }).encode()  # fmt: skip


def drawn_text(draw: random.Random) -> str:
    """A text of such parts, some of them many times."""
    return "".join(draw.choice(PARTS) * draw.choice([1, 1, 1, 2, 7]) for _ in range(draw.randrange(24)))


BERT = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
"""Settings of BertNormalizer, by bits."""


def drawn_words(draw: random.Random, settings: int) -> bytes:
    """A WordPiece file; the first tokens are single characters, on their own and after others."""
    singles = [*"abcdefghij#.-,1ßiσ中é▁", "\u1100", "\u1161", "\u11a8", "豈", "\u0301"]
    texts = ["[UNK]", *singles, *(f"##{c}" for c in singles)]
    while len(texts) < 120:
        text = "".join(draw.choice(singles) for _ in range(draw.randrange(2, 5)))
        texts.append(draw.choice(["", "##"]) + text)
    vocab = {text: k for k, text in enumerate(dict.fromkeys(texts))}
    normalizer = {name: bool(settings >> k & 1) for k, name in enumerate(BERT)}
    return json.dumps({
        "added_tokens": [{
            "id": 0, "content": "[UNK]", "special": True, "normalized": False, "single_word": False, "lstrip": False,
            "rstrip": False,
        }],
        "normalizer": {"type": "BertNormalizer", **normalizer},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 20, "vocab": vocab},
    }).encode()  # fmt: skip
