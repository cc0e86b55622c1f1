"""BPE for every pre-tokenizer and every text: the kernel around the general splitter.

A text is rewritten if needed, split, and its pre-tokens are looked up or merged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.unicode.characters import NEWLINE, SPACE_BYTE, SPACE_MARK_CODE
from jittok.kernels.fragments import BEYOND_UNICODE, FOUND, NEED, OFFSET, OUT_OF_CAPACITY, OUT_OF_WORK, SPACE_IN_SYMBOL
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper, kernel
from jittok.kernels.memory import (
    PAD,
    Window,
    bit_places,
    get_i32,
    get_i64,
    get_u8,
    get_u64,
    put_i32,
    put_i64,
    put_u8,
    readable_behind,
    window,
)
from jittok.kernels.models.bpe.arrays import BpeArrays
from jittok.kernels.models.bpe.scratch import (
    BYTES_PER_BYTE,
    BpeWork,
    WorkWindow,
    discard,
    encode_pieces,
    flush,
    look_up,
    open_work,
    resolve,
)
from jittok.kernels.models.bpe.text_reader import BAD, decode, put_code_point
from jittok.kernels.models.bpe.words.merge_boundaries import MergeBoundaryWindow, cut_merge_boundaries
from jittok.kernels.pretoken_cache.fragment_loop import make_encode_fragments
from jittok.kernels.pretoken_cache.run_loop import Fragments, make_encode_run
from jittok.kernels.pretoken_cache.tables import SPARE_IDS
from jittok.kernels.pretokenize.splitters.general import (
    LEAST_BYTES,
    SplitterWindow,
    SplitWindow,
    borrow,
    borrowed_words,
    open_splitter,
    split_run,
    split_text,
)
from jittok.kernels.pretokenize.splitters.gpt2 import MALFORMED

ONE, NONE = np.uint64(1), np.uint64(0)
REPLACEMENT = 0xFFFD


@helper
def encode_text(
    model: BpeArrays,
    work: WorkWindow,
    splitter: SplitterWindow,
    text: Window,
    start: int,
    stop: int,
    padded: int,
    ids: Window,
    count: int,
    capacity: int,
    report: Window,
) -> int:
    """Ids of text[start:stop] to ids[count:]; the new count or a code. The text is rewritten first if needed."""
    if model.escape == 0 and model.begin_lines == 0 and padded != 0:
        done = encode_words(work, splitter, text, start, stop, start, False, True, ids, count, capacity, report)
        if done != MALFORMED:
            return done
    length = _rewrite(model, text, start, stop, work.text, report)
    if length < 0:
        return length
    # the family LINES has cached pre-tokens with spaces for U+2581, so a rewritten text that still has a space must not
    # use the cache
    cached = model.escape == 0 or not _has_space(work.text, length)
    count = encode_words(work, splitter, work.text, 0, length, 0, True, cached, ids, count, capacity, report)
    if count == SPACE_IN_SYMBOL:
        put_i64(report, OFFSET, _before_rewriting(model, text, start, stop, work.text, get_i64(report, OFFSET)))
    return count


@helper
def _has_space(text: Window, length: int) -> bool:
    for i in range(length):
        if get_u8(text, i) == SPACE_BYTE:
            return True
    return False


@helper
def _before_rewriting(model: BpeArrays, text: Window, start: int, stop: int, out: Window, position: int) -> int:
    """The offset in text[start:stop] of the character that rewriting moved to `position`; overwrites `out`."""
    i, at, begins = start, 0, model.begin_lines != 0
    while at < position:
        c, size = _read(model, text, i, stop)
        if begins and c not in (NEWLINE, SPACE_MARK_CODE):
            at = put_code_point(out, at, SPACE_MARK_CODE)
        begins = model.begin_lines != 0 and c == NEWLINE
        at = put_code_point(out, at, c)
        i += size
    return i


@helper
def _read(model: BpeArrays, text: Window, i: int, stop: int) -> tuple[int, int]:
    """(the code point that the sequence at i is rewritten to, the sequence's length)."""
    c, size = decode(text, i, stop, model.shortest)
    if c == BAD:
        c = REPLACEMENT
    elif model.escape != 0 and c == SPACE_BYTE and size == 1:
        c = SPACE_MARK_CODE  # only for the byte 20: an overlong space stays a space
    return c, size


@helper
def _rewrite(model: BpeArrays, text: Window, start: int, stop: int, out: Window, report: Window) -> int:
    """text[start:stop] as llama.cpp reads it, into out; returns the length or BEYOND_UNICODE."""
    i, at, begins = start, 0, model.begin_lines != 0
    while i < stop:
        byte = get_u8(text, i)
        if byte < 0x80 and (byte != SPACE_BYTE or model.escape == 0):
            if begins and byte != NEWLINE:
                at = put_code_point(out, at, SPACE_MARK_CODE)
            begins = model.begin_lines != 0 and byte == NEWLINE
            put_u8(out, at, byte)
            i += 1
            at += 1
            continue
        c, size = _read(model, text, i, stop)
        if begins and c != SPACE_MARK_CODE:
            at = put_code_point(out, at, SPACE_MARK_CODE)
        begins = False
        if c > 0x10FFFF:
            put_i64(report, OFFSET, i)
            put_i64(report, FOUND, c)
            return BEYOND_UNICODE
        at = put_code_point(out, at, c)
        i += size
    return at


@helper
def encode_words(
    work: WorkWindow,
    splitter: SplitterWindow,
    text: Window,
    start: int,
    stop: int,
    origin: int,
    well_formed: bool,
    cached: bool,
    ids: Window,
    count: int,
    capacity: int,
    report: Window,
) -> int:
    """Ids of the pre-tokens of text[start:stop]; MALFORMED, with no effect, if it is invalid UTF-8.

    origin: its offset in the caller's bytes; well_formed: it is known to be valid; cached: the cache may be used
    PAD bytes are readable after it.
    """
    if start == stop:
        return count
    split = work.split
    if well_formed and stop - start > LEAST_BYTES:  # rewritten: it may be three times as long as the caller's
        if count + borrowed_words(stop - start) > capacity:
            return OUT_OF_CAPACITY
        split = borrow(work.split, ids, count, stop - start)
    bad = split_text(splitter, text, start, stop, split, well_formed)
    if bad < stop:
        put_i64(report, OFFSET, bad)
        return MALFORMED
    cut_merge_boundaries(work.joints, work.words.byte_encode == 0, text, start, stop - start, work.split.cuts)
    cuts, begin, number = work.split.cuts, 0, 0
    for word in range((stop - start) // 64 + 1):
        number = bit_places(work.positions, number, word * 64 - begin, get_u64(cuts, word))
        done = get_i32(work.positions, number - 1)
        # the last offset is that of the next pre-token, or the end
        if number > 1 and (number > work.chunk // 4 or begin + done == stop - start):
            if count + 2 * done + SPARE_IDS > capacity:
                return OUT_OF_CAPACITY
            at, pieces = start + begin, number - 1
            if cached:
                count = look_up(work.cache, work.records, work, text, at, work.positions, pieces, 0, ids, count)
            else:
                count = encode_pieces(work, text, at, pieces, ids, count)
            if count == SPACE_IN_SYMBOL:
                put_i64(report, OFFSET, origin + _space_in_word(cuts, text, start, stop) - start)
                put_i64(report, FOUND, SPACE_BYTE)
            if count < 0:
                return count
            begin += done
            put_i32(work.positions, 0, 0)
            number = 1
    return count


@helper
def _space_in_word(cuts: Window, text: Window, start: int, stop: int) -> int:
    """The first space that is not a pre-token by itself."""
    for i in range(start, stop):
        if get_u8(text, i) == SPACE_BYTE and not (_begins(cuts, i - start) and _begins(cuts, i + 1 - start)):
            return i
    return start


@helper
def _begins(cuts: Window, i: int) -> bool:
    return get_u64(cuts, i // 64) >> np.uint64(i & 63) & ONE != NONE


class _Splitting(NamedTuple):
    """The arguments of `split_run`."""

    splitter: SplitterWindow
    split: SplitWindow
    joints: MergeBoundaryWindow


@helper
def _split_run(
    own: _Splitting, text: Window, begin: int, end: int, fragments: Fragments, k: int, last: int, positions: Window
) -> int:
    """Write where the pre-tokens of the fragments begin; returns their number or MALFORMED."""
    if split_run(own.splitter, text, begin, end, fragments, k, last, own.split) < end:
        return MALFORMED
    cut_merge_boundaries(own.joints, False, text, begin, end - begin, own.split.cuts)
    number = 0
    for word in range((end - begin) // 64 + 1):
        number = bit_places(positions, number, word * 64, get_u64(own.split.cuts, word))
    return number - 1  # the last one is the end


_encode_run = make_encode_run(_split_run, resolve, flush, discard)


@helper
def has_work(work: WorkWindow, start: int, stop: int, growth: int, report: Window) -> bool:
    """Whether the scratch is large enough for the fragment text[start:stop], whose bytes may become `growth` bytes
    each. Writes to `report` what is needed: bytes of scratch if not, else a capacity for ids that is always enough,
    two ids a byte of the rewritten text."""
    if growth * (stop - start) > work.longest - 16:
        put_i64(report, NEED, stop - start)
        return False
    put_i64(report, NEED, 2 * growth * (stop - start) + SPARE_IDS + 16)
    return True


class _Windows(NamedTuple):
    """The windows that the steps of the loop share."""

    own: WorkWindow
    splitting: _Splitting


@helper
def _open(model: BpeArrays, work: BpeWork, tokens: I32, ends: OutI64) -> _Windows:
    own = open_work(model, work, tokens, ends)
    return _Windows(own, _Splitting(open_splitter(model.splitter), own.split, own.joints))


@helper
def _run(
    model: BpeArrays,
    w: _Windows,
    text: Window,
    size: int,
    fragments: Fragments,
    k: int,
    last: int,
    ids: Window,
    count: int,
    capacity: int,
    report: Window,
) -> tuple[int, int]:
    own = w.own
    most = min(own.chunk, own.longest - PAD) if model.byte_encode and not model.escape else 0
    return _encode_run(
        w.splitting, own.cache, own.records, own.positions, own.run, own, 2, most, text, size, fragments, k, last, ids,
        count, capacity, report,
    )  # fmt: skip


@helper
def _text(
    model: BpeArrays,
    _work: BpeWork,
    w: _Windows,
    data: U8,
    start: int,
    stop: int,
    _prefixed: bool,
    ids: OutI32,
    count: int,
    report: OutI64,
) -> int:
    source, notes = window(data), window(report)
    if not has_work(w.own, start, stop, BYTES_PER_BYTE + model.begin_lines, notes):
        return OUT_OF_WORK
    padded = int(stop + PAD <= data.size or readable_behind(source, stop, PAD))
    return encode_text(
        model, w.own, w.splitting.splitter, source, start, stop, padded, window(ids), count, ids.size, notes
    )


_encode_fragments = make_encode_fragments(_open, _run, _text)


@kernel
def encode_general(
    model: BpeArrays,
    work: BpeWork,
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
    """`encode_fragments` for every vocabulary of the session PLAIN; see `jittok.kernels.fragments`.

    Codes: OUT_OF_CAPACITY, OUT_OF_WORK, BEYOND_UNICODE, SPACE_IN_SYMBOL. O(n log n) in the bytes of the longest word.
    """
    return _encode_fragments(model, work, data, starts, stops, tokens, first, last, count, ids, ends, report)
