"""sentencepiece's normalizer over whole texts: replaces the longest keys of its character map, and squeezes spaces.

Spaces stay spaces, and U+2581 becomes a space: the model's kernel reads spaces as U+2581. A run of characters without a
token is one unknown token, so if the model allows it, such a run becomes one byte. Source: sentencepiece 0.2.3,
`Normalizer::Normalize`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.pipeline import packed
from jittok.common.pipeline.steps import Squeeze
from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2, SPACE_MARK_CODE
from jittok.errors import MalformedVocab
from jittok.kernels.jit import I32, I64, U8, U32, OutI64, OutU8, as_int64, frozen, helper, kernel
from jittok.kernels.memory import Window, get_u8, get_word, put_u8, put_word, window
from jittok.kernels.normalize.charsmap.keys import BEGINS_USER, PLAIN, TIED, CharsmapKeys, byte_kinds, charsmap_keys
from jittok.kernels.normalize.charsmap.lookup import longest_known_key, user_end
from jittok.kernels.normalize.charsmap.xcda import read_charsmap, root_base
from jittok.kernels.structures.double_array import DoubleArray, build_double_array
from jittok.kernels.structures.long_keys import Ahead, LongKeys, forget, long_keys, open_ahead, open_long

FIRST, CONTINUED, AFTER_SPACE = 0, 1, 2
"""The state between parts of a text: first part; continued; continued after a space."""
FOLLOWED, ALONE, STRANGE = 1, 2, 4
"""Which keys begin with a character: only longer ones; the character itself. STRANGE: no token has it."""
_8, _63 = np.uint64(8), np.uint64(63)
_HIGH, _LOW, _SPACES, _NONE = (np.uint64(0x0101010101010101 * byte) for byte in (0x80, 0x7F, SPACE_BYTE, 0))


class SentencePieceTables(NamedTuple):
    """The tables of a normalizer. All links of the map are in bounds: `charsmap_keys` has walked it."""

    units: U32
    root: int
    replacements: U8
    kinds: U8  # [256] see `jittok.kernels.normalize.charsmap.keys`
    prefix: int  # 1: a space before each text
    squeeze: int  # 1: leading, repeated and trailing spaces are removed
    growth: int  # limit of bytes that one byte becomes
    user: DoubleArray  # texts that the map does not change
    long: LongKeys  # the long ones again
    begins: U8  # [0x10000] flags of a character of two or three bytes; FOLLOWED and ALONE off: no key begins with it
    follows: U8  # [256] whether a longer key may have the byte after its first character
    stranger: int  # ASCII that no token has, written for a run of STRANGE characters; unused if none is


def sentencepiece_tables(
    step: Squeeze, user: Collection[bytes] = (), known: NDArray[np.bool_] | None = None
) -> SentencePieceTables | None:
    """The tables of such a step; None if the kernel does not cover it. user: texts that the map does not change; known:
    see `known_characters`; given if a run of unknown characters is one token."""
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
    begins, follows = _begins(keys)
    strangers = np.flatnonzero(~known[:0x80]) if known is not None else np.zeros(0, np.int64)
    if known is not None and strangers.size:
        begins = frozen(begins | np.where(known, 0, STRANGE), np.uint8)
    return SentencePieceTables(
        charsmap.units, root_base(charsmap), charsmap.replacements, frozen(kinds, np.uint8), int(step.prefix),
        int(step.squeeze), int(grown.max(initial=1)), trie, long_keys(dict.fromkeys(texts, 0)), begins, follows,
        int(strangers[0]) if strangers.size else 0,
    )  # fmt: skip


def known_characters(texts: bytes) -> NDArray[np.bool_] | None:
    """bool[0x10000]: the characters of `texts`, and a space; None if the texts are invalid UTF-8."""
    try:
        codes = np.frombuffer(texts.decode().encode("utf-32-le"), np.uint32)
    except UnicodeDecodeError:
        return None
    found = np.zeros(0x10000, np.bool_)
    found[codes[codes < found.size]] = True
    found[[0, SPACE_BYTE]] = True
    return found


def _begins(keys: CharsmapKeys) -> tuple[U8, U8]:
    """The tables `begins` and `follows`. U+2581 counts as a key."""
    begins, follows = np.zeros(0x10000, np.uint8), np.zeros(256, np.uint8)
    starts, lengths = keys.offsets[:-1], np.diff(keys.offsets)
    data = np.append(keys.data, np.zeros(4, np.uint8)).astype(np.int64)
    first, second, third = (data[starts + k] for k in range(3))
    size = 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0)
    three = (first & 0xF) << 12 | (second & 0x3F) << 6 | third & 0x3F
    code = np.where(size == 2, (first & 0x1F) << 6 | second & 0x3F, three)
    inside, longer = (size == 2) | (size == 3), lengths > size
    begins[code[inside & longer]] = FOLLOWED
    begins[code[inside & ~longer]] = ALONE
    follows[data[(starts + size)[longer]]] = 1
    parts = (first & 0xC0 == 0x80).any() or (lengths < size).any() or (follows[0x80:0xC0] != 0).any()
    if parts:  # a key ends inside of a character
        begins[:], follows[0x80:] = ALONE, 1
    begins[SPACE_MARK_CODE] = ALONE
    return frozen(begins, np.uint8), frozen(follows, np.uint8)


@helper
def _copy(source: Window, start: int, stop: int, out: Window, at: int) -> int:
    """Copy characters, with spaces for U+2581; returns the offset after them."""
    while start < stop:
        byte = get_u8(source, start)
        if (
            byte == SPACE_MARK_0
            and start + 2 < stop
            and get_u8(source, start + 1) == SPACE_MARK_1
            and get_u8(source, start + 2) == SPACE_MARK_2
        ):
            byte, start = as_int64(SPACE_BYTE), start + 2
        put_u8(out, at, byte)
        start, at = start + 1, at + 1
    return at


@helper
def _image_end(replacements: Window, position: int) -> int:
    while get_u8(replacements, position) != 0:
        position += 1
    return position


@helper
def _ends_keys(follows: Window, text: Window, i: int, stop: int) -> bool:
    """Whether no key of the character before continues at offset i."""
    return i >= stop or get_u8(follows, get_u8(text, i)) == 0


@helper
def _has_no_key(kinds: Window, follows: Window, text: Window, i: int, stop: int) -> bool:
    kind = get_u8(kinds, get_u8(text, i))
    return kind == PLAIN or (kind == TIED and _ends_keys(follows, text, i + 1, stop))


@helper
def _stays(kinds: Window, follows: Window, text: Window, i: int, stop: int) -> bool:
    """Whether text[i] is ASCII that becomes itself."""
    return get_u8(text, i) < 0x80 and _has_no_key(kinds, follows, text, i, stop)


@helper
def _eight_stay(kinds: Window, follows: Window, text: Window, i: int, stop: int) -> bool:
    """Whether text[i : i + 8] is ASCII that becomes itself, spaces among it."""
    found = get_u8(kinds, get_u8(text, i))
    for k in range(1, 8):
        found |= get_u8(kinds, get_u8(text, i + k))
    return found <= TIED and _ends_keys(follows, text, i + 8, stop)


@helper
def _copy_ascii(
    table: SentencePieceTables, text: Window, i: int, stop: int, enough: int, spaced: bool, to: Window, at: int
) -> tuple[int, int, bool]:
    """Copy ASCII from text[i] on that does not change, spaces included, to to[at:]: (offset after it, offset after the
    copy, whether it ends with a space, after which others are removed)."""
    kinds, follows, last = window(table.kinds), window(table.follows), min(stop, enough)
    while i < last:
        if i + 8 <= last and _eight_stay(kinds, follows, text, i, stop):
            word = get_word(text, i)
            other = word ^ _SPACES
            spaces = ((other & _LOW) + _LOW) & _HIGH ^ _HIGH  # all is ASCII
            first = spaced and get_u8(text, i) == SPACE_BYTE
            if table.squeeze == 0 or not (first or spaces & spaces << _8 != _NONE):
                put_word(to, at, word)
                spaced = table.squeeze != 0 and spaces >> _63 != _NONE
                i, at = i + 8, at + 8
                continue
        end = min(i + 8, last)
        while i < end and _stays(kinds, follows, text, i, stop):
            byte = get_u8(text, i)
            if not spaced or byte != SPACE_BYTE:
                put_u8(to, at, byte)
                at += 1
            spaced = table.squeeze != 0 and byte == SPACE_BYTE
            i += 1
        if i < end:
            break
    return i, at, spaced


@helper
def _copy_wide(
    table: SentencePieceTables, text: Window, i: int, stop: int, enough: int, to: Window, begin: int, at: int
) -> tuple[int, int]:
    """Copy characters of two and three bytes from text[i] on that begin no key: (offset after them, offset after the
    copy). The output of this text begins at `begin`."""
    kinds, begins, follows = window(table.kinds), window(table.begins), window(table.follows)
    while i < min(stop, enough):
        byte = get_u8(text, i)
        if byte < 0xC0 or byte >= 0xF0 or get_u8(kinds, byte) & BEGINS_USER != 0:
            break
        second = get_u8(text, i + 1)
        if byte < 0xE0:
            found, size = get_u8(begins, (byte & 0x1F) << 6 | second & 0x3F), 2
        else:
            third = get_u8(text, i + 2)
            found, size = get_u8(begins, (byte & 0xF) << 12 | (second & 0x3F) << 6 | third & 0x3F), 3
        if found & ALONE or (found & FOLLOWED and not _ends_keys(follows, text, i + size, stop)):
            break
        if found & STRANGE:
            if at == begin or get_u8(to, at - 1) != table.stranger:
                put_u8(to, at, table.stranger)
                at += 1
            i += size
            continue
        put_u8(to, at, byte)
        put_u8(to, at + 1, second)
        if size == 3:
            put_u8(to, at + 2, get_u8(text, i + 2))
        i, at = i + size, at + size
    return i, at


@helper
def _before_spaces(out: Window, begin: int, at: int) -> int:
    """The end of a text without its trailing spaces."""
    while at > begin and get_u8(out, at - 1) == SPACE_BYTE:
        at -= 1
    return at


@helper
def _normalize(
    table: SentencePieceTables, ahead: Ahead, text: Window, i: int, stop: int, enough: int, goes_on: int, to: Window,
    begin: int, at: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Normalize text[i:stop] to to[at:]: (offset after the output, offset in the text up to which it is done, the state
    there).

    The text is done up to `stop`, or to an offset from `enough` on that no key crosses. The output of this text begins
    at `begin`, or only its trailing spaces do. goes_on: FIRST, or the state after the part before.
    """
    user, kinds, images, units, follows = (
        window(table.user.units), window(table.kinds), window(table.replacements), window(table.units),
        window(table.follows),
    )  # fmt: skip
    long, block = open_long(table.long), open_ahead(ahead)
    prefixed, leading = table.prefix == 0 or goes_on != FIRST, table.squeeze != 0 and goes_on == FIRST
    spaced = leading or goes_on == AFTER_SPACE
    while i < stop:
        if i >= enough and prefixed and not leading:
            return at, i, AFTER_SPACE if spaced else CONTINUED
        byte, begun = get_u8(text, i), i
        if prefixed and not leading and byte < 0x80:
            i, at, spaced = _copy_ascii(table, text, i, stop, enough, spaced, to, at)
        elif prefixed and not leading:
            i, at = _copy_wide(table, text, i, stop, enough, to, begin, at)
            spaced = spaced and i == begun
        if i > begun:
            continue
        length, position, end = as_int64(0), as_int64(0), i
        if get_u8(kinds, byte) & BEGINS_USER != 0:
            end = user_end(user, long, block, text, i, stop)
        if end == i and not _has_no_key(kinds, follows, text, i, stop):
            length, position = longest_known_key(units, table.units.size, table.root, text, i, stop)
        if length > 0:
            source, first, last, end = images, position, _image_end(images, position), i + length
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
    return at if table.squeeze == 0 else _before_spaces(to, begin, at), stop, CONTINUED


@kernel
def write_normalized(
    table: SentencePieceTables, data: U8, starts: I64, stops: I64, tokens: I32, count: int, ahead: Ahead, out: OutU8,
    out_starts: OutI64, out_stops: OutI64,
) -> int:  # fmt: skip
    """Write normalized fragments to `out`, one after the other; how many bytes. Ids are empty.

    starts, stops: int64[count], tokens: int32[count] as in `jittok.kernels.fragments`, texts well-formed
    out: uint8[growth * bytes + count]; out_starts, out_stops: int64[count] receive where each is
    """
    text, to, at = window(data), window(out), as_int64(0)
    for k in range(count):
        out_starts[k] = at
        start, stop = as_int64(starts[k]), as_int64(stops[k])
        if tokens[k] < 0 and start < stop:
            forget(open_ahead(ahead))
            at, _, _ = _normalize(table, ahead, text, start, stop, stop, as_int64(FIRST), to, at, at)
        out_stops[k] = at
    return at


@kernel
def normalize_part(
    table: SentencePieceTables, data: U8, start: int, stop: int, enough: int, goes_on: int, held: int, ahead: Ahead,
    out: OutU8, done: OutI64,
) -> int:  # fmt: skip
    """Normalize a part of the text data[start:stop] to `out`, up to an offset from `enough` on; how many bytes.

    goes_on: FIRST, or the state after the part before; held: how many of that part's bytes are in `out`, as they may
    still be removed
    ahead: for the first part of a text, the result of `make_ahead`
    out: uint8[growth * bytes + 1 + held]
    done: int64[3] receives that offset, how many bytes are final, and the state
    """
    to = window(out)
    at, position, how = _normalize(
        table, ahead, window(data), start, stop, enough, as_int64(goes_on), to, as_int64(0), as_int64(held)
    )
    done[0], done[1], done[2] = position, at, how
    if table.squeeze != 0 and position < stop:
        done[1] = _before_spaces(to, as_int64(0), at)
    return at
