"""Space handling of Unigram vocabularies: spaces are escaped, added before words, merged.

The second half of llama.cpp's `llm_tokenizer_ugm_session::normalize`. It reads normalized bytes one by one; only 0x20
is a space. With `merge` every word has exactly one space before it. Without it all spaces are kept, and `prepend` adds
one before the first other byte of the fragment, *after* leading spaces.
"""

from __future__ import annotations

from typing import NamedTuple

from jittok.common.pipeline.steps import SqueezeLlama

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
