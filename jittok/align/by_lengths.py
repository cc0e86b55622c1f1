"""Spans by the lengths of tokens: BPE, SPM, RWKV and PLaMo.

If a text is encoded unchanged except for its spaces, each token covers as many bytes as its text has. A fragment is
done if the lengths of its tokens add up to its own length (`lengths` explains why that is sufficient): `direct_spans`.

A text may be rewritten before it is tokenized: invalid UTF-8, U+2581, white space, DNA. Then a map holds, for each byte
of the rewritten fragment, the span of the original text that it comes from. For an unchanged byte, that is the byte
itself; all bytes of a replacement have the same span. The tokens of the fragment cover the rewritten bytes one after
the other, so only the spans are needed, never the bytes: `rewritten_spans`. If the lengths do not add up there either
(bytes without a token are dropped, symbols without one become byte tokens), the fragment is left to `replay`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.align.lengths import DNA_BEGIN, DNA_END, DNA_UNKNOWN, Lengths, find_key, is_dna
from jittok.common.unicode.characters import KMER, NEWLINE, SPACE_BYTE, SPACE_MARK_CODE
from jittok.common.unicode.tables import LAST_CODE_POINT, REPLACEMENT
from jittok.kernels.fragments import TEXT_PREFIXED
from jittok.kernels.jit import I32, I64, U8, OutI64, as_int64, frozen, helper, kernel
from jittok.kernels.memory import (
    Window,
    equal_mask,
    get_i32,
    get_i64,
    get_u8,
    get_u16,
    put_i64,
    trailing_zeros,
    utf8_masks,
    window,
)
from jittok.kernels.models.bpe.text_reader import BAD, decode, first_malformed
from jittok.kernels.normalize.case import LOWERED, CaseTable, case_table, kind_of, lower_case
from jittok.kernels.normalize.case import SPACE as WHITE
from jittok.kernels.pretokenize.definition import pre_type
from jittok.kernels.pretokenize.splitters.plamo3 import BOUNDARY
from jittok.kernels.structures.utf8 import encoded_length
from jittok.vocab import Vocab
from jittok.vocab.types import type_of

_NONE, _1, _2, _3, _61, _62, _63 = (np.uint64(n) for n in (0, 1, 2, 3, 61, 62, 63))
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class DirectRules(NamedTuple):
    """Flags, 0 or 1: the conditions under which a fragment's spans follow from its ids."""

    prefix: int  # 1: a space is put before a fragment at the start or after a special token
    well_formed: int  # 1: it must be valid UTF-8
    no_mark: int  # 1: it must not begin with a byte order mark


@kernel
def direct_spans(
    lengths: Lengths, rules: DirectRules, data: U8, document_starts: I64, first: int, last: int, document_ends: I64,
    starts: I64, stops: I64, tokens: I32, ends: I64, ids: I32, spans: OutI64, left: OutI64,
) -> int:  # fmt: skip
    """Write the spans of the tokens of documents first .. last - 1.

    document_starts: int64[documents] in `data`; document_ends: int64[last - first] fragments up to the end of each
    starts, stops: int64[fragments], tokens: int32[fragments] see `jittok.kernels.fragments`
    ends: int64[fragments] the end of each one's ids in `ids`: int32[n], each -1 or in the vocabulary
    spans: int64[2 * n] start and stop of each token, relative to the start of its document
    left: int64[2 * fragments] receives (fragment, start of its document) for each fragment that is not decided here,
    whose spans are undefined

    Returns the number of these fragments. Linear in tokens, and in bytes if UTF-8 has to be valid.
    """
    text, numbers, sizes, out = window(data), window(ids), window(lengths.source), window(spans)
    count, fragment, k = 0, 0, 0
    for document in range(first, last):
        origin = document_starts[document]
        while fragment < document_ends[document - first]:
            start, stop, end = starts[fragment] - origin, stops[fragment] - origin, ends[fragment]
            if tokens[fragment] >= 0:
                put_i64(out, 2 * k, start)
                put_i64(out, 2 * k + 1, stop)
            else:
                at = start - 1 if rules.prefix and tokens[fragment] == TEXT_PREFIXED else start
                if (
                    not lengths.direct
                    or not _walk(sizes, numbers, out, k, end, start, at, stop)
                    or (rules.well_formed and not is_well_formed(text, start + origin, stop + origin))
                    or (rules.no_mark and begins_with_mark(text, start + origin, stop + origin))
                ):
                    left[2 * count], left[2 * count + 1] = fragment, origin
                    count += 1
            k, fragment = end, fragment + 1
    return count


@helper
def _walk(sizes: Window, ids: Window, spans: Window, k: int, end: int, start: int, at: int, stop: int) -> bool:
    """Write the spans of ids k .. end - 1, which cover text[start:stop] from `at` on (`at` is before `start` if a space
    was added); returns whether they cover it exactly."""
    if k < end:
        at += get_u16(sizes, get_i32(ids, k) + 1)
        put_i64(spans, 2 * k, start)
        put_i64(spans, 2 * k + 1, at)
        k += 1
    while k < end:
        put_i64(spans, 2 * k, at)
        at += get_u16(sizes, get_i32(ids, k) + 1)
        put_i64(spans, 2 * k + 1, at)
        k += 1
    return at == stop


@helper
def is_well_formed(text: Window, i: int, stop: int) -> bool:
    """Whether text[i:stop] is valid UTF-8; surrogates are accepted.

    Checks 64 bytes at once: continuation bytes must be exactly where first bytes require them. Then only the few first
    bytes that restrict their second byte are tested one by one.
    """
    while i + 64 <= stop:
        followers, two, three, four, _ = utf8_masks(text, i)
        if followers | two == _NONE:
            i += 64
            continue
        if followers != two << _1 | three << _2 | four << _3:
            return False
        size = 64  # less if the last character continues after these bytes
        if two >> _63 != _NONE:
            size = 63
        elif three >> _62 != _NONE:
            size = 62
        elif four >> _61 != _NONE:
            size = 61
        picky = four | equal_mask(text, i, 0xE0) | equal_mask(text, i, 0xC0) | equal_mask(text, i, 0xC1)
        picky &= _ALL >> np.uint64(64 - size)
        while picky != _NONE:
            position = i + trailing_zeros(picky)
            first, second = get_u8(text, position), get_u8(text, position + 1)
            if (
                first <= 0xC1
                or (first == 0xE0 and second < 0xA0)
                or (first == 0xF0 and second < 0x90)
                or (first == 0xF4 and second >= 0x90)
                or first > 0xF4
            ):
                return False
            picky &= picky - _1
        i += size
    return first_malformed(text, i, stop) == stop


@helper
def begins_with_mark(text: Window, i: int, stop: int) -> bool:
    """Whether text[i:stop] begins with U+FEFF."""
    return i + 3 <= stop and get_u8(text, i) == 0xEF and get_u8(text, i + 1) == 0xBB and get_u8(text, i + 2) == 0xBF


@helper
def first_id(ends: Window, fragment: int) -> int:
    """The offset of a fragment's first id."""
    return get_i64(ends, fragment - 1) if fragment > 0 else 0


# ---- rewritten text

BPE, WHITESPACE, DNA, SPM, PLAMO2, PLAMO3 = range(6)
"""The kinds of rewriting."""
_KINDS = {"BPE": BPE, "SPM": SPM, "PLAMO2": PLAMO2, "PLAMO3": PLAMO3}
"""By `AlignmentRules.rewriting`; some vocabularies of BPE have a kind of their own."""
GROWTH, SLACK = 4, 8
"""n bytes are rewritten to at most GROWTH * n + SLACK."""
CHUNK_BYTES = 1 << 14
"""Bytes of a text that are rewritten at a time: a map of a whole text would take 48 bytes for each byte."""


def map_capacity(longest: int) -> int:
    """The capacity of a map, in bytes of rewritten text, if no token covers more than `longest`."""
    return longest + GROWTH * CHUNK_BYTES + SLACK


TAG = len(DNA_BEGIN)


class RewriteRules(NamedTuple):
    """The rules by which a vocabulary rewrites fragments. Flags are 0 or 1."""

    kind: int
    escape: int  # BPE: a space becomes U+2581, as it always does in SPM
    begin_lines: int  # BPE: U+2581 is put before each line that does not begin with it
    shortest: int  # Vocab.shortest_utf8
    prefix: int  # SPM: a space is put before the text
    lowercase: int  # WHITESPACE
    dna: I32  # [3] DNA: ids of <dna>, </dna>, <oov>
    case: CaseTable  # WHITESPACE


def rewrite_rules(vocab: Vocab) -> RewriteRules:
    """The rules of a vocabulary whose type has a kind of rewriting."""
    way = type_of(vocab).alignment
    bpe, kind, dna = way.rewriting == "BPE", _KINDS[way.rewriting], [-1, -1, -1]
    case = CaseTable(*(frozen([], dtype) for dtype in (np.uint16, np.uint8, np.int64, np.int64)))
    if vocab.model == "whitespace":
        kind, case = WHITESPACE, case_table()
    elif is_dna(vocab):
        kind, dna = DNA, [find_key(vocab, key) for key in (DNA_BEGIN, DNA_END, DNA_UNKNOWN)]
    return RewriteRules(
        kind,
        int(bpe and vocab.escape_whitespaces),  # PLaMo-2 has these flags too, but ignores them
        int(bpe and pre_type(vocab.pre_type).begin_lines),
        int(vocab.shortest_utf8),
        int(way.prefix and vocab.add_space_prefix),
        int(vocab.lowercase),
        frozen(dna, np.int32),
        case,
    )


class OffsetMap(NamedTuple):
    """Byte k of the rewritten text comes from data[starts[k]:stops[k]]; windows."""

    starts: Window
    stops: Window


@kernel
def rewritten_spans(
    lengths: Lengths, how: RewriteRules, data: U8, starts: I64, stops: I64, tokens: I32, ends: I64, ids: I32,
    map_starts: OutI64, map_stops: OutI64, spans: OutI64, left: OutI64, count: int,
) -> int:  # fmt: skip
    """Write the spans of the tokens of the fragments left[:2 * count], a list made by `direct_spans`.

    map_starts, map_stops: int64[map_capacity(n)] scratch where no token covers more than n bytes
    The other arrays are those of `direct_spans`. Fragments whose tokens' lengths do not add up stay in `left`; returns
    their number. Linear in bytes.
    """
    text, numbers, sizes, out = window(data), window(ids), window(lengths.output), window(spans)
    positions = OffsetMap(window(map_starts), window(map_stops))
    kept = 0
    for item in range(count):
        fragment, origin = left[2 * item], left[2 * item + 1]
        start, stop, k, end = starts[fragment], stops[fragment], first_id(window(ends), fragment), ends[fragment]
        if how.kind == DNA:
            done = _walk_dna(how, sizes, positions, text, start, stop, numbers, k, end, origin, out)
        else:
            prefix = how.prefix != 0 and tokens[fragment] == TEXT_PREFIXED
            done = _walk_text(how, sizes, positions, text, start, stop, prefix, numbers, k, end, origin, out)
        if not done:
            left[2 * kept], left[2 * kept + 1] = fragment, origin
            kept += 1
    return kept


@helper
def _walk_text(
    how: RewriteRules, sizes: Window, positions: OffsetMap, text: Window, start: int, stop: int, prefix: bool,
    ids: Window, k: int, end: int, origin: int, spans: Window,
) -> bool:  # fmt: skip
    """Write the spans of ids k .. end - 1, which cover the rewritten text[start:stop]; returns whether they cover it
    exactly."""
    if how.kind == WHITESPACE and how.begin_lines != 0:
        return False  # then U+2581 is before runs, too
    i, size = start, 0  # size: of the map, which begins at the first byte that no token has covered yet
    if how.kind == SPM and prefix:
        size = _put(positions, 0, 3, start, start)
    elif how.kind == PLAMO2 and begins_with_mark(text, start, stop):
        i += 3
    while True:
        i, size = _rewrite(how, positions, size, text, i, min(i + CHUNK_BYTES, stop), stop, i == start)
        at = 0
        while k < end:
            after = at + get_i32(sizes, get_i32(ids, k) + 1)
            if after == at or (after > size and i == stop):
                return False
            if after > size:
                break
            put_i64(spans, 2 * k, get_i64(positions.starts, at) - origin)
            put_i64(spans, 2 * k + 1, get_i64(positions.stops, after - 1) - origin)
            at, k = after, k + 1
        if i == stop:
            return at == size and k == end
        if k == end and at < size:
            return False
        for j in range(at, size):
            put_i64(positions.starts, j - at, get_i64(positions.starts, j))
            put_i64(positions.stops, j - at, get_i64(positions.stops, j))
        size -= at


@helper
def _put(positions: OffsetMap, at: int, size: int, start: int, stop: int) -> int:
    """Add `size` bytes that all come from data[start:stop]; the offset after them."""
    for k in range(at, at + size):
        put_i64(positions.starts, k, start)
        put_i64(positions.stops, k, stop)
    return at + size


@helper
def _put_same(positions: OffsetMap, at: int, start: int, stop: int) -> int:
    """Add data[start:stop] unchanged, byte by byte; the offset after it."""
    for i in range(start, stop):
        put_i64(positions.starts, at + i - start, i)
        put_i64(positions.stops, at + i - start, i + 1)
    return at + stop - start


@helper
def _rewrite(
    how: RewriteRules, positions: OffsetMap, at: int, text: Window, i: int, after: int, stop: int, first: bool
) -> tuple[int, int]:
    """Add the characters that begin in text[i:after] to the map, from offset `at` on; (offset after them in the text,
    offset in the map). The text ends at `stop`. first: the text begins at i."""
    if how.kind == SPM:
        for k in range(i, after):
            at = _put(positions, at, 3 if get_u8(text, k) == SPACE_BYTE else 1, k, k + 1)
        return after, at
    if how.kind == WHITESPACE:
        return _rewrite_runs(how, positions, at, text, i, after, stop)
    begins = how.begin_lines != 0 and (first or get_u8(text, i - 1) == NEWLINE)
    while i < after:
        c, size = decode(text, i, stop, how.shortest)
        if how.kind == PLAMO3 and c == BOUNDARY:
            i += size
            continue
        if begins and c not in (NEWLINE, SPACE_BYTE, SPACE_MARK_CODE):
            at = _put(positions, at, 3, i, i)
        begins = how.begin_lines != 0 and c == NEWLINE
        if c == BAD or (how.kind != PLAMO2 and c > LAST_CODE_POINT):
            at, size = _put(positions, at, 3, i, i + 1), 1
        elif how.escape != 0 and c == SPACE_BYTE and size == 1:
            at = _put(positions, at, 3, i, i + 1)
        elif encoded_length(c) == size:
            at = _put_same(positions, at, i, i + size)
        else:
            at = _put(positions, at, encoded_length(c), i, i + size)
        i += size
    return i, at


@helper
def _rewrite_runs(
    how: RewriteRules, positions: OffsetMap, at: int, text: Window, i: int, after: int, stop: int
) -> tuple[int, int]:
    """The same without white space, in lower case if the vocabulary requires it."""
    while i < after:
        c, size = decode(text, i, stop, how.shortest)
        if c == BAD or c > LAST_CODE_POINT:
            c, size = REPLACEMENT, 1
        kind, image = kind_of(how.case, c), c
        if how.escape != 0 and c == SPACE_BYTE and size == 1:
            at = _put(positions, at, 3, i, i + 1)
        elif kind != WHITE:
            if kind == LOWERED and how.lowercase != 0:
                image = lower_case(how.case, c)
            if image == c and encoded_length(c) == size:
                at = _put_same(positions, at, i, i + size)
            else:
                at = _put(positions, at, encoded_length(image), i, i + size)
        i += size
    return i, at


@helper
def _find(text: Window, start: int, stop: int, what: bytes) -> int:
    """The offset of `what` in text[start:stop], or stop."""
    for i in range(start, stop - len(what) + 1):
        k = 0
        while k < len(what) and get_u8(text, i + k) == what[k]:
            k += 1
        if k == len(what):
            return i
    return stop


@helper
def _walk_dna(
    how: RewriteRules, sizes: Window, positions: OffsetMap, text: Window, start: int, stop: int, ids: Window, k: int,
    end: int, origin: int, spans: Window,
) -> bool:  # fmt: skip
    """BPE outside <dna> ... </dna>, six letters a token inside."""
    at = start
    while at < stop:
        begin = _find(text, at, stop, DNA_BEGIN)
        after = k
        while after < end and get_i32(ids, after) != as_int64(how.dna[0]):  # the text before never becomes that token
            after += 1
        for i in range(at, begin - 3):  # inside DNA, their U+FFFD would count as letters
            if get_u8(text, i) >= 0xF4 and decode(text, i, begin, how.shortest)[0] > LAST_CODE_POINT:
                return False
        if not _walk_text(how, sizes, positions, text, at, begin, False, ids, k, after, origin, spans):
            return False
        if begin == stop:
            return after == end
        inner = begin + TAG
        last = _find(text, inner, stop, DNA_END)
        if how.escape != 0 and _find(text, inner, last, b" ") < last:
            return False  # a space counts as three letters
        at = last if last == stop else last + TAG + 1
        if after + 1 + (last - inner + KMER - 1) // KMER + (at > last) > end:
            return False
        put_i64(spans, 2 * after, begin - origin)
        put_i64(spans, 2 * after + 1, inner - origin)
        k = after + 1
        for i in range(inner, last, KMER):
            put_i64(spans, 2 * k, i - origin)
            put_i64(spans, 2 * k + 1, min(i + KMER, last) - origin)
            k += 1
        if at > last:
            put_i64(spans, 2 * k, last - origin)
            put_i64(spans, 2 * k + 1, at - origin)
            k += 1
    return k == end
