r"""Splitters of files other than GGUF: a piece to words, stage by stage. Each stage splits every word of the one before
as if it were a text.

>>> from jittok.common.pipeline.steps import ISOLATED, Cut, Pattern
>>> digits = splitter(Cut(Pattern(r"\d{1,2}"), ISOLATED))
>>> [word.text for word in digits(Piece("year 2026!"))]
['year ', '20', '26', '!']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from jittok.common.pipeline import steps
from jittok.common.pipeline.patterns import compiled
from jittok.common.unicode.libraries import characters, scripts
from jittok.reference.normalize import prepended, spelled
from jittok.reference.text import Piece


class Match(NamedTuple):
    """text[start:stop]: a match, or a gap between two (`matched` is False)."""

    start: int
    stop: int
    matched: bool


def splitter(stage: steps.Splitter) -> Callable[[Piece], Iterable[Piece]]:
    """The function that applies one stage to a word."""
    makers: dict[type, Callable[[Any], Callable[[Piece], Iterable[Piece]]]] = {
        steps.PrefixSpace: lambda _: lambda piece: [piece if piece.text[:1] == " " else prepended(piece, " ")],
        steps.Cut: _cut,
        steps.CutClass: _cut_class,
        steps.CutScripts: lambda _: _cut_scripts,
        steps.Metaspace: lambda s: lambda piece: _metaspace(piece, s),
        steps.Chars: lambda s: lambda piece: _chars(piece, s.size),
        steps.SpellBytes: lambda _: lambda piece: [spelled(piece)],
    }
    return makers[type(stage)](stage)


def _cut(stage: steps.Cut) -> Callable[[Piece], Iterable[Piece]]:
    pattern = compiled(stage.pattern)

    def run(piece: Piece) -> Iterable[Piece]:
        return words(piece, (match.span() for match in pattern.finditer(piece.text)), stage.behavior, stage.invert)

    return run


def _cut_class(stage: steps.CutClass) -> Callable[[Piece], Iterable[Piece]]:
    members = characters(stage.name)

    def run(piece: Piece) -> Iterable[Piece]:
        spans = ((k, k + 1) for k, c in enumerate(piece.text) if c in members)
        return words(piece, spans, stage.behavior, False)

    return run


def _cut_scripts(piece: Piece) -> Iterator[Piece]:
    start, last = -1, 0
    for k, c in enumerate(piece.text):
        number = _script(c)
        if number and number != last:
            if start >= 0:
                yield piece.part(start, k)
            start, last = k, number
    if start >= 0:
        yield piece.part(start, len(piece.text))


@cache
def _script(c: str) -> int:
    starts, numbers = scripts()
    return int(numbers[starts.searchsorted(ord(c), "right") - 1])


def words(piece: Piece, spans: Iterable[tuple[int, int]], behavior: str, invert: bool) -> Iterator[Piece]:
    """The words that matches split a piece into; no word is empty."""
    parts = (Match(start, stop, matched != invert) for start, stop, matched in _matches(spans, len(piece.text)))
    for start, stop in _kept(parts, behavior):
        if start < stop:
            yield piece.part(start, stop)


def _matches(spans: Iterable[tuple[int, int]], size: int) -> Iterator[Match]:
    done = 0
    for start, stop in spans:
        if done < start:
            yield Match(done, start, False)
        yield Match(start, stop, True)
        done = stop
    if done < size:
        yield Match(done, size, False)


def _kept(parts: Iterable[Match], behavior: str) -> Iterator[tuple[int, int]]:
    """(start, stop) of the parts that are kept."""
    if behavior in (steps.ISOLATED, steps.REMOVED):
        yield from ((part.start, part.stop) for part in parts if not (part.matched and behavior == steps.REMOVED))
        return
    last: tuple[int, int] | None = None  # may be joined with what comes
    before = False
    for part in parts:
        if behavior == steps.MERGED_WITH_NEXT:
            joined = before and not part.matched
        elif behavior == steps.CONTIGUOUS:
            joined = part.matched == before
        else:  # merged with the one before
            joined = part.matched and not before
        if last is not None and not joined:
            yield last
        last = (last[0], part.stop) if last is not None and joined else (part.start, part.stop)
        before = part.matched
    if last is not None:
        yield last


def _metaspace(piece: Piece, stage: steps.Metaspace) -> Iterator[Piece]:
    piece = piece._replace(text=piece.text.replace(" ", stage.mark))
    wanted = stage.scheme == steps.ALWAYS
    if stage.scheme == steps.FIRST:
        assert piece.positions is not None
        wanted = piece.positions[:1] == [0]
    if wanted and not piece.text.startswith(stage.mark):
        piece = prepended(piece, stage.mark)
    if not stage.split:
        yield piece
        return
    spans = ((k, k + 1) for k, c in enumerate(piece.text) if c == stage.mark)
    yield from words(piece, spans, steps.MERGED_WITH_NEXT, False)


def _chars(piece: Piece, size: int) -> Iterator[Piece]:
    for k in range(0, len(piece.text), size):
        yield piece.part(k, k + size)
