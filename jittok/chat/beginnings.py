"""Whether any special token may begin in a message: a quick look, so that most chats need no search with literal text.

>>> found = Beginnings(["<|end|>", "<s>"])
>>> [found.none_in("<s>" + text, ((3, 0), (len(text), 1)), [False, True]) for text in ("hi", "1 < 2", "a<|en", "2 <")]
[True, True, False, False]
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from jittok.chat.templates.marked import SOURCE, Runs

LOOKED_AT = 4
"""Characters that a token is recognized by."""
END = "\0"
"""Written after each part of a message: what ends in the beginning of a token is found by it. One that is in a message
too costs a search with literal text, no more."""
MOST_TAILS = 1024
"""Ends of the template's texts that are remembered."""


class Beginnings:
    """The beginnings of some tokens. Shared by threads."""

    def __init__(self, tokens: Iterable[str]) -> None:
        texts = sorted(set(filter(None, tokens)))
        ends = {text[:k] for text in texts for k in range(1, min(len(text), LOOKED_AT))}
        starts = sorted({text[:LOOKED_AT] for text in texts})
        looked_for = [*starts, *sorted(text + END for text in ends)]
        self._found = re.compile("|".join(map(re.escape, looked_for)) or r"(?!)", re.DOTALL).search
        self._prefixes = frozenset(text[:k] for text in texts for k in range(1, len(text)))
        self._lasts = frozenset(text[-1] for text in self._prefixes)
        self._longest = max(map(len, texts), default=1)
        self._tails: dict[str, bool] = {}

    def none_in(self, text: str, runs: Runs, theirs: list[bool]) -> bool:
        """Whether no token has a character of a message: none begins in one, and none that begins in the template's
        text goes on in one. theirs[mark]: whether the characters of that mark are a message's."""
        at, before = 0, False  # before: whether the template's text is just before
        parts: list[str] = []
        for size, mark in runs:
            end = at + size
            if theirs[mark & SOURCE]:
                if before and text[at - 1] in self._lasts and self._goes_on(text[max(at - self._longest, 0) : at]):
                    return False
                parts.append(text[at:end])
                before = False
            else:
                before = True
            at = end
        parts.append("")
        return self._found(END.join(parts)) is None

    def _goes_on(self, tail: str) -> bool:
        """Whether a text ends within a token."""
        known = self._tails.get(tail)
        if known is None:
            known = any(tail[-k:] in self._prefixes for k in range(1, len(tail) + 1))
            if len(self._tails) < MOST_TAILS:
                self._tails[tail] = known
        return known
