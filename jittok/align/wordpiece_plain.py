"""Fast path for the spans of WordPiece: words are found by bit masks, and ids walked over them without reading letters.

Text is plain if normalization keeps the length of every character or makes it a blank. In plain text a token covers as
many bytes as its text has without U+2581, and a token that begins with U+2581 begins the next word.
"""

from __future__ import annotations

import numpy as np

from jittok._jit import helper
from jittok._raw import (
    Window,
    bit_places,
    class_masks,
    get_i32,
    get_u8,
    get_u16,
    span_masks,
    trailing_zeros,
    utf8_masks,
)
from jittok.align.wordpiece_rules import (
    ALONE,
    BEGINS,
    DROPPED,
    KIND_BITS,
    LENGTH,
    LETTER,
    ODD,
    PLAIN_ALONE,
    WordPieceWindow,
    fact_at,
    put_span,
)
from jittok.unicode.characters import SPACE_MARK_CODE

CHUNK_BYTES = 4096
"""Bytes (and up to 63 more) whose words are found before their ids are walked."""
OFFSETS = CHUNK_BYTES + 64 + 64
"""Capacity for offsets of words, with 64 more that the search for bits may overwrite."""
_0, _1, _2, _3, _62, _63 = (np.uint64(n) for n in (0, 1, 2, 3, 62, 63))
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@helper
def find_words(w: WordPieceWindow, size: int, begin: int, stop: int, positions: Window) -> tuple[int, int, bool]:
    """Find the words of a plain stretch from `begin` on; (their number, the end of the stretch, whether it is ASCII).
    Their offsets, relative to `begin`, are written to int32[OFFSETS].

    `begin` is not inside a word. The stretch ends before a word that is not plain, or when it is long enough, and never
    inside a word. size: readable bytes of the text
    """
    at, limit, number, inside, narrow = begin, min(begin + CHUNK_BYTES, stop), 0, _0, True
    while at < limit:
        letters, alone, odd, length, ascii_ = _masks(w, size, at, stop)
        narrow = narrow and ascii_
        if odd != _0:
            length = min(length, trailing_zeros(odd))
        if length > 0:
            starts = (letters & ~(letters << _1 | inside) | alone) & _ALL >> np.uint64(64 - length)
            number = bit_places(positions, number, at - begin, starts)
            inside = letters >> np.uint64(length - 1) & _1
        at += length
        if odd != _0:
            break
    if inside != _0 and at < stop:  # the last word may go on
        number -= 1
        at = begin + get_i32(positions, number)
    return number, at, narrow


@helper
def _masks(w: WordPieceWindow, size: int, i: int, stop: int) -> tuple[np.uint64, np.uint64, np.uint64, int, bool]:
    """Masks of the bytes from i on, where a character begins: (all bytes of letters, first bytes of characters that are
    words, first bytes of characters that are not plain, how many bytes are valid, whether they are ASCII). Bits after
    the first character that is not plain are undefined."""
    capacity = min(stop - i, 64)
    if i + 64 > size:
        letters, alone, odd = _0, _0, _0
        for k in range(capacity):
            kind, bit = get_u8(w.ascii, get_u8(w.text, i + k)), _1 << np.uint64(k)
            letters |= bit if kind == LETTER else _0
            alone |= bit if kind == PLAIN_ALONE else _0
            odd |= bit if kind == ODD else _0
        return letters, alone, odd, capacity, True
    high, letter, digit, white, _, _, _, _, _ = class_masks(w.text, i)
    _, _, _, control, _ = span_masks(w.text, i)
    letters, odd = letter | digit, control & ~white
    alone = ~(letters | white | control | high)
    if high == _0:
        return letters, alone, odd & _ALL >> np.uint64(64 - capacity), capacity, True
    followers, two, three, four, _ = utf8_masks(w.text, i)
    wrong = followers ^ (two << _1 | three << _2 | four << _3)
    odd |= wrong | four
    leads = two & ~(_ALL << np.uint64(trailing_zeros(odd))) if odd != _0 else two
    while leads != _0:
        position = trailing_zeros(leads)
        k, bit = i + position, _1 << np.uint64(position)
        leads &= leads - _1
        c, bytes_, all_bits = (get_u8(w.text, k) & 0x1F) << 6, 2, bit | bit << _1
        if three & bit != _0:
            bytes_, all_bits = 3, all_bits | bit << _2
        if position + bytes_ > capacity or wrong & all_bits != _0:
            # a character cut by the end of the text is invalid; one cut by the 64 bytes is left to the next block
            if k + bytes_ > stop or wrong & all_bits != _0:
                odd |= bit
            else:
                capacity = position
            break
        c |= get_u8(w.text, k + 1) & 0x3F
        if bytes_ == 3:
            c = (c & 0x3FF) << 6 | get_u8(w.text, k + 2) & 0x3F
        fact = get_u8(w.blocks, get_u16(w.pages, c >> 7) << 7 | c & 127)
        kind = fact & KIND_BITS
        if kind == DROPPED or (fact >> LENGTH & 3) + 1 != bytes_ or c == SPACE_MARK_CODE:
            odd |= bit
            break
        if kind == LETTER:
            letters |= all_bits
        elif kind == ALONE:
            alone |= bit
    return letters, alone, odd & _ALL >> np.uint64(64 - capacity) if capacity > 0 else _0, capacity, False


@helper
def walk_words(
    w: WordPieceWindow, begin: int, safe: int, stop: int, positions: Window, number: int, narrow: bool, k: int,
    end: int,
) -> tuple[int, int]:  # fmt: skip
    """Write the spans of the ids from k on of the words that `find_words` has found in text[begin:safe]; (where to
    continue, next id), the latter -1 if the ids are not those of these words. If a token ends inside a character, they
    are the beginning of that word and its first id. narrow: the stretch is ASCII."""
    word, at = 0, begin
    while k < end:
        step = get_u16(w.steps, get_i32(w.ids, k) + 1)
        begins = step & BEGINS
        if word + begins > number:
            break
        at ^= (at ^ begin + get_i32(positions, word)) & -begins  # no branch: it is unpredictable
        word += begins
        after = at + (step >> 1)
        if after == at:  # the unknown token, which is a whole word
            if not begins:
                return at, -1
            after = _word_end(w, at, safe)
        if after > safe:
            return at, -1
        if not narrow and after < stop and get_u8(w.text, after) & 0xC0 == 0x80:
            while not get_u16(w.steps, get_i32(w.ids, k) + 1) & BEGINS:
                k -= 1
            return begin + get_i32(positions, word - 1), k
        put_span(w, k, at, after)
        at, k = after, k + 1
    return safe, k if word == number else -1


@helper
def _word_end(w: WordPieceWindow, i: int, stop: int) -> int:
    """The end of the word that begins at i < stop in plain text."""
    fact, size = fact_at(w, i, stop)
    i += size
    if fact & KIND_BITS == LETTER:
        while i < stop:
            fact, size = fact_at(w, i, stop)
            if fact & KIND_BITS != LETTER:
                break
            i += size
    return i
