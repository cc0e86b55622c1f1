"""PLaMo-2 and 3: the cheapest segmentation into tokens and unknown code points, found from the end of the text.

PLaMo-3 splits the text first (`splitters.plamo3`) and segments each part separately.

llama.cpp's `llm_tokenizer_plamo2` has a table of all suffixes of tokens (by code points). For each suffix it lists the
prefixes that are in the table too, longest first. Read backwards, this is the Aho-Corasick automaton (1975) of the
reversed texts: a suffix is a node in the trie of reversed tokens, and its rows are the node and its chain of failure
links. The last row (one unknown code point) is the root. The rows are the same in the same order, so the ids are too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import Suffixes
from jittok.common.pipeline.steps import PlamoSegments
from jittok.errors import InWords, MalformedVocab
from jittok.kernels.fragments import FRAGMENT, NEED, OUT_OF_CAPACITY, OUT_OF_WORK
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, OutU8, as_int64, frozen, helper, kernel
from jittok.kernels.memory import Window, get_i32, get_i64, put_i32, put_i64, window
from jittok.kernels.pretokenize.splitters.plamo3 import BOUNDARY, mark_segments
from jittok.kernels.structures.double_array import (
    BASE,
    NO_NODE,
    PARENT,
    ROOT,
    UNIT,
    DoubleArray,
    build_double_array,
    value_at,
)
from jittok.kernels.structures.utf8 import decode, encoded_byte, encoded_length

BYTE = 32
"""llama.cpp's attribute bit of byte tokens."""
UNKNOWN, INVALID = -10_000_000, -20_000_000
"""Scores in units of 1 / SCALE: that of an unknown code point; a row at or below INVALID is never used."""
SCALE = 10_000.0
BYTE_ORDER_MARK = 0xFEFF
FAR = 1 << 60
KEY = "tokenizer.ggml.tokens"
IDS_PER_BYTE = 1
"""Usually enough; the proved bound is ROOM_PER_BYTE."""
ROOM_PER_BYTE = 3
"""An invalid byte becomes the three byte tokens of U+FFFD."""


class Plamo2Arrays(NamedTuple):
    """The automaton. Slots that are no node, or are inside a code point, have depth 0 and are never reached."""

    trie: DoubleArray  # tokens with their code points in reverse order, each in UTF-8 -> id
    fails: I32  # [slots] node of the longest proper suffix (of the reversed text) that is a node
    links: I32  # [slots] the first node on the chain of `fails` whose score is above INVALID; the root's is the root
    depths: I32  # [slots] code points; 1 for the root, which means one unknown code point
    scores: I32  # [slots] in 1 / SCALE; INVALID for a suffix that is no token, UNKNOWN for the root
    byte_ids: I32  # [256] id of <0xHH>
    in_segments: int  # 1: PLaMo-3
    shortest: int  # Vocab.shortest_utf8


class Plamo2Work(NamedTuple):
    """Scratch memory of one thread."""

    codes: OutI32  # [longest + 1] code points; after the search the node of the best token that starts here
    costs: OutI64  # [power of two above the longest token] ring: cost of the text from an offset on, at its low bits
    cuts: OutU8  # [longest + 1] PLaMo-3: where segments begin


def compile_pipeline(pipeline: Pipeline) -> Plamo2Arrays:
    """Flat arrays of a GGUF of type "plamo2" or "plamo3".

    Raises MalformedVocab for what llama.cpp refuses (a byte without a token, code points above U+10FFFF), and for token
    texts that are invalid UTF-8, with which llama.cpp reads outside its table.
    """
    model, segments = pipeline.model, pipeline.step(PlamoSegments)
    assert isinstance(model, Suffixes)
    assert segments is not None
    chosen = model.attributes & BYTE == 0
    ids = np.flatnonzero(chosen).astype(np.int32)
    lengths = np.diff(pipeline.model_offsets)
    data, offsets = pipeline.model_bytes[np.repeat(chosen, lengths)], np.zeros(ids.size + 1, np.int64)
    np.cumsum(lengths[chosen], out=offsets[1:])
    reverse = np.empty(data.size, np.uint8)
    bad = reverse_texts(frozen(data, np.uint8), frozen(offsets, np.int64), reverse)
    if bad >= 0:
        token = pipeline.model_bytes[pipeline.model_offsets[ids[bad]] : pipeline.model_offsets[ids[bad] + 1]].tobytes()
        raise MalformedVocab(pipeline.source, f"{KEY}[{ids[bad]}]", token, "UTF-8")
    trie = build_double_array(reverse, offsets, ids)
    slots = trie.units.size // UNIT
    fails, links = np.zeros(slots, np.int32), np.zeros(slots, np.int32)
    depths, scores = np.zeros(slots, np.int32), np.full(slots, INVALID, np.int32)
    link_nodes(
        trie,
        frozen(reverse, np.uint8),
        frozen(offsets, np.int64),
        frozen(fixed_scores(model.scores[chosen]), np.int32),
        np.empty(3 * ids.size, np.int64),
        fails,
        links,
        depths,
        scores,
    )
    return Plamo2Arrays(
        trie,
        frozen(fails, np.int32),
        frozen(links, np.int32),
        frozen(depths, np.int32),
        frozen(scores, np.int32),
        _byte_ids(pipeline, model.attributes),
        int(segments.runs),
        int(segments.shortest),
    )


def fixed_scores(scores: NDArray[np.float32]) -> NDArray[np.int32]:
    """Scores in units of 1 / SCALE, halves rounded away from zero; INVALID or less for unusable ones."""
    exact = np.where(np.isfinite(scores), scores, 0.0).astype(np.float64) * SCALE
    size = np.abs(exact)
    whole = np.floor(size)
    whole = np.copysign(whole + (size - whole >= 0.5), exact)
    usable = np.isfinite(scores) & (whole >= -(2.0**31)) & (whole < 2.0**31)
    return np.where(usable, whole, INVALID).astype(np.int32)


def _byte_ids(pipeline: Pipeline, attributes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Ids of <0x00> .. <0xFF>; of duplicates the last. An id of 0 counts as missing, as in llama.cpp."""
    found = np.zeros(256, np.int32)
    for token in np.flatnonzero(attributes & BYTE).tolist():
        text = pipeline.model_bytes[pipeline.model_offsets[token] : pipeline.model_offsets[token + 1]].tobytes()
        if len(text) == 6 and text.startswith(b"<0x") and text.endswith(b">") and _is_hex(text[3:5]):
            found[int(text[3:5], 16)] = token
    if not found.all():
        missing = f"<0x{int(np.argmin(found != 0)):02X}>"
        raise MalformedVocab(
            pipeline.source, KEY, InWords(f"no byte token {missing} with an id above 0"), "a token for each byte"
        )
    return frozen(found, np.int32)


def _is_hex(digits: bytes) -> bool:
    return all(c in b"0123456789abcdefABCDEF" for c in digits)


def make_work(arrays: Plamo2Arrays, longest: int) -> Plamo2Work:
    """Scratch for fragments of up to `longest` bytes."""
    return Plamo2Work(
        np.empty(longest + 1, np.int32),
        np.empty(1 << int(arrays.depths.max()).bit_length(), np.int64),
        np.empty(longest + 1, np.uint8),
    )


@kernel
def reverse_texts(data: U8, offsets: I64, out: OutU8) -> int:
    """Write each text with its code points in reverse order; returns -1, or the first text that is invalid UTF-8.

    data, out: uint8[bytes], offsets: int64[texts + 1]
    """
    for text in range(offsets.size - 1):
        i, stop = as_int64(offsets[text]), as_int64(offsets[text + 1])
        at = stop
        while i < stop:
            code, length = decode(data, i, stop, 1)
            if length != encoded_length(code):  # invalid UTF-8
                return text
            at -= length
            for k in range(length):
                out[at + k] = data[i + k]
            i += length
    return -1


@kernel
def link_nodes(
    trie: DoubleArray,
    texts: U8,
    offsets: I64,
    scores: I32,
    cursors: OutI64,
    fails: OutI32,
    links: OutI32,
    depths: OutI32,
    node_scores: OutI32,
) -> int:
    """Failure links, depths and scores of all nodes, level by level, a code point of every text at a time.

    texts, offsets: the reversed texts; scores: int32[texts]
    cursors: int64[3 * texts] scratch: texts that have code points left, with the node and the offset each has reached
    fails, links, depths: int32[slots] zeroed, node_scores: int32[slots] INVALID; see Plamo2Arrays

    Returns the longest text in code points. Linear in bytes.
    """
    units = window(trie.units)
    depths[ROOT], node_scores[ROOT], links[ROOT] = 1, UNKNOWN, ROOT
    left = as_int64(scores.size)
    for text in range(left):
        cursors[3 * text], cursors[3 * text + 1], cursors[3 * text + 2] = text, ROOT, offsets[text]
    depth = as_int64(0)
    while left:
        depth += 1
        after, left = left, as_int64(0)
        for k in range(after):
            text, node, i = cursors[3 * k], cursors[3 * k + 1], cursors[3 * k + 2]
            stop = as_int64(offsets[text + 1])
            code, length = decode(texts, i, stop, 1)
            i += length
            below = step(units, node, code)
            if depths[below] == 0:  # its links lead to earlier levels, which are done
                depths[below] = depth
                fail = _failure(units, fails, node, code)
                fails[below] = fail
                links[below] = fail if node_scores[fail] > INVALID else links[fail]
            if i == stop:
                node_scores[below] = scores[text]
            else:
                cursors[3 * left], cursors[3 * left + 1], cursors[3 * left + 2] = text, below, i
                left += 1
    return depth


@helper
def _failure(units: Window, fails: OutI32, node: int, code: int) -> int:
    """The failure link of the child of `node` under `code`."""
    while node != ROOT:
        node = as_int64(fails[node])
        below = step(units, node, code)
        if below != NO_NODE:
            return below
    return ROOT


@helper
def step(units: Window, node: int, code: int) -> int:
    """The node under a whole code point in a trie's units, or NO_NODE. In bounds by the invariant of DoubleArray."""
    if code < 0x80:
        return _child(units, node, code)
    size = encoded_length(code)
    for k in range(size):
        node = _child(units, node, encoded_byte(code, size, k))
        if node == NO_NODE:
            return NO_NODE
    return node


@helper
def _child(units: Window, node: int, byte: int) -> int:
    position = get_i32(units, UNIT * node + BASE) ^ byte
    return position if get_i32(units, UNIT * position + PARENT) == node else NO_NODE


@kernel
def encode_fragments(
    arrays: Plamo2Arrays,
    work: Plamo2Work,
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
    """See jittok.kernels.fragments. Codes: OUT_OF_CAPACITY, OUT_OF_WORK. Time: code points times tokens that match at
    one."""
    for k in range(first, last):
        report[FRAGMENT] = k
        if tokens[k] < 0:
            count = encode_span(arrays, work, data, as_int64(starts[k]), as_int64(stops[k]), ids, count, report)
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
def encode_span(
    arrays: Plamo2Arrays, work: Plamo2Work, data: U8, start: int, stop: int, ids: OutI32, count: int, report: OutI64
) -> int:
    """Ids of the whole fragment data[start:stop] to ids[count:]; the new count or a code."""
    if stop - start > work.codes.size - 1:
        report[NEED] = stop - start
        return OUT_OF_WORK
    size, i = as_int64(0), start
    while i < stop:
        code, length = decode(data, i, stop, arrays.shortest)
        if i != start or code != BYTE_ORDER_MARK or arrays.in_segments:
            work.codes[size] = code
            size += 1
        i += length
    report[NEED] = ROOM_PER_BYTE * (stop - start)
    if not arrays.in_segments:
        return encode_part(arrays, work, 0, size, ids, count)
    mark_segments(work.codes, size, work.cuts)
    begin, end = as_int64(0), as_int64(0)
    while end < size:
        dropped = as_int64(work.codes[end]) == BOUNDARY
        end += 1
        if work.cuts[end] or dropped:
            count = encode_part(arrays, work, begin, end - dropped, ids, count)
            if count < 0:
                return count
            begin = end
    return count


@helper
def encode_part(arrays: Plamo2Arrays, work: Plamo2Work, begin: int, stop: int, ids: OutI32, count: int) -> int:
    """Ids of the code points begin .. stop - 1 to ids[count:]; the new count or OUT_OF_CAPACITY."""
    find_pieces(arrays, work, begin, stop)
    i = begin
    while i < stop:
        node = as_int64(work.codes[i])
        if node < 0:
            node, code = ROOT, -1 - node
            length = encoded_length(code)
            if count + length > ids.size:
                return OUT_OF_CAPACITY
            for k in range(length):
                ids[count + k] = arrays.byte_ids[encoded_byte(code, length, k)]
            count += length
        else:
            if count >= ids.size:
                return OUT_OF_CAPACITY
            ids[count] = value_at(arrays.trie, node)
            count += 1
        i += as_int64(arrays.depths[node])
    return count


class _PathWindow(NamedTuple):
    """The arrays that the search for the cheapest path reads and writes, as windows."""

    units: Window
    fails: Window
    links: Window
    depths: Window
    scores: Window
    codes: Window
    costs: Window


@helper
def find_pieces(arrays: Plamo2Arrays, work: Plamo2Work, begin: int, stop: int) -> None:
    """Overwrite the code points begin .. stop - 1, from the last to the first: each becomes the node of the best token
    that starts there, or -1 - the code point where it is unknown.

    `node` is the longest string of the automaton that is a prefix of the rest of the text, so every token on its chain
    ends inside the text. A token whose score is exactly UNKNOWN ends both searches early, as in llama.cpp's table.
    """
    w = _PathWindow(
        window(arrays.trie.units), window(arrays.fails), window(arrays.links), window(arrays.depths),
        window(arrays.scores), window(work.codes), window(work.costs),
    )  # fmt: skip
    recent = work.costs.size - 1  # offsets this far apart share an entry of `costs`; no token is that long
    put_i64(w.costs, stop & recent, 0)
    node = ROOT
    for i in range(stop - 1, begin - 1, -1):
        code = get_i32(w.codes, i)
        below = step(w.units, node, code)
        while below == NO_NODE and get_i32(w.scores, node) != UNKNOWN:
            node = get_i32(w.fails, node)
            below = step(w.units, node, code)
        node = below if below != NO_NODE else ROOT
        best, piece, row = FAR, ROOT, node
        if get_i32(w.scores, row) <= INVALID:
            row = get_i32(w.links, row)
        while True:
            score = get_i32(w.scores, row)
            cost = get_i64(w.costs, i + get_i32(w.depths, row) & recent) - score
            if cost < best:
                best, piece = cost, row
            if score == UNKNOWN:
                break
            row = get_i32(w.links, row)
        put_i64(w.costs, i & recent, best)
        put_i32(w.codes, i, piece if piece != ROOT else -1 - code)
