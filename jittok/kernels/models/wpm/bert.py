"""BertNormalizer and BertPreTokenizer of tokenizers as one table of characters.

The order of the steps is fixed: remove characters and unify white space (`bert_clean`), isolate ideographs
(`bert_chinese`), NFD without marks, lower case; then words end at white space, and each punctuation character is a
word. A character becomes one other, none, or several (mostly Hangul syllables). Combining marks that are not removed
may be reordered, so texts with such marks are normalized by the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.steps import ISOLATED, REMOVED, Compose, CutClass, Map
from jittok.common.unicode.libraries import CHINESE, is_member, member_flags, ranges, table
from jittok.common.unicode.nfc import (
    L_BASE,
    S_BASE,
    S_COUNT,
    T_BASE,
    T_COUNT,
    V_BASE,
    V_COUNT,
    class_table,
    classed,
    decompositions,
    full_decompositions,
)
from jittok.common.unicode.sets import Ranges
from jittok.common.unicode.tables import UNICODE_SIZE
from jittok.kernels.models.wpm.alphabet import ALONE, BLANK, DROPPED, NONE, Several
from jittok.kernels.pretokenize.classes import among, distinct

CLEAN, CHINESE_SPACES, ACCENTS, LOWER = 1, 2, 4, 8
WORDS = (CutClass("whitespace", REMOVED), CutClass("punctuation", ISOLATED))
_STEPS = (
    (CLEAN, (Map("bert_clean"),)), (CHINESE_SPACES, (Map("bert_chinese"),)),
    (ACCENTS, (Compose("NFD"), Map("bert_accents"))), (LOWER, (Map("lowercase"),)),
)  # fmt: skip


class Characters(NamedTuple):
    """The result of the steps for every code point."""

    kinds: NDArray[np.uint8]  # [0x110000] LETTER, BLANK, DROPPED, ALONE
    points: NDArray[np.int64]  # [n] rising: characters that become another one
    images: NDArray[np.int64]  # [n] that one
    several: Several
    odd: NDArray[np.int64]  # rising: kept marks and characters that end with one; two in a row may be reordered


class _Bare(NamedTuple):
    """Characters without their accents."""

    points: NDArray[np.int64]  # rising: characters that become another one
    images: NDArray[np.int64]
    several: Several
    dropped: NDArray[np.int64]
    odd: NDArray[np.int64]


@cache
def settings() -> dict[tuple[object, ...], int]:
    """{steps: flags} for every setting of BertNormalizer."""
    return {tuple(step for flag, steps in _STEPS if flags & flag for step in steps): flags for flags in range(16)}


def bert_flags(pipeline: Pipeline) -> int | None:
    """The BertNormalizer flags of a file, or None if it does not normalize and split like BERT."""
    return settings().get(pipeline.normalize) if pipeline.split == WORDS else None


@lru_cache(maxsize=4)
def characters(flags: int) -> Characters:
    """The table of a setting. Few characters change, so lists of these are faster than an array of all characters."""
    bare = _without_accents() if flags & ACCENTS else _Bare(*[NONE.points] * 2, NONE, *[NONE.points] * 2)
    points, images, several = bare.points, bare.images, bare.several
    if flags & LOWER:
        columns = (table(name).astype(np.int64) for name in ("lower_from", "lower_to", "lower_then"))
        large, small, then = columns
        one = then == 0
        for c, to, more in zip(large[~one], small[~one], then[~one], strict=True):
            if c not in points and c not in several.points:
                several = Several(*(np.append(a, b) for a, b in zip(several, (c, 2, (to, more)), strict=True)))
        large, small = large[one], small[one]
        images = _mapped(large, small, images)
        several = several._replace(parts=_mapped(large, small, several.parts))
        own = ~among(large, points)
        points, images = np.append(points, large[own]), np.append(images, small[own])
        order = np.argsort(points)
        points, images = points[order], images[order]
    kinds = np.zeros(UNICODE_SIZE, np.uint8)
    _mark(kinds, ALONE, ranges("punctuation"))
    _mark(kinds, BLANK, ranges("whitespace"))
    kinds[points] = kinds[images]
    if flags & CHINESE_SPACES:
        _mark(kinds, ALONE, CHINESE)
    if flags & ACCENTS:
        _mark(kinds, DROPPED, ranges("bert_nonspacing"))
        kinds[bare.dropped] = DROPPED
    if flags & CLEAN:
        _mark(kinds, BLANK, ranges("whitespace"))
        _mark(kinds, DROPPED, ranges("bert_removed"))
    if flags & ACCENTS:
        several = Several(*(np.append(a, b) for a, b in zip(several, _syllables(), strict=True)))
    return Characters(kinds, points, images, several, bare.odd)


def _mark(kinds: NDArray[np.uint8], kind: int, parts: Ranges) -> None:
    for first, last in parts:
        kinds[first : last + 1] = kind


def _mapped(before: NDArray[np.int64], after: NDArray[np.int64], points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Replace code points of `before` (rising) by those of `after`."""
    at = np.minimum(np.searchsorted(before, points), before.size - 1)
    return np.where(before[at] == points, after[at], points)


def _without_accents() -> _Bare:
    """The table of NFD without marks, and the marks that stay."""
    points, owner, parts = full_decompositions()
    known = ~is_member("newer", points)
    kept = known[owner] & ~is_member("bert_nonspacing", parts)
    counts = np.bincount(owner[kept], minlength=points.size)
    one, more, dropped = counts == 1, counts > 1, points[known & (counts == 0)]
    base, base_parts = points[one], parts[kept & one[owner]]
    several = Several(points[more], counts[more], parts[kept & more[owner]])
    marks, _ = classed()
    marks = marks[~is_member("bert_nonspacing", marks) & ~is_member("newer", marks) & ~among(marks, dropped)]
    ends = np.bitwise_or.reduceat(among(several.parts, marks), np.cumsum(several.counts) - several.counts)
    own = marks[~among(marks, several.points)]
    odd = distinct(np.concatenate([own, base[among(base_parts, marks)], several.points[ends]]))
    return _Bare(base, base_parts, several, dropped, odd)


def _syllables() -> Several:
    """The jamo of each Hangul syllable."""
    k = np.arange(S_COUNT)
    jamo = np.stack(
        [L_BASE + k // (V_COUNT * T_COUNT), V_BASE + k % (V_COUNT * T_COUNT) // T_COUNT, T_BASE + k % T_COUNT], 1
    )
    return Several(S_BASE + k, 2 + (k % T_COUNT > 0), jamo[jamo != T_BASE])


@cache
def let_marks_pass() -> NDArray[np.bool_]:
    """bool[0x110000]: characters whose NFD begins with a mark that may be reordered, and characters that are removed
    before."""
    classes = class_table() > 0
    found = classes | member_flags("bert_removed")
    for c, parts in decompositions().items():
        found[c] = classes[parts[0]]
    return found


def rewritten(odd: NDArray[np.bool_], normalized: Callable[[bytes], bytes], text: str) -> str:
    """Normalize the odd characters of a text (odd: bool[0x110000]) with the marks next to them. No mark is reordered
    across a remaining character of combining class 0, so these spans are normalized separately."""
    codes, passes = np.frombuffer(text.encode("utf-32-le"), np.uint32), let_marks_pass()
    parts, done = list[str](), 0
    for at in np.flatnonzero(odd[codes]).tolist():
        if at < done:
            continue
        start, stop = at, at + 1
        while start > done and passes[codes[start]]:
            start -= 1
        while stop < codes.size and passes[codes[stop]]:
            stop += 1
        parts += [text[done:start], normalized(text[start:stop].encode()).decode()]
        done = stop
    return "".join([*parts, text[done:]])
