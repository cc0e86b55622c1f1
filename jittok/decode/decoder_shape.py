"""Decoders of files whose tokens become pieces: which step sees what."""

from __future__ import annotations

from typing import NamedTuple

from jittok.pipeline import steps
from jittok.reference.pipeline import Runner
from jittok.reference.pipeline.decode import decoder, is_byte

PER_TEXT_STEPS = (steps.ReplaceEach, steps.Unmark, steps.StripEach, steps.JoinWords, steps.Unsuffix, steps.Trim)
"""Steps that change texts one by one."""
BY_POSITION = (steps.Unmark, steps.JoinWords, steps.Unsuffix)
"""Those of them that ask for a text's number."""
BAD = "\ufffd"
"""What a byte becomes that is part of no character."""


class DecoderShape(NamedTuple):
    """The steps of a decoder, by what they see."""

    each: tuple[steps.Decoder, ...]
    spaced: bool  # then there is a space between texts
    bytes_: bool  # then bytes are joined and read as UTF-8
    fallback: bool  # then runs of <0xXX> become characters
    later: steps.Unmark | None  # of each text after that, runs among them
    after: tuple[steps.Decoder, ...]  # of the one text


def decoder_shape(decode: tuple[steps.Decoder, ...]) -> DecoderShape | None:
    """How a decoder's steps go; None for one that looks at several tokens at once."""
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
        return None  # whether a text is a byte would be a matter of its place
    if later is not None and later.mark == BAD:
        return None
    after = rest[fused:]
    way = DecoderShape(each, False, bytes_, fallback, later, after)
    return way if all(isinstance(step, PER_TEXT_STEPS) for step in after) else None


def may_begin_a_byte(way: DecoderShape, run: Runner) -> bool:
    """Whether a text is a byte only at the beginning, where its marks become nothing: `<0x4▁1>`."""
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
