"""Spans of WordPiece: walk the ids over the words of a text, without normalizing it again.

For each code point it suffices to know its kind (part of a word, ends it, dropped, or a word by itself) and the length
of its normal form. Text is plain if normalization keeps the length of every character or makes it a blank. Words of
plain text are found by bit masks, 64 bytes at a time: a token covers as many bytes as its text has without U+2581, and
a token that begins with U+2581 begins the next word. Other words are walked by code points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.align.by_lengths import first_id
from jittok.align.lengths import Lengths, find_key
from jittok.common.unicode.characters import SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2, SPACE_MARK_BYTES, SPACE_MARK_CODE
from jittok.common.unicode.tables import LAST_CODE_POINT
from jittok.kernels.jit import I32, I64, U8, U16, OutI32, OutI64, as_int64, frozen, helper, kernel
from jittok.kernels.memory import (
    Window,
    bit_places,
    class_masks,
    get_i32,
    get_u8,
    get_u16,
    put_i64,
    span_masks,
    trailing_zeros,
    utf8_masks,
    window,
)
from jittok.kernels.models.bpe.text_reader import BAD, decode
from jittok.kernels.models.wpm import normal_table
from jittok.kernels.pretokenize.classes import PAGES, UNICODE_SIZE, shared_rows
from jittok.vocab import Vocab

LETTER, BLANK, DROPPED, ALONE = 0, 1, 2, 3
"""Kinds of code points: part of a word; ends the word; dropped, and the word continues; a word by itself."""
KIND, IMAGE = 24, 0xFFFFFF
"""An entry of `normal_table` is kind << KIND | (code point ^ image)."""
KIND_BITS, LENGTH, SAME = 3, 2, 16
"""A fact is kind | (length of the image - 1) << LENGTH | SAME if the image is the code point itself."""
PLAIN_BLANK, PLAIN_ALONE, ODD = 1, 2, 4
"""Kinds of bytes besides LETTER. ODD: not in plain text, because it is not ASCII or is dropped."""
BEGINS = 1
"""The lowest bit of a step: the token begins a word. The other bits are the length of its text without the marker."""
MARKER = len(SPACE_MARK_BYTES)


class WordRules(NamedTuple):
    """Facts of code points, and the lengths of tokens in plain text."""

    pages: U16  # [8704] two-stage table of facts
    blocks: U8
    ascii: U8  # [256] kinds of bytes
    steps: U16  # [tokens + 1] for plain text; see BEGINS
    plain: int  # 1: `steps` is usable, so the fast path may be used
    unk_id: int  # may be -1
    shortest: int  # Vocab.shortest_utf8
    ambiguous: int  # 1: the text of the unknown token can be in a word; then ids do not determine spans


def word_rules(vocab: Vocab) -> WordRules:
    """The rules of a vocabulary of type "wpm"."""
    pages, entries = normal_table(bool(vocab.lowercase), bool(vocab.strip_accents))
    full = entries.reshape(-1, 256)[pages].reshape(-1)
    image = full & IMAGE ^ np.arange(UNICODE_SIZE, dtype=np.int32)
    lengths = 1 + (image >= 0x80).view(np.uint8) + (image >= 0x800) + (image >= 0x10000)  # of single bytes: faster
    same = (full & IMAGE == 0).view(np.uint8) * np.uint8(SAME)
    facts = (full >> KIND).astype(np.uint8) | lengths - 1 << LENGTH | same
    kinds = np.full(256, ODD, np.uint8)
    kinds[:0x80] = np.array([LETTER, PLAIN_BLANK, ODD, PLAIN_ALONE])[full[:0x80] >> KIND]
    if (lengths[:0x80] != 1).any():
        raise AssertionError("normal_table: some ASCII character maps to a character beyond ASCII")
    if not np.array_equal(kinds, [_plain_kind(byte) for byte in range(256)]):
        raise AssertionError("normal_table: the kinds of ASCII characters differ from those in `_plain_kind`")
    if np.flatnonzero(image == SPACE_MARK_CODE).tolist() != [SPACE_MARK_CODE]:
        raise AssertionError("normal_table: some other character maps to U+2581")
    steps, plain = _steps(vocab)
    fact_pages, blocks = shared_rows(facts.reshape(PAGES, -1))
    return WordRules(
        frozen(fact_pages, np.uint16), frozen(blocks.reshape(-1), np.uint8), frozen(kinds, np.uint8), steps,
        int(plain), vocab.unk_id, int(vocab.shortest_utf8), int(_is_ambiguous(vocab)),
    )  # fmt: skip


def _is_ambiguous(vocab: Vocab) -> bool:
    """Whether the text of the unknown token can be in a word. Words begin with U+2581, and with ASCII that is neither a
    letter nor a digit, nothing else is in a word."""
    text = vocab.tokens[vocab.unk_id] if vocab.unk_id >= 0 else b""
    if not text or text[:MARKER] != SPACE_MARK_BYTES[: len(text)] or find_key(vocab, text) < 0:
        return False
    return len(text) <= MARKER + 1 or all(byte >= 0x80 or chr(byte).isalnum() for byte in text)


def _plain_kind(byte: int) -> int:
    """The kind of a byte, computed without the table."""
    if not (0x20 <= byte < 0x7F or 9 <= byte < 14):
        return ODD
    return LETTER if chr(byte).isalnum() else PLAIN_BLANK if chr(byte).isspace() else PLAIN_ALONE


def _steps(vocab: Vocab) -> tuple[U16, bool]:
    """(the step of each token from -1 on, whether all tokens that begin a word are marked as such)."""
    offsets = vocab.key_offsets
    lengths = np.diff(offsets)
    padded = np.append(vocab.key_bytes, np.zeros(MARKER, np.uint8))
    head = [padded[offsets[:-1] + k] for k in range(MARKER)]
    begins = (lengths >= MARKER) & (head[0] == SPACE_MARK_0) & (head[1] == SPACE_MARK_1) & (head[2] == SPACE_MARK_2)
    # a token that is the marker or a part of it is followed by a token without a marker in the same word
    parts = (head[0] == SPACE_MARK_0) & ((lengths == 1) | ((lengths == 2) & (head[1] == SPACE_MARK_1)))
    plain = not (parts.any() or (begins & (lengths == MARKER)).any() or lengths.max(initial=0) >= 1 << 14)
    steps = np.where(begins, lengths - MARKER << 1 | BEGINS, lengths << 1)
    if vocab.unk_id >= 0:
        # a token of only such bytes can match inside a word
        plain = plain and any(byte < 0x80 and not chr(byte).isalnum() for byte in vocab.tokens[vocab.unk_id])
        steps[vocab.unk_id] = BEGINS
    return frozen(np.concatenate([[BEGINS], np.minimum(steps, 0xFFFF)]), np.uint16), plain


class WordPieceWindow(NamedTuple):
    """The same as windows, with the text and the ids of a walk."""

    text: Window
    sizes: Window
    ids: Window
    spans: Window
    pages: Window
    blocks: Window
    ascii: Window
    steps: Window
    unk_id: int
    shortest: int
    origin: int


@helper
def _put_span(w: WordPieceWindow, k: int, start: int, stop: int) -> None:
    """Write text[start:stop] as the span of id k."""
    put_i64(w.spans, 2 * k, start - w.origin)
    put_i64(w.spans, 2 * k + 1, stop - w.origin)


@helper
def _fact_at(w: WordPieceWindow, i: int, stop: int) -> tuple[int, int]:
    """(fact, length) of the code point at i. Invalid bytes and values above U+10FFFF are dropped."""
    c, size = decode(w.text, i, stop, w.shortest)
    if c == BAD or c > LAST_CODE_POINT:
        return DROPPED, 1
    return get_u8(w.blocks, get_u16(w.pages, c >> 7) << 7 | c & 127), size


# ---- words of code points


@kernel
def word_spans(
    lengths: Lengths, rules: WordRules, data: U8, starts: I64, stops: I64, ends: I64, ids: I32, positions: OutI32,
    spans: OutI64, left: OutI64, count: int,
) -> int:  # fmt: skip
    """Write the spans of the tokens of the fragments left[:2 * count], a list made by `direct_spans`.

    positions: int32[OFFSETS] scratch; rules: not ambiguous
    The other arrays are those of `direct_spans`. Returns 0, or -1 - fragment if the ids are not those of the text.
    Linear in bytes.
    """
    for item in range(count):
        fragment, origin = as_int64(left[2 * item]), as_int64(left[2 * item + 1])
        w = WordPieceWindow(
            window(data), window(lengths.output), window(ids), window(spans), window(rules.pages), window(rules.blocks),
            window(rules.ascii), window(rules.steps), rules.unk_id, rules.shortest, origin,
        )  # fmt: skip
        i, stop, k, end = starts[fragment], stops[fragment], first_id(window(ends), fragment), ends[fragment]
        while i < stop:
            if rules.plain:
                number, safe, narrow = _find_words(w, data.size, i, stop, window(positions))
                i, k = _walk_words(w, i, safe, stop, window(positions), number, narrow, k, end)
            if k >= 0 and i < stop:
                i, k = _walk_word(w, i, stop, k, end)
            if k < 0:
                return -1 - fragment
        if k != end:
            return -1 - fragment
    return 0


@helper
def _next_letter(w: WordPieceWindow, i: int, stop: int) -> tuple[int, int, int]:
    """(offset, fact, length) of the next letter of the word that continues at i, or (offset after the word, -1, 0)."""
    while i < stop:
        fact, size = _fact_at(w, i, stop)
        kind = fact & KIND_BITS
        if kind == LETTER:
            return i, fact, size
        if kind != DROPPED:
            break
        i += size
    return i, -1, 0


@helper
def _walk_word(w: WordPieceWindow, i: int, stop: int, k: int, end: int) -> tuple[int, int]:
    """Write the spans of the ids from k on of the word that begins at i; a blank or dropped character is skipped.
    Returns (offset after it, next id); the id is -1 if the ids are not those of the word."""
    fact, size = _fact_at(w, i, stop)
    kind = fact & KIND_BITS
    if kind in (BLANK, DROPPED):
        return i + size, k
    last = i + size if kind == ALONE else stop  # the word ends here or before
    if k >= end:
        return i, -1
    start, token = i, get_i32(w.ids, k)
    if kind == ALONE and token != w.unk_id and get_i32(w.sizes, token + 1) == MARKER + 1 + (fact >> LENGTH & 3):
        _put_span(w, k, start, last)
        return last, k + 1
    if token == w.unk_id:
        after = i
        while fact >= 0:
            after = i + size
            i, fact, size = _next_letter(w, after, last)
        _put_span(w, k, start, after)
        return i, k + 1
    marker, used, whole = MARKER, 0, 1 + (fact >> LENGTH & 3)
    while fact >= 0:
        if k >= end:
            return i, -1
        need = get_i32(w.sizes, get_i32(w.ids, k) + 1)
        begin, after = -1, -1
        if need == 0:
            return i, -1
        if marker > 0:
            begin = after = start
            taken = min(need, marker)
            marker, need = marker - taken, need - taken
        while need > 0:
            if fact < 0:
                return i, -1
            taken = min(need, whole - used)
            low, high = i, i + size
            if fact & SAME != 0 and whole == size:
                low, high = i + used, i + used + taken
            if begin < 0:
                begin = low
            after = high
            used, need = used + taken, need - taken
            if used == whole:
                i, fact, size = _next_letter(w, i + size, last)
                used, whole = 0, 1 + (fact >> LENGTH & 3)
        _put_span(w, k, begin, after)
        k += 1
    return i, k


# ---- words of plain text

CHUNK_BYTES = 4096
"""Bytes (and up to 63 more) whose words are found before their ids are walked."""
OFFSETS = CHUNK_BYTES + 64 + 64
"""Capacity for offsets of words, with 64 more that the search for bits may overwrite."""
_0, _1, _2, _3, _62, _63 = (np.uint64(n) for n in (0, 1, 2, 3, 62, 63))
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@helper
def _find_words(w: WordPieceWindow, size: int, begin: int, stop: int, positions: Window) -> tuple[int, int, bool]:
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
def _walk_words(
    w: WordPieceWindow, begin: int, safe: int, stop: int, positions: Window, number: int, narrow: bool, k: int,
    end: int,
) -> tuple[int, int]:  # fmt: skip
    """Write the spans of the ids from k on of the words that `_find_words` has found in text[begin:safe]; (where to
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
        _put_span(w, k, at, after)
        at, k = after, k + 1
    return safe, k if word == number else -1


@helper
def _word_end(w: WordPieceWindow, i: int, stop: int) -> int:
    """The end of the word that begins at i < stop in plain text."""
    fact, size = _fact_at(w, i, stop)
    i += size
    if fact & KIND_BITS == LETTER:
        while i < stop:
            fact, size = _fact_at(w, i, stop)
            if fact & KIND_BITS != LETTER:
                break
            i += size
    return i
