"""Documents as bytes: decoding to text, and their ids with special tokens around them."""

from __future__ import annotations

from typing import NamedTuple

from jittok.common.pipeline.pipeline import FIRST_TEXT, Pipeline
from jittok.reference.pipeline.normalize import Unit
from jittok.reference.pipeline.run import Token, runner


class PlainText(NamedTuple):
    """A text as the reference reads it, and the span of each character in the document."""

    text: str
    units: list[Unit]


def read_text(raw: bytes) -> PlainText:
    """A document as text. Invalid UTF-8 becomes U+FFFD, one for each malformed sequence that Python's decoder
    replaces."""
    texts, units, at = list[str](), list[Unit](), 0
    while at < len(raw):
        bad, end = len(raw), len(raw)
        try:
            part = raw[at:].decode()
        except UnicodeDecodeError as error:
            bad, end = at + error.start, at + error.end
            part = raw[at:bad].decode()
        texts.append(part)
        for c in part:
            size = len(c.encode())
            units.append((at, at + size))
            at += size
        if bad < end:
            texts.append("\ufffd")
            units.append((bad, end))
        at = end
    return PlainText("".join(texts), units)


def aligned(pipeline: Pipeline, raw: bytes, add_special: bool, parse_special: bool) -> list[Token]:
    """The ids of a document with their spans; the special tokens around it have empty spans."""
    single, end = pipeline.single if add_special else (FIRST_TEXT,), len(raw)
    at = single.index(FIRST_TEXT)
    text, units = read_text(raw)
    found = runner(pipeline).align(text, units, raw, parse_special)
    before = [Token(token, 0, 0) for token in single[:at]]
    return [*before, *found, *(Token(token, end, end) for token in single[at + 1 :])]
