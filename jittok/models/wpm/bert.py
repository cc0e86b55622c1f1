"""BertNormalizer and BertPreTokenizer of tokenizers as one table of characters.

The steps come in one order: characters removed and white space (`bert_clean`), ideographs (`bert_chinese`), NFD without
marks, lower case; then words end at white space, and punctuation is a word. A character becomes one other, or nothing,
or several: those, Hangul syllables for the most part, are written out before (`normalize.character_map`). Marks that
are not removed may change places with their neighbours: texts with one are normalized by the plain reference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import I32, I64, U8, frozen
from jittok.fragments import PAD, TEXT
from jittok.models.wpm.compile import ALONE, BLANK, DROPPED, LETTER
from jittok.normalize.character_map import GROWTH, CharacterMap, character_map, find_mapped, write_mapped
from jittok.normalize.composed import Changed, NotUtf8
from jittok.normalize.fronts import gather
from jittok.pipeline import Pipeline
from jittok.pipeline.steps import ISOLATED, REMOVED, Compose, CutClass, Map
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

    kinds: NDArray[np.int64]  # LETTER, BLANK, DROPPED, ALONE
    images: NDArray[np.int64]
    several: CharacterMap


@cache
def settings() -> dict[tuple[object, ...], int]:
    """The steps of every setting of BertNormalizer."""
    return {tuple(step for flag, steps in _STEPS if flags & flag for step in steps): flags for flags in range(16)}


def bert_flags(pipeline: Pipeline) -> int | None:
    """The setting of a file; None for one that does not split words so."""
    return settings().get(pipeline.normalize) if pipeline.split == WORDS else None


@lru_cache(maxsize=4)
def characters(flags: int) -> Characters:
    """The table of a setting."""
    everything = np.arange(UNICODE_SIZE)
    images, dropped, odd = everything.copy(), np.zeros(UNICODE_SIZE, np.bool_), np.zeros(UNICODE_SIZE, np.bool_)
    several: dict[int, tuple[int, ...]] = {}
    if flags & ACCENTS:
        marks, newer = member_flags("bert_nonspacing"), member_flags("newer")
        for c, parts in decompositions().items():
            if not newer[c]:
                kept = tuple(part for part in parts if not marks[part])
                if len(kept) == 1:
                    images[c] = kept[0]
                elif kept:
                    several[c] = kept
                else:
                    dropped[c] = True
        dropped |= marks
        odd = (class_table() > 0) & ~dropped & ~newer
        for c, kept in several.items():
            odd[c] = odd[list(kept)].any()
    lower = everything.copy()
    if flags & LOWER:
        for c, text in lower_map().items():
            if len(text) == 1:
                lower[c] = ord(text)
            elif images[c] == c and c not in several:
                several[c] = tuple(map(ord, text))
    images = lower[images]
    several = {c: tuple(lower[list(parts)].tolist()) for c, parts in several.items()}
    white, punctuation = member_flags("whitespace"), member_flags("punctuation")
    kinds = np.where(white[images], BLANK, np.where(punctuation[images], ALONE, LETTER))
    if flags & CHINESE_SPACES:
        for first, last in CHINESE:
            kinds[first : last + 1] = ALONE
    kinds[dropped] = DROPPED
    if flags & CLEAN:
        kinds[white] = BLANK
        kinds[member_flags("bert_removed")] = DROPPED
    return Characters(kinds.astype(np.int64), images, _several(several, odd, bool(flags & ACCENTS)))


def _several(several: dict[int, tuple[int, ...]], odd: NDArray[np.bool_], hangul: bool) -> CharacterMap:
    """The map of characters that become several, and of odd ones."""
    rows = {c: "".join(map(chr, parts)).encode() for c, parts in several.items()}
    rows.update(dict.fromkeys(np.flatnonzero(odd).tolist(), b""))
    if hangul:
        k = np.arange(S_COUNT)
        jamo = np.stack([L_BASE + k // (V_COUNT * T_COUNT), V_BASE + k % (V_COUNT * T_COUNT) // T_COUNT,
                         T_BASE + k % T_COUNT], 1)  # fmt: skip
        utf8 = np.stack([0xE0 | jamo >> 12, 0x80 | jamo >> 6 & 0x3F, 0x80 | jamo & 0x3F], 2).astype(np.uint8)
        data = utf8.tobytes()
        for syllable in range(S_COUNT):
            size = 9 if syllable % T_COUNT else 6
            rows[S_BASE + syllable] = data[9 * syllable : 9 * syllable + size]
    points = np.array(sorted(rows), np.int64)
    matters = np.zeros(UNICODE_SIZE, np.bool_)
    matters[points] = True
    return character_map(points, [rows[c] for c in points.tolist()], matters)


class BertRewrite:
    """Fragments whose characters become several, rewritten. normalized: all steps, for texts with odd characters."""

    def __init__(self, table: CharacterMap, normalized: Callable[[bytes], bytes]) -> None:
        self._table, self._normalized = table, normalized

    def __call__(self, data: U8, starts: I64, stops: I64, tokens: I32, count: int) -> Changed | None:
        """What becomes of the fragments that hold such characters; None if none does. Raises NotUtf8."""
        changes = np.empty(count, np.int64)
        total = find_mapped(self._table, data, starts, stops, tokens, count, changes)
        if not total:
            return None
        if total < 0:
            raise NotUtf8(-1 - total)
        out, places = np.empty(GROWTH * total + PAD, np.uint8), np.empty(2 * count, np.int64)
        odd, found = np.empty(count, np.uint8), frozen(changes, np.int64)
        size = write_mapped(self._table, data, starts, stops, found, count, out, places, odd)
        parts = [out[:size]]
        those = np.flatnonzero(odd)
        texts = _copies(data, starts[those], stops[those])
        for k, raw in zip(those.tolist(), texts, strict=True):
            text = self._normalized(raw)
            places[2 * k], places[2 * k + 1] = size, size + len(text)
            size += len(text)
            parts.append(np.frombuffer(text, np.uint8))
        whole = np.concatenate([*parts, np.zeros(PAD, np.uint8)])
        nothing = frozen(np.empty(0, np.int64), np.int64)
        return Changed(
            changes, frozen(whole, np.uint8), frozen(places[0::2], np.int64), frozen(places[1::2], np.int64), nothing,
            nothing, (data, starts, stops), None,
        )  # fmt: skip


def _copies(data: U8, starts: I64, stops: I64) -> list[bytes]:
    """Texts that only kernels may read where they are."""
    size, count = int((stops - starts).sum()), starts.size
    out, places = np.empty(size, np.uint8), [np.empty(count, np.int64) for _ in range(2)]
    nothing, tokens = frozen(np.full(count, -1), np.int64), frozen(np.full(count, TEXT), np.int32)
    first, last = frozen(starts, np.int64), frozen(stops, np.int64)
    gather(data, first, last, data, first, last, nothing, tokens, count, out, *places)
    raw = out.tobytes()
    return [raw[start:stop] for start, stop in zip(*(place.tolist() for place in places), strict=True)]


def bert_characters(pipeline: Pipeline) -> CharacterMap:
    """What `BertRewrite` looks for, of a file that `bert_flags` knows."""
    flags = bert_flags(pipeline)
    assert flags is not None
    return characters(flags).several
