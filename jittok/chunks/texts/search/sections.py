"""Sections of texts: parts between places where ids are cut for certain, whose counts are known before pieces are cut.

Before a space between two words (or after it, where a space that ends a text has no id) most tokenizers cut whatever
stands on both sides. The ids of a text are then those of its sections, one after the other, so all texts are encoded
once, and the end of a piece is searched for in one section only. Whether this holds of a tokenizer is tried on a text
(`joins_of`); a section that is long, as text without spaces is, has no count, and is searched as before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.chunks.texts.adjacent import (
    NEVER,
    SPACE,
    Adjacent,
    AdjacentWindow,
    apart,
    before,
    compared_right,
    open_adjacent,
)
from jittok.chunks.texts.clusters import character
from jittok.common.unicode.characters import SPACE_BYTE
from jittok.kernels.jit import I32, I64, U8, U64, OutI64, helper, kernel
from jittok.kernels.memory import Window, get_u8, get_u64, put_i64, window

NOWHERE, BEFORE_SPACE, BEFORE_WHITE, AFTER_SPACE, AFTER_WHITE = range(5)
"""Where sections end: before a space, or a line feed too; after a space, or any run of these and tabs."""
LONGEST_RUN = 64
"""Bytes of such a run."""
BY_ASKING, BY_SIZES, BY_WORDS, BY_SPACES = range(4)
"""What tells where words of a section begin among its ids: nothing; sizes of tokens; that BERT's words, or what is
between spaces, begin with a token that only begins words."""
ANYWHERE = 2
"""Of `begins`: an added token, after which the rest of a word is one, too."""
LINE_FEED, TAB = 10, 9
LONGEST_SECTION = 1024
"""Bytes of a section that is encoded beforehand."""
NO_COUNT = 1 << 40


class Sections(NamedTuple):
    """The sections of all texts, one after the other."""

    starts: I64  # [sections] where each begins in data
    stops: I64  # [sections]
    before: I64  # [sections + 1] ids of all sections before it; a long one counts as NO_COUNT
    ids: I32  # of all sections that are not long
    ends: I64  # [sections] where those of each end there
    begins: U8  # [tokens + 1] 1: token k - 1 begins a word, ANYWHERE: it may begin inside of one
    way: int  # BY_ASKING ..
    where: int  # BEFORE_SPACE ..
    alone: int  # 1: a text that begins where a section does has the ids that it has there


@helper
def _is_plain(text: Window, i: int) -> bool:
    """Whether the character at i is one of a word, and no digit."""
    code, _ = character(text, i)
    if code < 0x80:
        return 0x20 < code < 0x7F and not 0x30 <= code <= 0x39
    return 0xC0 <= code < 0x1680 or 0x1E00 <= code < 0x2000 or 0x3041 <= code < 0xD7A4


@helper
def is_section(found: AdjacentWindow, text: Window, bits: Window, x: int, start: int, stop: int, where: int) -> bool:
    """Whether ids are cut for certain at byte x of a text from start to stop."""
    after = where >= AFTER_SPACE
    space = x - 1 if after else x
    if space <= start or space + 1 >= stop:
        return False
    byte = get_u8(text, space)
    if byte != SPACE_BYTE and not (byte == LINE_FEED and where in (BEFORE_WHITE, AFTER_WHITE)):
        return False
    line = byte == LINE_FEED and not after
    if line and not 0x61 <= get_u8(text, x - 1) | 0x20 <= 0x7A:  # other characters may take line feeds along
        return False
    line = line and get_u8(text, x + 1) in (SPACE_BYTE, LINE_FEED, TAB)
    ends = get_u64(bits, (space + 1) >> 6) >> np.uint64((space + 1) & 63) & np.uint64(1)
    if ends == np.uint64(0) or not (line or _is_plain(text, space + 1)):
        return False
    if where == AFTER_WHITE:
        while space > start and x - space < LONGEST_RUN and get_u8(text, space - 1) in (SPACE_BYTE, LINE_FEED, TAB):
            space -= 1
        if space == start:
            return False
    if not _is_plain(text, before(text, space)) or not apart(found, text, space):
        return False
    code, _ = character(text, x if after else x + 1)
    return line or compared_right(found, code) not in (NEVER, SPACE)


@kernel
def cut_sections(
    found: Adjacent, data: U8, bits: U64, starts: I64, stops: I64, where: int, least: int, begins: OutI64, ends: OutI64,
    firsts: OutI64,
) -> int:  # fmt: skip
    """Write where the sections of texts begin and end, each of `least` bytes or more but for the last of a text.

    bits: see `mark_clusters`; begins, ends: int64[bytes of texts // least + texts]; firsts: int64[texts + 1] receives
    the first section of each text. Returns the number of sections. Linear in bytes.
    """
    own, text, marks, count = open_adjacent(found), window(data), window(bits), 0
    at_begins, at_ends, of_texts = window(begins), window(ends), window(firsts)
    for k in range(starts.size):
        start, stop = starts[k], stops[k]
        put_i64(of_texts, k, count)
        begin, x = start, start + least
        while x < stop:
            if is_section(own, text, marks, x, start, stop, where):
                put_i64(at_begins, count, begin)
                put_i64(at_ends, count, x)
                count += 1
                begin = x
                x += least
            else:
                x += 1
        if start < stop:
            put_i64(at_begins, count, begin)
            put_i64(at_ends, count, stop)
            count += 1
    put_i64(of_texts, starts.size, count)
    return count
