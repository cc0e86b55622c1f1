"""Documents to fragments: the loop that all rules of cutting share. Each rule cuts one text, and has its own kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jittok.kernels.fragments import FRAGMENT, NEED, OUT_OF_CAPACITY, OUT_OF_WORK
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper
from jittok.kernels.memory import Window, put_i32, put_i64, window
from jittok.kernels.special.search import SearchWindow, know_long
from jittok.kernels.special.tables import SpecialTokens
from jittok.kernels.structures.long_keys import open_long
from jittok.kernels.structures.sequences import open_sequences


class Output(NamedTuple):
    """The arrays that fragments are written to."""

    starts: Window
    stops: Window
    tokens: Window
    capacity: int


@helper
def open_output(starts: OutI64, stops: OutI64, tokens: OutI32) -> Output:
    """Windows onto the arrays."""
    return Output(window(starts), window(stops), window(tokens), starts.size)


@helper
def open_search(special: SpecialTokens, work: Any, data: U8, second: bool) -> SearchWindow:
    """Windows onto the tokens to search for, the text, and a PartitionWork. second: the second search of a text keeps
    the offsets of long tokens in an array of its own."""
    return SearchWindow(
        window(data), data.size, window(special.first), open_sequences(special.few), window(special.runs),
        window(special.run_ranks), window(special.run_at), window(special.trie.units), window(special.ids),
        window(special.lengths), window(special.strips), window(work.keys), window(work.heap), window(work.owners),
        open_long(special.long), window(work.later) if second else window(work.long), work.long.size,
        window(work.begun), 1 if second else 0, window(work.literal), work.mixed,
    )  # fmt: skip


@helper
def put_fragment(out: Output, at: int, start: int, stop: int, token: int) -> int:
    """Write one fragment. Returns the number of fragments now."""
    put_i64(out.starts, at, start)
    put_i64(out.stops, at, stop)
    put_i32(out.tokens, at, token)
    return at + 1


@helper
def put_ids(out: Output, at: int, position: int, ids: I32) -> int:
    """Write ids as fragments of an empty text. Returns the number of fragments now."""
    for k in range(ids.size):
        at = put_fragment(out, at, position, position, ids[k])
    return at


@helper
def put_id(out: Output, at: int, position: int, token: int) -> int:
    """The same for one id; -1 for none."""
    return put_fragment(out, at, position, position, token) if token >= 0 else at


def make_cut_documents(cut: Callable[..., int], put_around: Callable[..., int]) -> Callable[..., int]:
    """The loop for one rule, as a helper for its kernel.

    cut(own, w, out, at, start, stop, spare, report) -> the number of fragments up to the end of data[start:stop], of
    which `at` are written before, or a code, with the size that is needed in report[NEED]. It leaves capacity for
    `spare` more. own: whatever it needs besides the SearchWindow

    put_around(out, at, position, ids) -> the number of fragments with these ids: `put_ids` or `put_id`

    cut_documents(own, w, out, starts, stops, first, last, before, after, spare, ends, report) -> the number of
    fragments of documents first .. last - 1, or a code; ends: int64[last - first] their number up to the end of each
    document. spare: fragments that the ids around a document take, and one token and the text before it.
    """

    @helper
    def cut_documents(
        own: Any,
        w: SearchWindow,
        out: Output,
        starts: I64,
        stops: I64,
        first: int,
        last: int,
        before: Any,
        after: Any,
        spare: int,
        ends: OutI64,
        report: OutI64,
    ) -> int:
        at = 0
        for document in range(first, last):
            start, stop = starts[document], stops[document]
            report[FRAGMENT] = document
            if not know_long(w, start, stop):
                report[NEED] = stop - start
                return OUT_OF_WORK
            if at + spare > out.capacity:
                report[NEED] = at + spare
                return OUT_OF_CAPACITY
            at = cut(own, w, out, put_around(out, at, start, before), start, stop, spare, report)
            if at < 0:
                return at
            at = put_around(out, at, stop, after)
            ends[document - first] = at
        return at

    return cut_documents
