"""Records what tokenizers 1.0 writes of its objects, and their answers: tests/data/tokenizers-1.0.jsonl.xz.

pip install --pre 'tokenizers>=1.0.0rc3'    # in an environment of its own; nothing else is needed
python tests/data/make_tokenizers_1_0.py
"""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OUT = Path(__file__).with_name("tokenizers-1.0.jsonl.xz")
TEXTS = ["", "a", " a b", "a  b12 a.", "<x>a <x> b", " ", "ab a b ac", "\u2581a \u2581", "\u00c9 a1b2", "a b a"]
TOKENS = ["<unk>", "\u2581", "a", "b", "c", " ", "1", "2", ".", "##a", "##b", "\u2581a", "\u2581b", "<0x41>", "\u00e9"]
IDS = {text: token for token, text in enumerate([*TOKENS, "A"])}
MODELS: list[dict[str, Any]] = [
    {"type": "WordLevel", "vocab": IDS, "unk_token": "<unk>"},
    {"type": "WordPiece", "vocab": IDS, "unk_token": "<unk>", "continuing_subword_prefix": "##",
     "max_input_chars_per_word": 100},
    {"type": "BPE", "vocab": IDS, "merges": [["\u2581", "a"], ["\u2581", "b"]], "unk_token": "<unk>"},
    {"type": "Unigram", "unk_id": 0, "vocab": [[text, -1.0 - token / 7] for text, token in IDS.items()],
     "byte_fallback": False},
]  # fmt: skip
SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
PREPEND = {"type": "Prepend", "prepend": "\u2581"}
NORMALIZERS: list[Any] = [
    None, *({"type": kind} for kind in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel")),
    {"type": "Strip", "strip_left": True, "strip_right": True}, PREPEND, SPACES,
    {"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"},
    {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
     "lowercase": True},
    {"type": "Sequence", "normalizers": [PREPEND, SPACES]},
]  # fmt: skip
METASPACE = {"type": "Metaspace", "replacement": "\u2581"}
ALWAYS = {**METASPACE, "prepend_scheme": "always", "split": True}
SPLITTERS: list[Any] = [
    None, *({**METASPACE, "prepend_scheme": scheme, "split": split} for scheme in ("always", "first", "never")
            for split in (True, False)),
    *({"type": kind} for kind in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "UnicodeScripts")),
    {"type": "Punctuation", "behavior": "Isolated"}, {"type": "FixedLength", "length": 2},
    *({"type": "Digits", "individual_digits": each} for each in (True, False)),
    {"type": "CharDelimiterSplit", "delimiter": "a"},
    {"type": "Split", "pattern": {"String": "a"}, "behavior": "Removed", "invert": False},
    {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, ALWAYS]},
]  # fmt: skip
DECODERS: list[Any] = [
    None, {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}, ALWAYS,
    {**ALWAYS, "prepend_scheme": "never"}, {"type": "WordPiece", "prefix": "##", "cleanup": True},
    {"type": "BPEDecoder", "suffix": "</w>"},
    {"type": "CTC", "pad_token": "<unk>", "word_delimiter_token": "a", "cleanup": True},
    {"type": "Sequence", "decoders": [{**SPACES, "pattern": {"String": "\u2581"}, "content": " "},
     {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
]  # fmt: skip
ENDS = {"sep": ["b", 3], "cls": ["a", 2]}
TEMPLATES: list[Any] = [
    {"type": "BertProcessing", **ENDS},
    {"type": "RobertaProcessing", **ENDS, "trim_offsets": True, "add_prefix_space": False},
]  # fmt: skip
FLAGS = {"single_word": False, "rstrip": False}
ADDED = [
    {"id": 16, "content": "<x>", "lstrip": True, "normalized": False, "special": True, **FLAGS},
    {"id": 17, "content": "b a", "lstrip": False, "normalized": True, "special": False, **FLAGS},
]
CHARACTERS = {"type": "FixedLength", "length": 1}


def files() -> Iterator[dict[str, Any]]:
    """Tokenizer files of version 1.0, each with a part or two."""
    for model in MODELS:
        for part in NORMALIZERS:
            yield {"model": model, "normalizer": part, "added_tokens": ADDED}
            yield {"model": model, "normalizer": part, "pre_tokenizer": ALWAYS, "added_tokens": ADDED[:1]}
        for part in SPLITTERS:
            yield {"model": model, "pre_tokenizer": part, "added_tokens": ADDED}
            yield {"model": model, "pre_tokenizer": part, "normalizer": {"type": "Lowercase"}}
        for part in DECODERS:
            yield {"model": model, "decoder": part, "pre_tokenizer": CHARACTERS}
    for part in TEMPLATES:
        yield {"model": MODELS[2], "post_processor": part}
    alphabet = [*map(chr, range(33, 127)), *map(chr, range(161, 173)), *map(chr, range(174, 256))]
    alphabet += map(chr, range(256, 256 + 256 - len(alphabet)))
    of_bytes = {text: token for token, text in enumerate([*alphabet, "\u0120a"])}
    bpe = {"type": "BPE", "vocab": of_bytes, "merges": [["\u0120", "a"]]}
    for uses_regex in (True, False):
        spelled = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": uses_regex}
        yield {"model": bpe, "pre_tokenizer": spelled, "decoder": DECODERS[1]}
        yield {"model": bpe, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [CHARACTERS, spelled]}}


def main() -> None:
    """Ask and write."""
    import tokenizers

    empty = dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"))
    rows = []
    for file in files():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "tokenizer.json")
            path.write_text(json.dumps({"version": "1.0", "added_tokens": [], **empty, **file}), "utf-8")
            own = tokenizers.Tokenizer.from_file(str(path))
        answers = []
        for text in TEXTS:
            ids = own.encode(text).ids
            answers.append({
                "text": text, "plain": own.encode(text, add_special_tokens=False).ids, "ids": ids,
                "pair": own.encode((text, "a b")).ids,
                "decoded": [own.decode(ids, skip_special_tokens=skip) for skip in (False, True)],
            })  # fmt: skip
        rows.append(json.dumps({"json": own.__reduce__()[1][0], "answers": answers}, default=list))
    OUT.write_bytes(lzma.compress("\n".join(rows).encode(), preset=9))
    sys.stdout.write(f"{len(rows)} objects of tokenizers {tokenizers.__version__}\n")


if __name__ == "__main__":
    main()
