"""Text from ids of a file's tokenizer, one at a time: what no later token can change.

A step of a Pipeline maps a list of texts to another list. Here it receives the list in parts, as it grows, and passes
on its own list in parts. A part is a whole text, or a part of one if the step before fuses texts.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from jittok.common.pipeline import Pipeline, steps
from jittok.common.pipeline.growth import needs_measuring
from jittok.common.pipeline.pipeline import FIRST_TEXT
from jittok.common.pipeline.steps import JoinRaw, JoinRawBetweenSpecial
from jittok.decode.stream import StreamDecoder
from jittok.errors import InvalidToken
from jittok.reference.decode import (
    JoinedRuns,
    PiecesText,
    decoder,
    raw_bytes,
    unmarked,
    word,
)
from jittok.reference.pipeline import runner


class TextPart(NamedTuple):
    """A part of one text of a list."""

    text: str
    begins: bool = True
    ends: bool = True


class DecoderStep:
    """One decoder. `push` and `finish` yield the parts that are certain."""

    def push(self, part: TextPart) -> Iterator[TextPart]:
        """Yields what is certain after one more part of the input."""
        raise NotImplementedError

    def finish(self) -> Iterator[TextPart]:
        """Yields the rest, at the end of the input."""
        return iter(())


class WholeTexts(DecoderStep):
    """A step that needs each text as a whole."""

    def __init__(self) -> None:
        self._text = ""

    def push(self, part: TextPart) -> Iterator[TextPart]:
        """Yields nothing before the text ends."""
        self._text += part.text
        if part.ends:
            text, self._text = self._text, ""
            yield from self.whole(text)

    def whole(self, text: str) -> Iterator[TextPart]:
        """Yields what is certain after one more whole text."""
        raise NotImplementedError


class EachText(WholeTexts):
    """`make(text, k)` for text k."""

    def __init__(self, make: Callable[[str, int], str]) -> None:
        super().__init__()
        self._make, self._count = make, 0

    def whole(self, text: str) -> Iterator[TextPart]:
        """Yields the changed text."""
        yield TextPart(self._make(text, self._count))
        self._count += 1


class OneText(DecoderStep):
    """All texts joined to one, separated by `between`."""

    def __init__(self, between: str = "") -> None:
        self._between, self._begun = between, False

    def push(self, part: TextPart) -> Iterator[TextPart]:
        """Yields the text as a part of the joined one."""
        front = self._between if self._begun and part.begins else ""
        yield TextPart(front + part.text, not self._begun, False)
        self._begun = True

    def finish(self) -> Iterator[TextPart]:
        """Yields the end of the joined text."""
        yield TextPart("", not self._begun, True)


class FallbackBytes(WholeTexts):
    """`JoinBytes`."""

    def __init__(self) -> None:
        super().__init__()
        self._decoder, self._begun = codecs.getincrementaldecoder("utf-8")("replace"), False

    def whole(self, text: str) -> Iterator[TextPart]:
        """Yields the characters that are complete."""
        yield TextPart(self._decoder.decode(raw_bytes([text])), not self._begun, False)
        self._begun = True

    def finish(self) -> Iterator[TextPart]:
        """Yields U+FFFD for a character that is not complete."""
        yield TextPart(self._decoder.decode(b"", final=True), not self._begun, True)


class Fallback(WholeTexts):
    """`JoinFallback`: a run of bytes is certain only at its end, as one bad byte makes all of it U+FFFD."""

    def __init__(self) -> None:
        super().__init__()
        self._runs = JoinedRuns()

    def whole(self, text: str) -> Iterator[TextPart]:
        """Yields the run of bytes that ends before a text, and the text, unless it is a byte itself."""
        return map(TextPart, self._runs.push(text))

    def finish(self) -> Iterator[TextPart]:
        """Yields the last run."""
        return map(TextPart, self._runs.end())


class ReplaceLiteral(DecoderStep):
    """A literal text is replaced by `content(k)`, k being the number of the text that it is in."""

    def __init__(self, found: str, content: Callable[[int], str]) -> None:
        self._found, self._content, self._held, self._count = found, content, "", 0

    def push(self, part: TextPart) -> Iterator[TextPart]:
        """Yields all but what may be the beginning of a match."""
        *parts, rest = (self._held + part.text).split(self._found)
        size = 0 if part.ends else next(
            (k for k in range(min(len(self._found) - 1, len(rest)), 0, -1) if self._found.startswith(rest[-k:])), 0
        )  # fmt: skip
        rest, self._held = rest[: len(rest) - size], rest[len(rest) - size :]
        yield TextPart(self._content(self._count).join([*parts, rest]), part.begins, part.ends)
        self._count += part.ends


class StripEnds(DecoderStep):
    """Strips characters of a set at both ends of each text: at most `start` and `stop` of them; None: all."""

    def __init__(self, member: Callable[[str], bool], start: int | None, stop: int | None) -> None:
        self._member, self._most, self._stop = member, start, stop
        self._held, self._left = list[str](), start  # held: members that go if the text ends here

    def push(self, part: TextPart) -> Iterator[TextPart]:
        """Yields all but what is stripped if the text ends here."""
        if self._stop is None and not part.begins and not part.ends and not self._leading:
            text, end = part.text, len(part.text)
            while end and self._member(text[end - 1]):
                end -= 1
            if end:
                yield TextPart("".join([*self._held, text[:end]]), False, False)
                self._held.clear()
            if end < len(text):
                self._held.append(text[end:])
            return
        text, at = "".join([*self._held, part.text]), 0
        if part.begins:
            self._left, self._leading = self._most, True
        while self._leading and at < len(text):
            self._leading = self._left != 0 and self._member(text[at])
            if self._leading:
                at += 1
                self._left = None if self._left is None else self._left - 1
        end = len(text)
        while end > at and (self._stop is None or len(text) - end < self._stop) and self._member(text[end - 1]):
            end -= 1
        self._held = [] if part.ends else [text[end:]]
        yield TextPart(text[at:end], part.begins, part.ends)

    _leading = True


class LastApart(WholeTexts):
    """`Unsuffix`: the last text is treated differently, so each text is held until the next."""

    def __init__(self, suffix: str) -> None:
        super().__init__()
        self._suffix, self._held = suffix, list[str]()

    def whole(self, text: str) -> Iterator[TextPart]:
        """Yields the text before, which is not the last."""
        held, self._held = self._held, [text]
        return (TextPart(each.replace(self._suffix, " ")) for each in held)

    def finish(self) -> Iterator[TextPart]:
        """Yields the last text."""
        return (TextPart(each.replace(self._suffix, "")) for each in self._held)


class Repeats(WholeTexts):
    """`Ctc`: a text equal to the one before is dropped."""

    def __init__(self, step: steps.Ctc) -> None:
        super().__init__()
        self._run, self._before = decoder(step), list[str]()

    def whole(self, text: str) -> Iterator[TextPart]:
        """Yields the changed text, if it is not dropped."""
        before, self._before = self._before, [text]
        return map(TextPart, [] if before == [text] else self._run([text]))


def stream_step(step: steps.Decoder) -> DecoderStep:
    """The streaming form of a step of a file's decoder."""
    makers: dict[type, Callable[[Any], DecoderStep]] = {
        steps.JoinBytes: lambda _: FallbackBytes(),
        steps.JoinFallback: lambda _: Fallback(),
        steps.Fuse: lambda _: OneText(),
        steps.ReplaceEach: _replace,
        steps.Unmark: lambda s: ReplaceLiteral(s.mark, lambda k: unmarked(s.mark, s, k)),
        steps.StripEach: lambda s: StripEnds(lambda c: c == s.content, s.start, s.stop),
        steps.JoinWords: lambda s: EachText(lambda text, k: word(text, s, k)),
        steps.Unsuffix: lambda s: LastApart(s.suffix),
        steps.Ctc: Repeats,
        steps.Spaced: lambda _: OneText(" "),
        steps.Trim: lambda _: StripEnds(str.isspace, None, None),
    }
    return makers[type(step)](step)


def _replace(step: steps.ReplaceEach) -> DecoderStep:
    """A replacement: literal, or by a regular expression, where a text is certain only at its end."""
    if step.pattern.literal and step.pattern.text:
        return ReplaceLiteral(step.pattern.text, lambda _: step.content)
    run = decoder(step)
    return EachText(lambda text, _: run([text])[0])


def through(chain: list[DecoderStep], parts: Iterable[TextPart]) -> Iterator[TextPart]:
    """Yields parts after all steps."""
    for step in chain:
        parts = [made for part in parts for made in step.push(part)]
    return iter(parts)


def finished(chain: list[DecoderStep]) -> Iterator[TextPart]:
    """Yields the rest of all steps, at the end of the input."""
    for k, step in enumerate(chain):
        yield from through(chain[k + 1 :], step.finish())


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
