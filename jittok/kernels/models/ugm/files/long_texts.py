"""Encode long texts in chunks: the part that all best paths so far have in common is written, and its memory is reused.

The sums and arcs of offsets that are not decided yet are kept and moved to the front with their text. So nothing is
computed twice, and sums round as in `lattice`, also where sentencepiece resets them.
"""

from __future__ import annotations

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE
from jittok.kernels.fragments import OUT_OF_WORK
from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, get_f64, get_u8, get_u64, put_f64, put_u8, put_u64
from jittok.kernels.models.ugm.decided_prefix import LOWEST, decided_offset
from jittok.kernels.models.ugm.files.lattice import (
    EXACT,
    SUMS_KEPT,
    FileLattice,
    go_back,
    is_unknown,
    join_unknown,
    know_long,
    sum_here,
    walk,
    write_path,
)
from jittok.kernels.models.ugm.files.normalizer import STEP, NormalizerWindow, open_text, rewrite_on, without_end
from jittok.kernels.pretoken_cache.span_loop import WHOLE

CHUNK_BYTES = 1 << 15
"""Up to this many bytes, a text is rewritten as a whole; also the size of the first chunk."""
MOST_PLACES = 1 << 30
"""The most offsets that `decided_offset` can handle."""
UNDECIDED = -104
"""Code: too many offsets are undecided. Different from the codes of `jittok.kernels.fragments`."""
_32 = np.uint64(32)
_PLACE = np.uint64(0x7FFFFFFF)


@helper
def encode_long_text(
    rewriting: NormalizerWindow, own: FileLattice, text: Window, start: int, stop: int, base: float, whole: bool,
    begins: bool, ids: Window, count: int,
) -> int:  # fmt: skip
    """Ids of text[start:stop], which is valid UTF-8; `ids` has the capacity for them. With `whole` it is a fragment or
    a part of one, and `base` is the sum before it; else it is a span, whose sum follows from the ids before it.
    begins: as for `rewrite`. The new count or a code: WHOLE as for `best_paths`, OUT_OF_WORK, UNDECIDED, and those of
    `rewrite`.

    own.text is the current chunk: the text from the last decided offset on. own.sums[0] is the sum at offset `begin`;
    sums are known up to offset `known_to`, and all tokens that begin before `p` were tried.
    """
    at, state = open_text(rewriting, whole, begins)
    i, limit, most, last, unread = (
        start,
        min(CHUNK_BYTES, rewriting.capacity),
        min(rewriting.capacity, MOST_PLACES),
        False,
        True,
    )
    begun, begin, p, known_to, joined = count, 0, 0, 0, False
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
                base = sum_here(own, ids, count)
                if np.isnan(base):
                    return WHOLE
            put_f64(own.sums, 0, base)
            unread = False
        done = 0
        while done < solid:
            end = _word_end(own, done, p, solid)
            closed = last or end < solid
            decided, begin, p, known_to = _go_on(own, begin, p, known_to, end, closed)
            if decided > done:
                written = count
                count = write_path(own, done, decided, whole, joined, ids, count)
                if count < 0:
                    return count
                if whole and own.single != 0:  # nothing needs the sums of single unknown ids any more
                    count = join_unknown(own, ids, max(begun, written - 1), count)
                joined = not closed and is_unknown(own, np.int64(get_u64(own.arcs, decided) >> _32))
                done = decided
            if not closed:
                break
            if own.single == 0:  # sums start again with each word
                put_f64(own.sums, 0, 0.0)
        _move(own, done, at, known_to)
        begin, p, known_to, at = begin - done, p - done, known_to - done, at - done
        if 2 * at > limit - STEP and not last:
            # little was decided: double the chunk, so that bytes are not moved again and again
            if limit == most:
                return OUT_OF_WORK if most == rewriting.capacity else UNDECIDED
            limit = min(2 * limit, most)
    if whole and own.single != 0:
        go_back(own, get_f64(own.sums, 0), count)
    return count


@helper
def _word_end(own: FileLattice, begin: int, p: int, size: int) -> int:
    """The end of the word that begins at `begin` and has no space up to p. A sentencepiece model's text is one word."""
    if own.single != 0:
        return size
    end = max(begin + 1, p)
    while end < size and get_u8(own.text, end) != SPACE_BYTE:
        end += 1
    return end


@helper
def _go_on(own: FileLattice, begin: int, p: int, known_to: int, end: int, closed: bool) -> tuple[int, int, int, int]:
    """Fill the arcs up to `end`, where the word ends (`closed`) or the known text does; (the last decided offset or 0,
    begin, p, known_to)."""
    decided, stop = 0, end if closed else end - own.longest
    know_long(own, p, end)
    while p < stop:
        until = min(begin + max(SUMS_KEPT, own.longest), stop)
        reach = min(until + own.longest, end)
        for k in range(known_to + 1, reach + 1):
            put_f64(own.sums, k - begin, LOWEST)
        known_to = max(known_to, reach)
        p = walk(own, end, begin, p, until, EXACT)
        if not closed:
            common = decided_offset(own.sums, own.arcs, begin, p, known_to)
            # whether the unknown token's own text becomes byte tokens depends on the text after it
            if common > 0 and np.int64(get_u64(own.arcs, common) >> _32) != own.literal:
                decided = common
        for k in range(p, known_to + 1):  # few, or the last round
            put_f64(own.sums, k - p, get_f64(own.sums, k - begin))
        begin = p
    return end if closed else decided, begin, p, known_to


@helper
def _move(own: FileLattice, done: int, size: int, known_to: int) -> None:
    """Move everything after `done` to the front. An arc that begins before it is on no best path any more."""
    if done > 0:
        for k in range(done, size):
            put_u8(own.text, k - done, get_u8(own.text, k))
        for k in range(done + 1, known_to + 1):
            arc = get_u64(own.arcs, k)
            start = max(np.int64(arc & _PLACE) - done, 0)
            put_u64(own.arcs, k - done, arc & ~_PLACE | np.uint64(start))
