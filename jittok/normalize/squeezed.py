"""sentencepiece's normalizer over whole texts: the longest keys of its map, and spaces of which only single ones stay.

Spaces stay spaces, and U+2581 becomes one: the model's kernel reads U+2581 for them. Source: sentencepiece 0.2.3,
`Normalizer::Normalize`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from jittok._jit import I32, I64, U8, U32, OutI64, OutU8, frozen, helper, kernel, wide
from jittok._raw import Window, get_u8, put_u8, window
from jittok.errors import MalformedVocab
from jittok.normalize.keys import BEGINS_USER, PLAIN, TIED, byte_kinds, charsmap_keys
from jittok.normalize.steps import longest_known_key, user_path
from jittok.normalize.xcda import read_charsmap, root_base
from jittok.pipeline.pipeline import packed
from jittok.pipeline.steps import Squeeze
from jittok.structures.double_array import DoubleArray, build_double_array
from jittok.unicode.characters import SPACE_BYTE, SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2

FIRST, BEHIND, SPACED = 0, 1, 2
"""How a part of a text goes on: it does not; behind others; behind others of which the last ends with a space."""


class Squeezed(NamedTuple):
    """What becomes of texts. Nothing of the map leads outside of it: `charsmap_keys` has walked it."""

    units: U32
    root: int
    replacements: U8
    kinds: U8  # [256] see `jittok.normalize.keys`
    prefix: int  # 1: a space in front of each text
    squeeze: int  # 1: leading, doubled and trailing spaces go
    growth: int  # bytes that a byte becomes at most
    user: DoubleArray  # texts that the map leaves as they are


def squeezed_of(step: Squeeze, user: Collection[bytes] = ()) -> Squeezed | None:
    """The tables of such a step; None for one that the kernel does not do. user: texts that the map leaves alone."""
    if not step.escape or step.suffix:
        return None
    try:
        charsmap = read_charsmap(step.charsmap, "")
    except MalformedVocab:
        return None
    keys = charsmap_keys(charsmap)
    if keys is None:
        return None
    grown = -(-np.diff(keys.image_offsets) // np.maximum(np.diff(keys.offsets), 1))
    kinds, texts = byte_kinds(keys).copy(), sorted(user)
    kinds[[text[0] for text in texts]] |= BEGINS_USER
    trie = build_double_array(*packed(texts), np.zeros(len(texts), np.int32))
    return Squeezed(
        charsmap.units, root_base(charsmap), charsmap.replacements, frozen(kinds, np.uint8), int(step.prefix),
        int(step.squeeze), int(grown.max(initial=1)), trie,
    )  # fmt: skip


@helper
def _copy(source: Window, start: int, stop: int, out: Window, at: int) -> int:
    """Characters, with spaces for U+2581; the place behind."""
    while start < stop:
        byte = get_u8(source, start)
        if (
            byte == SPACE_MARK_0
            and start + 2 < stop
            and get_u8(source, start + 1) == SPACE_MARK_1
            and get_u8(source, start + 2) == SPACE_MARK_2
        ):
            byte, start = wide(SPACE_BYTE), start + 2
        put_u8(out, at, byte)
        start, at = start + 1, at + 1
    return at


@helper
def _image_end(replacements: Window, place: int) -> int:
    while get_u8(replacements, place) != 0:
        place += 1
    return place


@helper
def _has_no_key(kinds: Window, text: Window, i: int, stop: int) -> bool:
    kind = get_u8(kinds, get_u8(text, i))
    return kind == PLAIN or (kind == TIED and (i + 1 >= stop or get_u8(text, i + 1) < 0x80))


@helper
def _stays(kinds: Window, text: Window, i: int, stop: int) -> bool:
    """Whether text[i] is ASCII that becomes itself, and no space."""
    byte = get_u8(text, i)
    return byte < 0x80 and byte != SPACE_BYTE and _has_no_key(kinds, text, i, stop)


@helper
def _before_spaces(out: Window, begin: int, at: int) -> int:
    """Where a text ends without the spaces at its end."""
    while at > begin and get_u8(out, at - 1) == SPACE_BYTE:
        at -= 1
    return at


@helper
def _squeeze(
    table: Squeezed, text: Window, i: int, stop: int, enough: int, goes_on: int, to: Window, begin: int, at: int
) -> tuple[int, int, int]:
    """text[i:stop] normalized to to[at:]: (the place behind it, the place in the text up to which it is done, how to go
    on there).

    That is `stop`, or a place from `enough` on that no key reaches across. What the text became stands from `begin` on,
    or only the spaces at its end. goes_on: FIRST; or what the part before said.
    """
    user, kinds, images, units = (
        window(table.user.units), window(table.kinds), window(table.replacements), window(table.units),
    )  # fmt: skip
    prefixed, leading = table.prefix == 0 or goes_on != FIRST, table.squeeze != 0 and goes_on == FIRST
    spaced = leading or goes_on == SPACED
    while i < stop:
        if i >= enough and prefixed and not leading:
            return at, i, SPACED if spaced else BEHIND
        byte = get_u8(text, i)
        if prefixed and not leading and _stays(kinds, text, i, stop):
            put_u8(to, at, byte)
            i, at, spaced = i + 1, at + 1, False
            while i < min(stop, enough) and _stays(kinds, text, i, stop):
                put_u8(to, at, get_u8(text, i))
                i, at = i + 1, at + 1
            continue
        length, place, end = wide(0), wide(0), i
        if get_u8(kinds, byte) & BEGINS_USER != 0:
            end = user_path(user, text, i, stop)[1]
        if end == i and not _has_no_key(kinds, text, i, stop):
            length, place = longest_known_key(units, table.units.size, table.root, text, i, stop)
        if length > 0:
            source, first, last, end = images, place, _image_end(images, place), i + length
        else:
            if end == i:
                end = i + (1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4)
            source, first, last = text, i, end
        i = end
        if leading and last == first + 1 and get_u8(source, first) == SPACE_BYTE:
            continue
        leading = False
        if not prefixed:
            put_u8(to, at, SPACE_BYTE)
            at += 1
            prefixed = True
        while spaced and first < last and get_u8(source, first) == SPACE_BYTE:
            first += 1
        if first < last:
            at = _copy(source, first, last, to, at)
            spaced = table.squeeze != 0 and get_u8(source, last - 1) == SPACE_BYTE
    return at if table.squeeze == 0 else _before_spaces(to, begin, at), stop, BEHIND


@kernel
def write_squeezed(
    table: Squeezed, data: U8, starts: I64, stops: I64, tokens: I32, count: int, out: OutU8, out_starts: OutI64,
    out_stops: OutI64,
) -> int:  # fmt: skip
    """Normalized fragments behind each other in `out`; how many bytes. Ids are empty.

    starts, stops: int64[count], tokens: int32[count] as `jittok.fragments` says, texts well-formed
    out: uint8[growth * bytes + count]; out_starts, out_stops: int64[count] receive where each is
    """
    text, to, at = window(data), window(out), wide(0)
    for k in range(count):
        out_starts[k] = at
        start, stop = wide(starts[k]), wide(stops[k])
        if tokens[k] < 0 and start < stop:
            at, _, _ = _squeeze(table, text, start, stop, stop, wide(FIRST), to, at, at)
        out_stops[k] = at
    return at


@kernel
def squeeze_part(
    table: Squeezed, data: U8, start: int, stop: int, enough: int, goes_on: int, held: int, out: OutU8, done: OutI64
) -> int:
    """A part of the text data[start:stop], normalized to `out`: up to a place from `enough` on. How many bytes.

    goes_on: FIRST, or what the part before said; held: how many of its bytes stand in `out`, as they may still go
    out: uint8[growth * bytes + 1 + held]
    done: int64[3] receives that place, how many bytes are sure to stay, and how to go on
    """
    to = window(out)
    at, place, how = _squeeze(table, window(data), start, stop, enough, wide(goes_on), to, wide(0), wide(held))
    done[0], done[1], done[2] = place, at, how
    if table.squeeze != 0 and place < stop:
        done[1] = _before_spaces(to, wide(0), at)
    return at
