"""Vocabularies and numbers of the recorded walkthroughs."""

import json
import lzma
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jittok.vocab import Vocab, read_vocab
from jittok.vocab.bundled import bundled_vocab

BUNDLED = {"t5": "t5", "bert-bge": "bert", "gpt-2": "gpt-2", "mistral-v1": "mistral"}
ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("JITTOK_SHARED") or ROOT.parent / "shared")


@cache
def _vocab(name: str) -> Vocab:
    if name in BUNDLED:
        return bundled_vocab(BUNDLED[name])
    packed = SHARED / "vocabs" / f"{name}.gguf.xz"
    if not packed.is_file():
        pytest.skip(f"the vocabulary {name} is not bundled and not in {packed.parent}; set JITTOK_SHARED")
    return read_vocab(lzma.decompress(packed.read_bytes()))


@pytest.fixture(scope="session")
def named_vocab() -> Callable[[str], Vocab]:
    """named_vocab("t5"): a real vocabulary, bundled or from the shared folder; skips the test without it."""
    return _vocab


@pytest.fixture(scope="session")
def walkthroughs() -> dict[str, Any]:
    """Numbers of debugger sessions with llama.cpp, one key a session."""
    return json.loads((ROOT / "tests" / "data" / "walkthroughs.json").read_text(encoding="utf-8"))
