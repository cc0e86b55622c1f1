"""Draws tokenizer.json files of any model after any chain of splitter stages and normalizers."""

import json
import random
from typing import Any

from drawn_files import ALPHABET, SPLITS

BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
SINGLES = [*"▁abethsABxy<>.中é\u0301'12\n,- #한ß", "\U0001f600"]
PATTERNS = (
    r"\s+", r"[a-e]\d?", r"'s|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+", "the|ab", r"\w+", "[^a-z]", r"(?:ab)+|\d{1,3}",
    r"\s+$", r"(?<=[a-z])(?=[A-Z\d])", r"\d{1,3}(?=(?:\d{3})*\b)", r"a*b|\b", *SPLITS[:3],
)  # fmt: skip
MANY_CLASSES = "|".join(chr(0x4E00 + 2 * k) + chr(0x4E01 + 2 * k) for k in range(100)) + "|"
"""Before a pattern, this makes it tell more characters apart than kernels have classes for."""
REPLACED = ({"String": "the"}, {"Regex": r"\s+"}, {"Regex": " {2,}"}, {"Regex": "[0-9]+|a(b|c)"}, {"String": " "})
MODELS = ("WordPiece", "Unigram", "BPE", "WordLevel")


def drawn_file(draw: random.Random, kind: str) -> bytes:
    """A tokenizer.json of one kind of model."""
    model = drawn_model(draw, kind)
    stages = [drawn_stage(draw) for _ in range(draw.choice([0, 1, 1, 1, 2, 2, 3]))]
    steps = [drawn_step(draw) for _ in range(draw.choice([0, 0, 1, 2, 3]))]
    added = _added(draw, len(model["vocab"]))
    if draw.random() < 0.2:
        stages[:1] = [metaspace("first", draw.random() < 0.6)]
        added = [{**row, "normalized": row["normalized"] and not steps} for row in added]
    return json.dumps({
        "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": steps} if steps else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": stages} if stages else None,
        "model": model,
    }).encode()  # fmt: skip


def drawn_model(draw: random.Random, kind: str) -> dict[str, Any]:
    """A model of one kind, most characters of SINGLES in its vocabulary."""
    words = ["".join(draw.choices(SINGLES, k=draw.randrange(1, 5))) for _ in range(draw.randrange(20, 90))]
    singles = [*ALPHABET] if draw.random() < 0.3 else [c for c in SINGLES if draw.random() < 0.8]
    texts = ["<unk>", *singles, "the", "ab", "AB", "▁the", "##the", "...", "中文", *words]
    if kind == "WordPiece":
        prefix = draw.choice(["##", "##", "", "@", "▁"])
        return {"type": kind, "unk_token": "<unk>", "continuing_subword_prefix": prefix,
                "max_input_chars_per_word": draw.choice([100, 100, 5, 1, 20]),
                "vocab": _numbered([*texts, *(prefix + text for text in texts[1:])])}  # fmt: skip
    if kind == "Unigram":
        fallback = draw.random() < 0.2
        texts += [f"<0x{byte:02X}>" for byte in range(256 * fallback)]
        rows = [[text, round(-10 * draw.random(), draw.choice([0, 1, 4]))] for text in dict.fromkeys(texts)]
        return {"type": kind, "vocab": rows, "unk_id": 0, "byte_fallback": fallback}
    if kind == "WordLevel":
        return {"type": kind, "vocab": _numbered(texts), "unk_token": "<unk>"}
    vocab = _numbered(["<unk>", *singles])
    merges = []
    for _ in range(50):
        left, right = draw.choice([*vocab][1:]), draw.choice([*vocab][1:])
        vocab.setdefault(left + right, len(vocab))
        if [left, right] not in merges:
            merges.append([left, right])
    return {"type": kind, "vocab": vocab, "merges": merges, "unk_token": "<unk>", "fuse_unk": draw.random() < 0.5}


def _numbered(texts: list[str]) -> dict[str, int]:
    return {text: number for number, text in enumerate(dict.fromkeys(texts))}


def split(pattern: dict[str, str], behavior: str, invert: bool = False) -> dict[str, Any]:
    """The component Split."""
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def metaspace(scheme: str, split_: bool = True) -> dict[str, Any]:
    """The component Metaspace."""
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split_}


def drawn_stage(draw: random.Random) -> dict[str, Any]:
    """One stage of a splitter."""
    yes, other, behavior = draw.random() < 0.5, draw.random() < 0.5, draw.choice(BEHAVIORS)
    return draw.choice([
        {"type": "Whitespace"}, {"type": "WhitespaceSplit"}, {"type": "BertPreTokenizer"},
        {"type": "Punctuation", "behavior": behavior}, {"type": "Digits", "individual_digits": yes},
        split({"Regex": draw.choice(PATTERNS)}, behavior, yes), split({"Regex": draw.choice(PATTERNS)}, behavior, yes),
        split({"String": draw.choice(["the", " ", "ab", "▁"])}, behavior, yes),
        {"type": "CharDelimiterSplit", "delimiter": draw.choice("a ▁é")},
        {"type": "FixedLength", "length": draw.choice([1, 2, 5])}, {"type": "UnicodeScripts"},
        metaspace(draw.choice(["always", "never"]), yes),
        {"type": "ByteLevel", "add_prefix_space": yes, "use_regex": other, "trim_offsets": True},
    ])  # fmt: skip


def drawn_step(draw: random.Random) -> dict[str, Any]:
    """One step of a normalizer."""
    yes, other = draw.random() < 0.5, draw.random() < 0.5
    return draw.choice([
        {"type": draw.choice(["NFC", "NFD", "NFKC", "NFKD", "Nmt"])}, {"type": "Lowercase"}, {"type": "StripAccents"},
        {"type": "Replace", "pattern": draw.choice(REPLACED), "content": draw.choice(["x", " ", "▁", ""])},
        {"type": "Strip", "strip_left": yes, "strip_right": other}, {"type": "Prepend", "prepend": "▁"},
        {"type": "BertNormalizer", "clean_text": yes, "handle_chinese_chars": other,
         "strip_accents": draw.choice([None, True, False]), "lowercase": draw.random() < 0.5},
        {"type": draw.choice(["ByteLevel", "NFC", "NFKC"])},
    ])  # fmt: skip


def _added(draw: random.Random, first: int) -> list[dict[str, Any]]:
    rows = []
    for k, text in enumerate(draw.sample(["<x>", "ab", "中", "The", "é", "[MASK]", "the"], draw.randrange(4))):
        flags = {name: draw.random() < 0.25 for name in ("special", "normalized", "lstrip", "rstrip", "single_word")}
        rows.append({"id": first + k, "content": text, **flags})
    return rows
