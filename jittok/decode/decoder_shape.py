"""The shape of a file's decoder: which of its steps see single tokens, runs of bytes, or the whole text."""

from __future__ import annotations

from typing import NamedTuple

from jittok.common.pipeline import steps
from jittok.reference.pipeline import Runner
from jittok.reference.pipeline.decode import decoder, is_byte

PER_TEXT_STEPS = (steps.ReplaceEach, steps.Unmark, steps.StripEach, steps.JoinWords, steps.Unsuffix, steps.Trim)
"""Steps that change texts one by one."""
BY_POSITION = (steps.Unmark, steps.JoinWords, steps.Unsuffix)
"""Those of them whose result depends on a text's position."""
BAD = "\ufffd"
"""The replacement for a byte that is part of no character."""


class DecoderShape(NamedTuple):
    """The steps of a decoder, grouped by their input."""

    each: tuple[steps.Decoder, ...]
    spaced: bool  # whether there is a space between texts
    bytes_: bool  # whether bytes are joined and read as UTF-8
    fallback: bool  # whether runs of <0xXX> become characters
    later: steps.Unmark | None  # for each text after that, decoded runs included
    after: tuple[steps.Decoder, ...]  # for the joined text


def decoder_shape(decode: tuple[steps.Decoder, ...]) -> DecoderShape | None:
    """The shape of a decoder; None for one with a step that sees several tokens at once."""
    at = next((k for k, step in enumerate(decode) if not isinstance(step, PER_TEXT_STEPS)), len(decode))
    each, rest = decode[:at], decode[at:]
    if len(rest) == 1 and isinstance(rest[0], steps.Spaced):
        return DecoderShape(each, True, False, False, None, ())
    bytes_ = isinstance(rest[0], steps.JoinBytes) if rest else False
    fallback = isinstance(rest[0], steps.JoinFallback) if rest else False
    rest = rest[bytes_ + fallback :]
    later = rest[0] if fallback and rest and isinstance(rest[0], steps.Unmark) else None
    rest = rest[later is not None :]
    fused = isinstance(rest[0], steps.Fuse) if rest else False
    if rest and not (fused or bytes_):
        return None
    if fallback and any(isinstance(step, BY_POSITION) and not isinstance(step, steps.Unmark) for step in each):
        return None  # whether a text is a byte would depend on its position
    if later is not None and later.mark == BAD:
        return None
    after = rest[fused:]
    way = DecoderShape(each, False, bytes_, fallback, later, after)
    return way if all(isinstance(step, PER_TEXT_STEPS) for step in after) else None


def may_begin_a_byte(way: DecoderShape, run: Runner) -> bool:
    """Whether some text is a byte only at the start, where its marks are removed: `<0x4▁1>`."""
    marks = [step.mark for step in way.each if isinstance(step, steps.Unmark)]
    if not (way.fallback and marks):
        return False
    marked = [text for text in run.texts.values() if any(mark in text for mark in marks)]
    made = [decoder(step) for step in way.each]
    for text in marked:
        texts, kept = [text], ["", text]
        for step in made:
            texts, kept = step(texts), step(kept)
        if is_byte(texts[0]) != is_byte(kept[1]):
            return True
    return False
