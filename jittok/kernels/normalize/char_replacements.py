"""Replaces every character by its image: another character, several, or none, regardless of context.

Copies whole fragments, one after the other. An image may be written *once* for a run of characters that have it, such
as a run of white space that becomes one space.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import I32, I64, U8, U16, OutI64, OutU8, as_int64, frozen, kernel
from jittok.kernels.memory import get_i32, get_u8, get_u16, map_block, put_u8, utf8_masks, window
from jittok.kernels.pretokenize.classes import PAGE_BITS, UNICODE_SIZE, shared_rows
from jittok.kernels.structures.utf8 import decode, encode, encoded_length

NONE = np.uint64(0)
BLOCK = 64


class CharReplacements(NamedTuple):
    """The images of all characters."""

    ascii: U8  # [128] images of ASCII, if `block`
    block: int  # 1 if the image of each ASCII character is an ASCII character
    pages: U16  # [8704] two-stage table: a code point, or -1 - row
    blocks: I32
    offsets: I32  # [rows + 1] images that are not one character, UTF-8
    texts: U8
    once: U8  # [rows] 1 if a run has one image
    growth: int  # limit of bytes that one byte becomes


def char_replacements(
    mapping: dict[int, str], members: Iterable[tuple[int, int]] = (), content: str = "", once: bool = False
) -> CharReplacements:
    """The table of a map of code points. Characters of `members`, first to last each, become `content`: with `once` a
    run of them, else every one."""
    table, rows = np.arange(UNICODE_SIZE, dtype=np.int32), dict[tuple[bytes, bool], int]()

    def image(text: str, once: bool = False) -> int:
        return ord(text) if len(text) == 1 and not once else -1 - rows.setdefault((text.encode(), once), len(rows))

    growth = [1]
    for c, text in mapping.items():
        table[c] = image(text)
        growth.append(-(-len(text.encode()) // encoded_length(c)))
    for first, last in members:  # a set may hold nearly every character
        table[first : last + 1] = image(content, once)
        growth.append(-(-len(content.encode()) // encoded_length(first)))
    pages, blocks = shared_rows(table.reshape(-1, 1 << PAGE_BITS))
    plain = bool(((table[:128] >= 0) & (table[:128] < 128)).all())
    texts = [raw for raw, _ in rows]
    return CharReplacements(
        frozen(np.where(plain, table[:128], 0), np.uint8), int(plain), frozen(pages, np.uint16),
        frozen(blocks.reshape(-1), np.int32), frozen(np.cumsum([0, *map(len, texts)]), np.int32),
        frozen(np.frombuffer(b"".join(texts), np.uint8), np.uint8), frozen([once for _, once in rows], np.uint8),
        max(growth),
    )  # fmt: skip


@kernel
def write_replacements(
    table: CharReplacements, data: U8, starts: I64, stops: I64, tokens: I32, count: int, out: OutU8, out_starts: OutI64,
    out_stops: OutI64,
) -> int:  # fmt: skip
    """Write the images of fragments of UTF-8 to `out`, one after the other; how many bytes. Ids become empty.

    starts, stops: int64[count], tokens: int32[count] as in `jittok.kernels.fragments`
    out: uint8[growth * bytes + 64]; out_starts, out_stops: int64[count] receive where each is
    """
    text, to, ascii_ = window(data), window(out), window(table.ascii)
    pages, blocks = window(table.pages), window(table.blocks)
    at = as_int64(0)
    for k in range(count):
        out_starts[k] = at
        i, stop, before = as_int64(starts[k]), as_int64(stops[k]), -1
        while tokens[k] < 0 and i < stop:
            if table.block != 0:
                whole = True
                while whole and i + BLOCK <= stop:
                    follower, first, _, _, _ = utf8_masks(text, i)
                    whole = follower | first == NONE
                    if whole:
                        map_block(ascii_, 0, text, i, 0, to, at)
                        i, at, before = i + BLOCK, at + BLOCK, -1
                last = min(i + BLOCK, stop)
            else:
                last = stop
            while i < last:
                byte = get_u8(text, i)
                c, size = byte, 1
                if byte >= 0x80:
                    c, size = decode(data, i, stop, 1)
                i += size
                image = get_i32(blocks, get_u16(pages, c >> 7) << 7 | c & 127)
                if 0 <= image < 0x80:
                    put_u8(to, at, image)
                    at, before = at + 1, -1
                elif image >= 0:
                    at, before = encode(image, out, at), -1
                else:
                    row = -1 - image
                    if row != before or table.once[row] == 0:
                        for j in range(table.offsets[row], table.offsets[row + 1]):
                            put_u8(to, at, table.texts[j])
                            at += 1
                        before = row
        out_stops[k] = at
    return at
