"""Search for added tokens in a text: leftmost-longest, not overlapping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jittok.common.pipeline.pipeline import AddedToken
from jittok.common.unicode.libraries import characters


class Found(NamedTuple):
    """text[start:stop], a token, or text between tokens (`token` is None)."""

    start: int
    stop: int
    token: int | None


class Search:
    """The search for tokens of one kind, by their texts. Flags change the span of a match, not what matches."""

    def __init__(self, tokens: Sequence[tuple[str, AddedToken]]) -> None:
        self.tokens = {text: token for text, token in tokens if text}
        self.first: dict[str, list[str]] = {}
        for text in sorted(self.tokens, key=len, reverse=True):
            self.first.setdefault(text[0], []).append(text)

    def matches(self, text: str) -> Iterator[tuple[int, int, AddedToken]]:
        """(start, stop, token) of each match."""
        at = 0
        while at < len(text):
            found = next((word for word in self.first.get(text[at], ()) if text.startswith(word, at)), None)
            if found is not None:
                yield at, at + len(found), self.tokens[found]
            at += len(found) if found else 1

    def cut(self, text: str, parse_special: bool) -> Iterator[Found]:
        """The tokens of a text and the text between them."""
        done = 0
        white = characters("whitespace")
        for begin, end, token in self.matches(text) if self.tokens else ():
            start, stop = begin, end
            if token.special and not parse_special:
                continue
            if token.single_word and (_is_word(text, start - 1) or _is_word(text, stop)):
                continue
            if token.lstrip:
                while start > done and text[start - 1] in white:
                    start -= 1
                start = max(start, done)
            if token.rstrip:
                while stop < len(text) and text[stop] in white:
                    stop += 1
            if done < start:
                yield Found(done, start, None)
            if start < stop:  # with lstrip, a match in white space that the one before consumed is empty
                yield Found(start, stop, token.id)
            done = stop
        if done < len(text):
            yield Found(done, len(text), None)


def _is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and text[at] in characters("word_crate")
