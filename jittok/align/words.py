"""Spans of WordPiece: ids walked against the words that normalization makes of a text.

Nothing is normalized again: it is enough to know of each code point whether it joins the word, ends it, vanishes or is
a word of its own, and how many bytes become of it. Stretches of plain ASCII need not even that: there a token that
begins with U+2581 begins the next word, whatever its letters, and each of its other bytes is one of the text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok._jit import I32, I64, U8, U16, OutI64, OutU8, frozen, helper, kernel, wide
from jittok._raw import Window, get_i32, get_u8, get_u16, get_word, put_i64, put_u8, window
from jittok.align.direct import first_id
from jittok.align.lengths import MARK, Lengths, find_key
from jittok.models.bpe.text import BAD, decode, put_code_point
from jittok.models.wpm import normal_table
from jittok.pretokenize.classes import UNICODE_SIZE, two_stage
from jittok.structures.double_array import NO_NODE, NO_VALUE, ROOT, DoubleArray, build_double_array, child, value_at
from jittok.unicode.tables import LAST_CODE_POINT
from jittok.vocab import Vocab

LETTER, BLANK, DROPPED, ALONE = 0, 1, 2, 3
"""Kinds of code points: joins the word, ends it, vanishes (the word goes on), is a word of its own."""
KIND, IMAGE = 24, 0xFFFFFF
"""An entry of `normal_table` is kind << KIND | (code point ^ what it becomes)."""
KIND_BITS, LENGTH, SAME = 3, 2, 16
"""A fact is kind | (bytes of what it becomes - 1) << LENGTH | SAME if that is the code point itself."""
PLAIN_BLANK, PLAIN_ALONE, ODD = 1, 2, 4
"""Kinds of bytes, beside LETTER; ODD is what no plain stretch has: bytes beyond ASCII and those that vanish."""
BEGINS = 1
"""Bit of a step: the token begins a word; above it, bytes of a token's text without the marker."""
MARKER, SPACE = len(MARK), 0x20
_HIGH, _NONE = np.uint64(0x8080808080808080), np.uint64(0)
_FROM_7F, _FROM_20, _FROM_09, _FROM_0E = (np.uint64((0x80 - byte) * 0x0101010101010101) for byte in (0x7F, 0x20, 9, 14))
"""Added to bytes below 80, these set the high bit of those from there on."""


class WordRules(NamedTuple):
    """What becomes of code points, and what is needed where the unknown token may have been found as a text."""

    pages: U16  # [8704] two-stage table of facts
    blocks: U8
    ascii: U8  # [256] kinds of bytes, ODD for those that no plain stretch has
    steps: U16  # [tokens + 1] for plain stretches; see BEGINS
    plain: int  # 1: there are plain stretches
    unk_id: int  # may be -1
    ambiguous: int  # 1: the text of the unknown token can begin a word
    trie: DoubleArray  # all tokens, if ambiguous
    entry_pages: I32  # `normal_table`, if ambiguous
    entries: I32


def word_rules(vocab: Vocab) -> WordRules:
    """The rules of a vocabulary of type "wpm"."""
    pages, entries = normal_table(bool(vocab.lowercase), bool(vocab.strip_accents))
    every = np.arange(UNICODE_SIZE)
    full = entries.reshape(-1, 256)[pages].reshape(-1)
    image = full & IMAGE ^ every
    lengths = 1 + (image >= 0x80).astype(np.int64) + (image >= 0x800) + (image >= 0x10000)
    facts = (full >> KIND | lengths - 1 << LENGTH | np.where(image == every, SAME, 0)).astype(np.uint8)
    kinds = np.full(256, ODD, np.uint8)
    kinds[:0x80] = np.array([LETTER, PLAIN_BLANK, ODD, PLAIN_ALONE])[full[:0x80] >> KIND]
    if (lengths[:0x80] != 1).any():
        raise AssertionError("ASCII does not stay ASCII")
    if not np.array_equal(kinds == ODD, [not (0x20 <= b < 0x7F or 9 <= b < 14) for b in range(256)]):
        raise AssertionError("other bytes than `_odd_bytes` knows are odd")
    steps, plain = _steps(vocab)
    fact_pages, blocks = two_stage(every, facts)
    unknown = vocab.tokens[vocab.unk_id] if vocab.unk_id >= 0 else b""
    # words begin with the mark, and the unknown token may be a prefix of one
    ambiguous = bool(unknown) and (unknown[:3] == MARK[: len(unknown)]) and find_key(vocab, unknown) >= 0
    nothing = frozen([], np.int32)
    data, offsets = frozen(vocab.key_bytes, np.uint8), frozen(vocab.key_offsets, np.int64)
    if not ambiguous:
        data, offsets = data[:0], frozen([0], np.int64)
    return WordRules(
        frozen(fact_pages, np.uint16), frozen(blocks, np.uint8), frozen(kinds, np.uint8), steps,
        int(plain and not ambiguous), vocab.unk_id, int(ambiguous),
        build_double_array(data, offsets, np.arange(offsets.size - 1, dtype=np.int32)),
        *((frozen(pages, np.int32), frozen(entries, np.int32)) if ambiguous else (nothing, nothing)),
    )  # fmt: skip


def _steps(vocab: Vocab) -> tuple[U16, bool]:
    """What each token, from -1 on, does in a plain stretch; and whether all tokens of a word's beginning show it."""
    offsets = vocab.key_offsets
    lengths = np.diff(offsets)
    padded = np.append(vocab.key_bytes, np.zeros(MARKER, np.uint8))
    head = [padded[offsets[:-1] + k] for k in range(MARKER)]
    begins = (lengths >= MARKER) & (head[0] == MARK[0]) & (head[1] == MARK[1]) & (head[2] == MARK[2])
    # a token that is the marker or a part of it is followed by one that begins no word
    parts = (head[0] == MARK[0]) & ((lengths == 1) | ((lengths == 2) & (head[1] == MARK[1])))
    plain = not (parts.any() or (begins & (lengths == MARKER)).any() or lengths.max(initial=0) >= 1 << 14)
    steps = np.where(begins, lengths - MARKER << 1 | BEGINS, lengths << 1)
    if vocab.unk_id >= 0:
        plain = plain and not vocab.tokens[vocab.unk_id].isalnum()  # which can be found inside a word
        steps[vocab.unk_id] = BEGINS
    return frozen(np.concatenate([[BEGINS], np.minimum(steps, 0xFFFF)]), np.uint16), plain


class WordWindow(NamedTuple):
    """The same, and what is walked over, as windows."""

    text: Window
    sizes: Window
    ids: Window
    spans: Window
    pages: Window
    blocks: Window
    ascii: Window
    steps: Window
    unk_id: int
    origin: int


@kernel
def word_spans(
    lengths: Lengths, rules: WordRules, data: U8, starts: I64, stops: I64, ends: I64, ids: I32, word: OutU8,
    spans: OutI64, left: OutI64, count: int,
) -> int:  # fmt: skip
    """Spans of the tokens of the fragments left[:2 * count], a list as `direct_spans` makes it.

    word: uint8[2 * n + 8] scratch for fragments of up to n bytes, if rules.ambiguous
    The other arrays are those of `direct_spans`. Returns 0; -1 - fragment where the ids are not those of the text.
    Linear in bytes.
    """
    for item in range(count):
        fragment, origin = wide(left[2 * item]), wide(left[2 * item + 1])
        w = WordWindow(
            window(data), window(lengths.output), window(ids), window(spans), window(rules.pages), window(rules.blocks),
            window(rules.ascii), window(rules.steps), rules.unk_id, origin,
        )  # fmt: skip
        i, stop, k, end = starts[fragment], stops[fragment], first_id(window(ends), fragment), ends[fragment]
        while i < stop:
            odd = i
            if rules.plain:
                odd = _next_odd(w, i, stop)
                safe = odd  # where the word that `odd` may belong to begins
                while odd < stop and safe > i and _is_letter(w, safe - 1):
                    safe -= 1
                i, k = _walk_plain(w, i, safe, k, end)
            while k >= 0 and i <= odd < stop:
                i, k = _walk_word(w, rules, word, i, stop, k, end)
                if not rules.plain or (i < stop and get_u8(w.ascii, get_u8(w.text, i)) == ODD):
                    odd = i
            if k < 0:
                return -1 - fragment
        if k != end:
            return -1 - fragment
    return 0


@helper
def _put(w: WordWindow, k: int, start: int, stop: int) -> None:
    put_i64(w.spans, 2 * k, start - w.origin)
    put_i64(w.spans, 2 * k + 1, stop - w.origin)


@helper
def _odd_bytes(word: np.uint64) -> np.uint64:
    """The high bits of the bytes that are ODD: above 7E, or below 20 and not 09 .. 0D. No sum leaves its byte."""
    low = word & ~_HIGH
    control = ~(low + _FROM_20) & (~(low + _FROM_09) | low + _FROM_0E)
    return (word | low + _FROM_7F | control) & _HIGH


@helper
def _next_odd(w: WordWindow, i: int, stop: int) -> int:
    """The first byte from i on that no plain stretch has, or stop."""
    while i + 16 <= stop and (_odd_bytes(get_word(w.text, i)) | _odd_bytes(get_word(w.text, i + 8))) == _NONE:
        i += 16
    while i < stop and get_u8(w.ascii, get_u8(w.text, i)) != ODD:
        i += 1
    return i


@helper
def _walk_plain(w: WordWindow, i: int, stop: int, k: int, end: int) -> tuple[int, int]:
    """Spans of the ids from k on of the words of text[i:stop], which is plain; `stop` and the next id, -1 if they are
    not those of these words. One blank in front of a word costs no branch."""
    while k < end and i < stop:
        step = get_u16(w.steps, get_i32(w.ids, k) + 1)
        start = i + (step & BEGINS & (get_u8(w.text, i) ^ SPACE) - 1 >> 63)  # a blank and a word in one
        if start == stop or step & get_u8(w.ascii, get_u8(w.text, start)) & BEGINS:
            i = _skip_blanks(w, start, stop)
            continue
        i = start + (step >> 1)
        if i == start:  # the unknown token, which is a whole word
            i += 1
            while i < stop and _is_letter(w, start) and _is_letter(w, i):
                i += 1
        _put(w, k, start, i)
        k += 1
    i = _skip_blanks(w, i, stop)
    return i, k if i == stop else -1


@helper
def _skip_blanks(w: WordWindow, i: int, stop: int) -> int:
    """The first byte from i on that is no blank, or stop."""
    while i < stop and get_u8(w.ascii, get_u8(w.text, i)) == PLAIN_BLANK:
        i += 1
    return i


@helper
def _is_letter(w: WordWindow, i: int) -> bool:
    return bool(get_u8(w.ascii, get_u8(w.text, i)) == LETTER)


@helper
def _fact(w: WordWindow, i: int, stop: int) -> tuple[int, int]:
    """(fact, bytes) of the code point at i. Bad bytes, and what lies above Unicode, vanish."""
    c, size = decode(w.text, i, stop)
    if c == BAD or c > LAST_CODE_POINT:
        return DROPPED, 1
    return get_u8(w.blocks, get_u16(w.pages, c >> 7) << 7 | c & 127), size


@helper
def _next_letter(w: WordWindow, i: int, stop: int) -> tuple[int, int, int]:
    """(place, fact, bytes) of the next letter of the word that goes on at i; (place behind the word, -1, 0) when it
    ends."""
    while i < stop:
        fact, size = _fact(w, i, stop)
        kind = fact & KIND_BITS
        if kind == LETTER:
            return i, fact, size
        if kind != DROPPED:
            break
        i += size
    return i, -1, 0


@helper
def _walk_word(w: WordWindow, rules: WordRules, word: OutU8, i: int, stop: int, k: int, end: int) -> tuple[int, int]:
    """Spans of the ids from k on of the word that begins at i, or is empty there if it does not; (place behind, next
    id), the latter -1 if they are not those of the word."""
    fact, size = _fact(w, i, stop)
    kind = fact & KIND_BITS
    if kind in (BLANK, DROPPED):
        return i + size, k
    last = i + size if kind == ALONE else stop  # nothing of the word is behind it
    if k >= end:
        return i, -1
    start, token = i, get_i32(w.ids, k)
    if kind == ALONE and token != w.unk_id and get_i32(w.sizes, token + 1) == MARKER + 1 + (fact >> LENGTH & 3):
        _put(w, k, start, last)
        return last, k + 1
    if token == w.unk_id and not (rules.ambiguous and _is_known(w, rules, word, i, last)):
        behind = i
        while fact >= 0:
            behind = i + size
            i, fact, size = _next_letter(w, behind, last)
        _put(w, k, start, behind)
        return i, k + 1
    marker, used, whole = MARKER, 0, 1 + (fact >> LENGTH & 3)
    while fact >= 0:
        if k >= end:
            return i, -1
        need = get_i32(w.sizes, get_i32(w.ids, k) + 1)
        begin, behind = -1, -1
        if need == 0:
            return i, -1
        if marker > 0:
            begin = behind = start
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
            behind = high
            used, need = used + taken, need - taken
            if used == whole:
                i, fact, size = _next_letter(w, i + size, last)
                used, whole = 0, 1 + (fact >> LENGTH & 3)
        _put(w, k, begin, behind)
        k += 1
    return i, k


@helper
def _is_known(w: WordWindow, rules: WordRules, word: OutU8, i: int, stop: int) -> bool:
    """Whether tokens can be found for the word that begins at i, so that it is not unknown as a whole."""
    out, size, behind = window(word), 0, i
    for byte in MARK:
        put_u8(out, size, byte)
        size += 1
    fact = 0
    while fact >= 0:
        c, length = decode(w.text, behind, stop)
        entry = wide(rules.entries[wide(rules.entry_pages[c >> 8]) << 8 | c & 0xFF])
        size = put_code_point(out, size, c ^ entry & IMAGE)
        behind, fact, _ = _next_letter(w, behind + length, stop)
    at = 0
    while at < size:
        found, node = at, ROOT
        for j in range(at, size):
            node = child(rules.trie, node, wide(get_u8(out, j)))
            if node == NO_NODE:
                break
            if value_at(rules.trie, node) != NO_VALUE:
                found = j + 1
        if found == at:
            return False
        at = found
    return True
