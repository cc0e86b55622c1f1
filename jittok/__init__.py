"""jittok: the tokenizers of open models for large corpora, exactly and fast, from GGUF or a model's own file.

`import jittok` brings in NumPy and what every load of a vocabulary needs, so that a load takes the time of a load;
neither numba, llvmlite, regex nor pyarrow. What encodes is imported by the first text, what compiles by a vocabulary
that was not compiled before.
"""

from typing import TYPE_CHECKING, Any

from jittok.errors import CorpusError, EncodingFailed, InvalidToken, JittokError, MalformedVocab, UnsupportedVocab
from jittok.loading import bundled, load
from jittok.ragged import Ragged, TokenArray
from jittok.tokenizer import Tokenizer
from jittok.vocab import Vocab, bundled_names

if TYPE_CHECKING:
    from jittok.objects import from_sentencepiece, from_tiktoken, from_tokenizers, from_transformers
    from jittok.vocab import read_vocab

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
    "from_sentencepiece",
    "from_tiktoken",
    "from_tokenizers",
    "from_transformers",
    "load",
    "read_vocab",
]


def __getattr__(name: str) -> Any:
    if name.startswith("from_") and name in __all__:
        from jittok import objects

        return getattr(objects, name)
    if name == "read_vocab":
        from jittok.vocab import read_vocab

        return read_vocab
    raise AttributeError(f"module 'jittok' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
