"""jittok: the tokenizers of llama.cpp for large corpora, exactly and fast, from a GGUF vocabulary.

Names and modules are loaded when first used. The first load of a vocabulary brings in NumPy; neither numba, llvmlite,
regex nor pyarrow: what encodes is imported by the first text, what compiles by a vocabulary that was not compiled
before.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jittok.errors import (
        CompilerMissing,
        CorpusError,
        EncodingFailed,
        InvalidToken,
        JittokError,
        MalformedArray,
        MalformedVocab,
        UnsupportedVocab,
    )
    from jittok.loading import bundled, load
    from jittok.ragged import Ragged, TokenArray
    from jittok.tokenizer import Tokenizer
    from jittok.vocab import Vocab, bundled_names, read_vocab

__version__ = "0.1.0"
__all__ = [
    "CompilerMissing",
    "CorpusError",
    "EncodingFailed",
    "InvalidToken",
    "JittokError",
    "MalformedArray",
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
    "errors": (
        "CompilerMissing",
        "CorpusError",
        "EncodingFailed",
        "InvalidToken",
        "JittokError",
        "MalformedArray",
        "MalformedVocab",
        "UnsupportedVocab",
    ),
    "loading": ("bundled", "load"),
    "ragged": ("Ragged", "TokenArray"),
    "tokenizer": ("Tokenizer",),
    "vocab": ("Vocab", "bundled_names", "read_vocab"),
}
_MODULES = ("arrow", "corpus", "errors", "plot", "polars", "ray", "tokenizer", "vocab")
"""What people use as jittok.NAME; some need an extra."""


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            found = globals()[name] = getattr(importlib.import_module(f"jittok.{module}"), name)
            return found
    if name in _MODULES:
        return importlib.import_module(f"jittok.{name}")
    raise AttributeError(f"module 'jittok' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
