"""Unigram of files other than GGUF: a tokenizer.json sums scores as doubles, a sentencepiece model as floats.

The loop over fragments: ids of cached spans are copied, new spans get their path, odd texts are left to Python. A sum
that rounds depends on all the text before, so ids of spans (see `safe_cuts`) may only be cached if rounding cannot
change the path (see `rounding`). `file_compile` builds the arrays, `normalizer_tables` a table of the steps of a file,
and `normalizer` runs it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_0, SPACE_MARK_1
from jittok.kernels.fragments import NEED, NOT_UTF8, OUT_OF_CAPACITY, OUT_OF_WORK
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper, kernel
from jittok.kernels.memory import Window, get_f64, get_i32, get_i64, get_u8, put_f64, put_i32, window
from jittok.kernels.models.ugm.file_arrays import (
    UnigramFileArrays,
    UnigramFileWork,
    can_split_at_spaces,
    make_work,
    optimized_layout,
    regrow,
)
from jittok.kernels.models.ugm.lattice import (
    EXACT,
    MOST_OFFSETS,
    ROUNDING_SENSITIVE,
    Lattice,
    is_unknown,
    move,
    token_before,
)
from jittok.kernels.models.ugm.normalizer import (
    ODD_TEXT,
    OUTSIDE,
    STEP,
    NormalizerWindow,
    begins_with_mark,
    does_extend,
    ends_line,
    may_end_white,
    open_normalizer,
    open_text,
    rewrite,
    rewrite_on,
    text_end,
    without_end,
)
from jittok.kernels.models.ugm.rounding import (
    FileSums,
    best_paths,
    extend,
    go_back,
    lookup,
    open_sums,
    settle,
    store,
    sum_here,
    total_here,
    write_path,
)
from jittok.kernels.normalize.charsmap.keys import TIED
from jittok.kernels.normalize.charsmap.lookup import longest_known_key
from jittok.kernels.pretoken_cache.fragment_loop import Spans, make_encode_fragments
from jittok.kernels.pretoken_cache.lookup import DEFERRED, flush_nothing, make_resolve
from jittok.kernels.pretoken_cache.records import BARRED
from jittok.kernels.pretoken_cache.run_loop import Fragments
from jittok.kernels.pretoken_cache.span_loop import WHOLE, make_encode_spans, open_span_work
from jittok.kernels.pretoken_cache.tables import LONGEST_KEPT, Key
from jittok.kernels.pretokenize.splitters.spans import split_spans
from jittok.kernels.structures.utf8_check import is_malformed

IDS_PER_BYTE = 1
"""Usually enough; a character map can make a text longer."""
CHUNK_BYTES = 1 << 15
"""Up to this many bytes, a text is rewritten as a whole; also the size of the first chunk."""
UNDECIDED = -104
"""Code: too many offsets are undecided. Different from the codes of `jittok.kernels.fragments`."""
SECTION = 512
"""The least bytes of a text that are encoded as a whole because some span in them cannot be encoded by itself."""
LONG_SECTION, SHORT_SECTION = 1 << 13, 1 << 7
"""The most and the least bytes of a section, for texts whose sum does not start again with each word."""
SUM_OF_BYTE = 4.0
"""A byte changes the sum by less than this in natural text that the model knows."""
FARTHER = 1.25
"""The factor by which a byte may change the sum more than in the section before."""
DELETE = 0x7F


class FileSpanModel(NamedTuple):
    """The windows that encoding a span needs."""

    rewriting: NormalizerWindow
    sums: FileSums
    tail: int
    mark: Window
    mark_size: int


@helper
def _characters(text: Window, size: int) -> int:
    """The number of characters of text[:size], which is the most tokens that a path through it can have."""
    found = 0
    for k in range(size):
        found += 1 if get_u8(text, k) & 0xC0 != 0x80 else 0
    return found


@helper
def _encode(model: FileSpanModel, text: Window, start: int, stop: int, ids: Window, count: int) -> int:
    """Ids of a span; the new count or a code. If rounding may change the path, DEFERRED is added to the count, so that
    the span is not cached."""
    sums = model.sums
    own = sums.lattice
    if own.single == 0 and stop - start > CHUNK_BYTES:
        done = encode_long_text(model.rewriting, sums, text, start, stop, 0.0, False, False, ids, count)
        return WHOLE if done == UNDECIDED else done + DEFERRED if done >= 0 else done
    size, _ = rewrite(model.rewriting, text, start, start, stop, False, False)
    if size < 0:
        return size
    if own.single == 0 or stop - start <= LONGEST_KEPT:  # a longer one is not cached: find its path in the text at once
        done = best_paths(sums, size, 0.0, sums.near * _characters(own.text, size), False, ids, count)
        if done != ROUNDING_SENSITIVE:
            return done
    base = sum_here(sums, ids, count)
    if np.isnan(base):
        return WHOLE
    done = best_paths(sums, size, base, EXACT, False, ids, count)
    return done + DEFERRED if done >= 0 else done


@helper
def _encode_piece(
    model: FileSpanModel,
    text: Window,
    start: int,
    stop: int,
    _low: np.uint64,
    _high: np.uint64,
    ids: Window,
    count: int,
) -> int:
    return _encode(model, text, start, stop, ids, count)


@helper
def _encode_soon(model: FileSpanModel, text: Window, start: int, stop: int, key: Key, ids: Window, count: int) -> int:
    """The same for a short span, whose paths in different contexts are cached (see `rounding`)."""
    sums, base, known = model.sums, 0.0, -1
    if sums.lattice.single != 0:
        base = sum_here(sums, ids, count)
        known = lookup(sums, key, base, ids, count)
    if known >= 0:
        return known + DEFERRED
    done = _encode(model, text, start, stop, ids, count)
    if done >= DEFERRED and sums.lattice.single != 0:
        size, _ = rewrite(model.rewriting, text, start, start, stop, False, False)
        store(sums, key, base, size, ids, count, done - DEFERRED)
    return done


_run_of_spans, _spans_of_one = make_encode_spans(
    split_spans, make_resolve(_encode_piece, deferred=(_encode_soon, flush_nothing))
)


@helper
def _open(arrays: UnigramFileArrays, work: UnigramFileWork, tokens: I32, ends: OutI64) -> Spans:
    spans = open_span_work(work.spans, arrays.rules, arrays.first_span, tokens, ends, arrays.cut_limit)
    model = FileSpanModel(
        open_normalizer(arrays, work), open_sums(arrays, work), arrays.tail, window(arrays.mark), arrays.mark.size
    )
    return Spans(spans, model, arrays.ids_per_byte, arrays.cut_limit)


@helper
def _encode_run(
    arrays: UnigramFileArrays,
    own: Spans,
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
    """Encode several texts at once if none of them needs special treatment."""
    if arrays.single != 0 or arrays.tail != 0:
        return k, count
    last = _plain_before(own, text, fragments, k, last)
    if last <= k + 1:
        return k, count
    return _run_of_spans(
        own.work, own.model, own.ids_per_byte, text, size, fragments, k, last, ids, count, capacity, report
    )


@helper
def _plain_before(own: Spans, text: Window, fragments: Fragments, k: int, last: int) -> int:
    """The end of the fragments from k on that can be encoded as one run without special treatment."""
    rewriting, before = own.model.rewriting, get_i64(fragments.starts, k)
    end, other = before + max(own.work.chunk, 64), k
    if k <= get_i64(own.work.run.state, BARRED):
        return k
    while other < last:
        start, stop = get_i64(fragments.starts, other), get_i64(fragments.stops, other)
        if start != before or stop > end or begins_with_mark(rewriting, text, start, stop):
            break
        if rewriting.ends_size != 0 and may_end_white(rewriting, text, start, stop):
            break
        before = stop
        other += 1
    return other


@helper
def _encode_text(
    arrays: UnigramFileArrays,
    _work: UnigramFileWork,
    own: Spans,
    data: U8,
    start: int,
    stop: int,
    prefixed: bool,
    ids: OutI32,
    count: int,
    report: OutI64,
) -> int:
    out, sums, begun, done = window(ids), own.model.sums, count, WHOLE
    go_back(sums, 0.0, count)
    stop = text_end(own.model.rewriting, window(data), start, stop)
    if arrays.parts != 0:
        done = _summed_sections(own, prefixed, data, start, stop, arrays.parts, ids, count, report)
    elif stop - start <= own.limit:
        done = _spans(own, prefixed, data, start, stop, ids, count, report)
        if done >= 0 and arrays.single != 0 and np.isnan(settle(sums, out, done)):
            done = WHOLE
    if done == WHOLE and arrays.single == 0:
        done = _sections(own, data, start, stop, ids, count, report)
    elif done == WHOLE:
        done = _whole(own, window(data), start, stop, 0.0, True, out, ids.size, count, report)
    if done == OUT_OF_WORK:
        report[NEED] = stop - start
    if done < 0:
        return done
    if arrays.single != 0 and sums.lattice.bytes == 0:
        return _join_unknown(sums.lattice, out, begun, done)
    if arrays.tail != 0 and _ends_with_space(own.model, window(data), start, stop):
        if done + own.model.mark_size > ids.size:
            report[NEED] = done - begun + own.model.mark_size + arrays.ids_per_byte * (stop - start + 1)
            return OUT_OF_CAPACITY
        for k in range(own.model.mark_size):
            put_i32(out, done + k, get_i32(own.model.mark, k))
        done += own.model.mark_size
    return done


@helper
def _spans(own: Spans, prefixed: bool, data: U8, start: int, stop: int, ids: OutI32, count: int, report: OutI64) -> int:
    """Ids of a fragment by its spans; the new count or a code."""
    if begins_with_mark(own.model.rewriting, window(data), start, stop):
        return WHOLE
    return _spans_of_one(
        own.work, own.model, own.ids_per_byte, prefixed, window(data), data.size, start, stop, window(ids), count,
        ids.size, window(report),
    )  # fmt: skip


@helper
def _sections(own: Spans, data: U8, start: int, stop: int, ids: OutI32, count: int, report: OutI64) -> int:
    """Ids of a fragment in which some span cannot be encoded by itself: only the words around it are encoded as a
    whole."""
    text, begun = window(data), count
    while start < stop:
        end = section_end(own.model.rewriting, text, start, stop, SECTION, 0)
        done = WHOLE
        if end - start <= own.limit:
            done = _spans(own, True, data, start, end, ids, count, report)
        if done == WHOLE:
            done = _whole(own, text, start, end, 0.0, True, window(ids), ids.size, count, report)
        if done == OUT_OF_CAPACITY:  # for the section
            report[NEED] += count - begun + own.ids_per_byte * (stop - start + 1)
        if done < 0:
            return done
        start, count = end, done
    return count


@helper
def _summed_sections(
    own: Spans, prefixed: bool, data: U8, start: int, stop: int, parts: int, ids: OutI32, count: int, report: OutI64
) -> int:
    """Ids of a text by a sentencepiece model: by spans, and where sentencepiece resets its sum, by paths from the
    actual sum."""
    text, out, sums, begun, size = window(data), window(ids), own.model.sums, count, LONG_SECTION
    first, of_byte = start, SUM_OF_BYTE
    while start < stop:
        base = total_here(sums)
        most = max(int((sums.most_sum - abs(base)) / of_byte), SHORT_SECTION)
        end = section_end(own.model.rewriting, text, start, stop, min(size, most), parts)
        done = WHOLE
        if end - start <= own.limit and abs(base) < sums.most_sum:
            done = _spans(own, prefixed, data, start, end, ids, count, report)
            if done >= 0:
                known = not np.isnan(settle(sums, out, done))
                found = FARTHER * abs(total_here(sums) - base) / (end - start)
                if known:
                    of_byte = max(found, SUM_OF_BYTE)
                else:  # the sum became too large
                    of_byte, done = max(found, 2 * of_byte), WHOLE
                    if most > SHORT_SECTION and size > SHORT_SECTION:
                        go_back(sums, base, count)
                        continue
        if done == WHOLE:
            go_back(sums, base, count)
            if min(size, most) > SHORT_SECTION:
                size = max(size >> 2, SHORT_SECTION)
                continue
            done = _whole(own, text, start, end, base, start == first, out, ids.size, count, report)
            size = LONG_SECTION
        if done == OUT_OF_CAPACITY:  # for the section
            report[NEED] += count - begun + own.ids_per_byte * (stop - start + 1)
        if done < 0:
            return done
        start, count, prefixed = end, done, False
    return count


@helper
def section_end(own: NormalizerWindow, text: Window, start: int, stop: int, size: int, letters: int) -> int:
    """The end of a section that begins at `start` and has `size` bytes or more. It is before a space between two
    printable ASCII characters (letters: 0), between two ASCII letters that are normalized to themselves (1), or between
    such letters or wide characters (2). Words on both sides are independent there, because runs of spaces are merged or
    letters are cut from a space after them."""
    end = start + size
    while end + 1 < stop:
        if get_u8(text, end) == SPACE_BYTE:
            before, after = get_u8(text, end - 1), get_u8(text, end + 1)
            if letters != 0:
                first = end - 1
                while letters > 1 and first > start and get_u8(text, first) & 0xC0 == 0x80:
                    first -= 1
                if _is_word_start(own, text, first, end, letters) and _is_word_start(own, text, end + 1, stop, letters):
                    return end
            elif SPACE_BYTE < before < DELETE and SPACE_BYTE < after < DELETE:
                return end
        end += 1
    return stop


@helper
def _is_word_start(own: NormalizerWindow, text: Window, i: int, stop: int, letters: int) -> bool:
    """Whether a letter that is normalized to itself begins at i."""
    byte = get_u8(text, i)
    if byte < 0xC2 or letters < 2:
        return _is_plain_letter(own, byte)
    if byte == SPACE_MARK_0 and i + 1 < stop and get_u8(text, i + 1) == SPACE_MARK_1:
        return False
    return longest_known_key(own.map_units, own.map_size, own.map_root, text, i, stop)[0] == 0


@helper
def _is_plain_letter(own: NormalizerWindow, byte: int) -> bool:
    kind = get_u8(own.kinds, byte)
    letter = 0x41 <= byte <= 0x5A or 0x61 <= byte <= 0x7A
    return letter and kind <= TIED


@helper
def _whole(
    own: Spans,
    text: Window,
    start: int,
    stop: int,
    base: float,
    begins: bool,
    ids: Window,
    capacity: int,
    count: int,
    report: OutI64,
) -> int:
    """Ids of a fragment that cannot be cut, or of some words, with the sum `base` before them; begins: see
    `rewrite`."""
    if is_malformed(text, start, stop):
        return NOT_UTF8
    model = own.model
    if stop - start > CHUNK_BYTES:
        most = own.ids_per_byte * (stop - start + 1)
        if count + most > capacity:
            report[NEED] = most
            return OUT_OF_CAPACITY
        done = encode_long_text(model.rewriting, model.sums, text, start, stop, base, True, begins, ids, count)
        if done != UNDECIDED:
            return done
    size, _ = rewrite(model.rewriting, text, start, start, stop, True, begins)
    if size == WHOLE:
        return OUT_OF_WORK
    if size < 0:
        return size
    if count + 3 * size > capacity:
        report[NEED] = 3 * size
        return OUT_OF_CAPACITY
    return best_paths(model.sums, size, base, EXACT, True, ids, count)


@helper
def _ends_with_space(model: FileSpanModel, text: Window, start: int, stop: int) -> bool:
    """Whether the normalized text[start:stop] ends with a space. Characters that become empty are skipped."""
    own, end = model.rewriting, stop
    while stop > start:
        begin, extends = stop, True
        while begin > start and extends:
            begin -= 1
            while begin > start and get_u8(text, begin) & 0xC0 == 0x80:
                begin -= 1
            begin -= 1 if own.clusters != 0 and ends_line(text, start, begin) else 0
            extends = own.clusters != 0 and does_extend(own, text, begin)
        size, state = rewrite(own, text, start, begin, end, False, False)
        if size != 0 or state == OUTSIDE:
            return state == OUTSIDE
        stop = begin
    return False


# ---- long texts, in chunks: what all best paths so far have in common is written


@helper
def encode_long_text(
    rewriting: NormalizerWindow, sums: FileSums, text: Window, start: int, stop: int, base: float, whole: bool,
    begins: bool, ids: Window, count: int,
) -> int:  # fmt: skip
    """Ids of text[start:stop], which is valid UTF-8; `ids` has the capacity for them. With `whole` it is a fragment or
    a part of one, and `base` is the sum before it; else it is a span, whose sum follows from the ids before it.
    begins: as for `rewrite`. The new count or a code: WHOLE as for `best_paths`, OUT_OF_WORK, UNDECIDED, and those of
    `rewrite`.

    The chunk in the lattice's text is what follows the last decided offset, with its sums and arcs (see `extend`). So
    nothing is computed twice, and sums round as in `best_paths`, also where sentencepiece resets them.
    """
    at, state = open_text(rewriting, whole, begins)
    i, last, unread = start, False, True
    limit, most = min(CHUNK_BYTES, rewriting.capacity), min(rewriting.capacity, MOST_OFFSETS)
    own, begun, begin, p, known_to, joined = sums.lattice, count, 0, 0, 0, False
    while not last:
        i, at, state = rewrite_on(rewriting, text, start, i, stop, at, state, limit, whole)
        if i < 0:
            return OUT_OF_WORK if i == WHOLE and whole else i
        last = i == stop
        solid = without_end(rewriting, at) if whole else at
        at = solid if last else at
        if unread and (at > 0 or last):
            if own.single == 0 and at > 0 and get_u8(own.text, 0) == SPACE_BYTE:
                base = 0.0
            elif not whole:
                base = sum_here(sums, ids, count)
                if np.isnan(base):
                    return WHOLE
            put_f64(own.sums, 0, base)
            unread = False
        done = 0
        while done < solid:
            end = _word_end(own, done, p, solid)
            closed = last or end < solid
            decided, begin, p, known_to = extend(own, own.text, 0, begin, p, known_to, end, closed, EXACT)
            if decided > done:
                written = count
                count = write_path(own, own.text, 0, done, decided, whole, joined, ids, count)
                if count < 0:
                    return count
                if whole and own.single != 0:  # nothing needs the sums of single unknown ids any more
                    count = _join_unknown(own, ids, max(begun, written - 1), count)
                joined = not closed and is_unknown(own, token_before(own, decided))
                done = decided
            if not closed:
                break
            if own.single == 0:  # sums start again with each word
                put_f64(own.sums, 0, 0.0)
        move(own, done, at, known_to)
        begin, p, known_to, at = begin - done, p - done, known_to - done, at - done
        if 2 * at > limit - STEP and not last:
            # little was decided: double the chunk, so that bytes are not moved again and again
            if limit == most:
                return OUT_OF_WORK if most == rewriting.capacity else UNDECIDED
            limit = min(2 * limit, most)
    if whole and own.single != 0:
        go_back(sums, get_f64(own.sums, 0), count)
    return count


@helper
def _word_end(own: Lattice, begin: int, p: int, size: int) -> int:
    """The end of the word that begins at `begin` and has no space up to p. A sentencepiece model's text is one word."""
    if own.single != 0:
        return size
    end = max(begin + 1, p)
    while end < size and get_u8(own.text, end) != SPACE_BYTE:
        end += 1
    return end


@helper
def _join_unknown(own: Lattice, ids: Window, begin: int, count: int) -> int:
    """Join runs of unknown ids in ids[begin:count]; the new count."""
    at, before = begin, -1
    for k in range(begin, count):
        token = get_i32(ids, k)
        if token != own.unk_id or before != own.unk_id:
            put_i32(ids, at, token)
            at += 1
        before = token
    return at


_encode_fragments = make_encode_fragments(_open, _encode_run, _encode_text)


@kernel
def encode_fragments(
    arrays: UnigramFileArrays,
    work: UnigramFileWork,
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
    """See jittok.kernels.fragments. Codes: OUT_OF_CAPACITY, OUT_OF_WORK, NOT_UTF8, ODD_TEXT."""
    return _encode_fragments(arrays, work, data, starts, stops, tokens, first, last, count, ids, ends, report)


__all__ = [
    "IDS_PER_BYTE",
    "ODD_TEXT",
    "UnigramFileArrays",
    "UnigramFileWork",
    "can_split_at_spaces",
    "encode_fragments",
    "make_work",
    "optimized_layout",
    "regrow",
]  # fmt: skip
