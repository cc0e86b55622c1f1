"""Small tokenizer.json files that differ in one part."""

import functools
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded_files import HERE

import jittok
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.tokenizer import Tokenizer

ALPHABET = [chr(c) for c in CHARACTER_OF_BYTE]
MARKS = r"[\p{L}\p{M}]+|[^\p{L}\p{M}]"


def spelled(text: str) -> str:
    return "".join(ALPHABET[byte] for byte in text.encode())


def made(
    pattern: str = MARKS,
    merges: tuple[tuple[str, str], ...] = (("a", "b"), ("ab", "c"), ("t", "h")),
    added: tuple[str, ...] = (),
    normalizer: str | None = None,
    behavior: str = "Isolated",
    **model: Any,
) -> Tokenizer:
    """Byte-level BPE with merges of texts; those of two or three bytes come first."""
    vocab = {c: k for k, c in enumerate(ALPHABET)}
    bytes_of = [("e", "\u0301".encode()[:1]), ("q", "\u0301".encode()[:1])]
    lines = []
    for left, right in bytes_of:  # a letter and the mark after it are a token
        pair = [ALPHABET[ord(left)], ALPHABET[right[0]]]
        vocab["".join(pair)] = len(vocab)
        last = ["".join(pair), ALPHABET["\u0301".encode()[1]]]
        vocab["".join(last)] = len(vocab)
        lines += [pair, last]
    for left, right in merges:
        vocab.setdefault(spelled(left + right), len(vocab))
        lines.append([spelled(left), spelled(right)])
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": False}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    content = json.dumps({
        "added_tokens": [{"id": len(vocab) + k, "content": text, **flags} for k, text in enumerate(added)],
        "normalizer": {"type": normalizer} if normalizer else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            split, {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": lines, **model},
    }).encode()  # fmt: skip
    return jittok.load(content, cache=False)


@pytest.fixture(scope="session")
def small() -> Callable[..., Tokenizer]:
    """small(pattern=, merges=, added=, normalizer=): see `made`."""
    return made


@pytest.fixture(scope="session")
def recorded_path(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """recorded_path(name): the folder of a recorded set of files that lies in the repository."""
    to = tmp_path_factory.mktemp("files")

    def unpack(name: str) -> Path:
        with tarfile.open(HERE / f"{name}.tar.xz") as archive:
            archive.extractall(to, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(to)
        return to / name

    return functools.cache(unpack)
