"""Bounds how many bytes a byte of text may become in the steps of a Pipeline, and how many bytes a text may become.

Two bounds keep a file's steps from taking all memory. The product of the growth of all steps is known without a text
(`GrowthProduct`). Where it is small no text has to be measured. Else a text is measured after each step (`allowed`):
steps that double a text are harmless for a line, not for a book.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from jittok.common.pipeline.patterns import matches_empty
from jittok.common.pipeline.steps import (
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
from jittok.common.unicode.libraries import mapping

MOST_TIMES = 32
"""How many times its size a text may become, where it is measured. U+FDFA, which grows most in normal forms, becomes 11
times its size, and 13 times where its spaces become U+2581."""
MOST_UNMEASURED = 128
"""Growth up to which no text is measured. It is counted by the longest text of a character map, so that the steps of
real models have up to 99, although no text becomes more than 13 times its size in them."""
ALWAYS_ALLOWED = 1 << 24
"""Bytes that any text may become."""
MOST_COMPOSED = 12
"""Bytes of one in any normal forms, one after the other: U+FDFA, of 3 bytes, becomes 33."""
_RUNS = (" {2,}", r"\s{2,}", "  +")
"""Patterns whose matches have two bytes at least."""


def allowed(size: int) -> int:
    """Bytes that a text of `size` bytes may have after any step."""
    return max(ALWAYS_ALLOWED, MOST_TIMES * size)


def needs_measuring(steps: Iterable[Normalizer | Splitter | Decoder]) -> bool:
    """Whether steps may make so much of a text that it has to be measured after each.

    Normal forms count once, and not beside a character map, which is one itself: no text gets both factors but one
    made for a map that no library would write, and that factor is bounded.
    """
    product, forms, maps = 1.0, 1.0, 1.0
    for step in steps:
        times, more = growth_of(step)
        if isinstance(step, Map | Compose):
            forms = max(forms, times)
        elif isinstance(step, Clusters):
            maps *= times
        else:
            product *= times + more
            if not _is_ascii(step):
                product, forms, maps = product * max(forms, maps), 1.0, 1.0
    return product * max(forms, maps) > MOST_UNMEASURED


def _is_ascii(step: Normalizer | Splitter | Decoder) -> bool:
    """Whether a step writes only what normal forms leave as it is. U+2581 is no ASCII, but they leave it, too."""
    text = step.content if isinstance(step, Replace) else step.text if isinstance(step, Prepend) else ""
    return text.replace("\u2581", "").isascii() and not isinstance(step, SpellBytes)


class GrowthProduct:
    """What one byte of a text may have become, step after step."""

    def __init__(self) -> None:
        self._times, self._more = 1.0, 0.0  # n bytes of a piece become times * n + more at most
        self._done = set[object]()  # maps and normal forms, of which a second time makes no more
        self._marks = set[str]()

    def count(self, step: Normalizer | Splitter | Decoder) -> float:
        """Count one step; bytes that one byte may have become after it."""
        times, more = self._of(step)
        self._times, self._more = self._times * times, self._more * times + more
        if isinstance(step, Cut | CutClass | CutScripts | Metaspace):  # words are pieces
            self._times, self._more = self._times + self._more, 0.0
        return self._times + self._more

    def _of(self, step: Normalizer | Splitter | Decoder) -> tuple[float, float]:
        times, more = growth_of(step)
        if isinstance(step, Replace | ReplaceEach | Clusters):
            self._done.clear()
        elif isinstance(step, Map | Compose):
            kind = Compose if isinstance(step, Compose) else step
            times = 1.0 if kind in self._done else times
            self._done.add(kind)
        elif isinstance(step, Metaspace):
            times, more = (1.0, 0.0) if step.mark in self._marks else (times, more)
            self._marks.add(step.mark)  # no space is left after it
        return times, more


def growth_of(step: Normalizer | Splitter | Decoder) -> tuple[float, float]:
    """(bytes that a byte becomes in a step at most, bytes more for a piece)."""
    times, more = 1.0, 0.0
    if isinstance(step, Replace | ReplaceEach):
        times = _replaced(step.pattern, len(step.content.encode()))
    elif isinstance(step, Compose):
        times = MOST_COMPOSED
    elif isinstance(step, Map):
        times = _mapped(step.name)
    elif isinstance(step, Clusters):
        times = _longest_replacement(step)
    elif isinstance(step, Prepend):
        more = len(step.text.encode())
    elif isinstance(step, SpellBytes):
        times = 2.0
    elif isinstance(step, Metaspace):
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
    least = len(pattern.text.encode()) if pattern.literal else 2 if pattern.text in _RUNS else 1
    return max(1.0, content / least)


@cache
def _mapped(name: str) -> float:
    return max((len(image.encode()) / len(chr(c).encode()) for c, image in mapping(name).items()), default=1.0)


def _longest_replacement(step: Clusters) -> float:
    """Bytes of the longest text between the NULs after a character map's trie."""
    data = step.charsmap.tobytes()
    texts = data[4 + int.from_bytes(data[:4], "little") :]
    return float(max(map(len, texts.split(b"\0")), default=0) or 1)
