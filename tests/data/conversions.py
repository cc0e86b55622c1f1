"""Sources for conversions: a small byte-level tokenizer.json, and recorded files."""

import functools
import json
import tarfile
import tempfile
from pathlib import Path

from recorded_files import HERE

import jittok
from jittok.common.unicode.tables import CHARACTER_OF_BYTE

ALPHABET = [chr(c) for c in CHARACTER_OF_BYTE]
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def made(pattern: str = QWEN2, normalizer: str | None = None, **changed: bool) -> jittok.Tokenizer:
    """Byte-level BPE with a few merges and an added token; `changed`: flags of it."""
    pairs = [
        ("t", "h"),
        ("th", "e"),
        ("e", "r"),
        ("1", "2"),
        ("\u00c3", "\u00a9"),
        ("\u0120", "the"),
        ("\u00cc", "\u0123"),
    ]
    vocab = {text: k for k, text in enumerate([*ALPHABET, *(a + b for a, b in pairs)])}
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, **changed}
    content = json.dumps({
        "added_tokens": [{"id": 263, "content": "<|end|>", "special": True, **flags}],
        "normalizer": {"type": normalizer} if normalizer else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            split, {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": [list(pair) for pair in pairs]},
    }).encode()  # fmt: skip
    return jittok.load(content, cache=False)


@functools.cache
def recorded_path(name: str) -> Path:
    """The folder of a recorded set of files that lies in the repository."""
    to = Path(tempfile.mkdtemp(prefix="recorded-"))
    with tarfile.open(HERE / f"{name}.tar.xz") as archive:
        archive.extractall(to, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(to)
    return to / name
