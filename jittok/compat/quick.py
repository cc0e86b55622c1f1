"""Spans of tokens by their lengths alone, where the texts of the tokens spell the text: the usual case.

The rules are those of `jittok.compat.tracing`, which takes every other text. Whether tokens spell it is checked on each
text, so nothing depends on the vocabulary being an ordinary one.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jittok.align.files import TokenSpelling, spelling_of
from jittok.common.pipeline import Pipeline, steps
from jittok.common.pipeline.models import Pieces, Unigram, WordPiece
from jittok.common.unicode.characters import SPACE_MARK, SPACE_MARK_BYTES
from jittok.tokenizer import Tokenizer
from jittok.vocab import Vocab

Span = tuple[int, int]
ASCII = re.compile(r"[ -~\t\n\r]*")
"""Texts whose characters are printable ASCII, or white space that becomes a space."""
SPACES = {ord(c): " " for c in "\t\n\r"}
PLAIN = (steps.Map, steps.Compose, steps.Clusters, steps.Strip, steps.Replace)
"""Normalizers that leave printable ASCII characters or change each into another, and make one space of several."""


class Quick(Protocol):
    """Spans, and pre-tokens where tokens tell them, of one text's ids; None where tokens do not spell the text."""

    def spans(self, text: str, ids: list[int]) -> list[Span] | None:
        """The span of each token."""

    def words(self, text: str, ids: list[int]) -> list[int] | None:
        """The pre-token of each token."""


def quick_for(tok: Tokenizer, names: dict[int, str]) -> Quick | None:
    """What is quick for a vocabulary; None if nothing is."""
    vocab = tok.vocab
    if isinstance(vocab, Vocab) or isinstance(vocab.model, Pieces):
        return None
    spelling = spelling_of(vocab)
    if spelling is not None:
        return _Bytes(vocab, spelling)
    if not all(isinstance(step, PLAIN) for step in vocab.normalize):
        return None
    if isinstance(vocab.model, WordPiece) and all(isinstance(stage, steps.CutClass) for stage in vocab.split):
        return _Words(vocab, vocab.model, names)
    *others, stage = vocab.split or (None,)
    if len(others) > 1 or not all(isinstance(each, steps.CutClass) and each.name == "whitespace" for each in others):
        return None
    is_marked = isinstance(stage, steps.Metaspace) and stage.split and stage.mark == SPACE_MARK
    if isinstance(vocab.model, Unigram) and isinstance(stage, steps.Metaspace) and is_marked:
        if others:
            return _MarkedWords(vocab, names) if stage.scheme == steps.ALWAYS else None
        return _Marked(vocab, stage.scheme != steps.NEVER, names)
    return None


class _Bytes:
    """Tokens whose bytes are those of the text, with or without a prefix; or with U+2581 for spaces."""

    def __init__(self, pipeline: Pipeline, spelling: TokenSpelling) -> None:
        self._spelling, self._texts = spelling, spelling.texts
        self._sizes = np.array([len(text) for text in spelling.texts], np.int64)
        self._composes = bool(pipeline.normalize) and not spelling.marked
        self._is_one_word = not pipeline.split and spelling.marked

    def spans(self, text: str, ids: list[int]) -> list[Span] | None:
        """The span of each token."""
        spelling, raw = self._spelling, text.encode()
        if (self._composes and not text.isascii()) or (spelling.marked and SPACE_MARK in text):
            return None
        whole = raw.replace(b" ", SPACE_MARK_BYTES) if spelling.marked else raw
        front = spelling.front if raw and (spelling.marked or not raw.startswith(spelling.front)) else b""
        texts = self._texts
        if b"".join([texts[token] for token in ids]) != front + whole or (front and not spelling.added.isdisjoint(ids)):
            return None
        ends = np.cumsum(self._sizes[np.array(ids, np.int64)])
        if text.isascii() and not spelling.marked:
            ends -= len(front)
            stops = ends.tolist()
            starts = [0, *(stops[:-1] if not front else [max(0, stop) for stop in stops[:-1]])]
            if front and stops:
                stops = [max(1, stop) for stop in stops]  # the prefix is the first character's
            return [*zip(starts, stops, strict=True)] if stops else []
        places = self._places(text, len(front))
        starts = places[np.append(0, ends[:-1])].tolist() if ids else []
        return [*zip(starts, (places[ends - 1] + 1).tolist(), strict=True)] if ids else []

    def _places(self, text: str, front: int) -> NDArray[np.int64]:
        """The character that each byte of the text, or of the prefix, is of."""
        points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        sizes = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
        if self._spelling.marked:
            sizes[points == ord(" ")] = len(SPACE_MARK_BYTES)
        places = np.repeat(np.arange(points.size), sizes)
        return np.concatenate([np.zeros(front, np.int64), places]) if front else places

    def words(self, text: str, ids: list[int]) -> list[int] | None:
        """The pre-token of each token: one without a splitter and without special tokens."""
        if self._is_one_word and self._spelling.added.isdisjoint(ids) and text:
            return [0] * len(ids)
        return None


class _Words:
    """WordPiece: the tokens of a text are its characters without white space, as the normalizer writes them."""

    def __init__(self, pipeline: Pipeline, model: WordPiece, names: dict[int, str]) -> None:
        own = len(model.prefix)
        self._lower = any(isinstance(step, steps.Map) and step.name == "lowercase" for step in pipeline.normalize)
        self._goes_on = {k: name.startswith(model.prefix) for k, name in names.items()}
        self._texts = {k: name[own:] if self._goes_on[k] else name for k, name in names.items()}
        self._odd = frozenset({model.unknown, *(token.id for token in pipeline.added)})

    def spans(self, text: str, ids: list[int]) -> list[Span] | None:
        """The span of each token."""
        if ASCII.fullmatch(text) is None or not self._odd.isdisjoint(ids):
            return None
        texts = [self._texts[token] for token in ids]
        written = text.lower() if self._lower else text
        if "".join(texts) != "".join(written.split()):
            return None
        if not ids:
            return []
        places = np.flatnonzero(np.frombuffer(text.encode(), np.uint8) > ord(" "))
        ends = np.cumsum([len(each) for each in texts])
        starts = places[np.append(0, ends[:-1])].tolist()
        return [*zip(starts, (places[ends - 1] + 1).tolist(), strict=True)]

    def words(self, text: str, ids: list[int]) -> list[int] | None:
        """The pre-token of each token: all but the first begin with the prefix."""
        if self.spans(text, ids) is None:
            return None
        return [*accumulate((not self._goes_on[token] for token in ids), initial=-1)][1:]


class _Marked:
    """Unigram with Metaspace: the tokens of a text are its characters, with U+2581 for spaces, and before the text."""

    def __init__(self, pipeline: Pipeline, prefixed: bool, names: dict[int, str]) -> None:
        self._lower = any(isinstance(step, steps.Map) and step.name == "lowercase" for step in pipeline.normalize)
        self._front, self._names = SPACE_MARK * prefixed, names
        model = pipeline.model
        unknown = model.unknown if isinstance(model, Unigram) else -1
        self._odd = frozenset({unknown, *(token.id for token in pipeline.added)})

    def spans(self, text: str, ids: list[int]) -> list[Span] | None:
        """The span of each token."""
        if ASCII.fullmatch(text) is None or not self._odd.isdisjoint(ids):
            return None
        spaced = text.translate(SPACES)
        if not text or spaced[0] == " " or spaced[-1] == " ":
            return None
        written, places = spaced.lower() if self._lower else spaced, None
        if "  " in spaced:  # one space of several is the last one's
            is_space = np.frombuffer(spaced.encode(), np.uint8) == ord(" ")
            places = np.flatnonzero(~(is_space & np.append(is_space[1:], False)))
            written = re.sub(" +", " ", written)
        names = [self._names[token] for token in ids]
        if "".join(names) != self._front + written.replace(" ", SPACE_MARK):
            return None
        ends = np.maximum(np.cumsum([*map(len, names)]) - len(self._front), 1)
        starts = np.append(0, np.maximum(np.cumsum([*map(len, names)])[:-1] - len(self._front), 0))
        if places is not None:
            starts, ends = places[starts], places[ends - 1] + 1
        return [*zip(starts.tolist(), ends.tolist(), strict=True)]

    def words(self, text: str, ids: list[int]) -> list[int] | None:
        """The pre-token of each token: each begins with U+2581."""
        if self.spans(text, ids) is None:
            return None
        begins = (self._names[token].startswith(SPACE_MARK) for token in ids)
        return [max(0, word) for word in accumulate(begins, initial=-1)][1:]


class _MarkedWords(_Marked):
    """The same, of words without white space: the U+2581 of each is at the first character of the word."""

    def __init__(self, pipeline: Pipeline, names: dict[int, str]) -> None:
        super().__init__(pipeline, True, names)

    def spans(self, text: str, ids: list[int]) -> list[Span] | None:
        """The span of each token."""
        if ASCII.fullmatch(text) is None or not self._odd.isdisjoint(ids):
            return None
        names = [self._names[token] for token in ids]
        written = (text.lower() if self._lower else text).split()
        if not ids or "".join(names) != "".join([SPACE_MARK + word for word in written]):
            return None
        places = np.flatnonzero(np.frombuffer(text.encode(), np.uint8) > ord(" "))
        begins = np.cumsum([0, *map(len, written[:-1])])
        places = np.insert(places, begins, places[begins])
        ends = np.cumsum([*map(len, names)])
        return [*zip(places[np.append(0, ends[:-1])].tolist(), (places[ends - 1] + 1).tolist(), strict=True)]
