"""What the models of files other than GGUF share: how they are called, and how they are watched.

>>> word = "née"
>>> byte_offsets(word)
[0, 1, 3, 4]
>>> byte_tokens({"<0xC3>": 7, "<0xA9>": 8}, "é")
[7, 8]
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple, NoReturn, Protocol

from jittok.common.pipeline.models import NO_TOKEN
from jittok.common.pipeline.pipeline import Pipeline
from jittok.errors import EncodingFailed
from jittok.reference import merging

Part = tuple[int, int, int]
"""An id, and its span in the word's UTF-8: start, stop."""


class Watch:
    """An observer of a model on one word; does nothing."""

    def symbols(self, texts: list[str]) -> None:
        """The symbols before any is merged."""

    def popped(self, pair: tuple[int, int], text: str, priority: float, applied: bool, after: list[int]) -> None:
        """A popped pair of symbols: whether it is merged, and the next symbol of each."""

    def tried(self, start: int, stop: int, token: int | None) -> None:
        """Bytes of the word that were looked up."""

    def rival(self, start: int, stop: int, token: int, score: float, total: float, won: bool) -> None:
        """Characters of the word that are a token: its score, the sum of the path to `stop`, whether that is the
        best."""


class Encode(Protocol):
    """What makes ids of a word."""

    def __call__(self, word: str, watch: Watch | None = None) -> list[Part]:
        """The ids, each with its bytes of the word. `watch` sees how they are found."""


class Model(NamedTuple):
    """The encoders of a model."""

    encode: Encode
    long: Callable[[str, array[int]], None] | None = None  # adds the ids of a long word to an array


def texts_of(pipeline: Pipeline) -> dict[str, int]:
    """text -> id of a vocabulary whose tokens are texts."""
    return {text.decode(): token for text, token in pipeline.vocabulary.items()}


def shown(raw: bytes) -> str:
    """Bytes for people."""
    return raw.decode("utf-8", "backslashreplace")


def watching(watch: Watch, texts: list[str]) -> merging.Observe:
    """The callback of `merge` that reports pairs to a watch; texts: of the first symbols."""
    watch.symbols(texts)

    def observe(what: str, pair: merging.Pair, symbols: merging.Symbols) -> None:
        if what == merging.OFFERED:
            return
        merged, after = what == merging.MERGED, symbols.next
        left, right = pair.left, pair.right
        stop = after[left] if merged else after[right] if right >= 0 else right
        text = "".join(texts[left : stop if stop >= 0 else len(texts)]) if right >= 0 else ""
        watch.popped((left, right), text, pair.priority, merged, after)

    return observe


def byte_offsets(word: str) -> list[int]:
    """Where each character begins in the word's UTF-8, and where the last one ends."""
    return [0, *accumulate(len(c.encode()) for c in word)]


def fail(found: str, expected: str) -> NoReturn:
    """Raises EncodingFailed for a word; its offset in the document is not known here."""
    raise EncodingFailed(0, 0, found, expected)


def byte_tokens(ids: dict[str, int], text: str) -> list[int] | None:
    """The tokens <0xXX> of a text's bytes, None if one is missing."""
    found = [ids.get(f"<0x{byte:02X}>", NO_TOKEN) for byte in text.encode()]
    return None if NO_TOKEN in found else found
