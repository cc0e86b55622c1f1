"""jittok: the tokenizers of llama.cpp for large corpora, exactly and fast, from a GGUF vocabulary.

Names are loaded when first used, so that `import jittok` brings in neither numba, regex nor pyarrow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jittok.errors import CorpusError, EncodingFailed, InvalidToken, JittokError, MalformedVocab, UnsupportedVocab
    from jittok.ragged import Ragged, TokenArray
    from jittok.tokenizer import Tokenizer, bundled, load
    from jittok.vocab import Vocab, bundled_names, read_vocab

__version__ = "0.1.0"
__all__ = [
    "CorpusError",
    "EncodingFailed",
    "InvalidToken",
    "JittokError",
    "MalformedVocab",
    "Ragged",
    "TokenArray",
    "Tokenizer",
    "UnsupportedVocab",
    "Vocab",
    "bundled",
    "bundled_names",
    "load",
    "read_vocab",
]
_HOME = {
    "tokenizer": ("Tokenizer", "bundled", "load"),
    "ragged": ("Ragged", "TokenArray"),
    "vocab": ("Vocab", "bundled_names", "read_vocab"),
    "errors": ("CorpusError", "EncodingFailed", "InvalidToken", "JittokError", "MalformedVocab", "UnsupportedVocab"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(importlib.import_module(f"jittok.{module}"), name)
    raise AttributeError(f"module 'jittok' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
