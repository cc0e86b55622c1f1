"""Texts cut to tokens, by trying every boundary: what `jittok.chunks.texts` must find.

>>> import jittok
>>> cut = Cuts(jittok.bundled("gpt-2").count)
>>> cut.pieces("The compatibility of tokenizers", 2)
[(0, 17), (17, 26), (26, 31)]

A piece is a part of a text that has at most `n` ids when it is encoded alone. It ends at the *last* boundary of a
grapheme cluster for which that holds, not before the first for which it does not: "Compatibil" has more ids than
"Compatibility". Where not one cluster fits, boundaries are those of characters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import regex

LINES = regex.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""The ends of lines, as for `str.splitlines`."""
SENTENCES = regex.compile(
    r"""[.!?\u2026\u3002\uff01\uff1f\u0964\u061f]+["'\u201d\u2019)\]\u300d\u300f]*\s+|\n\s*\n\s*|[\u3002\uff01\uff1f]+"""
)
"""The ends of sentences: stops, what closes, white space; blank lines; stops of Chinese and Japanese."""


class TooManyIds(ValueError):
    """The character at `at` alone has more ids than a piece may have."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def clusters(text: str) -> list[int]:
    """The boundaries of grapheme clusters, with 0 and the length of the text."""
    return [0, *(match.end() for match in regex.finditer(r"\X", text))]


class Cuts:
    """Cuts texts by a function that counts the ids of a text."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self.count = count

    def last(self, text: str, start: int, n: int, ends: Sequence[int]) -> int | None:
        """The last of these boundaries after `start` that fits."""
        fitting = [end for end in ends if end > start and self.count(text[start:end]) <= n]
        return max(fitting, default=None)

    def first(self, text: str, stop: int, n: int, ends: Sequence[int]) -> int | None:
        """The first of these boundaries before `stop` that fits."""
        fitting = [end for end in ends if end < stop and self.count(text[end:stop]) <= n]
        return min(fitting, default=None)

    def end(self, text: str, start: int, n: int, ends: list[int]) -> int:
        """Where the piece that begins at `start` ends. TooManyIds."""
        found = self.last(text, start, n, ends)
        if found is None:
            cluster = min(end for end in ends if end > start)
            found = self.last(text, start, n, range(start, cluster + 1))
        if found is None:
            raise TooManyIds(start)
        return found

    def truncated(self, text: str, n: int, side: str = "right") -> tuple[int, int]:
        """(start, stop) of what `truncate` keeps, in characters."""
        nothing = (0, 0) if side == "right" else (len(text), len(text))
        if not text or self.count("") > n:
            return nothing
        ends = clusters(text)
        if side == "right":
            try:
                return 0, self.end(text, 0, n, ends)
            except TooManyIds:
                return nothing
        found = self.first(text, len(text), n, ends)
        if found is None:
            found = self.first(text, len(text), n, range(ends[-2], len(text) + 1))
        return nothing if found is None else (found, len(text))

    def pieces(self, text: str, n: int, overlap: int = 0, by: str = "token") -> list[tuple[int, int]]:
        """(start, stop) of each piece in characters. TooManyIds."""
        ends, found, start = clusters(text), list[tuple[int, int]](), 0
        pattern = {"line": LINES, "sentence": SENTENCES}.get(by)
        liked = [] if pattern is None else [*(match.end() for match in pattern.finditer(text)), len(text)]
        while start < len(text):
            last, stop = found[-1][1] if found else 0, self.end(text, start, n, ends)
            if stop <= last:  # so far back the longest piece adds nothing
                start = min([end for end in ends if start < end <= last], default=last)
                continue
            if liked and stop not in liked:
                ended = [end for end in liked if max(start, last) < end < stop and self.count(text[start:end]) <= n]
                stop = max(ended, default=stop)
            found.append((start, stop))
            if overlap and stop < len(text):
                inner = [end for end in ends if start < end <= stop] or [stop]
                begin = self.first(text, stop, overlap, [start, *inner])
                start = stop if begin is None else max(begin, inner[0])
            else:
                start = stop
        return found
