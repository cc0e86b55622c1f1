"""Decomposing normal forms and character maps as one table: each character is replaced by itself, then marks are
sorted.

If a mark with a lower combining class is after one with a higher class, the marks must be sorted: `find_disorder` finds
these texts. Marks that a later map removes do not count.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.steps import Compose, Map
from jittok.common.unicode.libraries import Form, mapping, member_flags, normal_form
from jittok.common.unicode.nfc import class_table
from jittok.kernels.jit import I32, I64, U8, U16, OutI64, as_int64, frozen, kernel
from jittok.kernels.memory import get_i32, get_u8, get_u16, trailing_zeros, utf8_masks, window
from jittok.kernels.normalize.char_replacements import CharReplacements, char_replacements
from jittok.kernels.pretokenize.classes import PAGE_BITS, UNICODE_SIZE, shared_rows
from jittok.kernels.structures.utf8 import decode

BORDER = "\ua1cc"
"""A character that no step changes or produces."""
SEARCH_BYTES, BLOCK = 256, 64
NONE = np.uint64(0)


class Decomposition(NamedTuple):
    """The replacement of every character."""

    images: CharReplacements
    pages: U16  # [8704] two-stage table: class of the first character of its replacement | of the last << 8
    classes: I32
    skips: int  # 1 if no ASCII character is removed


@cache
def unstable(form: Form) -> NDArray[np.bool_]:
    """bool[0x110000]: characters of blocks that a normal form changes. A character that it changes is in no text of
    that form, so a block that does not change has none."""
    found = np.zeros(UNICODE_SIZE, np.bool_)
    for first in (*range(0, 0xD800, SEARCH_BYTES), *range(0xE000, UNICODE_SIZE, SEARCH_BYTES)):
        text = "".join(map(chr, range(first, first + SEARCH_BYTES)))
        found[first : first + SEARCH_BYTES] = normal_form(form, text) != text
    return found


@lru_cache(maxsize=8)
def decomposition(steps: tuple[Map | Compose, ...]) -> Decomposition:
    """The table of maps and of one normal form; for NFC and NFKC, texts must be composed afterwards."""
    seen = np.zeros(UNICODE_SIZE, np.bool_)
    for step in steps:
        if isinstance(step, Compose):
            seen |= unstable(step.form)
        else:
            seen[[*mapping(step.name)]] = True
    seen[0xD800:0xE000] = False
    points = np.flatnonzero(seen)
    text = BORDER.join(map(chr, points.tolist()))
    for step in steps:
        text = normal_form(step.form, text) if isinstance(step, Compose) else text.translate(mapping(step.name))
    images = dict(zip(points.tolist(), text.split(BORDER), strict=True)) if points.size else {}
    known = class_table().astype(np.int32)
    known[member_flags("newer")] = 0
    ends = known | known << 8
    for c, image in images.items():
        ends[c] = known[ord(image[0])] | known[ord(image[-1])] << 8 if image else PASSED
    pages, classes = shared_rows(ends.reshape(-1, 1 << PAGE_BITS))
    table = char_replacements({c: image for c, image in images.items() if image != chr(c)})
    skips = int((ends[:128] != PASSED).all())
    return Decomposition(table, frozen(pages, np.uint16), frozen(classes.reshape(-1), np.int32), skips)


PASSED = -1
"""Instead of classes: the character is removed, and its neighbours become adjacent."""


@kernel
def find_disorder(table: Decomposition, data: U8, starts: I64, stops: I64, tokens: I32, count: int, odd: OutI64) -> int:
    """Set odd[k] to 1 for each fragment of UTF-8 whose replacements hold marks to be sorted, else 0; how many do.

    starts, stops, odd: int64[count], tokens: int32[count] as in `jittok.kernels.fragments`
    """
    text, pages, classes, found = window(data), window(table.pages), window(table.classes), 0
    for k in range(count):
        i, stop, before = as_int64(starts[k]), as_int64(stops[k]), 0
        odd[k] = 0
        while tokens[k] < 0 and i < stop:
            if table.skips != 0 and i + BLOCK <= stop:
                _, first, _, _, _ = utf8_masks(text, i)
                skip = BLOCK if first == NONE else trailing_zeros(first)
                if skip > 0:
                    i, before = i + skip, 0
                    continue
            c, size = as_int64(get_u8(text, i)), 1
            if c >= 0x80:
                c, size = decode(data, i, stop, 1)
            i += size
            both = get_i32(classes, get_u16(pages, c >> PAGE_BITS) << PAGE_BITS | c & (1 << PAGE_BITS) - 1)
            if both >= 0:
                if before > both & 0xFF > 0:
                    odd[k] = 1
                    found += 1
                    break
                before = both >> 8
    return found
