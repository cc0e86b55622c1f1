"""Bounds how many bytes one byte of text may become in the steps of a file, before anything runs.

A step that doubles a text is harmless, and forty of them need a terabyte for one character. So each step of a
normalizer, a splitter or a decoder says what it may make of a byte, and the step at which the product is too large is
refused. A step may also write something once for each piece of text; a piece has a byte at least.
"""

from __future__ import annotations

from functools import cache

from jittok.errors import InWords
from jittok.files.json_nodes import Node
from jittok.pipeline.patterns import matches_empty
from jittok.pipeline.steps import (
    Clusters,
    Compose,
    Ctc,
    Cut,
    CutClass,
    CutScripts,
    Decoder,
    JoinBytes,
    JoinWords,
    Map,
    Metaspace,
    Normalizer,
    Pattern,
    PrefixSpace,
    Prepend,
    Replace,
    ReplaceEach,
    SpellBytes,
    Splitter,
    Unsuffix,
)
from jittok.unicode.libraries import mapping

MOST_GROWTH = 1 << 16
"""Bytes that one byte of a text may become. The steps of real models make less than 2,000 of it."""
MOST_AROUND = 1 << 12
"""Ids that a template may put around a text."""
MOST_COMPOSED = 12
"""The same in any normal forms, one after the other: U+FDFA, of 3 bytes, becomes 33."""


class Growth:
    """What one byte of a text may have become, step after step."""

    def __init__(self) -> None:
        self._times, self._more = 1.0, 0.0  # n bytes of a piece become times * n + more at most
        self._done = set[object]()  # maps and normal forms, of which a second time makes no more
        self._marks = set[str]()

    def add(self, node: Node, step: Normalizer | Splitter | Decoder) -> None:
        """Count one step. node: its component in the file. Raises UnsupportedVocab where the product is too large."""
        times, more = self._of(step)
        self._times, self._more = self._times * times, self._more * times + more
        if isinstance(step, Cut | CutClass | CutScripts | Metaspace):  # words are pieces
            self._times, self._more = self._times + self._more, 0.0
        most = self._times + self._more
        if most > MOST_GROWTH:
            name = type(step).__name__
            raise node.unknown(
                InWords(f"{name}, which may expand one byte of text to {most:,.0f}"),
                f"steps that make at most {MOST_GROWTH:,} bytes of one, all together",
            )

    def _of(self, step: Normalizer | Splitter | Decoder) -> tuple[float, float]:
        """(bytes that a byte becomes, bytes more for a piece)."""
        times, more = 1.0, 0.0
        if isinstance(step, Replace | ReplaceEach):
            times = _replaced(step.pattern, len(step.content.encode()))
            self._done.clear()
        elif isinstance(step, Map | Compose):
            kind = Compose if isinstance(step, Compose) else step
            most = MOST_COMPOSED if isinstance(step, Compose) else _mapped(step.name)
            times = 1.0 if kind in self._done else most
            self._done.add(kind)
        elif isinstance(step, Clusters):
            times = _longest_replacement(step)
            self._done.clear()
        elif isinstance(step, Prepend):
            more = len(step.text.encode())
        elif isinstance(step, SpellBytes):
            times = 2.0
        elif isinstance(step, Metaspace) and step.mark not in self._marks:
            self._marks.add(step.mark)  # no space is left after it
            times = more = len(step.mark.encode())
        elif isinstance(step, PrefixSpace | JoinWords):
            more = 1.0
        elif isinstance(step, JoinBytes):
            times = 3.0  # what is invalid UTF-8 becomes U+FFFD
        elif isinstance(step, Unsuffix | Ctc):
            times, more = 2.0, 1.0  # the empty text may become spaces
        return times, more


def _replaced(pattern: Pattern, content: int) -> float:
    """What a byte becomes where matches of a pattern become so many bytes."""
    if matches_empty(pattern):
        return 1.0 + 2 * content
    least = len(pattern.text.encode()) if pattern.literal else 1
    return max(1.0, content / least)


@cache
def _mapped(name: str) -> float:
    return max((len(image.encode()) / len(chr(c).encode()) for c, image in mapping(name).items()), default=1.0)


def _longest_replacement(step: Clusters) -> float:
    """Bytes of the longest text between the NULs after a character map's trie."""
    data = step.charsmap.tobytes()
    texts = data[4 + int.from_bytes(data[:4], "little") :]
    return float(max(map(len, texts.split(b"\0")), default=0) or 1)
