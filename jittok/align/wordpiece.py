"""Spans of WordPiece: walk the ids over the words of a text.

Nothing is normalized again. In plain text, where every character keeps its length, words are found 64 bytes at a time
(`wordpiece_plain`); other words are walked by code points.
"""

from __future__ import annotations

from jittok._jit import I32, I64, U8, OutI32, OutI64, OutU8, as_int64, helper, kernel
from jittok._raw import get_i32, get_u8, put_u8, window
from jittok.align.direct_spans import first_id
from jittok.align.lengths import Lengths
from jittok.align.wordpiece_plain import find_words, walk_words
from jittok.align.wordpiece_rules import (
    ALONE,
    BLANK,
    DROPPED,
    IMAGE,
    KIND_BITS,
    LENGTH,
    LETTER,
    MARKER,
    SAME,
    WordPieceWindow,
    WordRules,
    fact_at,
    put_span,
)
from jittok.models.bpe.text_reader import decode, put_code_point
from jittok.structures.double_array import NO_NODE, NO_VALUE, ROOT, child, value_at
from jittok.unicode.characters import SPACE_MARK_BYTES


@kernel
def word_spans(
    lengths: Lengths, rules: WordRules, data: U8, starts: I64, stops: I64, ends: I64, ids: I32, word: OutU8,
    positions: OutI32, spans: OutI64, left: OutI64, count: int,
) -> int:  # fmt: skip
    """Write the spans of the tokens of the fragments left[:2 * count], a list made by `direct_spans`.

    positions: int32[OFFSETS] scratch
    word: uint8[2 * n + 8] scratch for fragments of up to n bytes, if rules.ambiguous
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
                number, safe, narrow = find_words(w, data.size, i, stop, window(positions))
                i, k = walk_words(w, i, safe, stop, window(positions), number, narrow, k, end)
            if k >= 0 and i < stop:
                i, k = _walk_word(w, rules, word, i, stop, k, end)
            if k < 0:
                return -1 - fragment
        if k != end:
            return -1 - fragment
    return 0


@helper
def _next_letter(w: WordPieceWindow, i: int, stop: int) -> tuple[int, int, int]:
    """(offset, fact, length) of the next letter of the word that continues at i, or (offset after the word, -1, 0)."""
    while i < stop:
        fact, size = fact_at(w, i, stop)
        kind = fact & KIND_BITS
        if kind == LETTER:
            return i, fact, size
        if kind != DROPPED:
            break
        i += size
    return i, -1, 0


@helper
def _walk_word(
    w: WordPieceWindow, rules: WordRules, word: OutU8, i: int, stop: int, k: int, end: int
) -> tuple[int, int]:
    """Write the spans of the ids from k on of the word that begins at i; a blank or dropped character is skipped.
    Returns (offset after it, next id); the id is -1 if the ids are not those of the word."""
    fact, size = fact_at(w, i, stop)
    kind = fact & KIND_BITS
    if kind in (BLANK, DROPPED):
        return i + size, k
    last = i + size if kind == ALONE else stop  # the word ends here or before
    if k >= end:
        return i, -1
    start, token = i, get_i32(w.ids, k)
    if kind == ALONE and token != w.unk_id and get_i32(w.sizes, token + 1) == MARKER + 1 + (fact >> LENGTH & 3):
        put_span(w, k, start, last)
        return last, k + 1
    if token == w.unk_id and not (rules.ambiguous and _is_known(w, rules, word, i, last)):
        after = i
        while fact >= 0:
            after = i + size
            i, fact, size = _next_letter(w, after, last)
        put_span(w, k, start, after)
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
        put_span(w, k, begin, after)
        k += 1
    return i, k


@helper
def _is_known(w: WordPieceWindow, rules: WordRules, word: OutU8, i: int, stop: int) -> bool:
    """Whether tokens match all of the word that begins at i, so that it is not unknown as a whole."""
    out, size, after = window(word), 0, i
    for byte in SPACE_MARK_BYTES:
        put_u8(out, size, byte)
        size += 1
    fact = 0
    while fact >= 0:
        c, length = decode(w.text, after, stop, w.shortest)
        entry = as_int64(rules.entries[as_int64(rules.entry_pages[c >> 8]) << 8 | c & 0xFF])
        size = put_code_point(out, size, c ^ entry & IMAGE)
        after, fact, _ = _next_letter(w, after + length, stop)
    at = 0
    while at < size:
        found, node = at, ROOT
        for j in range(at, size):
            node = child(rules.trie, node, as_int64(get_u8(out, j)))
            if node == NO_NODE:
                break
            if value_at(rules.trie, node) != NO_VALUE:
                found = j + 1
        if found == at:
            return False
        at = found
    return True
