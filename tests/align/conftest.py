"""Vocabularies by the names that recorded walkthroughs use."""

import lzma
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import jittok
from jittok.tokenizer import Tokenizer

BUNDLED = {"t5": "t5", "bert-bge": "bert"}
ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("JITTOK_SHARED") or ROOT.parent / "shared")


@cache
def _tokenizer(name: str) -> Tokenizer:
    if name in BUNDLED:
        return jittok.bundled(BUNDLED[name])
    packed = SHARED / "vocabs" / f"{name}.gguf.xz"
    if not packed.is_file():
        pytest.skip(f"the vocabulary {name} is not bundled and not in {packed.parent}; set JITTOK_SHARED")
    return jittok.load(lzma.decompress(packed.read_bytes()), cache=False)


@pytest.fixture(scope="session")
def named() -> Callable[[str], Tokenizer]:
    """named("t5"): a real vocabulary, bundled or from the shared folder; skips the test without it."""
    return _tokenizer
