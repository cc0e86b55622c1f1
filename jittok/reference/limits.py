"""Runs steps that may multiply a text, each only if its result stays below a limit.

The size of a replacement is known from its matches before anything is written. Other steps that may multiply are tried
on short parts of the text first: their results together are nearly as long as that of the whole.

>>> from jittok.common.pipeline.steps import Pattern
>>> step = Replace(Pattern("a", literal=True), "b" * 6_000_000)
>>> text = MeasuredText("banana")
>>> text.most  # bytes
16777216
>>> text.through(1, step, lambda piece: piece, Piece("banana"))
Traceback (most recent call last):
jittok.errors.EncodingFailed: ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from jittok.common.pipeline.growth import ALWAYS_ALLOWED, MOST_TIMES, allowed, growth_of
from jittok.common.pipeline.patterns import compiled
from jittok.common.pipeline.steps import Decoder, Normalizer, Replace, ReplaceEach, Splitter
from jittok.errors import EncodingFailed, InWords
from jittok.reference.text import Piece

PART = 1 << 8
"""Characters of a part: a step makes at most 65,536 bytes of each."""
NEARLY = 2
"""A trial on parts refuses only results this many times too large: at borders of parts a step may behave
differently."""


def size_of(text: str) -> int:
    """Bytes of a text as UTF-8; ASCII is not encoded to count them."""
    return len(text) if text.isascii() else len(text.encode())


def refuse(
    kind: str, number: int, step: Normalizer | Splitter | Decoder, found: str, size: int, offset: int = 0
) -> EncodingFailed:
    """The error of a text of `size` bytes that a step makes too long. kind: the kind of step."""
    return EncodingFailed(
        0, offset, InWords(f"{found} bytes after step {number} of the {kind}, {type(step).__name__}"),
        f"at most {allowed(size):,}: {MOST_TIMES} times the {size:,} before its first step, "
        f"or {ALWAYS_ALLOWED:,} if that is more",
    )  # fmt: skip


class MeasuredText:
    """A text on its way through normalizers: its first size decides how large it may become."""

    def __init__(self, text: str, offset: int = 0) -> None:
        self.size, self.offset = size_of(text), offset
        self.most = allowed(self.size)

    def through(self, number: int, step: Normalizer, run: Callable[[Piece], Piece], piece: Piece) -> Piece:
        """The result of a step on a piece. Raises EncodingFailed, before memory is allocated, if it is too long."""
        before = size_of(piece.text)
        times, more = growth_of(step)
        if isinstance(step, Replace):
            if times * before > self.most:
                self._check(number, step, replaced_size(piece.text, step, self.most) if piece.text else 0)
        elif times * before + more > self.most:
            self._check(number, step, _tried(run, piece.text, NEARLY * self.most), NEARLY)
        made = run(piece)
        self._check(number, step, size_of(made.text))
        return made

    def _check(self, number: int, step: Normalizer, found: int, times: int = 1) -> None:
        if found > times * self.most:
            raise refuse("normalizer", number, step, f"at least {found // times:,}", self.size, self.offset)

    def words(
        self, number: int, stage: Splitter, run: Callable[[Piece], Iterable[Piece]], piece: Piece
    ) -> Iterator[Piece]:
        """The words that a stage of the splitter makes of a word. A stage writes at most twice the bytes of a word, or
        a mark for each space."""
        for word in run(piece):
            found = size_of(word.text)
            if found > self.most:
                raise refuse("pre-tokenizer", number, stage, f"at least {found:,}", self.size)
            yield word


def replaced_size(text: str, step: Replace | ReplaceEach, most: int) -> int:
    """Bytes of a text after a replacement, or a number above `most`."""
    size, content = size_of(text), size_of(step.content)
    pattern = step.pattern
    if pattern.literal and pattern.text:
        return size + text.count(pattern.text) * (content - size_of(pattern.text))
    for match in compiled(pattern).finditer(text):
        size += content - size_of(match.group())
        if size - (len(text) - match.end()) * 4 > most:  # even if the rest is removed
            break
    return size


def _tried(run: Callable[[Piece], Piece], text: str, most: int) -> int:
    """Bytes of the results on parts of a text, or a number above `most`."""
    size = 0
    for at in range(0, len(text), PART):
        size += size_of(run(Piece(text[at : at + PART], None)).text)
        if size > most:
            break
    return size


class MeasuredTokens:
    """Texts of tokens on their way through decoders: their first size decides how large they may become."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.size = sum(map(size_of, texts))
        self.most = allowed(self.size)

    def through(self, number: int, step: Decoder, run: Callable[[list[str]], list[str]], texts: list[str]) -> list[str]:
        """The result of a step on texts. Raises EncodingFailed, before memory is allocated, if it is too long."""
        if isinstance(step, ReplaceEach):
            found = 0
            for text in texts:
                found += replaced_size(text, step, self.most) if text else 0
                self._check(number, step, found)
        made = run(texts)
        self._check(number, step, sum(map(size_of, made)))
        return made

    def _check(self, number: int, step: Decoder, found: int) -> None:
        if found > self.most:
            raise refuse("decoder", number, step, f"at least {found:,}", self.size)
