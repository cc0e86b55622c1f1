"""Splits a text at special tokens; and the ids around a text.

llama.cpp searches for one token after the other, each over the whole text (`partition`). In other files the longest
token at the leftmost offset wins, and flags of a token may refuse a match or widen it (`Search`).

>>> import jittok
>>> [tuple(part) for part in partition(jittok.bundled("gpt-2").vocab, b"Hi<|endoftext|>!", parse_special=True)]
[(None, 0, 2), (50256, 2, 15), (None, 15, 16)]
>>> flags = {"special": True, "normalized": False, "lstrip": False, "rstrip": True, "single_word": False}
>>> search = Search([(text, AddedToken(text, 5 + k, **flags)) for k, text in enumerate(["<a>", "<a><a>"])])
>>> [tuple(part) for part in search.cut("x<a> <a><a>y", parse_special=True)]
[(None, 0, 1), (5, 1, 5), (6, 5, 11), (None, 11, 12)]

With `Literal` some bytes of a text are literal: a guarded token that they spell stays text.

>>> literal = Literal(bytes([0] * 5 + [1] * 4), frozenset([5, 6]))
>>> [tuple(part) for part in search.cut("x<a> <a>y", True, lambda *match: literal.admits(*match))]
[(None, 0, 1), (5, 1, 5), (None, 5, 9)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from jittok.common.pipeline.pipeline import AddedToken
from jittok.common.unicode.libraries import characters
from jittok.errors import MixedToken
from jittok.reference.vocab_tables import attributes
from jittok.vocab import Vocab

UNKNOWN, CONTROL, LSTRIP, RSTRIP = 1, 8, 128, 256
BLANKS = b" \t\n\v\f\r"
Around = tuple[tuple[bool, str, int], tuple[bool, str, int]]
"""Before and after a text: whether an id is added, the name of its metadata key, the id."""


class Fragment(NamedTuple):
    """text[start:stop]: a special token, or what is between two of them (`token` is None)."""

    token: int | None
    start: int
    stop: int


class Literal(NamedTuple):
    """Which bytes of a text are literal, and which tokens they cannot become."""

    marked: bytes  # one per byte of the text: 0, or 1 where it is literal
    guarded: frozenset[int]
    mixed_is_text: bool = False  # whether a guarded token that is literal in part is text; else MixedToken

    def admits(self, token: int, text: bytes, start: int, stop: int) -> bool:
        """Whether a token may be marked[start:stop]: False if all of it is literal."""
        inside = self.marked.count(1, start, stop) if token in self.guarded else 0
        if inside and inside < stop - start and not self.mixed_is_text:
            raise MixedToken(start, text)
        return inside == 0


Admits = Callable[[int, bytes, int, int], bool]
"""Whether a token, of this text, may be at [start:stop]."""
Observe = Callable[[int, list[Fragment]], None]
"""Called with each special token that was searched for, and the fragments after it."""


def partition(
    vocab: Vocab, text: bytes, parse_special: bool, observe: Observe | None = None, literal: Literal | None = None
) -> list[Fragment]:
    """The fragments of a text in order; none is empty. White space that a token strips belongs to no fragment.

    parse_special: search for control and unknown tokens too. literal: the search for a token goes on one byte after an
    occurrence that it does not admit. Source: llama.cpp, `tokenizer_st_partition`.
    """
    fragments = [Fragment(None, 0, len(text))] if text else []
    for token in vocab.special_tokens.tolist():
        if parse_special or not attributes(vocab)[token] & (CONTROL | UNKNOWN):
            fragments = [part for fragment in fragments for part in cut(vocab, text, fragment, token, literal)]
            if observe:
                observe(token, fragments)
    return fragments


def cut(vocab: Vocab, text: bytes, fragment: Fragment, token: int, literal: Literal | None = None) -> list[Fragment]:
    """Split one fragment at all occurrences of a special token, from the left."""
    if fragment.token is not None:
        return [fragment]
    attribute, raw = attributes(vocab)[token], vocab.tokens[token]
    parts, start = [], fragment.start
    search = start
    while (at := text.find(raw, search, fragment.stop)) >= 0:
        left, right = at, at + len(raw)
        if literal is not None and not literal.admits(token, raw, left, right):
            search = at + 1
            continue
        while attribute & LSTRIP and left > start and text[left - 1] in BLANKS:
            left -= 1
        if left > start:
            parts.append(Fragment(None, start, left))
        parts.append(Fragment(token, at, right))
        while attribute & RSTRIP and right < fragment.stop and text[right] in BLANKS:
            right += 1
        start = search = right
    if start < fragment.stop:
        parts.append(Fragment(None, start, fragment.stop))
    return parts


def by_flags(vocab: Vocab) -> Around:
    """BOS and EOS by the file's flags, if the release of llama.cpp reads them for this model."""
    bos, eos = vocab.adds_around and vocab.add_bos, vocab.adds_around and vocab.add_eos
    return (bos, "bos", vocab.bos_id), (eos, "eos", vocab.eos_id)


def never(vocab: Vocab) -> Around:
    """Nothing, whatever the file's flags say."""
    return (False, "bos", vocab.bos_id), (False, "eos", vocab.eos_id)


class Search:
    """The search for tokens of one kind, by their texts. Flags change the span of a match, not what matches."""

    def __init__(self, tokens: Sequence[tuple[str, AddedToken]]) -> None:
        self.tokens = {text: token for text, token in tokens if text}
        self.first: dict[str, list[str]] = {}
        for text in sorted(self.tokens, key=len, reverse=True):
            self.first.setdefault(text[0], []).append(text)

    def matches(self, text: str, admits: Admits | None = None) -> Iterator[tuple[int, int, AddedToken]]:
        """(start, stop, token) of each match. admits: of a token that it does not admit the next shorter one is
        tried."""
        at = 0
        while at < len(text):
            words = (word for word in self.first.get(text[at], ()) if text.startswith(word, at))
            if admits is not None:
                words = (w for w in words if admits(self.tokens[w].id, w.encode(), at, at + len(w)))
            found = next(words, None)
            if found is not None:
                yield at, at + len(found), self.tokens[found]
            at += len(found) if found else 1

    def cut(self, text: str, parse_special: bool, admits: Admits | None = None) -> Iterator[Fragment]:
        """The tokens of a text and the text between them. admits: see `matches`."""
        done = 0
        white = characters("whitespace")
        for begin, end, token in self.matches(text, admits) if self.tokens else ():
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
                yield Fragment(None, done, start)
            if start < stop:  # with lstrip, a match in white space that the one before consumed is empty
                yield Fragment(token.id, start, stop)
            done = stop
        if done < len(text):
            yield Fragment(None, done, len(text))


def _is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and text[at] in characters("word_crate")
