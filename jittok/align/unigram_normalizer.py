"""Unigram's normalization with a map back, and the parts of a text that it does not change, except for blanks.

A character is *inert* if it is normalized to itself: no key of the character map is this character, and no key that
begins with it continues with the next one. Few characters (mostly combining marks) are second in a key, so flags of
single characters suffice. A blank is a byte that becomes a space. Inert parts are found in blocks of 64 bytes.

For each byte of the normalized text, `normalize` writes the span of the text it comes from. It may begin and end at any
step, so that only the bytes around characters that are not inert are normalized. It is for vocabularies whose character
map was checked as a whole (`charsmap_keys`), so that no link in it leads outside.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_BYTES, SPACE_MARK_CODE
from jittok.kernels.jit import I64, U8, U16, U64, frozen, helper
from jittok.kernels.memory import (
    Window,
    equal_mask,
    get_i32,
    get_u8,
    get_u16,
    get_u64,
    put_i64,
    put_u8,
    span_masks,
    trailing_zeros,
    utf8_masks,
    window,
)
from jittok.kernels.models.bpe.text_reader import BAD as ILL
from jittok.kernels.models.bpe.text_reader import decode
from jittok.kernels.models.ugm.compile import NORMAL, UNUSED, USER_DEFINED, UgmArrays
from jittok.kernels.normalize.charsmap.keys import CharsmapKeys, charsmap_keys
from jittok.kernels.normalize.charsmap.lookup import longest_known_key, user_path
from jittok.kernels.pretokenize.classes import UNICODE_SIZE, two_stage_of
from jittok.kernels.safe_cuts.rules import characters
from jittok.kernels.structures.double_array import (
    BASE,
    NO_VALUE,
    PARENT,
    ROOT,
    UNIT,
    VALUE,
    DoubleArray,
    build_double_array,
)
from jittok.kernels.structures.sequences import Sequences, SequenceWindow, make_sequences, ones_begin, open_sequences
from jittok.vocab import Vocab

BLANK_BIT = 4
MAPPED, BEGINS_LONG_KEY, SECOND, KNOWN, BLANK = 1, 2, 4, 8, 1 << BLANK_BIT
"""Flags of a character. MAPPED: it is changed; BEGINS_LONG_KEY: it begins keys of several characters; SECOND: it is
second in one; KNOWN: it is a token by itself; BLANK: it becomes a space."""
BEGINS = 1
"""The lowest bit of a step: the token begins with U+2581. The other bits are the length of its text without that. If
spaces are not merged, the bit is never set, and each U+2581 counts as one byte."""
UNKNOWN, ODD = 0xFFFF, 0xFFFE
"""Steps of the unknown token, and of tokens that are invalid UTF-8 or, if spaces are merged, contain U+2581 after their
beginning."""
FREELY = (9, 10, 13, *range(0x20, 0x7F))
"""Bytes that are inert in any block, unless they are in `Inert.stops`."""
MOST_STOPS = 12
_0, _1, _2, _62, _63 = (np.uint64(n) for n in (0, 1, 2, 62, 63))


class UnigramRules(NamedTuple):
    """What a walk needs beside the encoder's arrays."""

    characters: DoubleArray  # tokens that are one character: these are never unknown
    texts: U8  # [bytes] of all tokens
    offsets: I64  # [tokens + 1]
    whole_map: int  # 1: all links of the character map are in bounds
    always: int  # 1: ids never determine spans


def unigram_rules(vocab: Vocab, arrays: UgmArrays) -> UnigramRules:
    """The rules of a vocabulary of type "ugm". arrays: the same vocabulary, compiled for encoding."""
    matching, lengths = can_match(vocab), np.diff(vocab.token_offsets)
    first = np.zeros(len(vocab), np.uint8)
    first[lengths > 0] = vocab.token_bytes[vocab.token_offsets[:-1][lengths > 0]]
    character = 1 + (first >= 0xC0).astype(np.int64) + (first >= 0xE0) + (first >= 0xF0)
    strange = not np.isfinite(vocab.scores[matching]).all()
    unknown_matches = vocab.unk_id >= 0 and bool(matching[vocab.unk_id])
    chosen = matching & (lengths <= character)  # a character may be cut short at the end of a text
    data = vocab.token_bytes[np.repeat(chosen, lengths)]
    offsets = np.concatenate([[0], np.cumsum(lengths[chosen])])
    return UnigramRules(
        build_double_array(data, offsets, np.flatnonzero(chosen).astype(np.int32)),
        frozen(vocab.token_bytes, np.uint8), frozen(vocab.token_offsets, np.int64),
        int(charsmap_keys(arrays.charsmap) is not None), int(strange or unknown_matches),
    )  # fmt: skip


def can_match(vocab: Vocab) -> NDArray[np.bool_]:
    """bool[tokens]: whether a token can be on a path."""
    matching: NDArray[np.bool_] = vocab.file_attributes & (NORMAL | USER_DEFINED | UNUSED) != 0
    return matching


class Inert(NamedTuple):
    """Flags of characters, and the step of each token in inert text.

    Invariants: blocks has 128 entries for every page; the bytes of FREELY that are MAPPED or SECOND are in `stops`;
    U+2581 is KNOWN and MAPPED.
    """

    ascii: U8  # [256] MAPPED from 0x80 on
    two: U8  # [2048] by the 11 bits of a two-byte sequence
    three: U8  # [65536] by the 16 bits of a three-byte sequence
    pages: U16  # [8704] two-stage table, for four-byte sequences
    blocks: U8
    steps: U16  # [tokens + 1] of ids from -1 on
    stops: Sequences  # the bytes of FREELY that are not inert
    inner: U64  # [1024] a bit for each two bytes that are adjacent in a user-defined text
    usable: int  # 0: the other fields are empty, and this path is not used


def build_inert(vocab: Vocab, arrays: UgmArrays, rules: UnigramRules) -> Inert:
    """The tables of a vocabulary of type "ugm"; not usable if spaces are not escaped, or if the vocabulary or its
    character map is unusual."""
    keys, spaces = charsmap_keys(arrays.charsmap), arrays.spaces
    flags = None if keys is None else _flags(vocab, keys)
    if flags is None or not spaces.escape or spaces.append or rules.always:
        return _unusable()
    if not flags[SPACE_MARK_CODE] & KNOWN or not flags[0x20] & BLANK:
        return _unusable()
    flags[SPACE_MARK_CODE] |= MAPPED  # one in the text itself is not a blank
    inner = _take_apart(vocab, flags)
    stops = [bytes([byte]) for byte in FREELY if flags[byte] & (MAPPED | SECOND)]
    if inner is None or len(stops) > MOST_STOPS:
        return _unusable()
    ascii_ = np.full(256, MAPPED, np.uint8)
    ascii_[:0x80] = flags[:0x80]
    two, three = flags[:0x800].copy(), flags[:0x10000].copy()
    two[:0x80], three[:0x800] = MAPPED, MAPPED  # overlong forms
    flags[:0x10000] = MAPPED
    pages, blocks = two_stage_of(flags)
    return Inert(
        frozen(ascii_, np.uint8), frozen(two, np.uint8), frozen(three, np.uint8), frozen(pages, np.uint16),
        frozen(blocks, np.uint8), _steps(vocab, arrays.unk_id, bool(spaces.merge)),
        make_sequences(stops), frozen(inner, np.uint64), 1,
    )  # fmt: skip


def _unusable() -> Inert:
    bytes_, words = frozen([], np.uint8), frozen([], np.uint16)
    return Inert(bytes_, bytes_, bytes_, words, bytes_, words, make_sequences(()), frozen([], np.uint64), 0)


def _take_apart(vocab: Vocab, flags: NDArray[np.uint8]) -> NDArray[np.uint64] | None:
    """`Inert.inner`; None if a user-defined text is invalid UTF-8.

    User-defined texts are not normalized, and neither is a text that begins like one. For characters that normalization
    does not change, this makes no difference. Two kinds of characters of such texts are flagged as MAPPED: blanks other
    than spaces, and characters that share their first byte with one of these texts (a match may split them). At the end
    of inert text, `is_hidden` tests whether a user-defined text that began before may contain the character there.
    """
    inner = np.zeros(1024, np.uint64)
    for token in np.flatnonzero(vocab.file_attributes & USER_DEFINED).tolist():
        text = vocab.tokens[token]
        try:
            codes = [ord(c) for c in text.decode()]
        except UnicodeDecodeError:
            return None
        for code in codes:
            if flags[code] & BLANK and code != 0x20:
                flags[code] = flags[code] & ~np.uint8(BLANK) | MAPPED
        for pair in {before << 8 | byte for before, byte in pairwise(text)}:
            inner[pair >> 6] |= np.uint64(1) << np.uint64(pair & 63)
    for lead in {byte for k in np.flatnonzero(vocab.file_attributes & USER_DEFINED) for byte in vocab.tokens[k]}:
        if lead >= 0xC0:
            bits = 6 if lead < 0xE0 else 12 if lead < 0xF0 else 18
            low = (lead & (0x1F, 0xF, 7)[bits // 6 - 1]) << bits
            flags[low : low + (1 << bits)] |= MAPPED
    return inner


def _flags(vocab: Vocab, keys: CharsmapKeys) -> NDArray[np.uint8] | None:
    """uint8[UNICODE_SIZE] flags of characters; None if a key is invalid UTF-8."""
    flags, lengths = np.zeros(UNICODE_SIZE, np.uint8), np.diff(keys.offsets)
    code, owner, bad = characters(keys.data, keys.offsets, np.ones(lengths.size, bool))
    if bad.any() or not lengths.all():
        return None
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    several = np.diff(first, append=code.size) > 1
    single = code[first[~several]]
    flags[single] |= MAPPED
    flags[code[first[several]]] |= BEGINS_LONG_KEY
    flags[code[first[several] + 1]] |= SECOND
    starts, sizes = keys.image_offsets[:-1], np.diff(keys.image_offsets)
    becomes_space = ~several & (sizes == 1) & (np.append(keys.images, 0)[starts] == 0x20)
    blanks = code[first[becomes_space]]
    if not flags[0x20] & MAPPED:
        blanks = np.append(blanks, 0x20)
    blanks = blanks[blanks < 0x80]
    flags[blanks] = flags[blanks] & ~np.uint8(MAPPED) | BLANK
    code, owner, _ = characters(vocab.token_bytes, vocab.token_offsets, can_match(vocab))
    alone = np.diff(vocab.token_offsets)[owner] == _sizes(code)
    flags[code[alone]] |= KNOWN
    return flags


def _sizes(code: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lengths of code points in UTF-8."""
    return 1 + (code >= 0x80).astype(np.int64) + (code >= 0x800) + (code >= 0x10000)


def _steps(vocab: Vocab, unk_id: int, merge: bool) -> U16:
    """`Inert.steps`: see UNKNOWN, ODD and BEGINS."""
    data, offsets = vocab.token_bytes, vocab.token_offsets
    lengths = np.diff(offsets)
    code, owner, bad = characters(data, offsets, np.ones(len(vocab), bool))
    mark = code == SPACE_MARK_CODE
    odd = bad | (lengths == 0) | (lengths > ODD >> 2)
    odd |= np.bincount(owner, _sizes(code), len(vocab)) != lengths  # overlong forms
    odd[owner[code == 0x20]] = True
    if merge:
        first = np.diff(owner, prepend=-1) != 0
        begins = np.bincount(owner[first & mark], minlength=len(vocab)) > 0
        odd[owner[~first & mark]] = True
        steps = np.where(begins, lengths - len(SPACE_MARK_BYTES) << 1 | BEGINS, lengths << 1)
    else:
        steps = lengths - (len(SPACE_MARK_BYTES) - 1) * np.bincount(owner[mark], minlength=len(vocab)) << 1
    steps = np.where(odd, ODD, steps)
    if unk_id >= 0:
        steps[unk_id] = UNKNOWN
    return frozen(np.concatenate([[UNKNOWN if unk_id < 0 else ODD], steps]), np.uint16)


class InertWindow(NamedTuple):
    """The same as windows."""

    ascii: Window
    two: Window
    three: Window
    pages: Window
    blocks: Window
    steps: Window
    stops: SequenceWindow
    inner: Window


@helper
def open_inert(inert: Inert) -> InertWindow:
    """Windows onto the arrays."""
    return InertWindow(
        window(inert.ascii), window(inert.two), window(inert.three), window(inert.pages), window(inert.blocks),
        window(inert.steps), open_sequences(inert.stops), window(inert.inner),
    )  # fmt: skip


@helper
def flags_at(inert: InertWindow, text: Window, i: int, stop: int) -> tuple[int, int]:
    """(flags, length) of the character at i < stop; (MAPPED, 1) for an invalid byte."""
    byte = get_u8(text, i)
    if byte < 0x80:
        return get_u8(inert.ascii, byte), 1
    c, size = decode(text, i, stop, 1)
    if size == 2:
        return get_u8(inert.two, c), 2
    if size == 3:
        return get_u8(inert.three, c), 3
    if c == ILL or c >= UNICODE_SIZE:
        return MAPPED, 1
    return get_u8(inert.blocks, get_u16(inert.pages, c >> 7) << 7 | c & 127), 4


@helper
def _inert_block(inert: InertWindow, text: Window, i: int) -> int:
    """The number of bytes of text[i:i + 64] that are inert if one look at all of them proves it (up to the end of the
    last complete character), else 0. A character begins at i; 65 bytes are readable."""
    high, _, _, control, _ = span_masks(text, i)
    free = equal_mask(text, i, 10) | equal_mask(text, i, 9) | equal_mask(text, i, 13)
    if control & ~free | ones_begin(inert.stops, text, i) != _0:
        return 0
    if high == _0:
        return 64
    followers, two, three, four, _ = utf8_masks(text, i)
    if followers != two << _1 | three << _2 or four != _0:
        return 0
    size, cut = 64, np.uint64(0)
    if two >> _63 != _0:
        size, cut = 63, _1 << _63
    elif three >> _62 != _0:
        size, cut = 62, _1 << _62
    two, three, flags = two & ~three & ~cut, three & ~cut, 0
    while two != _0:
        k = i + trailing_zeros(two)
        flags |= get_u8(inert.two, (get_u8(text, k) & 0x1F) << 6 | get_u8(text, k + 1) & 0x3F)
        two &= two - _1
    while three != _0:
        k = i + trailing_zeros(three)
        c = (get_u8(text, k) & 0xF) << 12 | (get_u8(text, k + 1) & 0x3F) << 6 | get_u8(text, k + 2) & 0x3F
        flags |= get_u8(inert.three, c)
        three &= three - _1
    return size if flags & (MAPPED | SECOND) == 0 else 0


@helper
def inert_end(inert: InertWindow, text: Window, begin: int, most: int, stop: int) -> tuple[int, bool]:
    """(the end of the inert text from `begin` on, whether a character that is not inert is there); reads little more
    than `most` bytes. A step of normalization begins at `begin`."""
    i, limit, block = begin, min(begin + most, stop), begin
    while i < limit:
        if i >= block and i + 65 <= stop:
            size = _inert_block(inert, text, i)
            i, block = i + size, i + 64
            if size != 0:
                continue
        flags, length = flags_at(inert, text, i, stop)
        if flags & (MAPPED | SECOND):
            if flags & SECOND and i > begin:
                before = _begin_of(text, begin, i)
                if flags_at(inert, text, before, stop)[0] & BEGINS_LONG_KEY:
                    return before, True
            if flags & MAPPED:
                return i, True
        i += length
    return (stop, False) if i == stop else (_begin_of(text, begin, i), False)


@helper
def is_inert(inert: InertWindow, text: Window, i: int, stop: int) -> int:
    """The length of the character at i < stop if it is inert and not a blank other than a space, else 0."""
    flags, length = flags_at(inert, text, i, stop)
    if flags & MAPPED or (flags & BLANK and get_u8(text, i) != 0x20):
        return 0
    if flags & BEGINS_LONG_KEY and i + length < stop and flags_at(inert, text, i + length, stop)[0] & SECOND:
        return 0
    return length


@helper
def is_hidden(inert: InertWindow, text: Window, i: int, stop: int) -> bool:
    """Whether the character at i < stop, which is not the first, may be part of a user-defined text and would otherwise
    be changed."""
    pair = get_u8(text, i - 1) << 8 | get_u8(text, i)
    if (get_u64(inert.inner, pair >> 6) >> np.uint64(pair & 63)) & _1 == _0:
        return False
    flags, length = flags_at(inert, text, i, stop)
    long = flags & BEGINS_LONG_KEY and i + length < stop and flags_at(inert, text, i + length, stop)[0] & SECOND
    return bool(flags & MAPPED or long)


@helper
def _begin_of(text: Window, begin: int, i: int) -> int:
    """The offset of the character that contains byte i - 1, where i > begin."""
    i -= 1
    while i > begin and get_u8(text, i) & 0xC0 == 0x80:
        i -= 1
    return i


# ---- normalization

BAD_TEXT = (0xEF, 0xBF, 0xBD)
SAME, BAD = -1, -2
"""The output of a step, if it is no replacement: the bytes themselves, or U+FFFD."""


class Normal(NamedTuple):
    """The output of normalization, as windows: byte k of `text` comes from data[starts[k]:stops[k]]."""

    text: Window
    starts: Window
    stops: Window
    capacity: int


class StepWindow(NamedTuple):
    """The tables that steps read, as windows."""

    user: Window
    map_units: Window
    map_size: int
    map_root: int
    replacements: Window
    characters: Window  # tokens that are one character
    merge: int  # 1: runs of spaces become one space before the next word
    escape: int  # 1: spaces become U+2581
    shortest: int  # Vocab.shortest_utf8


class NormalizerCursor(NamedTuple):
    """The state of normalization."""

    i: int  # next offset in the text; -1: no capacity, or the result depends on text far before
    size: int  # bytes written
    inside: bool  # inside a word; if spaces are not merged: after the prepended space, if there is one
    gap_start: int  # start of the blanks that were skipped since the last word; -1: none
    gap_stop: int


@helper
def open_steps(rules: UnigramRules, arrays: UgmArrays) -> StepWindow:
    """Windows onto the arrays."""
    return StepWindow(
        window(arrays.user.units), window(arrays.charsmap.units), arrays.charsmap.units.size, arrays.map_root,
        window(arrays.charsmap.replacements), window(rules.characters.units), arrays.spaces.merge,
        arrays.spaces.escape, arrays.shortest,
    )  # fmt: skip


@helper
def _step(steps: StepWindow, text: Window, i: int, stop: int) -> tuple[int, int, int]:
    """(SAME, BAD or the offset of a replacement; bytes read; bytes to write) of one step."""
    end = user_path(steps.user, text, i, stop)[0]
    if end > i:  # a path of user-defined tokens is copied unchanged
        return SAME, end - i, end - i
    used, value = longest_known_key(steps.map_units, steps.map_size, steps.map_root, text, i, stop)
    if used > 0:
        size, same = 0, True
        byte = get_u8(steps.replacements, value)
        while byte != 0:
            same = same and size < used and byte == get_u8(text, i + size)
            size += 1
            byte = get_u8(steps.replacements, value + size)
        return SAME if same and size == used else value, used, size
    c, used = decode(text, i, stop, steps.shortest)
    return (BAD, 1, 3) if c == ILL else (SAME, used, used)


@helper
def _put(out: Normal, at: int, byte: int, start: int, stop: int) -> int:
    """Write one byte that comes from text[start:stop]; the offset after it."""
    put_u8(out.text, at, byte)
    put_i64(out.starts, at, start)
    put_i64(out.stops, at, stop)
    return at + 1


@helper
def put_space(steps: StepWindow, out: Normal, at: int, start: int, stop: int) -> int:
    """Write a space that comes from text[start:stop]; the offset after it."""
    if steps.escape == 0:
        return _put(out, at, SPACE_BYTE, start, stop)
    for mark in SPACE_MARK_BYTES:
        at = _put(out, at, mark, start, stop)
    return at


@helper
def normalize(
    steps: StepWindow, inert: InertWindow, use_inert: bool, out: Normal, text: Window, start: int, stop: int,
    cursor: NormalizerCursor, need: int,
) -> NormalizerCursor:  # fmt: skip
    """Normalize the fragment text[start:stop] until `need` bytes are written, or all; returns the cursor.

    use_inert: inert characters are one step each; otherwise `inert` is not read
    Source: llama.cpp, `llm_tokenizer_ugm_session::normalize`.
    """
    i, at, inside, gap_start, gap_stop = cursor
    while i >= 0 and i < stop and at < need:
        source, size = SAME, 0
        if use_inert:
            size = is_inert(inert, text, i, stop)
            if size == 0 and i > start and is_hidden(inert, text, i, stop):
                return NormalizerCursor(-1, at, inside, gap_start, gap_stop)
        used = size
        if size == 0:
            source, used, size = _step(steps, text, i, stop)
        if at + (len(SPACE_MARK_BYTES) + 1) * size > out.capacity:
            i, used, size = -1, 0, 0
        for k in range(size):
            low, high = i, i + used
            if source == SAME:
                low, high, byte = i + k, i + k + 1, get_u8(text, i + k)
            elif source == BAD:
                byte = BAD_TEXT[k]
            else:
                byte = get_u8(steps.replacements, source + k)
            if byte == SPACE_BYTE and steps.merge == 0:
                at = put_space(steps, out, at, low, high)
                continue
            if byte == SPACE_BYTE:
                gap_start, gap_stop, inside = low if gap_start < 0 else gap_start, high, False
                continue
            if not inside:
                if gap_start < 0:  # the space before a later character of a replacement has its span
                    gap_start, gap_stop = low, high if source != SAME and k > 0 else low
                at = put_space(steps, out, at, gap_start, gap_stop)
            inside, gap_start = True, -1
            at = _put(out, at, byte, low, high)
        i += used
    return NormalizerCursor(i, at, inside, gap_start, gap_stop)


@helper
def is_character(steps: StepWindow, out: Normal, at: int, stop: int) -> bool:
    """Whether out.text[at:stop], a character or the rest of the text, is a token by itself."""
    node = ROOT
    for i in range(at, stop):
        position = get_i32(steps.characters, UNIT * node + BASE) ^ get_u8(out.text, i)
        if get_i32(steps.characters, UNIT * position + PARENT) != node:
            return False
        node = position
    return bool(get_i32(steps.characters, UNIT * node + VALUE) != NO_VALUE)
