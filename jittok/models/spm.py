"""SPM: arrays and kernel. Neighbouring symbols that together are a token merge, best score first (llama.cpp "llama").

A merge only ever makes a token, so all that merging needs is, for each way to cut a token in two symbols, the place of
its score among all scores. These pairs are found once, here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok._jit import I32, I64, U8, OutI32, OutI64, OutU8, frozen, helper, kernel, wide
from jittok._raw import get_i32, get_u8, put_i32, put_u8, window
from jittok.fragments import FOUND, FRAGMENT, NEED, NO_BYTE_TOKEN, OFFSET, OUT_OF_ROOM, OUT_OF_WORK, TEXT_PREFIXED
from jittok.structures.bytes_table import ABSENT, BytesTable, build_bytes_table, find_bytes, find_rows, open_bytes_table
from jittok.structures.merge_queue import MergeWindow, MergeWork, make_merge_work, merge_symbols, open_merge
from jittok.structures.pair_table import PairTable, build_pair_table
from jittok.vocab import SPACE, Vocab

IDS_PER_BYTE = 1
SPACE_0, SPACE_1, SPACE_2 = SPACE.encode()
GROWTH = 3
"""A space becomes the three bytes of U+2581."""


class Arrays(NamedTuple):
    """A compiled SPM vocabulary: all that the kernel knows."""

    pairs: PairTable  # symbols are token ids, and from `tokens` on characters that only occur inside tokens
    tokens: int
    texts: BytesTable  # texts of the tokens, then of those characters
    ascii: I32  # [128] the symbol of each ASCII character, or -1
    byte_ids: I32  # [256] the id that stands for a byte without a symbol, or -1
    reachable: U8  # [tokens] whether merging can make the token (a single character counts as made)
    add_space_prefix: int


class Work(NamedTuple):
    """Scratch for fragments of up to `longest` bytes."""

    text: OutU8  # [3 * longest + 16] the fragment with its spaces escaped
    merge: MergeWork


def make_work(arrays: Arrays, longest: int) -> Work:
    """Scratch of one thread for fragments of up to `longest` bytes."""
    del arrays
    room = GROWTH * longest + 16
    return Work(np.empty(room, np.uint8), make_merge_work(room))


def compile_vocab(vocab: Vocab) -> Arrays:
    """Flat arrays of `vocab`; linear in the bytes of its tokens times their characters."""
    data, offsets = frozen(vocab.token_bytes, np.uint8), frozen(vocab.token_offsets, np.int64)
    texts = _with_characters(data, offsets)
    order = frozen(np.argsort(np.diff(offsets), kind="stable"), np.int64)
    reachable = np.zeros(len(vocab), np.uint8)
    room = 1 << 12
    while True:
        left, right, merged = (np.empty(room, np.int32) for _ in range(3))
        count = find_pairs(texts, len(vocab), order, reachable, left, right, merged)
        if count <= room:
            break
        room = count
    left, right, merged = left[:count].copy(), right[:count].copy(), merged[:count].copy()
    _, ranks = np.unique(-vocab.scores, return_inverse=True)  # equal scores have equal ranks, the best has 0
    rank = ranks.astype(np.int32)[merged]
    pairs = build_pair_table(*(frozen(column, np.int32) for column in (left, right, rank, merged)))
    singles = find_rows(texts, [bytes([b]) for b in range(256)])
    hexes = find_rows(texts, [b"<0x%02X>" % b for b in range(256)])
    hexes[hexes >= len(vocab)] = ABSENT
    one_byte = np.where(singles < len(vocab), singles, ABSENT)
    one_byte[0] = ABSENT  # llama.cpp's string of the byte 0 is empty
    return Arrays(
        pairs=pairs,
        tokens=len(vocab),
        texts=texts,
        ascii=frozen(singles[:128], np.int32),
        byte_ids=frozen(np.where(hexes != ABSENT, hexes, one_byte), np.int32),
        reachable=frozen(reachable, np.uint8),
        add_space_prefix=int(vocab.add_space_prefix),
    )


def _with_characters(data: U8, offsets: I64) -> BytesTable:
    """The tokens' texts, and behind them each character inside a token that is no token itself."""
    table = build_bytes_table(data, offsets)
    more, ends = np.empty(data.size, np.uint8), np.zeros(data.size + 1, np.int64)
    count = other_characters(table, more, ends)
    if count == 0:
        return table
    lengths = np.diff(ends[: count + 1])
    rows = {more[end - n : end].tobytes() for end, n in zip(ends[1 : count + 1].tolist(), lengths.tolist(), strict=True)}
    extra = sorted(rows)
    joined = np.concatenate([data, np.frombuffer(b"".join(extra), np.uint8)])
    places = np.concatenate([offsets, offsets[-1] + np.cumsum([len(text) for text in extra])])
    return build_bytes_table(frozen(joined, np.uint8), frozen(places, np.int64))


@helper
def character_length(byte: int) -> int:
    """Bytes of a character judged by its first byte alone, as llama.cpp's unicode_len_utf8 does."""
    return 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4


@kernel
def other_characters(table: BytesTable, out: OutU8, ends: OutI64) -> int:
    """Every character (with repeats) of the tokens' texts that is no token: bytes to `out`, their ends to ends[1:].

    out: uint8[bytes of all tokens], ends: int64[bytes + 1] with 0 in front; returns how many.
    """
    strings = open_bytes_table(table)
    count, at = 0, 0
    for row in range(table.offsets.size - 1):
        i, stop = table.offsets[row], table.offsets[row + 1]
        while i < stop:
            j = min(i + character_length(wide(table.data[i])), stop)
            if find_bytes(strings, strings.data, i, j) == ABSENT:
                for k in range(i, j):
                    out[at] = table.data[k]
                    at += 1
                count += 1
                ends[count] = at
            i = j
    return count


@kernel
def find_pairs(
    table: BytesTable, tokens: int, order: I64, reachable: OutU8, left: OutI32, right: OutI32, merged: OutI32
) -> int:
    """Each way to make a token of two symbols that merging can make themselves.

    table: texts of all symbols; order: int64[tokens] ids by rising length; reachable: uint8[tokens] is filled
    left, right, merged: int32[room]

    Returns how many there are; when that is more than the room, only so many were written.
    """
    strings = open_bytes_table(table)
    count = 0
    for at in range(tokens):
        token = order[at]
        start, stop = table.offsets[token], table.offsets[token + 1]
        first = min(start + character_length(wide(table.data[start])), stop)
        reachable[token] = first == stop
        i = first
        while i < stop:
            j = min(i + character_length(wide(table.data[i])), stop)
            a = find_bytes(strings, strings.data, start, i)
            b = find_bytes(strings, strings.data, i, stop)
            if (
                a != ABSENT
                and b != ABSENT
                and (i == first or (a < tokens and reachable[a] != 0))
                and (j == stop or (b < tokens and reachable[b] != 0))
            ):
                reachable[token] = 1
                if count < left.size:
                    left[count], right[count], merged[count] = a, b, token
                count += 1
            i = j
    return count


@kernel
def encode_fragments(
    model: Arrays,
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
    """Ids of fragments first .. last - 1; the protocol is in `jittok.fragments`.

    Codes: OUT_OF_ROOM, OUT_OF_WORK, NO_BYTE_TOKEN. O(n log n) in the bytes of a fragment.
    """
    merge = open_merge(work.merge, model.pairs)
    for fragment in range(first, last):
        report[FRAGMENT] = fragment
        if tokens[fragment] >= 0:
            if count + 1 > ids.size:
                report[NEED] = 1
                return OUT_OF_ROOM
            ids[count] = tokens[fragment]
            count += 1
        else:
            start, stop = starts[fragment], stops[fragment]
            if GROWTH * (stop - start) + 16 > work.text.size:
                report[NEED] = stop - start
                return OUT_OF_WORK
            prefix = model.add_space_prefix if tokens[fragment] == TEXT_PREFIXED else 0
            length = _escape(work.text, data, start, stop, prefix)
            if count + length > ids.size:
                report[NEED] = length
                return OUT_OF_ROOM
            count = _encode_text(model, merge, work.text, length, count, ids, report)
            if count < 0:
                report[OFFSET] = _source(data, start, stop, prefix, report[OFFSET])
                return count
        ends[fragment] = count
    return count


@helper
def _escape(text: OutU8, data: U8, start: int, stop: int, prefix: int) -> int:
    """data[start:stop] with each space as U+2581, one more in front if `prefix`; returns the length."""
    out, at = window(text), 0
    source = window(data)
    for i in range(start - prefix, stop):
        byte = 0x20
        if i >= start:
            byte = get_u8(source, i)
        if byte == 0x20:
            put_u8(out, at, SPACE_0)
            put_u8(out, at + 1, SPACE_1)
            put_u8(out, at + 2, SPACE_2)
            at += 3
        else:
            put_u8(out, at, byte)
            at += 1
    return at


@helper
def _source(data: U8, start: int, stop: int, prefix: int, place: int) -> int:
    """The place in `data` of a place in the escaped text."""
    at = 3 * prefix
    i = start
    while i < stop:
        at += 3 if data[i] == 0x20 else 1
        if at > place:
            break
        i += 1
    return i


@helper
def _encode_text(model: Arrays, merge: MergeWindow, text: OutU8, length: int, count: int, ids: OutI32, report: OutI64) -> int:
    """Ids of the escaped text[:length]; at most one a byte. NO_BYTE_TOKEN."""
    source, texts = window(text), open_bytes_table(model.texts)
    symbols, i = 0, 0
    while i < length:
        byte = get_u8(source, i)
        j = min(i + character_length(byte), length)
        symbol = wide(model.ascii[byte]) if byte < 0x80 else find_bytes(texts, source, i, j)
        put_i32(merge.symbols, symbols, symbol)
        put_i32(merge.places, symbols, i)
        symbols += 1
        i = j
    put_i32(merge.places, symbols, length)
    symbols = merge_symbols(merge, symbols)
    for k in range(symbols):
        symbol = get_i32(merge.symbols, k)
        if 0 <= symbol < model.tokens:
            ids[count] = symbol
            count += 1
            continue
        for at in range(get_i32(merge.places, k), get_i32(merge.places, k + 1)):
            token = model.byte_ids[get_u8(source, at)]
            if token == ABSENT:
                report[OFFSET], report[FOUND] = at, get_u8(source, at)
                return NO_BYTE_TOKEN
            ids[count] = token
            count += 1
    return count
