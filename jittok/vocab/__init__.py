"""A vocabulary as data: the validated content of a file, before anything is compiled."""

from typing import TYPE_CHECKING, Any

from jittok.vocab.bundled import bundled_names, bundled_vocab
from jittok.vocab.vocab import NO_TOKEN, Vocab

if TYPE_CHECKING:
    from jittok.vocab.load import read_vocab

__all__ = ["NO_TOKEN", "Vocab", "bundled_names", "bundled_vocab", "read_vocab"]


def __getattr__(name: str) -> Any:
    """Import the reader of files on first use: a compiled vocabulary does not need it."""
    if name == "read_vocab":
        from jittok.vocab.load import read_vocab

        return read_vocab
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
