"""Unigram's normalization with a map back: for each byte of the normalized text, the span of the text it comes from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.steps import SqueezeLlama
from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_BYTES
from jittok.kernels.jit import I64, U8, OutU8, as_int64, frozen, helper, kernel
from jittok.kernels.memory import Window, get_u8, put_i64, put_u8, window
from jittok.kernels.normalize.charsmap_table import TIED as TIED_BYTE
from jittok.kernels.normalize.charsmap_table import byte_kinds, charsmap_keys
from jittok.kernels.normalize.spaces import SpaceRules, space_rules
from jittok.kernels.normalize.xcda import OUTSIDE, Charsmap, longest_key, read_charsmap
from jittok.kernels.structures.double_array import NO_NODE, ROOT, DoubleArray, build_double_array, child
from jittok.kernels.structures.utf8 import well_formed
from jittok.vocab import Vocab
from jittok.vocab.as_pipeline import step_of

UNUSED, NORMAL, USER_DEFINED = 2, 4, 16
"""llama.cpp's attribute bits that matter here."""
BAD_TEXT = (0xEF, 0xBF, 0xBD)
PLAIN, SPACE, SPECIAL, TIED = 0, 1, 2, 4
"""Kinds of bytes. PLAIN: never changed; SPACE: a space that is never changed; SPECIAL: any other. The flag TIED with
PLAIN or SPACE: never changed unless a byte of a non-ASCII character follows."""
SAME, BAD = -1, -2
"""The output of a step, if it is no replacement: the bytes themselves, or U+FFFD."""
BROKEN = -3
"""Code: the ids are not those of the text."""


class UnigramRules(NamedTuple):
    """The tables for normalizing a text, and the characters that are never unknown."""

    kinds: U8  # [256]
    user: DoubleArray  # texts of user-defined tokens, which are not normalized
    charsmap: Charsmap
    spaces: SpaceRules
    unk_id: int  # may be -1
    always: int  # 1: spans always need the lattice
    characters: DoubleArray  # tokens that are one character: these are never unknown
    texts: U8  # [bytes] of all tokens
    offsets: I64  # [tokens + 1]
    shortest: int  # Vocab.shortest_utf8


def unigram_rules(vocab: Vocab) -> UnigramRules:
    """The rules of a vocabulary of type "ugm"."""
    attributes = vocab.file_attributes
    matching = can_match(vocab)
    lengths = np.diff(vocab.token_offsets)
    first = np.zeros(len(vocab), np.uint8)
    first[lengths > 0] = vocab.token_bytes[vocab.token_offsets[:-1][lengths > 0]]
    user = trie_of(vocab, attributes & USER_DEFINED != 0)
    charsmap = read_charsmap(vocab.charsmap, vocab.source)
    keys, kinds = charsmap_keys(charsmap), np.full(256, SPECIAL, np.uint8)
    first_bytes(user, charsmap, kinds)
    if keys is not None:
        tied = (byte_kinds(keys) == TIED_BYTE) & ~np.isin(np.arange(256), first[attributes & USER_DEFINED != 0])
        kinds[tied] = PLAIN | TIED
        kinds[SPACE_BYTE] |= SPACE if tied[SPACE_BYTE] else 0
    character = 1 + (first >= 0xC0).astype(np.int64) + (first >= 0xE0) + (first >= 0xF0)
    strange = not np.isfinite(vocab.scores[matching]).all()
    unknown_matches = vocab.unk_id >= 0 and bool(matching[vocab.unk_id])
    spaces = space_rules(step_of(vocab, SqueezeLlama))
    return UnigramRules(
        frozen(kinds, np.uint8), user, charsmap, spaces, vocab.unk_id, int(strange or unknown_matches),
        trie_of(vocab, matching & (lengths <= character)),  # a character may be cut short at the end of a text
        frozen(vocab.token_bytes, np.uint8), frozen(vocab.token_offsets, np.int64), int(vocab.shortest_utf8),
    )  # fmt: skip


def can_match(vocab: Vocab) -> NDArray[np.bool_]:
    """bool[tokens]: whether a token can be on a path."""
    matching: NDArray[np.bool_] = vocab.file_attributes & (NORMAL | USER_DEFINED | UNUSED) != 0
    return matching


def trie_of(vocab: Vocab, chosen: NDArray[np.bool_], scores: NDArray[np.float32] | None = None) -> DoubleArray:
    """The trie of the tokens chosen by bool[tokens], with their ids."""
    lengths = np.diff(vocab.token_offsets)
    data = vocab.token_bytes[np.repeat(chosen, lengths)]
    offsets = np.concatenate([[0], np.cumsum(lengths[chosen])])
    values = np.flatnonzero(chosen).astype(np.int32)
    return build_double_array(data, offsets, values, None if scores is None else scores[chosen])


@kernel
def first_bytes(user: DoubleArray, charsmap: Charsmap, kinds: OutU8) -> int:
    """Set kinds: uint8[256] to PLAIN or SPACE for all ASCII bytes that begin neither a key nor a user-defined token;
    returns 0."""
    root = 0
    if charsmap.units.size:
        root = as_int64(charsmap.units[0]) >> 10 << ((as_int64(charsmap.units[0]) & 0x200) >> 6)
    for byte in range(0x80):
        position = root ^ byte
        key = charsmap.units.size > 0 and byte != 0  # NUL ends every walk, so it begins no key
        if key and position < charsmap.units.size:
            key = as_int64(charsmap.units[position]) & 0x800000FF == byte
        if not key and child(user, ROOT, byte) == NO_NODE:
            kinds[byte] = SPACE if byte == SPACE_BYTE else PLAIN
    return 0


class Normal(NamedTuple):
    """The output of normalization, as windows: byte k of `text` comes from data[starts[k]:stops[k]]."""

    text: Window
    starts: Window
    stops: Window
    capacity: int


@helper
def _put(out: Normal, at: int, byte: int, start: int, stop: int) -> int:
    """Write one byte that comes from data[start:stop], if it fits; the offset after it."""
    if at < out.capacity:
        put_u8(out.text, at, byte)
        put_i64(out.starts, at, start)
        put_i64(out.stops, at, stop)
    return at + 1


@helper
def _put_space(rules: UnigramRules, out: Normal, at: int, start: int, stop: int) -> int:
    """Write a space that comes from data[start:stop]; the offset after it."""
    if not rules.spaces.escape:
        return _put(out, at, SPACE_BYTE, start, stop)
    for byte in SPACE_MARK_BYTES:
        at = _put(out, at, byte, start, stop)
    return at


@helper
def _step(rules: UnigramRules, data: U8, i: int, stop: int) -> tuple[int, int, int]:
    """(SAME, BAD or the offset of a replacement; bytes read; bytes to write) of one step."""
    end, node = i, ROOT
    while end < stop:  # a path of user-defined tokens is copied unchanged, whether or not a token ends there
        node = child(rules.user, node, as_int64(data[end]))
        if node == NO_NODE:
            break
        end += 1
    if end > i:
        return SAME, end - i, end - i
    used, value = longest_key(rules.charsmap, data, i, stop)
    if used == OUTSIDE or (used > 0 and value >= rules.charsmap.replacements_end):
        return BAD, 0, 0  # encoding would have failed here
    if used > 0:
        size, same = 0, True
        while rules.charsmap.replacements[value + size]:
            same = same and size < used and rules.charsmap.replacements[value + size] == data[i + size]
            size += 1
        return SAME if same and size == used else value, used, size
    used = well_formed(data, i, stop, rules.shortest)
    return (SAME, used, used) if used else (BAD, 1, 3)


@helper
def _kind(kinds: Window, text: Window, i: int, stop: int) -> int:
    """The kind of the byte at i, with its follower: PLAIN, SPACE or SPECIAL."""
    kind: int = get_u8(kinds, get_u8(text, i))
    if kind & TIED:
        kind = SPECIAL if i + 1 < stop and get_u8(text, i + 1) >= 0x80 else kind ^ TIED
    return kind


class SourcePosition(NamedTuple):
    """The state of normalization."""

    i: int  # in the data; BROKEN
    at: int  # in the normalized text
    inside: int  # 1: a word
    prepended: int  # 1: a space was put before a word
    gap_start: int  # start of the spaces that were skipped since the last word; -1: none
    gap_stop: int


@helper
def normalize(
    rules: UnigramRules, out: Normal, data: U8, position: SourcePosition, stop: int, limit: int
) -> SourcePosition:
    """Normalize data[position.i:stop] until there are `limit` bytes, and record the span of each. Bytes beyond the
    capacity of `out` are counted, but not written. Source: llama.cpp, `llm_tokenizer_ugm_session::normalize`."""
    spaces, text, kinds = rules.spaces, window(data), window(rules.kinds)
    i, at, inside, prepended = position.i, position.at, position.inside != 0, position.prepended != 0
    gap_start, gap_stop = position.gap_start, position.gap_stop
    while i < stop and at < limit:
        kind = _kind(kinds, text, i, stop)
        while kind == PLAIN and inside and at < limit:
            at = _put(out, at, get_u8(text, i), i, i + 1)
            i += 1
            kind = SPECIAL if i == stop else _kind(kinds, text, i, stop)
        if i == stop or at >= limit:
            break
        source, used, size = SAME, 1, 1
        if kind == SPECIAL:
            source, used, size = _step(rules, data, i, stop)
            if used == 0:
                return SourcePosition(BROKEN, at, 0, 0, -1, -1)
        for k in range(size):
            low, high = i, i + used
            if source == SAME:
                low, high, byte = i + k, i + k + 1, get_u8(text, i + k)
            elif source == BAD:
                byte = BAD_TEXT[k]
            else:
                byte = as_int64(rules.charsmap.replacements[source + k])
            if byte == SPACE_BYTE:
                inside = False
                if spaces.merge:
                    gap_start, gap_stop = low if gap_start < 0 else gap_start, high
                else:
                    at = _put_space(rules, out, at, low, high)
                continue
            if not inside and (spaces.merge or (spaces.prepend and not prepended)):
                if gap_start >= 0:
                    at = _put_space(rules, out, at, gap_start, gap_stop)
                elif source != SAME and k > 0:
                    at = _put_space(rules, out, at, low, high)
                else:
                    at = _put_space(rules, out, at, low, low)
                prepended = True
            inside, gap_start = True, -1
            at = _put(out, at, byte, low, high)
        i += used
    if i == stop and spaces.append:
        at = _put_space(rules, out, at, stop, stop)
    return SourcePosition(i, at, int(inside), int(prepended), gap_start, gap_stop)
