"""A vocabulary to arrays: the pairs that merge, and the neighbours that never do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok._jit import I64, U8, OutI32, OutI64, OutU8, frozen, kernel, wide
from jittok.merging.chain_build import build_chain, character_rows, no_chain
from jittok.merging.living import Pairs, living
from jittok.models.spm.arrays import Arrays
from jittok.models.spm.whole import character_length
from jittok.safe_cuts import cuts, rules
from jittok.structures.bytes_table import ABSENT, BytesTable, build_bytes_table, find_bytes, find_rows, open_bytes_table
from jittok.structures.char_table import wide_characters
from jittok.unicode.characters import SPACE_BYTE, SPACE_MARK_BYTES
from jittok.vocab import Vocab


def compile_vocab(vocab: Vocab) -> Arrays:
    """Flat arrays of `vocab`; the bytes of its tokens times the number of their sizes."""
    data, offsets = frozen(vocab.token_bytes, np.uint8), frozen(vocab.token_offsets, np.int64)
    texts = other_characters_entered(data, offsets)
    order = frozen(np.argsort(np.diff(offsets), kind="stable"), np.int64)
    reachable = np.zeros(len(vocab), np.uint8)
    sizes = sizes_of(texts)
    room = 1 << 12
    while True:
        left, right, merged = (np.empty(room, np.int32) for _ in range(3))
        count = find_pairs(texts, len(vocab), order, sizes, reachable, left, right, merged)
        if count <= room:
            break
        room = count
    left, right, merged = left[:count].copy(), right[:count].copy(), merged[:count].copy()
    _, ranks = np.unique(-vocab.scores, return_inverse=True)  # equal scores have equal ranks, the best has 0
    rank = ranks.astype(np.int32)[merged]
    every = Pairs(*(frozen(column, np.int32) for column in (left, right, rank, merged)))
    _, pairs = living(every, character_rows(texts), texts.offsets.size - 1)
    singles = find_rows(texts, [bytes([b]) for b in range(256)])
    hexes = find_rows(texts, [b"<0x%02X>" % b for b in range(256)])
    hexes[hexes >= len(vocab)] = ABSENT
    one_byte = np.where(singles < len(vocab), singles, ABSENT)
    one_byte[0] = ABSENT  # llama.cpp's string of the byte 0 is empty
    byte_ids = np.where(hexes != ABSENT, hexes, one_byte)
    mark = int(find_rows(texts, [SPACE_MARK_BYTES])[0])
    span_ascii = singles[:128].copy()
    span_ascii[SPACE_BYTE] = mark
    return Arrays(
        pairs=pairs,
        tokens=len(vocab),
        texts=texts,
        ascii=frozen(singles[:128], np.int32),
        byte_ids=frozen(byte_ids, np.int32),
        reachable=frozen(reachable, np.uint8),
        add_space_prefix=int(vocab.add_space_prefix),
        rules=span_rules(data, offsets, reachable != 0),
        characters=wide_characters(texts),
        span_ascii=frozen(span_ascii, np.int32),
        span_byte_ids=frozen(byte_ids, np.int32),
        chain=no_chain(),
        room_per_byte=1 if 0 <= mark < len(vocab) else 3,
    )


def with_chain(arrays: Arrays) -> Arrays:
    """The same, with the chain for long spans if the merges allow one."""
    return arrays._replace(chain=build_chain(arrays.pairs, character_rows(arrays.texts), arrays.texts.offsets.size - 1))


def may_part(arrays: Arrays, _size: int) -> bool:
    """Whether a text may be cut in front of a space between ASCII letters: where no token holds a letter in front of
    U+2581. The rules know this of tokens that are UTF-8, so all must be."""
    followers = arrays.texts.data[np.minimum(arrays.texts.offsets, arrays.texts.data.size - 1)] & 0xC0 == 0x80
    if not arrays.rules.cuts[cuts.CLASSES * cuts.LETTER + cuts.BLANK] or followers[:-1].any():
        return False
    try:
        arrays.texts.data.tobytes().decode()
    except UnicodeDecodeError:
        return False
    return True


def span_rules(data: U8, offsets: I64, reachable: NDArray[np.bool_]) -> cuts.SpanRules:
    """Where a text may be cut: between characters that no token holds side by side, if merging can make it.

    A text has no space once its spaces are U+2581, so tokens that hold one match nothing.
    """
    spaces = np.concatenate([[0], np.cumsum(data == SPACE_BYTE)])
    found = rules.neighbours(data, offsets, reachable & (spaces[offsets[1:]] == spaces[offsets[:-1]]))
    return rules.rules_of(found)


def other_characters_entered(data: U8, offsets: I64) -> BytesTable:
    """The tokens' texts, and behind them each character inside a token that is no token itself."""
    table = build_bytes_table(data, offsets)
    more, ends = np.empty(data.size, np.uint8), np.zeros(data.size + 1, np.int64)
    count = other_characters(table, more, ends)
    if count == 0:
        return table
    lengths = np.diff(ends[: count + 1])
    rows = {
        more[end - n : end].tobytes() for end, n in zip(ends[1 : count + 1].tolist(), lengths.tolist(), strict=True)
    }
    extra = sorted(rows)
    joined = np.concatenate([data, np.frombuffer(b"".join(extra), np.uint8)])
    places = np.concatenate([offsets, offsets[-1] + np.cumsum([len(text) for text in extra])])
    return build_bytes_table(frozen(joined, np.uint8), frozen(places, np.int64))


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


def sizes_of(texts: BytesTable) -> U8:
    """uint8[longest + 1]: 1 for each size in bytes that some text has."""
    lengths = np.diff(texts.offsets)
    sizes = np.zeros(int(np.max(lengths, initial=0)) + 1, np.uint8)
    sizes[lengths] = 1
    return frozen(sizes, np.uint8)


@kernel
def find_pairs(
    table: BytesTable, tokens: int, order: I64, sizes: U8, reachable: OutU8,
    left: OutI32, right: OutI32, merged: OutI32,
) -> int:  # fmt: skip
    """Each way to make a token of two symbols that merging can make themselves.

    table: texts of all symbols; order: int64[tokens] ids by rising length; reachable: uint8[tokens] is filled
    sizes: uint8[longest text + 1] 1 where some text has so many bytes
    left, right, merged: int32[room]

    Returns how many there are; when that is more than the room, only so many were written. Only where both parts have
    the size of some text are they looked up: texts of n bytes together have at most sqrt(2 n) sizes.
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
            a, b = ABSENT, ABSENT
            if sizes[i - start] != 0 and sizes[stop - i] != 0:
                a = find_bytes(strings, strings.data, start, i)
                if a != ABSENT:
                    b = find_bytes(strings, strings.data, i, stop)
            if (
                ABSENT not in (a, b)
                and (i == first or (a < tokens and reachable[a] != 0))
                and (j == stop or (b < tokens and reachable[b] != 0))
            ):
                reachable[token] = 1
                if count < left.size:
                    left[count], right[count], merged[count] = a, b, token
                count += 1
            i = j
    return count
