"""Added tokens of tokenizer files, cut out of documents: leftmost-longest, in two searches.

The first search is for tokens in the text as it is. The second search is in the text between them, for tokens of
normalized text (kernels run it only where nothing is normalized). A token that is not admitted is found, too, and left
as text: the search continues after it. `lstrip` takes white space before a match, up to the end of the last match.
`rstrip` takes white space after a match, but the search continues from the match's own end. A token with `single_word`
does not match next to a word character. Source: tokenizers, `AddedVocabulary`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.fragments import NEED, OUT_OF_CAPACITY, OUT_OF_WORK, TEXT_PREFIXED
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, as_int64, helper, kernel
from jittok.kernels.memory import Window, get_i32, get_u8, put_i32, put_i64, window
from jittok.kernels.special.partition import PartitionWork
from jittok.kernels.special.search import SearchWindow, know_long, next_occurrence
from jittok.kernels.special.tables import ONLY_WORD, STRIPS_LEFT, STRIPS_RIGHT, SpecialTokens
from jittok.kernels.structures.double_array import NO_VALUE
from jittok.kernels.structures.long_keys import open_long
from jittok.kernels.structures.sequences import open_sequences
from jittok.kernels.structures.utf8 import decode
from jittok.kernels.structures.white_space import white_after, white_before

NO_ROOM, NO_WORK = -1, -2
FRAGMENTS_PER_TOKEN = 8
"""Fragments that one token may need capacity for."""


class Output(NamedTuple):
    """The arrays that fragments are written to."""

    starts: Window
    stops: Window
    tokens: Window
    capacity: int


@helper
def put_fragment(out: Output, at: int, start: int, stop: int, token: int) -> int:
    """Write one fragment. Returns the number of fragments now."""
    put_i64(out.starts, at, start)
    put_i64(out.stops, at, stop)
    put_i32(out.tokens, at, token)
    return at + 1


@helper
def open_search(special: SpecialTokens, work: PartitionWork, data: U8, second: bool) -> SearchWindow:
    """Windows onto the tokens to search for, and the text. second: the second search keeps the offsets of long tokens
    in an array of its own."""
    return SearchWindow(
        window(data), data.size, window(special.first), open_sequences(special.few), window(special.runs),
        window(special.run_ranks), window(special.run_at), window(special.trie.units), window(special.ids),
        window(special.lengths), window(special.strips), window(work.keys), window(work.heap), window(work.owners),
        open_long(special.long), window(work.later) if second else window(work.long), work.long.size,
        window(work.begun), 1 if second else 0,
    )  # fmt: skip


@helper
def _in_word(special: SpecialTokens, data: U8, at: int, stop: int) -> bool:
    code, _ = decode(data, at, stop, 1)
    return as_int64(special.strips[special.ids.size + (code >> 3)]) >> (code & 7) & 1 != 0


@helper
def _beside_word(special: SpecialTokens, data: U8, start: int, begin: int, end: int, stop: int) -> bool:
    """Whether data[begin:end] is next to a word character in data[start:stop]."""
    if end < stop and _in_word(special, data, end, stop):
        return True
    at = begin - 1
    while at > start and at > begin - 4 and as_int64(data[at]) & 0xC0 == 0x80:
        at -= 1
    return begin > start and _in_word(special, data, at, begin)


@helper
def _cut_later(special: SpecialTokens, data: U8, w: SearchWindow, out: Output, at: int, start: int, stop: int) -> int:
    """Write the fragments of a text by the second search. Returns their number, or a code."""
    if not know_long(w, start, stop):
        return NO_WORK
    done, i = start, start
    block, mask = start - 64, np.uint64(0)
    while special.ids.size > 0 and i < stop:
        i, rank, block, mask = next_occurrence(w, i, stop, block, mask)
        if rank == NO_VALUE:
            break
        begin, end = i, i + get_i32(w.lengths, rank)
        i = end
        token, strips = get_i32(w.ids, rank), get_u8(w.strips, rank)
        if token < 0 or (strips & ONLY_WORD and _beside_word(special, data, start, begin, end, stop)):
            continue
        if at + FRAGMENTS_PER_TOKEN > out.capacity:
            return NO_ROOM
        if strips & STRIPS_LEFT:
            begin = max(white_before(w.data, begin, done), done)
        if strips & STRIPS_RIGHT:
            end = white_after(w.data, end, stop)
        if done < begin:
            at = put_fragment(out, at, done, begin, TEXT_PREFIXED)
        if begin < end:  # with lstrip, a match in white space that the match before has taken is empty
            at = put_fragment(out, at, begin, end, token)
        done = end
    if at + FRAGMENTS_PER_TOKEN > out.capacity:
        return NO_ROOM
    if done < stop:
        at = put_fragment(out, at, done, stop, TEXT_PREFIXED)
    return at


@kernel
def cut_leftmost(
    raw: SpecialTokens, later: SpecialTokens, work: PartitionWork, data: U8, starts: I64, stops: I64, first: int,
    last: int, before: I32, after: I32, out_starts: OutI64, out_stops: OutI64, out_tokens: OutI32, ends: OutI64,
    report: OutI64,
) -> int:  # fmt: skip
    """The fragments of documents first .. last - 1, document k being data[starts[k]:stops[k]].

    raw, later: the tokens of the first and the second search; an id below 0 is of a token that is not admitted
    before, after: int32[] ids around each document
    out_starts, out_stops: int64[capacity], out_tokens: int32[capacity] the fragments, see `jittok.kernels.fragments`
    ends: int64[last - first] number of fragments up to the end of each document; report: int64[4]

    Returns the number of fragments, OUT_OF_CAPACITY with a larger capacity in report[NEED], or OUT_OF_WORK with the
    bytes of a text for `make_work` there. Linear in bytes.
    """
    w, inner = open_search(raw, work, data, False), open_search(later, work, data, True)
    out = Output(window(out_starts), window(out_stops), window(out_tokens), out_starts.size)
    report[NEED] = 2 * out.capacity + before.size + after.size + FRAGMENTS_PER_TOKEN
    at = 0
    for document in range(first, last):
        start, stop = starts[document], stops[document]
        if at + before.size + after.size + FRAGMENTS_PER_TOKEN > out.capacity:
            return OUT_OF_CAPACITY
        for k in range(before.size):
            at = put_fragment(out, at, start, start, before[k])
        if not know_long(w, start, stop):
            report[NEED] = stop - start
            return OUT_OF_WORK
        done, i = start, start
        block, mask = start - 64, np.uint64(0)
        while raw.ids.size > 0 and i < stop:
            i, rank, block, mask = next_occurrence(w, i, stop, block, mask)
            if rank == NO_VALUE:
                break
            begin, end = i, i + get_i32(w.lengths, rank)
            i = end
            token, strips = get_i32(w.ids, rank), get_u8(w.strips, rank)
            if token < 0 or (strips & ONLY_WORD and _beside_word(raw, data, start, begin, end, stop)):
                continue
            if strips & STRIPS_LEFT:
                begin = max(white_before(w.data, begin, done), done)
            if strips & STRIPS_RIGHT:
                end = white_after(w.data, end, stop)
            if done < begin:
                at = _cut_later(later, data, inner, out, at, done, begin)
            if at == NO_WORK:
                report[NEED] = stop - start
                return OUT_OF_WORK
            if at == NO_ROOM or at + FRAGMENTS_PER_TOKEN > out.capacity:
                return OUT_OF_CAPACITY
            if begin < end:
                at = put_fragment(out, at, begin, end, token)
            done = end
        if done < stop:
            at = _cut_later(later, data, inner, out, at, done, stop)
        if at == NO_WORK:
            report[NEED] = stop - start
            return OUT_OF_WORK
        if at == NO_ROOM or at + after.size + FRAGMENTS_PER_TOKEN > out.capacity:
            return OUT_OF_CAPACITY
        for k in range(after.size):
            at = put_fragment(out, at, stop, stop, after[k])
        ends[document - first] = at
    return at
