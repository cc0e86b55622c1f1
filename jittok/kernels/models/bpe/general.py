"""BPE for every pre-tokenizer and every text: the kernel around the general splitter."""

from __future__ import annotations

from typing import NamedTuple

from jittok.kernels.fragments import NEED, OUT_OF_WORK
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper, kernel
from jittok.kernels.memory import PAD, Window, bit_places, get_u64, put_i64, readable_behind, window
from jittok.kernels.models.bpe.arrays import BpeArrays
from jittok.kernels.models.bpe.merge_boundaries import MergeBoundaryWindow, cut_merge_boundaries
from jittok.kernels.models.bpe.plain import encode_text
from jittok.kernels.models.bpe.scratch import BYTES_PER_BYTE, BpeWork, WorkWindow, discard, flush, open_work, resolve
from jittok.kernels.pretoken_cache.fragment_loop import make_encode_fragments
from jittok.kernels.pretoken_cache.run_loop import Fragments, make_encode_run
from jittok.kernels.pretoken_cache.tables import SPARE_IDS
from jittok.kernels.pretokenize.splitters.general import SplitterWindow, SplitWindow, open_splitter, split_run
from jittok.kernels.pretokenize.splitters.gpt2 import MALFORMED


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
