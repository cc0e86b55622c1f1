"""WordPiece ("bert"): BERT's normalization by one table, then the longest token that matches, again and again.

llama.cpp's `llm_tokenizer_wpm_session`. A code point is looked up once: its kind (it joins the word, ends it, vanishes,
or is a word of its own) and what it becomes (first code point of its decomposition, in lower case). Words get U+2581 in
front. When some position of a word has no token, the whole word becomes the unknown token.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import I32, I64, U8, OutI32, OutI64, OutU8, frozen, helper, kernel, wide
from jittok.fragments import BEYOND_UNICODE, FOUND, FRAGMENT, NEED, OFFSET, OUT_OF_ROOM, OUT_OF_WORK
from jittok.structures.double_array import (
    NO_NODE,
    NO_VALUE,
    ROOT,
    DoubleArray,
    build_double_array,
    child,
    value_at,
)
from jittok.structures.utf8 import decode, encode
from jittok.unicode import tables
from jittok.unicode.tables import LAST_CODE_POINT
from jittok.vocab.vocab import SPACE, Vocab

LETTER, BLANK, DROPPED, ALONE = 0, 1, 2, 3
"""Kinds of code points: joins the word, ends it, vanishes (the word goes on), is a word of its own."""
KIND, IMAGE = 24, 0xFFFFFF
"""An entry is kind << KIND | (code point ^ what it becomes); XOR makes most blocks of the table equal."""
CJK = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),  # llama.cpp leaves out 2B820..2B91F
    (0x2F800, 0x2FA1F),
)
MARKER = SPACE.encode()
IDS_PER_BYTE = 1
"""Usually enough. The proved room is ROOM_PER_BYTE."""
ROOM_PER_BYTE = 5
"""A word of n bytes becomes at most 2n bytes (ASCII stays ASCII, all else has two bytes and becomes at most four), and
three more for the marker; each byte may be a token."""


class Arrays(NamedTuple):
    """A compiled WordPiece vocabulary."""

    trie: DoubleArray  # token bytes -> id
    pages: I32  # [0x1100] code point >> 8 -> block of `entries`
    entries: I32  # [256 * blocks] kind and image, see IMAGE
    marker_node: int  # the trie's node of U+2581, or NO_NODE
    marker_value: int  # the longest token that is a prefix of U+2581, or NO_VALUE
    marker_length: int  # its bytes
    unk_id: int  # may be -1, and is then emitted as -1


class Work(NamedTuple):
    """Scratch memory of one thread."""

    word: OutU8  # [2 * longest + 8] U+2581 and the normalized word


def compile_vocab(vocab: Vocab) -> Arrays:
    """Flat arrays of a vocabulary of type "wpm"."""
    trie = build_double_array(vocab.key_bytes, vocab.key_offsets, np.arange(len(vocab), dtype=np.int32))
    pages, entries = normal_table(bool(vocab.lowercase), bool(vocab.strip_accents))
    found = np.zeros(3, np.int64)
    find_marker(trie, frozen(np.frombuffer(MARKER, np.uint8), np.uint8), found)
    return Arrays(trie, pages, entries, *found.tolist(), vocab.unk_id)


@kernel
def find_marker(trie: DoubleArray, marker: U8, found: OutI64) -> int:
    """The trie's node of `marker` (or NO_NODE), the longest token that is a prefix of it (or NO_VALUE) and its bytes.

    found: int64[3]; returns 0.
    """
    found[0], found[1], found[2] = ROOT, NO_VALUE, 0
    for i in range(marker.size):
        found[0] = child(trie, found[0], wide(marker[i]))
        if found[0] == NO_NODE:
            break
        if value_at(trie, found[0]) != NO_VALUE:
            found[1], found[2] = value_at(trie, found[0]), i + 1
    return 0


@lru_cache(maxsize=4)
def normal_table(lowercase: bool, strip_accents: bool) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(pages, entries) of Arrays for the two settings of BERT's normalizer."""
    flags, everything = tables.flag_table(), np.arange(tables.UNICODE_SIZE)
    base, lower = everything.copy(), everything.copy()
    if strip_accents:
        before, after = tables.nfd_map()
        base[before] = after
    if lowercase:
        before, after = tables.lower_map()
        lower[before] = after
    alone = flags & tables.PUNCTUATION != 0
    alone[:0x7F] |= flags[:0x7F] & tables.SYMBOL != 0
    for first, last in CJK:
        alone[first : last + 1] = True
    kind = np.where(alone, ALONE, LETTER)
    if strip_accents:
        kind[flags & tables.MARK != 0] = DROPPED
    kind[flags & tables.CONTROL != 0] = DROPPED
    kind[[0, tables.REPLACEMENT]] = DROPPED
    kind[flags & tables.WHITESPACE != 0] = BLANK
    blocks = (kind[base] << KIND | lower[base] ^ everything).astype(np.int32).reshape(-1, 256)
    # Equal blocks share one entry; a block is compared as one opaque value of 1024 bytes.
    _, where, pages = np.unique(blocks.view("V1024").reshape(-1), return_index=True, return_inverse=True)
    return frozen(pages.reshape(-1), np.int32), frozen(blocks[where].reshape(-1), np.int32)


def make_work(_arrays: Arrays, longest: int) -> Work:
    """Scratch for fragments of up to `longest` bytes."""
    word = np.empty(2 * longest + 8, np.uint8)
    word[: len(MARKER)] = tuple(MARKER)
    return Work(word)


@kernel
def encode_fragments(
    arrays: Arrays,
    work: Work,
    data: U8,
    starts: I64,
    stops: I64,
    tokens: I32,
    first: int,
    last: int,
    count: int,
    ids: OutI32,
    ends: OutI64,
    report: OutI64,
) -> int:
    """See jittok.fragments. Codes: OUT_OF_ROOM, OUT_OF_WORK, BEYOND_UNICODE. Cost: bytes times the longest match."""
    for k in range(first, last):
        report[FRAGMENT] = k
        if tokens[k] < 0:
            count = encode_span(arrays, work, data, wide(starts[k]), wide(stops[k]), ids, count, report)
            if count < 0:
                return count
        elif count < ids.size:
            ids[count] = tokens[k]
            count += 1
        else:
            report[NEED] = 1
            return OUT_OF_ROOM
        ends[k] = count
    return count


@helper
def encode_span(
    arrays: Arrays, work: Work, data: U8, start: int, stop: int, ids: OutI32, count: int, report: OutI64
) -> int:
    """Ids of data[start:stop], whose ends end words, to ids[count:]; the new count or a code."""
    if 2 * (stop - start) + 8 > work.word.size:
        report[NEED] = stop - start
        return OUT_OF_WORK
    report[NEED] = ROOM_PER_BYTE * (stop - start)
    i, size = start, 3
    while i < stop:
        code, length = decode(data, i, stop)
        if code > LAST_CODE_POINT:
            report[OFFSET], report[FOUND] = i, code
            return BEYOND_UNICODE
        i += length
        entry = wide(arrays.entries[wide(arrays.pages[code >> 8]) << 8 | code & 0xFF])
        kind = entry >> KIND
        if kind == LETTER:
            size = encode(code ^ entry & IMAGE, work.word, size)
        elif kind != DROPPED:
            if size > 3:
                count = encode_word(arrays, work.word, size, ids, count)
            if kind == ALONE and count >= 0:
                size = encode(code ^ entry & IMAGE, work.word, 3)
                count = encode_word(arrays, work.word, size, ids, count)
            if count < 0:
                return count
            size = 3
    return encode_word(arrays, work.word, size, ids, count) if size > 3 else count


@helper
def encode_word(arrays: Arrays, word: OutU8, size: int, ids: OutI32, count: int) -> int:
    """Ids of the marked word word[:size] by longest match, or the unknown token; the new count or OUT_OF_ROOM."""
    at = count
    node, found, end, j = arrays.marker_node, arrays.marker_value, arrays.marker_length, 3
    if node == NO_NODE:  # no token goes on behind U+2581
        j = size
    while True:
        while j < size:
            node = child(arrays.trie, node, wide(word[j]))
            if node == NO_NODE:
                break
            j += 1
            value = value_at(arrays.trie, node)
            if value != NO_VALUE:
                found, end = value, j
        if found == NO_VALUE:
            found, at, end = arrays.unk_id, count, size
        if at >= ids.size:
            return OUT_OF_ROOM
        ids[at] = found
        at += 1
        if end == size:
            return at
        node, found, j = ROOT, NO_VALUE, end
