"""The whole way: a text to ids, two texts to ids, ids to text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

from jittok.pipeline import steps
from jittok.pipeline.models import CONTROL, UNKNOWN, Pieces
from jittok.pipeline.pipeline import FIRST_TEXT, SECOND_TEXT, Pipeline
from jittok.reference.pipeline.added import Search
from jittok.reference.pipeline.decode import decoder, pieces_decoder, raw_bytes
from jittok.reference.pipeline.models import word_model
from jittok.reference.pipeline.normalize import Piece, normalizer
from jittok.reference.pipeline.sentencepiece import Encoder
from jittok.reference.pipeline.split import splitter


class Stage(NamedTuple):
    """What one step made of a text: pieces of text, and ids that were found."""

    step: str
    pieces: list[str | int]


Observe = Callable[[str, list[Piece | int]], None]
"""Called with the name of each step and what it made of the whole text."""


class Runner:
    """A Pipeline that encodes and decodes."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.pieces = isinstance(pipeline.model, Pieces)
        self._normalize = [] if self.pieces else [normalizer(step) for step in pipeline.normalize]
        self._split = [splitter(stage) for stage in pipeline.split]
        wanted = [token for token in pipeline.added if not token.unsearched]
        self.raw = Search([(token.content, token) for token in wanted if not token.normalized])
        self.later = Search([(self.normalized(token.content), token) for token in wanted if token.normalized])

    def normalized(self, text: str) -> str:
        """A text behind all normalizers."""
        piece = Piece(text, list(range(len(text))))
        for step in self._normalize:
            piece = step(piece)
        return piece.text

    @cached_property
    def _word(self) -> Callable[[str], list[int]]:
        return word_model(self.pipeline)

    @cached_property
    def _sentencepiece(self) -> Encoder:
        return Encoder(self.pipeline)

    def words(self, text: str, parse_special: bool) -> Iterator[Piece | int]:
        """The words of a text, and the ids of added tokens between them."""
        for start, stop, token in self.raw.cut(text, parse_special):
            if token is not None:
                yield token
                continue
            piece = Piece(text[start:stop], list(range(start, stop)))
            for step in self._normalize:
                piece = step(piece)
            for first, last, later in self.later.cut(piece.text, parse_special):
                if later is not None:
                    yield later
                else:
                    yield from self._words(Piece(piece.text[first:last], piece.places[first:last]))

    def _words(self, piece: Piece) -> list[Piece]:
        words = [piece]
        for stage in self._split:
            words = [word for part in words for word in stage(part)]
        return words

    def encode(self, text: str, parse_special: bool = False) -> list[int]:
        """The ids of a text, nothing around them."""
        if self.pieces:
            return self._sentencepiece.encode(text)
        out: list[int] = []
        for word in self.words(text, parse_special):
            if isinstance(word, int):
                out.append(word)
            else:
                out += self._word(word.text)
        return out

    def around(self, ids: list[int], pair: list[int] | None = None, add_special: bool = True) -> list[int]:
        """Ids with special tokens around them."""
        if not add_special:
            return ids + (pair or [])
        out: list[int] = []
        for item in self.pipeline.single if pair is None else self.pipeline.pair:
            out += ids if item == FIRST_TEXT else (pair or []) if item == SECOND_TEXT else [item]
        return out

    # ---- back

    @cached_property
    def _texts(self) -> dict[int, str]:
        texts = {token: text.decode() for token, text in enumerate(self.pipeline.model_tokens) if text is not None}
        for search in (self.later, self.raw):
            texts |= {token.id: text for text, token in search.tokens.items()}
        return texts

    @cached_property
    def _raw_texts(self) -> dict[int, bytes]:
        return {token: text for token, text in enumerate(self.pipeline.tokens) if text is not None}

    @cached_property
    def _decoders(self) -> list[Callable[[list[str]], list[str]]]:
        return [decoder(step) for step in self.pipeline.decode]

    @cached_property
    def _pieces_decoder(self) -> Callable[[list[int]], str]:
        return pieces_decoder(self.pipeline)

    @cached_property
    def special(self) -> frozenset[int]:
        """Ids that `skip_special` leaves out."""
        found = {token.id for token in self.pipeline.added if token.special}
        if isinstance(self.pipeline.model, Pieces):
            found |= {
                token for token, kind in enumerate(self.pipeline.model.types.tolist()) if kind in (CONTROL, UNKNOWN)
            }
        return frozenset(found)

    def decode_bytes(self, ids: list[int]) -> bytes:
        """The text of ids before it is read as UTF-8, where that is what the decoder does at the end."""
        if len(self.pipeline.decode) == 1 and isinstance(self.pipeline.decode[0], steps.JoinBytes):
            return raw_bytes(self._texts[token] for token in ids if token in self._texts)
        return self.decode(ids)

    def decode(self, ids: list[int], skip_special: bool = False) -> bytes:
        """The text of ids; an id without a token is passed over."""
        if skip_special:
            ids = [token for token in ids if token not in self.special]
        if any(isinstance(step, steps.JoinRaw) for step in self.pipeline.decode):
            return b"".join(self._raw_texts.get(token, b"") for token in ids)
        if self.pieces:
            return self._pieces_decoder(ids).encode()
        texts = [self._texts[token] for token in ids if token in self._texts]
        for step in self._decoders:
            texts = step(texts)
        return "".join(texts).encode()


_RUNNERS: WeakKeyDictionary[Pipeline, Runner] = WeakKeyDictionary()


def runner(pipeline: Pipeline) -> Runner:
    """The Runner of a Pipeline, one as long as it lives."""
    if pipeline not in _RUNNERS:
        _RUNNERS[pipeline] = Runner(pipeline)
    return _RUNNERS[pipeline]
