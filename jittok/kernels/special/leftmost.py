"""Added tokens of tokenizer files, cut out of documents: leftmost-longest, in two searches.

The first search is for tokens in the text as it is. The second search is in the text between them, for tokens of
normalized text (kernels run it only where nothing is normalized). A token that is not admitted is found, too, and left
as text: the search continues after it. `lstrip` takes white space before a match, up to the end of the last match.
`rstrip` takes white space after a match, but the search continues from the match's own end. A token with `single_word`
does not match next to a word character. Source: tokenizers, `AddedVocabulary`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jittok.kernels.fragments import FOUND, MIXED_TOKEN, NEED, OFFSET, OUT_OF_CAPACITY, OUT_OF_WORK, TEXT_PREFIXED
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, as_int64, helper, kernel
from jittok.kernels.memory import get_i32, get_u8
from jittok.kernels.special.documents import (
    Output,
    make_cut_documents,
    open_output,
    open_search,
    put_fragment,
    put_ids,
)
from jittok.kernels.special.partition import PartitionWork
from jittok.kernels.special.search import (
    MIXED,
    REFUSED,
    SearchWindow,
    judged,
    know_long,
    longest_admitted,
    next_occurrence,
)
from jittok.kernels.special.tables import ONLY_WORD, STRIPS_LEFT, STRIPS_RIGHT, SpecialTokens
from jittok.kernels.structures.double_array import NO_VALUE
from jittok.kernels.structures.utf8 import decode
from jittok.kernels.structures.white_space import white_after, white_before

FRAGMENTS_PER_TOKEN = 8
"""Fragments that one token may need capacity for."""


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


class _Search(NamedTuple):
    """One of the two searches: its tokens, the text, and what cuts the text between them."""

    special: SpecialTokens
    data: U8
    inner: Any
    inner_window: Any


def _make_cut(put_text: Callable[..., int]) -> Callable[..., int]:
    """The search that leaves text between its tokens to put_text(own, out, at, start, stop, spare, report)."""

    @helper
    def cut(
        own: _Search, w: SearchWindow, out: Output, at: int, start: int, stop: int, spare: int, report: OutI64
    ) -> int:
        """The fragments of one text; see `make_cut_documents`."""
        special, done, i = own.special, start, start
        block, mask = start - 64, np.uint64(0)
        while special.ids.size > 0 and i < stop:
            i, rank, block, mask = next_occurrence(w, i, stop, block, mask)
            if rank == NO_VALUE:
                break
            verdict = judged(w, i, rank)
            if verdict == REFUSED:
                rank = longest_admitted(w, i, get_i32(w.lengths, rank))
                if rank == NO_VALUE:
                    i += 1
                    continue
                verdict = judged(w, i, rank)
            if verdict == MIXED:
                report[OFFSET], report[FOUND] = i, get_i32(w.ids, rank)
                return MIXED_TOKEN
            begin, end = i, i + get_i32(w.lengths, rank)
            i = end
            token, strips = get_i32(w.ids, rank), get_u8(w.strips, rank)
            if token < 0 or (strips & ONLY_WORD and _beside_word(special, own.data, start, begin, end, stop)):
                continue
            if strips & STRIPS_LEFT:
                begin = max(white_before(w.data, begin, done), done)
            if strips & STRIPS_RIGHT:
                end = white_after(w.data, end, stop)
            if done < begin:
                at = put_text(own, out, at, done, begin, spare, report)
                if at < 0:
                    return at
            if at + spare > out.capacity:
                report[NEED] = at + spare
                return OUT_OF_CAPACITY
            if begin < end:  # with lstrip, a match in white space that the match before has taken is empty
                at = put_fragment(out, at, begin, end, token)
            done = end
        if done < stop:
            at = put_text(own, out, at, done, stop, spare, report)
            if at < 0:
                return at
        if at + spare > out.capacity:
            report[NEED] = at + spare
            return OUT_OF_CAPACITY
        return at

    return cut


@helper
def _put_as_text(_own: Any, out: Output, at: int, start: int, stop: int, _spare: int, _report: OutI64) -> int:
    return put_fragment(out, at, start, stop, TEXT_PREFIXED)


_cut_inner = _make_cut(_put_as_text)


@helper
def _search_again(own: _Search, out: Output, at: int, start: int, stop: int, spare: int, report: OutI64) -> int:
    if not know_long(own.inner_window, start, stop):
        report[NEED] = stop - start
        return OUT_OF_WORK
    return _cut_inner(own.inner, own.inner_window, out, at, start, stop, spare, report)


_cut_documents = make_cut_documents(_make_cut(_search_again), put_ids)


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

    Returns the number of fragments, OUT_OF_CAPACITY with a larger capacity in report[NEED], OUT_OF_WORK with the bytes
    of a text for `make_work` there, or MIXED_TOKEN. Linear in bytes.
    """
    w, out = open_search(raw, work, data, False), open_output(out_starts, out_stops, out_tokens)
    inner = _Search(later, data, 0, 0)
    own = _Search(raw, data, inner, open_search(later, work, data, True))
    spare = before.size + after.size + FRAGMENTS_PER_TOKEN
    return _cut_documents(own, w, out, starts, stops, first, last, before, after, spare, ends, report)
