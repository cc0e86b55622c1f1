"""Decoders: texts of tokens to texts, which are concatenated at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jittok.common.pipeline import models, steps
from jittok.common.pipeline.models import BYTE, CONTROL, UNKNOWN
from jittok.common.pipeline.patterns import compiled
from jittok.common.pipeline.pipeline import Pipeline
from jittok.common.unicode.characters import SPACE_MARK
from jittok.reference.pipeline.normalize import ALPHABET

BYTES = {c: byte for byte, c in enumerate(ALPHABET)}
HEX = frozenset("0123456789abcdefABCDEF")
SIGN = "+"
"""What the library's numbers may begin with."""
CLEANED = (
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"),
    (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip
Texts = list[str]


def decoder(step: steps.Decoder) -> Callable[[Texts], Texts]:
    """The function that applies one step to a list of texts."""
    makers: dict[type, Callable[[Any], Callable[[Texts], Texts]]] = {
        steps.JoinBytes: lambda _: _join_bytes,
        steps.JoinFallback: lambda _: _join_fallback,
        steps.Fuse: lambda _: lambda texts: ["".join(texts)],
        steps.ReplaceEach: lambda s: lambda texts: [_replaced(text, s) for text in texts],
        steps.Unmark: lambda s: lambda texts: [unmarked(text, s, k) for k, text in enumerate(texts)],
        steps.StripEach: lambda s: lambda texts: [stripped(text, s) for text in texts],
        steps.JoinWords: lambda s: lambda texts: [word(text, s, k) for k, text in enumerate(texts)],
        steps.Unsuffix: lambda s: lambda texts: _unsuffixed(texts, s.suffix),
        steps.Ctc: lambda s: lambda texts: _ctc(texts, s),
        steps.Spaced: lambda _: lambda texts: [" ".join(texts)],
        steps.Trim: lambda _: lambda texts: [text.strip() for text in texts],
    }
    return makers[type(step)](step)


def raw_bytes(texts: Iterable[str]) -> bytes:
    """Byte-level texts to bytes; a text with another character becomes its UTF-8."""
    return b"".join(bytes(BYTES[c] for c in text) if all(c in BYTES for c in text) else text.encode() for text in texts)


def is_byte(text: str) -> bool:
    """Whether a text is <0xC3>, or <0x+A>."""
    digits = text[3:5]
    own = len(text) == 6 and text.startswith("<0x") and text[5] == ">"
    return own and digits[1] in HEX and (digits[0] in HEX or digits[0] == SIGN)


def _join_bytes(texts: Texts) -> Texts:
    return [raw_bytes(texts).decode("utf-8", "replace")]


class JoinedRuns:
    """`JoinFallback`, text by text."""

    def __init__(self) -> None:
        self._run = bytearray()

    def push(self, text: str) -> Texts:
        """Add a text; returns the texts that are final."""
        if is_byte(text):
            self._run.append(int(text[3:5], 16))
            return []
        return [*self.end(), text]

    def end(self) -> Texts:
        """The pending run, at the end."""
        run, self._run = self._run, bytearray()
        if not run:
            return []
        try:
            return [run.decode()]
        except UnicodeDecodeError:
            return ["\ufffd"] * len(run)


def _join_fallback(texts: Texts) -> Texts:
    runs = JoinedRuns()
    return [*(part for text in texts for part in runs.push(text)), *runs.end()]


def _replaced(text: str, step: steps.ReplaceEach) -> str:
    if step.pattern.literal and step.pattern.text:
        return text.replace(step.pattern.text, step.content)
    return str(compiled(step.pattern).sub(lambda _: step.content, text)) if text else text


def unmarked(text: str, step: steps.Unmark, k: int) -> str:
    """A text with marks replaced by spaces or removed; `k`: its number."""
    return text.replace(step.mark, " " if k or step.keep_first else "")


def stripped(text: str, step: steps.StripEach) -> str:
    """A text without up to so many `content` at its ends."""
    start, stop = 0, len(text)
    while start < min(step.start, len(text)) and text[start] == step.content:
        start += 1
    while len(text) - stop < step.stop and stop > 0 and text[stop - 1] == step.content:
        stop -= 1
    return text[start:stop]


def cleaned(text: str) -> str:
    """A text without the spaces that WordPiece adds."""
    for found, new in CLEANED:
        text = text.replace(found, new)
    return text


def word(text: str, step: steps.JoinWords, k: int) -> str:
    """Text number `k` with the separator of words."""
    if k:
        text = text.removeprefix(step.prefix) if text.startswith(step.prefix) else " " + text
    return cleaned(text) if step.cleanup else text


def _unsuffixed(texts: Texts, suffix: str) -> Texts:
    return [text.replace(suffix, "" if k == len(texts) - 1 else " ") for k, text in enumerate(texts)]


def _ctc(texts: Texts, step: steps.Ctc) -> Texts:
    out = []
    for k, text in enumerate(texts):
        if k and texts[k - 1] == text:
            continue
        new = text.replace(step.pad, "")
        if step.cleanup:
            new = cleaned(new).replace(step.delimiter, " ")
        if new:
            out.append(new)
    return out


class PiecesText:
    """sentencepiece's decoder, id by id. `written`: other ids have printed something before."""

    def __init__(self, pipeline: Pipeline, written: bool = False) -> None:
        model, (step,) = pipeline.model, pipeline.decode
        assert isinstance(model, models.Pieces)
        assert isinstance(step, steps.JoinPieces)
        self._step, self._types, self._tokens = step, model.types, pipeline.model_tokens
        self._run, self._written, self._first, self._trimmed = bytearray(), written, True, False

    def push(self, token: int) -> str:
        """Add an id; returns the text that is final."""
        kind, text = int(self._types[token]), (self._tokens[token] or b"").decode()
        if kind == BYTE:
            self._run.append(int(text[3:5], 16))
            return ""
        out = self.finish()
        if self._trimmed or self._written:
            self._first = False
        self._trimmed = False
        if kind == UNKNOWN:
            text = self._step.unknown
        elif kind == CONTROL:
            text = ""
        elif self._first and self._step.trim_first and text.startswith(SPACE_MARK):
            text, self._trimmed = text[1:].replace(SPACE_MARK, " "), not self._step.squeezed
        else:
            text = text.replace(SPACE_MARK, " ")
        self._written |= bool(text)
        return out + text

    @property
    def begun(self) -> bool:
        """Whether later text is not trimmed, and no byte is pending."""
        return (self._trimmed or self._written) and not self._run

    def finish(self) -> str:
        """The characters of the pending bytes."""
        run, self._run = self._run, bytearray()
        self._written |= bool(run)
        return "".join(_characters(bytes(run))) if run else ""


def _characters(raw: bytes) -> Texts:
    """The characters of bytes; U+FFFD for each byte that begins no character."""
    out, at = Texts(), 0
    while at < len(raw):
        for size in range(1, 5):
            try:
                out.append(raw[at : at + size].decode())
                break
            except UnicodeDecodeError:
                continue
        else:
            out.append("\ufffd")
            size = 1
        at += size
    return out
