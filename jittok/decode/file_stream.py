"""Text from ids of a file's tokenizer, one at a time."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.growth import needs_measuring
from jittok.common.pipeline.pipeline import FIRST_TEXT
from jittok.common.pipeline.steps import JoinRaw, JoinRawBetweenSpecial
from jittok.decode.decoder_steps import DecoderStep, TextPart, finished, stream_step, through
from jittok.decode.stream import StreamDecoder
from jittok.errors import InvalidToken
from jittok.reference.pipeline import runner
from jittok.reference.pipeline.decode import PiecesText


class FileStream(StreamDecoder):
    """Ids in, text out. The results of `push` and `finish`, joined, equal that of `decode` for all ids at once."""

    def __init__(self, pipeline: Pipeline, errors: str, remove_special: bool, skip_special: bool) -> None:
        self._pipeline, self._run = pipeline, runner(pipeline)
        self._hidden = self._run.special if skip_special else frozenset[int]()
        at = pipeline.single.index(FIRST_TEXT)
        self._before = pipeline.single[:at] if remove_special else ()
        self._after = pipeline.single[at + 1 :] if remove_special else ()
        self._joins_raw = any(isinstance(step, JoinRaw) for step in pipeline.decode)
        self._between = any(isinstance(step, JoinRawBetweenSpecial) for step in pipeline.decode)
        self._bytes = codecs.getincrementaldecoder("utf-8")(errors)
        self._measures = needs_measuring(pipeline.decode)
        self._reset()

    def _reset(self) -> None:
        self._first: list[int] | None = []  # the first ids, until it is known whether they are the template's prefix
        self._last: list[int] = []  # ids that are the template's suffix if nothing follows
        self._pieces = PiecesText(self._pipeline) if self._run.pieces else None
        self._chain: list[DecoderStep] = (
            [] if self._joins_raw or self._pieces else [*map(stream_step, self._pipeline.decode)]
        )
        self._texts: list[str] = []  # all texts of tokens, where the limit of the text's size depends on all of them
        self._bytes.reset()

    def push(self, token: int) -> str:
        """The text that is certain after one more id; may be empty. Raises InvalidToken, and then changes nothing."""
        if not 0 <= token < len(self._pipeline):
            raise InvalidToken(token, len(self._pipeline))
        return "".join(self._text_of(known) for known in self._certain(int(token)))

    def finish(self) -> str:
        """The rest of the text. Resets the decoder."""
        rest = [*(self._first or ()), *self._last]
        if self._after and tuple(rest[-len(self._after) :]) == self._after:
            rest = rest[: -len(self._after)]
        text = "".join(map(self._text_of, rest))
        if self._joins_raw:
            text += self._bytes.decode(b"", final=True)
        elif self._pieces is not None:
            text += self._pieces.finish()
        elif self._measures:
            texts = self._texts
            self._reset()
            return "".join(self._run.decoded(texts))
        else:
            text += "".join(part.text for part in finished(self._chain))
        self._reset()
        return text

    def _certain(self, token: int) -> Iterator[int]:
        """Yields the ids that certainly belong to the text after one more id."""
        known = [token]
        if self._first is not None:
            self._first.append(token)
            if len(self._first) < len(self._before):
                return
            known, self._first = self._first, None
            if self._before and tuple(known) == self._before:
                return
        self._last += known
        while len(self._last) > len(self._after):
            yield self._last.pop(0)

    def _text_of(self, token: int) -> str:
        if self._between and token in self._run.special:
            rest = self._bytes.decode(b"", final=True)
            return rest if token in self._hidden else rest + self._run.raw_texts[token].decode()
        if token in self._hidden:
            return ""
        if self._joins_raw:
            return self._bytes.decode(self._run.raw_texts.get(token, b""))
        if self._pieces is not None:
            return self._pieces.push(token)
        text = self._run.texts.get(token)
        if text is not None and self._measures:
            self._texts.append(text)
            return ""
        return "" if text is None else "".join(part.text for part in through(self._chain, [TextPart(text)]))
