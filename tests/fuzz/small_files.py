"""A small file of every kind, to be changed a hundred thousand times: each is read as it is."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

from jittok.common.unicode.tables import CHARACTER_OF_BYTE

ALPHABET = [chr(c) for c in CHARACTER_OF_BYTE]
PAIRS = [("t", "h"), ("th", "e"), ("i", "n"), ("a", "n"), ("an", "d"), ("1", "2"), ("12", "3")]
SPLIT = {
    "type": "Split", "behavior": "Isolated", "invert": False,
    "pattern": {"Regex": r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?!\S)|\s+"},
}  # fmt: skip
FLAGS = {"special": True, "normalized": False, "lstrip": False, "rstrip": True, "single_word": False}
ADDED = [
    {"id": 900, "content": "<s>", **FLAGS},
    {"id": 901, "content": "<x>", **{name: not value for name, value in FLAGS.items()}},
]
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}},
}


def _json(model: dict[str, Any], **parts: Any) -> bytes:
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": ADDED, "post_processor": TEMPLATE}
    return json.dumps({**whole, **parts, "model": model}, ensure_ascii=False).encode()


def _vocab(alphabet: list[str], pairs: list[tuple[str, str]]) -> dict[str, int]:
    return {text: k for k, text in enumerate([*alphabet, *(a + b for a, b in pairs)])}


def byte_level() -> bytes:
    model = {"type": "BPE", "vocab": _vocab(ALPHABET, PAIRS), "merges": [f"{a} {b}" for a, b in PAIRS],
             "dropout": None, "unk_token": None, "ignore_merges": True}  # fmt: skip
    steps = {
        "type": "Sequence",
        "pretokenizers": [SPLIT, {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}],
    }
    return _json(model, normalizer={"type": "NFC"}, pre_tokenizer=steps, decoder={"type": "ByteLevel"})


def characters() -> bytes:
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    vocab = _vocab(["<unk>", *bytes_, "▁", *"abcdefghinst123"], [*PAIRS, ("▁", "the")])
    model = {"type": "BPE", "vocab": vocab, "merges": [list(pair) for pair in PAIRS], "byte_fallback": True,
             "unk_token": "<unk>", "fuse_unk": True}  # fmt: skip
    steps = [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]
    decoder = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
               {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]  # fmt: skip
    return _json(
        model, normalizer={"type": "Sequence", "normalizers": steps}, decoder={"type": "Sequence", "decoders": decoder}
    )


def unigram() -> bytes:
    texts = ["<unk>", "▁", *"abcdefghinst123", "the", "▁the", "and", "in"]
    model = {"type": "Unigram", "vocab": [[text, -0.5 * k] for k, text in enumerate(texts)], "unk_id": 0}
    space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
    steps = [
        {"type": "NFKC"},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        {"type": "Lowercase"},
    ]
    return _json(
        model, pre_tokenizer=space, decoder=space, normalizer={"type": "Sequence", "normalizers": steps},
        truncation={"max_length": 100, "strategy": "LongestFirst", "stride": 0},
    )  # fmt: skip


def wordpiece() -> bytes:
    texts = ["[UNK]", "[CLS]", "[SEP]", *"abcdefghint123", "the", "##e", "##n", "##s", "quick"]
    model = {"type": "WordPiece", "vocab": {text: k for k, text in enumerate(texts)}, "unk_token": "[UNK]",
             "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}  # fmt: skip
    bert = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    }
    around = {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]}
    return _json(model, normalizer=bert, pre_tokenizer={"type": "BertPreTokenizer"}, post_processor=around,
                 decoder={"type": "WordPiece", "prefix": "##", "cleanup": True})  # fmt: skip


def wordlevel() -> bytes:
    model = {"type": "WordLevel", "vocab": {"<unk>": 0, "The": 1, "quick": 2}, "unk_token": "<unk>"}
    steps = {
        "type": "Sequence",
        "pretokenizers": [{"type": "Whitespace"}, {"type": "Digits", "individual_digits": True}],
    }
    return _json(model, pre_tokenizer=steps, normalizer={"type": "StripAccents"})


def ranks() -> bytes:
    rows = [bytes([byte]) for byte in range(256)] + [(a + b).encode() for a, b in PAIRS]
    return b"".join(base64.b64encode(raw) + b" %d\n" % rank for rank, raw in enumerate(rows))


def tekken() -> bytes:
    rows = [bytes([byte]) for byte in range(256)] + [(a + b).encode() for a, b in PAIRS]
    vocab = [
        {"rank": k, "token_bytes": base64.b64encode(raw).decode(), "token_str": raw.decode("utf-8", "replace")}
        for k, raw in enumerate(rows)
    ]
    special = [{"rank": k, "token_str": text, "is_control": True} for k, text in enumerate(["<unk>", "<s>", "</s>"])]
    config = {"pattern": SPLIT["pattern"]["Regex"], "num_vocab_tokens": len(vocab),
              "default_vocab_size": len(vocab) + 3, "default_num_special_tokens": 3, "version": "v7"}  # fmt: skip
    return json.dumps({"config": config, "vocab": vocab, "special_tokens": special}).encode()


def rwkv() -> bytes:
    rows = [bytes([byte]) for byte in range(256)] + [(a + b).encode() for a, b in PAIRS]
    lines = []
    for k, raw in enumerate(rows, 1):
        try:
            text = repr(raw.decode())
        except UnicodeDecodeError:
            text = repr(raw)
        lines.append(f"{k} {text} {len(raw)}\n")
    return "".join(lines).encode()


def _field(number: int, payload: bytes) -> bytes:
    size, left = b"", len(payload)
    while left >= 128:
        size, left = size + bytes([left & 127 | 128]), left >> 7
    return bytes([number << 3 | 2]) + size + bytes([left]) + payload


def sentencepiece(kind: int) -> bytes:
    """kind: 1 Unigram, 2 BPE, 3 word, 4 char."""
    texts = [("<unk>", 2), ("<s>", 3), ("</s>", 3), ("<x>", 4), *((f"<0x{byte:02X}>", 6) for byte in range(256))]
    texts += [(text, 1) for text in ("▁", *"abcdefghinst123", *(a + b for a, b in PAIRS), "▁the")]
    return sentencepiece_of(kind, [(text, type_, -0.1 * k) for k, (text, type_) in enumerate(texts)])


def sentencepiece_of(
    kind: int, pieces: list[tuple[str, int, float]], fallback: bool = True, prefix: bool = True, squeeze: bool = True,
    charsmap: bytes = b"",
) -> bytes:  # fmt: skip
    """A model of these pieces: text, type, score."""
    out = b""
    for text, type_, score in pieces:
        out += _field(1, _field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + bytes([0x18, type_]))
    trainer = bytes([3 << 3, kind]) + b"\x98\x02" + bytes([fallback])  # model_type, byte_fallback
    normalizer = _field(1, b"identity") + (_field(2, charsmap) if charsmap else b"")
    normalizer += bytes([0x18, prefix, 0x20, squeeze, 0x28, 1])
    return out + _field(2, trainer) + _field(3, normalizer)


def vocab_txt() -> bytes:
    return "\n".join(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghint123", "the", "##e", "##n", "quick"]
    ).encode()


def folder() -> dict[str, bytes]:
    """vocab.json with merges.txt and all that may lie beside it."""
    vocab = _vocab(ALPHABET, PAIRS)
    merges = "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in PAIRS)
    config = {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": False, "bos_token": "<s>", "eos_token": "</s>",
              "added_tokens_decoder": {"270": {"content": "<y>", "special": True, "lstrip": False}}}  # fmt: skip
    vocab |= {"<s>": 264, "</s>": 265, "<unk>": 266, "<pad>": 267, "<mask>": 268}
    return {
        "vocab.json": json.dumps(vocab).encode(),
        "merges.txt": merges.encode(),
        "tokenizer_config.json": json.dumps(config).encode(),
        "added_tokens.json": b'{"<z>": 269}',
        "special_tokens_map.json": b'{"bos_token": "<s>", "unk_token": {"content": "<unk>", "lstrip": true}}',
    }


def bert_folder() -> dict[str, bytes]:
    """vocab.txt with all that may lie beside it."""
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "strip_accents": None, "cls_token": "[CLS]",
              "image_token": {"content": "<i>", "__type": "AddedToken"}, "extra_special_tokens": ["<e>"]}  # fmt: skip
    return {
        "vocab.txt": vocab_txt(),
        "tokenizer_config.json": json.dumps(config).encode(),
        "added_tokens.json": b'{"<z>": 23, "[SEP]": 3}',
        "special_tokens_map.json": b'{"mask_token": {"content": "[MASK]", "lstrip": true}, "sep_token": "[SEP]"}',
    }


def whisper_folder() -> dict[str, bytes]:
    """The files of Whisper's class."""
    special = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|zh|>", "<|transcribe|>", "<|notimestamps|>"]
    config = {"tokenizer_class": "WhisperTokenizer", "language": "zh", "task": "transcribe",
              "predict_timestamps": False, "unk_token": "<|endoftext|>",
              "added_tokens_decoder": {"264": {"content": special[0], "special": True}}}  # fmt: skip
    vocab = _vocab(ALPHABET, PAIRS)
    vocab |= {text: token for token, text in enumerate(special, len(vocab))}
    return {**folder(), "vocab.json": json.dumps(vocab).encode(), "tokenizer_config.json": json.dumps(config).encode()}


FILES = {
    "byte_level": byte_level, "characters": characters, "unigram": unigram, "wordpiece": wordpiece,
    "wordlevel": wordlevel, "ranks": ranks, "tekken": tekken, "rwkv": rwkv, "vocab_txt": vocab_txt,
    **{f"sentencepiece_{kind}": lambda kind=kind: sentencepiece(kind) for kind in (1, 2, 3, 4)},
}  # fmt: skip
