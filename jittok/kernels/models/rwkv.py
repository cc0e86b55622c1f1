"""RWKV: the longest token that matches, over token texts whose escapes are undone first.

llama.cpp's `llm_tokenizer_rwkv_session`. Nothing is normalized; a byte that no token begins with is one unknown token.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import NO_TOKEN, Longest, LongestEscaped
from jittok.common.pipeline.pipeline import packed
from jittok.common.unicode.characters import SPACE_BYTE
from jittok.kernels.fragments import FOUND, FRAGMENT, NEED, NO_TOKEN_ON_PATH, OFFSET, OUT_OF_CAPACITY, OUT_OF_WORK
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, OutU8, as_int64, frozen, helper, kernel
from jittok.kernels.memory import get_i32, window
from jittok.kernels.structures.double_array import (
    BASE,
    NO_NODE,
    NO_VALUE,
    PARENT,
    ROOT,
    UNIT,
    DoubleArray,
    build_double_array,
    child,
    value_at,
)
from jittok.kernels.structures.long_keys import LONG, NONE, LongKeys, find_long, long_keys, long_value, open_long
from jittok.kernels.structures.pages import scratch
from jittok.vocab.vocab import Vocab

IDS_PER_BYTE = 1
"""Proved: every id covers at least one byte."""
BACKSLASH, X = ord("\\"), ord("x")


class RwkvArrays(NamedTuple):
    """A compiled RWKV vocabulary."""

    trie: DoubleArray  # unescaped token bytes -> id; of duplicates the largest id
    unk_id: int  # may be -1, and is then emitted as -1
    long: LongKeys  # the long tokens again, for linear time


class RwkvWork(NamedTuple):
    """Memory of one thread for fragments of up to `longest` bytes."""

    found: OutI32  # [longest] which long token begins at each offset; empty where there are no long tokens


def compile_pipeline(pipeline: Pipeline) -> RwkvArrays | None:
    """Flat arrays of a GGUF of type "rwkv" or of RWKV's own list; None for any other file, and for a list that lacks a
    token for some byte."""
    if isinstance(pipeline.model, LongestEscaped):
        data, offsets = _unescaped(pipeline.model_bytes, pipeline.model_offsets)
        return _arrays(data, offsets, pipeline.model.unknown)
    if not isinstance(pipeline.model, Longest) or pipeline.normalize or pipeline.split:
        return None
    if any(bytes([byte]) not in pipeline.vocabulary for byte in range(256)):
        return None
    data, offsets = packed([text or b"" for text in pipeline.model_tokens])
    return _arrays(data, offsets, NO_TOKEN)


def _arrays(data: NDArray[np.uint8], offsets: NDArray[np.int64], unknown: int) -> RwkvArrays:
    """The arrays of these token texts; of duplicates the last is used."""
    trie = build_double_array(data, offsets, np.arange(offsets.size - 1, dtype=np.int32))
    long = np.flatnonzero(np.diff(offsets) > LONG).tolist()
    return RwkvArrays(trie, unknown, long_keys({data[offsets[k] : offsets[k + 1]].tobytes(): k for k in long}))


def can_split_at_spaces(arrays: RwkvArrays, _size: int) -> bool:
    """Whether a text may be cut before a space between ASCII letters. It may if no token contains a letter followed by
    a space: then a token ends there, wherever it begins."""
    units = arrays.trie.units.reshape(-1, UNIT)
    parent = units[:, PARENT]
    nodes = np.flatnonzero(parent >= 0)
    bytes_ = np.zeros(parent.size, np.int64)
    bytes_[nodes] = nodes ^ units[parent[nodes], BASE]
    letters = (bytes_ | 0x20 >= ord("a")) & (bytes_ | 0x20 <= ord("z"))
    return not np.any((bytes_[nodes] == SPACE_BYTE) & letters[parent[nodes]])


def make_work(arrays: RwkvArrays, longest: int) -> RwkvWork:
    """Memory for fragments of up to `longest` bytes. Pages that no text needs are not touched."""
    return RwkvWork(scratch(longest if arrays.long.count else 0, np.int32))


def pieces(vocab: Vocab) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(unescaped texts of all tokens, concatenated; their offsets)."""
    return _unescaped(vocab.token_bytes, vocab.token_offsets)


def _unescaped(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    raw, ends = np.empty(data.size, np.uint8), np.zeros(offsets.size, np.int64)
    unescape_texts(frozen(data, np.uint8), frozen(offsets, np.int64), raw, ends)
    return raw, ends


@kernel
def unescape_texts(data: U8, offsets: I64, out: OutU8, ends: OutI64) -> int:
    r"""Undo the escapes \t \n \r \xHH, and a backslash before any other byte, in each token text.

    data: uint8[bytes], offsets: int64[texts + 1]
    out: uint8[bytes] the texts, ends: int64[texts + 1] their offsets

    As in llama.cpp, hexadecimal digits are not checked, and an escape that the end of the text cuts off gives nothing.
    Returns the number of bytes written.
    """
    at = as_int64(0)
    for text in range(offsets.size - 1):
        ends[text] = at
        i, stop = as_int64(offsets[text]), as_int64(offsets[text + 1])
        while i < stop:
            byte = as_int64(data[i])
            i += 1
            if byte == BACKSLASH:
                if i == stop:
                    break
                byte = as_int64(data[i])
                i += 1
                if byte == X:
                    if i + 2 > stop:
                        break
                    byte = (_digit(as_int64(data[i])) << 4) + _digit(as_int64(data[i + 1])) & 0xFF
                    i += 2
                else:
                    byte = _control(byte)
            out[at] = byte
            at += 1
    ends[offsets.size - 1] = at
    return at


@helper
def _digit(byte: int) -> int:
    """llama.cpp's value of a hexadecimal digit: correct for 0-9 and a-f, meaningless bits for anything else."""
    return byte - 87 & 0xFF if byte >= 0x61 and byte < 0x80 else byte - 48 & 0xFF


@helper
def _control(byte: int) -> int:
    """The byte that a backslash and this byte mean."""
    return 9 if byte == ord("t") else 10 if byte == ord("n") else 13 if byte == ord("r") else byte


@kernel
def encode_fragments(
    arrays: RwkvArrays,
    work: RwkvWork,
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
    """See jittok.kernels.fragments. Codes: OUT_OF_CAPACITY, OUT_OF_WORK, NO_TOKEN_ON_PATH. Linear in bytes
    (`long_keys`)."""
    for k in range(first, last):
        report[FRAGMENT] = k
        if tokens[k] < 0:
            start, stop = as_int64(starts[k]), as_int64(stops[k])
            if arrays.long.count == 0 or stop - start <= LONG:
                count = encode_span(arrays, data, start, stop, ids, count, report)
            else:
                count = _encode_long(arrays, work, data, start, stop, ids, count, report)
            if count < 0:
                return count
        elif count < ids.size:
            ids[count] = tokens[k]
            count += 1
        else:
            report[NEED] = 1
            return OUT_OF_CAPACITY
        ends[k] = count
    return count


@helper
def encode_span(arrays: RwkvArrays, data: U8, start: int, stop: int, ids: OutI32, count: int, report: OutI64) -> int:
    """Ids of data[start:stop] to ids[count:]; the new count or a code."""
    if count + stop - start > ids.size:
        report[NEED] = stop - start
        return OUT_OF_CAPACITY
    i = start
    while i < stop:
        found, end = _longest(arrays, data, i, stop)
        if end == i:
            report[OFFSET], report[FOUND] = i, as_int64(data[i])
            return NO_TOKEN_ON_PATH
        ids[count] = found
        count, i = count + 1, end
    return count


@helper
def _longest(arrays: RwkvArrays, data: U8, i: int, stop: int) -> tuple[int, int]:
    """(the longest token that matches at data[i:stop], where it ends). It ends at i if no token matches although some
    token begins with this byte. The unknown token may be -1."""
    node, found, end, j = ROOT, NO_VALUE, i, i
    while j < stop:
        node = child(arrays.trie, node, as_int64(data[j]))
        if node == NO_NODE:
            break
        j += 1
        value = value_at(arrays.trie, node)
        if value != NO_VALUE:
            found, end = value, j
    return (arrays.unk_id, i + 1) if j == i else (found, end)  # no token begins with this byte


@helper
def _encode_long(
    arrays: RwkvArrays, work: RwkvWork, data: U8, start: int, stop: int, ids: OutI32, count: int, report: OutI64
) -> int:
    """`encode_span` for vocabularies with tokens of more than LONG bytes, which are looked up instead of walked to."""
    if stop - start > work.found.size:
        report[NEED] = stop - start
        return OUT_OF_WORK
    if count + stop - start > ids.size:
        report[NEED] = stop - start
        return OUT_OF_CAPACITY
    long, positions = open_long(arrays.long), window(work.found)
    find_long(long, window(data), start, stop, positions, 0)
    i = start
    while i < stop:
        node = get_i32(positions, i - start)
        if node == NONE:
            found, end = _longest(arrays, data, i, min(i + LONG, stop))
        else:
            found, size = long_value(long, node)
            end = i + size
        if end == i:
            report[OFFSET], report[FOUND] = i, as_int64(data[i])
            return NO_TOKEN_ON_PATH
        ids[count] = found
        count, i = count + 1, end
    return count
