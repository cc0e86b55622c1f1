"""Runs the `Pipeline` of a file other than GGUF literally: every step on every character, as the file's library does.

Text to ids, two texts to ids, ids to text.

>>> import json
>>> from jittok.files import read_pipeline
>>> vocab = {"Hello": 0, ",": 1, "world": 2, "[UNK]": 3, "##s": 4}
>>> file = {
...     "pre_tokenizer": {"type": "BertPreTokenizer"},
...     "model": {"type": "WordPiece", "vocab": vocab, "unk_token": "[UNK]", "continuing_subword_prefix": "##",
...               "max_input_chars_per_word": 100},
... }
>>> run = runner(read_pipeline(json.dumps(file).encode()))
>>> run.encode("Hello, worlds!")
[0, 1, 2, 4, 3]
>>> [(token.start, token.stop) for token in run.align(read_text(b"Hello, worlds!"))]
[(0, 5), (5, 6), (7, 12), (12, 13), (13, 14)]
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, groupby

from jittok.common.locks import once
from jittok.common.pipeline import steps
from jittok.common.pipeline.growth import needs_measuring
from jittok.common.pipeline.models import CONTROL, UNKNOWN, Pieces
from jittok.common.pipeline.pipeline import FIRST_TEXT, SECOND_TEXT, Pipeline
from jittok.reference.decode import PiecesText, decoder, raw_bytes
from jittok.reference.limits import MeasuredText, MeasuredTokens
from jittok.reference.models.sentencepiece import SentencePieceEncoder
from jittok.reference.models.word_model import Word, word_model
from jittok.reference.normalize import normalizer
from jittok.reference.special import Admits, Fragment, Literal, Search
from jittok.reference.split import splitter
from jittok.reference.text import Piece, Token, Unit, joined, read_text

NAMED_BY_TEXT = ("tokenizers", "transformers")
"""Libraries whose special tokens are a set of texts."""
See = Callable[[steps.Normalizer | steps.Splitter | str, Piece | list[Piece]], None]
"""Called with each step and its result: "cut" and the text between added tokens, a normalizer and the piece, a stage of
the splitter and the words."""


def nothing(_step: object, _made: object) -> None:
    """Observe nothing."""


class Runner:
    """A Pipeline that encodes and decodes."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.pieces = isinstance(pipeline.model, Pieces)
        self._normalize = [] if self.pieces else [normalizer(step) for step in pipeline.normalize]
        self._split = [splitter(stage) for stage in pipeline.split]
        self._measures = bool(self._normalize) and needs_measuring(pipeline.normalize)
        self._measures_words = needs_measuring(pipeline.split)
        self._measures_tokens = needs_measuring(pipeline.decode)
        wanted = [token for token in pipeline.added if not token.unsearched]
        rows = [(self.normalized(token.content) if token.normalized else token.content, token) for token in wanted]
        self.shown = {
            token.id: self.normalized(text) if token.printed_normalized else text for text, token in rows if text
        }
        self.raw = Search([row for row in rows if not row[1].normalized])
        self.later = Search([row for row in rows if row[1].normalized])

    def normalized(self, text: str) -> str:
        """A text after all normalizers."""
        return self._normalized(Piece(text, self._positions(text))).text

    def _normalized(self, piece: Piece, see: See = nothing, offset: int = 0) -> Piece:
        """A piece after all normalizers. offset: bytes before it in the document."""
        text = MeasuredText(piece.text, offset) if self._measures else None
        for k, (step, run) in enumerate(zip(self.pipeline.normalize, self._normalize, strict=False), 1):
            piece = run(piece) if text is None else text.through(k, step, run, piece)
            see(step, piece)
        return piece

    @once
    def word(self) -> Word:
        """The model as an encoder of words."""
        return word_model(self.pipeline)

    @once
    def sentencepiece(self) -> SentencePieceEncoder:
        """The encoder of texts, for sentencepiece's models."""
        return SentencePieceEncoder(self.pipeline)

    def words(
        self, text: Piece, parse_special: bool, see: See = nothing, literal: Literal | None = None
    ) -> Iterator[Piece | Token]:
        """The words of a text, and the added tokens between them. literal: the bytes that are none."""
        for token, start, stop in _without_overlap(self.raw.cut(text.text, parse_special, _admits(literal, text))):
            if token is not None:
                yield Token(token, *_unit(text, start, stop))
                continue
            piece = text.part(start, stop)
            see("cut", piece)
            piece = self._normalized(piece, see, len(text.text[:start].encode()) if self._measures else 0)
            for later, first, last in _without_overlap(
                self.later.cut(piece.text, parse_special, _admits(literal, piece))
            ):
                if later is not None:
                    yield Token(later, *_unit(piece, first, last))
                else:
                    yield from self._words(piece.part(first, last), see)

    def _positions(self, text: str) -> list[int] | None:
        """The offset of each character of a text; None, which takes no memory, if no stage needs it."""
        asked = any(isinstance(stage, steps.Metaspace) and stage.scheme == steps.FIRST for stage in self.pipeline.split)
        return list(range(len(text))) if asked else None

    def _words(self, piece: Piece, see: See) -> Iterator[Piece]:
        if see is nothing:  # no list of all words: each is released before the next one
            each: Iterator[Piece] = iter((piece,))
            for run in self._stages(piece):
                each = chain.from_iterable(map(run, each))
            return each
        words = [piece]
        for stage, run in zip(self.pipeline.split, self._stages(piece), strict=True):
            words = [word for part in words for word in run(part)]
            see(stage, words)
        return iter(words)

    def _stages(self, piece: Piece) -> list[Callable[[Piece], Iterable[Piece]]]:
        """The stages of the splitter for a piece. If words may become too long, each is measured."""
        if not self._measures_words:
            return [*self._split]
        text = MeasuredText(piece.text)
        return [
            partial(text.words, k, stage, run)
            for k, (stage, run) in enumerate(zip(self.pipeline.split, self._split, strict=True), 1)
        ]

    def encode(self, text: str, parse_special: bool = False) -> list[int]:
        """The ids of a text, without special tokens around them."""
        return self.ids(text, parse_special).tolist()

    def ids(self, text: str, parse_special: bool = False) -> array[int]:
        """The same, four bytes each."""
        out = array("i")
        if self.pieces:
            self.sentencepiece.encode(text, out)
            return out
        for word in self.words(Piece(text, self._positions(text)), parse_special):
            if isinstance(word, Token):
                out.append(word.id)
            else:
                self.word.ids(word.text, out)
        return out

    def fragment(self, text: str) -> list[int]:
        """The ids of a text in which no added token is searched for."""
        text, out = self.normalized(text), array("i")
        for word in self._words(Piece(text, list(range(len(text)))), nothing):
            self.word.ids(word.text, out)
        return out.tolist()

    def pre_tokens(self, normalized: str) -> Iterator[Piece]:
        """The words of a normalized text, with the offset of each of their characters."""
        return self._words(Piece(normalized, list(range(len(normalized)))), nothing)

    def align(self, text: Piece, parse_special: bool = False, literal: Literal | None = None) -> list[Token]:
        """The ids of a text with their spans in its document. literal: see `words`."""
        if self.pieces:
            return self.aligned(self.squeezed(text))
        out: list[Token] = []
        for word in self.words(text, parse_special, literal=literal):
            for token in [word] if isinstance(word, Token) else self.aligned(word):
                stop = out[-1].stop if out else 0  # a prefix of words from one unit has that unit's span
                out.append(token if token.stop >= stop else token._replace(stop=stop))
        return out

    def squeezed(self, text: Piece) -> Piece:
        """The text as normalized for sentencepiece's models."""
        normalized, positions = self.sentencepiece.normalized(text.text)
        found = [joined(text.units or [], start, stop) for start, stop in positions]
        return Piece(normalized, [start for start, _ in positions], found, text.source)

    def aligned(self, word: Piece) -> list[Token]:
        """The ids of one word with their spans."""
        units = word.byte_units()
        parts = self.sentencepiece.tokens(word.text) if self.pieces else self.word(word.text)
        return [Token(token, *joined(units, start, stop)) for token, start, stop in parts]

    def around(self, ids: list[int], pair: list[int] | None = None, add_special: bool = True) -> list[int]:
        """Ids with special tokens around them."""
        out: list[int] = []
        for item in self.pipeline.single if pair is None else self.pipeline.pair:
            if item in (FIRST_TEXT, SECOND_TEXT):
                out += ids if item == FIRST_TEXT else pair or []
            elif add_special:
                out.append(item)
        return out

    # ---- decoding

    @once
    def texts(self) -> dict[int, str]:
        """id -> input of the decoder; an id without a token has none."""
        texts = {token: text.decode() for token, text in enumerate(self.pipeline.model_tokens) if text is not None}
        return texts | self.shown

    @once
    def raw_texts(self) -> dict[int, bytes]:
        """id -> bytes, for vocabularies whose tokens are bytes."""
        return {token: text for token, text in enumerate(self.pipeline.tokens) if text is not None}

    @once
    def _decoders(self) -> list[Callable[[list[str]], list[str]]]:
        return [decoder(step) for step in self.pipeline.decode]

    @once
    def special(self) -> frozenset[int]:
        """Ids that `skip_special` leaves out: by what an id prints in a tokenizer.json, as its library does.

        A special token that is searched for by its normalized text prints that, which may be no special token's.
        """
        found = {token.id for token in self.pipeline.added if token.special}
        if self.pipeline.library in NAMED_BY_TEXT and not self.pieces:
            contents = {token.content for token in self.pipeline.added if token.special}
            found = {token for token, text in self.texts.items() if text in contents}
        if isinstance(self.pipeline.model, Pieces):
            found |= {
                token for token, kind in enumerate(self.pipeline.model.types.tolist()) if kind in (CONTROL, UNKNOWN)
            }
        return frozenset(found)

    def decode_bytes(self, ids: list[int]) -> bytes:
        """The bytes of ids before they are decoded as UTF-8, if that is the decoder's last step."""
        if len(self.pipeline.decode) == 1 and isinstance(self.pipeline.decode[0], steps.JoinBytes):
            return raw_bytes(self.texts[token] for token in ids if token in self.texts)
        return self.decode(ids)

    def decode_text(self, ids: list[int], skip_special: bool = False, errors: str = "replace") -> str:
        """The same as a str; text between special tokens is decoded separately if the decoder requires it."""
        if any(isinstance(step, steps.JoinRawBetweenSpecial) for step in self.pipeline.decode):
            groups = [list(group) for _, group in groupby(ids, self.special.__contains__)]
            return "".join(self.decode(group, skip_special).decode("utf-8", errors) for group in groups)
        return self.decode(ids, skip_special).decode("utf-8", errors)

    def decode(self, ids: list[int], skip_special: bool = False) -> bytes:
        """The text of ids; an id without a token is skipped."""
        if skip_special:
            ids = [token for token in ids if token not in self.special]
        if any(isinstance(step, steps.JoinRaw) for step in self.pipeline.decode):
            return b"".join(self.raw_texts.get(token, b"") for token in ids)
        if self.pieces:
            pieces = PiecesText(self.pipeline)
            return ("".join(map(pieces.push, ids)) + pieces.finish()).encode()
        texts = [self.texts[token] for token in ids if token in self.texts]
        return "".join(self.decoded(texts)).encode()

    def decoded(self, texts: list[str]) -> list[str]:
        """Texts of tokens after all decoders. Raises EncodingFailed if they become too long."""
        tokens = MeasuredTokens(texts) if self._measures_tokens else None
        for k, (step, run) in enumerate(zip(self.pipeline.decode, self._decoders, strict=True), 1):
            texts = run(texts) if tokens is None else tokens.through(k, step, run, texts)
        return texts


def _without_overlap(found: Iterable[Fragment]) -> Iterator[Fragment]:
    """Tokens end where the next one begins, which may be in the white space that `rstrip` gives to the one before."""
    before: Fragment | None = None
    for each in found:
        if before is not None:
            yield before._replace(stop=min(before.stop, each.start)) if before.stop > each.start else before
        before = each
    if before is not None:
        yield before


def _admits(literal: Literal | None, piece: Piece) -> Admits | None:
    """`Literal.admits` for characters of a piece: those of the document that they came from are asked for."""
    if literal is None:
        return None

    def admits(token: int, text: bytes, start: int, stop: int) -> bool:
        return literal.admits(token, text, *_unit(piece, start, stop))

    return admits


def _unit(piece: Piece, start: int, stop: int) -> Unit:
    if piece.units is not None:
        return joined(piece.units, start, stop)
    return (start, stop) if piece.positions is None else (piece.positions[start], piece.positions[stop - 1] + 1)


def runner(pipeline: Pipeline) -> Runner:
    """The Runner of a Pipeline, which keeps it."""
    known = vars(pipeline)
    if "_runner" not in known:
        known["_runner"] = Runner(pipeline)
    found: Runner = known["_runner"]
    return found


def aligned(
    pipeline: Pipeline, raw: bytes, add_special: bool, parse_special: bool, literal: Literal | None = None
) -> list[Token]:
    """The ids of a document with their spans; the special tokens around it have empty spans. literal: see
    `Runner.words`."""
    single, end = pipeline.single if add_special else (FIRST_TEXT,), len(raw)
    at = single.index(FIRST_TEXT)
    found = runner(pipeline).align(read_text(raw), parse_special, literal)
    before = [Token(token, 0, 0) for token in single[:at]]
    return [*before, *found, *(Token(token, end, end) for token in single[at + 1 :])]
