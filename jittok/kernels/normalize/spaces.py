"""Space handling of Unigram vocabularies: spaces are escaped, added before words, merged.

The second half of llama.cpp's `llm_tokenizer_ugm_session::normalize`. It reads normalized bytes one by one; only 0x20
is a space. With `merge` every word has exactly one space before it. Without it all spaces are kept, and `prepend` adds
one before the first other byte of the fragment, *after* leading spaces.
"""

from __future__ import annotations

from typing import NamedTuple

from jittok.common.pipeline.steps import SqueezeLlama
from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2
from jittok.kernels.jit import OutU8, helper

OUTSIDE = 0
"""The state at the start of a fragment."""
INSIDE, PREPENDED = 1, 2
"""Bits of the state: the last byte belongs to a word; a space was added before some word."""


class SpaceRules(NamedTuple):
    """Flags, 0 or 1."""

    prepend: int  # one space before the first word
    append: int  # one space after the text
    merge: int  # runs of spaces become the one before the next word
    escape: int  # spaces are written as U+2581


def space_rules(how: SqueezeLlama) -> SpaceRules:
    """The rules of a Unigram vocabulary."""
    return SpaceRules(
        int(how.prefix and not how.suffix), int(how.prefix and how.suffix), int(how.squeeze), int(how.escape)
    )


@helper
def put_space(rules: SpaceRules, out: OutU8, at: int) -> int:
    """Write a space at out[at:] if there is capacity; returns the offset after it."""
    if not rules.escape:
        if at < out.size:
            out[at] = SPACE_BYTE
        return at + 1
    if at + 3 <= out.size:
        out[at], out[at + 1], out[at + 2] = SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2
    return at + 3


@helper
def put_byte(rules: SpaceRules, state: int, byte: int, out: OutU8, at: int) -> tuple[int, int]:
    """Write a normalized byte, with the space before it, if there is capacity; returns (state, offset after it)."""
    if byte == SPACE_BYTE:
        return state & ~INSIDE, at if rules.merge else put_space(rules, out, at)
    if state & INSIDE == 0:
        state |= INSIDE
        if rules.merge or (rules.prepend and state & PREPENDED == 0):
            at = put_space(rules, out, at)
            state |= PREPENDED
    if at < out.size:
        out[at] = byte
    return state, at + 1
