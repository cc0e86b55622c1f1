"""BertNormalizer and BertPreTokenizer of tokenizers as one table of characters.

The steps come in one order: characters removed and white space (`bert_clean`), ideographs (`bert_chinese`), NFD without
marks, lower case; then words end at white space, and punctuation is a word. A character becomes one other, or nothing,
or several, Hangul syllables for the most part. Marks that are not removed may change places with their neighbours:
texts with one are normalized by the plain reference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.models.wpm.compile import ALONE, BLANK, DROPPED, LETTER
from jittok.pipeline import Pipeline
from jittok.pipeline.steps import ISOLATED, REMOVED, Compose, CutClass, Map
from jittok.pretokenize.classes import distinct
from jittok.unicode.libraries import CHINESE, lower_map, member_flags
from jittok.unicode.nfc import L_BASE, S_BASE, S_COUNT, T_BASE, T_COUNT, V_BASE, V_COUNT, class_table, decompositions
from jittok.unicode.tables import UNICODE_SIZE

CLEAN, CHINESE_SPACES, ACCENTS, LOWER = 1, 2, 4, 8
WORDS = (CutClass("whitespace", REMOVED), CutClass("punctuation", ISOLATED))
_STEPS = (
    (CLEAN, (Map("bert_clean"),)), (CHINESE_SPACES, (Map("bert_chinese"),)),
    (ACCENTS, (Compose("NFD"), Map("bert_accents"))), (LOWER, (Map("lowercase"),)),
)  # fmt: skip


class Characters(NamedTuple):
    """What becomes of every code point."""

    kinds: NDArray[np.uint8]  # [0x110000] LETTER, BLANK, DROPPED, ALONE
    points: NDArray[np.int64]  # [n] rising: characters that become another one
    images: NDArray[np.int64]  # [n] which
    several: dict[int, tuple[int, ...]]
    odd: frozenset[int]  # kept marks, and what ends with one: two in a row may change places


@cache
def settings() -> dict[tuple[object, ...], int]:
    """The steps of every setting of BertNormalizer."""
    return {tuple(step for flag, steps in _STEPS if flags & flag for step in steps): flags for flags in range(16)}


def bert_flags(pipeline: Pipeline) -> int | None:
    """The setting of a file; None for one that does not split words so."""
    return settings().get(pipeline.normalize) if pipeline.split == WORDS else None


@lru_cache(maxsize=4)
def characters(flags: int) -> Characters:
    """The table of a setting. Few characters become others: arrays of all of them take longer than the rest of a
    load."""
    dropped, odd = np.zeros(UNICODE_SIZE, np.bool_), np.zeros(UNICODE_SIZE, np.bool_)
    base: dict[int, int] = {}
    several: dict[int, tuple[int, ...]] = {}
    if flags & ACCENTS:
        marks, newer = member_flags("bert_nonspacing"), member_flags("newer")
        removed, unknown = marks.data, newer.data  # their elements are Python's
        for c, parts in decompositions().items():
            if not unknown[c]:
                kept = tuple([part for part in parts if not removed[part]])
                if len(kept) == 1:
                    base[c] = kept[0]
                elif kept:
                    several[c] = kept
                else:
                    dropped[c] = True
        dropped |= marks
        odd = (class_table() > 0) & ~dropped & ~newer
        for c, part in base.items():
            odd[c] |= odd[part]
        for c, kept in several.items():
            odd[c] = odd[list(kept)].any()
    lower: dict[int, int] = {}
    if flags & LOWER:
        for c, text in lower_map().items():
            if len(text) == 1:
                lower[c] = ord(text)
            elif c not in base and c not in several:
                several[c] = tuple(map(ord, text))
    images = {c: lower.get(kept, kept) for c, kept in base.items()}
    images = dict(sorted({**{c: small for c, small in lower.items() if c not in images}, **images}.items()))
    several = {c: tuple([lower.get(part, part) for part in parts]) for c, parts in several.items()}
    white = member_flags("whitespace")
    kinds = np.where(member_flags("punctuation"), np.uint8(ALONE), np.uint8(LETTER))
    kinds[white] = BLANK
    points, becomes = (np.fromiter(column, np.int64, len(images)) for column in (images.keys(), images.values()))
    kinds[points] = kinds[becomes]
    if flags & CHINESE_SPACES:
        for first, last in CHINESE:
            kinds[first : last + 1] = ALONE
    kinds[dropped] = DROPPED
    if flags & CLEAN:
        kinds[white] = BLANK
        kinds[member_flags("bert_removed")] = DROPPED
    if flags & ACCENTS:
        several |= _syllables()
    return Characters(kinds, points, becomes, several, frozenset(np.flatnonzero(odd).tolist()))


def _syllables() -> dict[int, tuple[int, ...]]:
    """What Hangul syllables are made of."""
    found = {}
    for k in range(S_COUNT):
        jamo = (L_BASE + k // (V_COUNT * T_COUNT), V_BASE + k % (V_COUNT * T_COUNT) // T_COUNT, T_BASE + k % T_COUNT)
        found[S_BASE + k] = jamo if k % T_COUNT else jamo[:2]
    return found


@cache
def begins_with_mark() -> NDArray[np.bool_]:
    """bool[0x110000]: characters whose NFD begins with a mark that may pass others."""
    classes = class_table() > 0
    found = classes.copy()
    for c, parts in decompositions().items():
        found[c] = classes[parts[0]]
    return found


def rewritten(odd: NDArray[np.bool_], normalized: Callable[[bytes], bytes], text: str) -> str:
    """A text with odd characters (bool[0x110000]), which are normalized with the marks beside them: no mark passes a
    character of class 0, so these stretches are normalized by themselves."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    first = ~begins_with_mark()[codes]
    begins, group = np.flatnonzero(np.append(first, True)), np.cumsum(first)
    those = distinct(group[odd[codes]])  # group k ends where the class 0 character number k stands
    apart = np.flatnonzero(np.diff(those) > 1)
    parts, done = list[str](), 0
    for low, high in zip(those[np.append(0, apart + 1)], those[np.append(apart, those.size - 1)], strict=True):
        start, stop = int(begins[low - 1]) if low > 0 else 0, int(begins[high])
        parts += [text[done:start], normalized(text[start:stop].encode()).decode()]
        done = stop
    return "".join([*parts, text[done:]])
