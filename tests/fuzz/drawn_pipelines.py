"""Draws tokenizer.json files whose texts are prepared for kernels: normalizers, chains of splitters, kinds of BPE."""

import json
import random
from typing import Any

from drawn_files import ALPHABET

from jittok.kernels.models.bpe.files import IN_NO_TEXT

NORMALIZERS: tuple[list[dict[str, Any]], ...] = (
    [], [{"type": "NFC"}], [{"type": "Lowercase"}], [{"type": "NFKD"}, {"type": "StripAccents"}],
    [{"type": "NFC"}, {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}, {"type": "Lowercase"}],
    [{"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "Prepend", "prepend": "a"}],
    [{"type": "Replace", "pattern": {"String": "the"}, "content": "ab"}, {"type": "Nmt"}],
    [{"type": "Replace", "pattern": {"Regex": "[0-9]+|a(b|c)"}, "content": ""}],
    [{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}],
)  # fmt: skip
FOR_TEXT = [c for byte, c in enumerate(ALPHABET) if byte not in IN_NO_TEXT]
BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")


def _split(pattern: str, behavior: str, invert: bool = False) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def drawn_pipeline(draw: random.Random) -> bytes:
    """A tokenizer.json."""
    return _json(draw, draw.choice(["bytes", "bytes", "characters", "fallback", "words"]))


def _json(draw: random.Random, kind: str) -> bytes:
    prefix = draw.choice(["", "", "##"]) if kind == "characters" else ""
    suffix = draw.choice(["", "", "</w>"]) if kind in ("bytes", "characters") else ""
    vocab, merges = _words(draw, kind, prefix, suffix)
    normalizers = draw.choice(NORMALIZERS)
    model: dict[str, Any] = {
        "type": "BPE", "vocab": vocab, "merges": merges, "continuing_subword_prefix": prefix or None,
        "end_of_word_suffix": suffix or None, "fuse_unk": draw.random() < 0.5, "byte_fallback": kind == "fallback",
        "ignore_merges": kind == "bytes" and not suffix and all(c in vocab for c in FOR_TEXT),
    }  # fmt: skip
    if kind != "bytes" and draw.random() < 0.8:
        model["unk_token"] = "<unk>"
    if kind == "words":
        model = {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}
    return json.dumps({
        "added_tokens": _added(draw, len(vocab)),
        "normalizer": {"type": "Sequence", "normalizers": normalizers} if normalizers else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": _stages(draw, kind == "bytes", bool(normalizers))},
        "model": model,
    }).encode()  # fmt: skip


def _words(draw: random.Random, kind: str, prefix: str, suffix: str) -> tuple[dict[str, int], list[list[str]]]:
    vocab = {"<unk>": 0}
    if kind == "fallback":
        vocab |= {f"<0x{byte:02X}>": byte + 1 for byte in range(256)}
    if kind == "bytes":
        gone = {*IN_NO_TEXT} | {*draw.sample(range(256), draw.choice([0, 0, 5]))}
        singles = [c for byte, c in enumerate(ALPHABET) if byte not in gone]
        often = [ALPHABET[byte] for byte in " abethsABxy.é中1".encode() if byte not in gone]
    else:
        singles = often = list("▁abethsABxy<>.中é\u0301'12\n") + ["\U0001f600"] * draw.randrange(2)
    for c in singles:
        for text in (c, c + suffix, prefix + c, prefix + c + suffix):
            if text == c or draw.random() < 0.8:
                vocab.setdefault(text, len(vocab))
    merges = []
    parts = [text for c in often for text in dict.fromkeys((c, prefix + c)) if text in vocab]
    last = [text for c in often for text in (c + suffix, prefix + c + suffix) if text in vocab]
    for _ in range(draw.randrange(60)):
        a, b = draw.choice(parts), draw.choice(parts + last)
        if prefix and not b.startswith(prefix):
            continue
        whole = a + b[len(prefix) :]
        vocab.setdefault(whole, len(vocab))
        if not suffix or not whole.endswith(suffix):
            parts.append(whole)
        if [a, b] not in merges:
            merges.append([a, b])
    draw.shuffle(merges)
    if kind == "words":
        for text in ("the", "ab", "AB", "中文", "...", "12345", "é", "</w>", "x" * 40):
            vocab.setdefault(text, len(vocab))
    return vocab, merges


def _stages(draw: random.Random, spelled: bool, normalizes: bool) -> list[dict[str, Any]]:
    front: list[dict[str, Any]] = []
    if draw.random() < 0.3 and not spelled:
        scheme = draw.choice(["always", "never", *["first"] * (not normalizes)])
        front = [{"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": draw.random() < 0.7}]
    chains: list[list[dict[str, Any]]] = [
        [{"type": "Whitespace"}],
        [{"type": "WhitespaceSplit"}],
        [{"type": "BertPreTokenizer"}],
        [],
        [{"type": "Punctuation", "behavior": draw.choice(BEHAVIORS)}],
        [{"type": "Digits", "individual_digits": draw.random() < 0.5}],
        [_split(r"'s|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+", "Removed", True)],
        [_split(r"\s", "Removed")],
        [_split("[a-e]", draw.choice(BEHAVIORS))],
        [_split(r"[a-e]\d?", "Isolated")],
        [{"type": "CharDelimiterSplit", "delimiter": "a"}],
        [{"type": "UnicodeScripts"}],
    ]
    middle = [*draw.choice(chains), *draw.choice(chains)]
    if not spelled:
        return front + middle
    level = {"type": "ByteLevel", "add_prefix_space": not middle and draw.random() < 0.7,
             "use_regex": draw.random() < 0.7}  # fmt: skip
    removes = any(stage.get("behavior") == "Removed" or stage["type"] in ("Whitespace", "WhitespaceSplit",
                  "BertPreTokenizer", "CharDelimiterSplit", "UnicodeScripts") for stage in middle)  # fmt: skip
    behind: list[dict[str, Any]] = []
    if not removes and draw.random() < 0.4:
        behind = [{"type": "Digits", "individual_digits": False}, _split("[0-9][0-9][0-9]", "Isolated")]
    return [*middle, level, *behind]


def _added(draw: random.Random, first: int) -> list[dict[str, Any]]:
    rows = []
    for k, text in enumerate(draw.sample(["<x>", "ab", "  ", "中", "The", "é", "\n\n"], draw.randrange(4))):
        flags = {name: draw.random() < 0.25 for name in ("lstrip", "rstrip")}
        row = {"id": first + k, "content": text, "special": draw.random() < 0.5, "normalized": draw.random() < 0.5}
        if text.isspace():
            row["normalized"] = False  # of one that the normalizer leaves nothing of the file is refused
        rows.append({**row, "single_word": False, **flags})
    return rows
