"""Rows of one length: ids, a mask and types of segments as arrays that a model takes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.chunks.written import RUN, Padding, Template, write_padded
from jittok.common.rows.padded import Padded
from jittok.encode.buffers import BufferPool, Mapping
from jittok.encode.threads.stretches import thread_count
from jittok.kernels.jit import frozen, interruptible_if_long

IDS_PER_STEP = 1 << 18
"""Ids that a thread writes at a time, with their mask and types 2 MB."""
_kept: list[Mapping] = []


def pad_rows(
    template: Template, sources: tuple[NDArray[np.int32], NDArray[np.int32]], table: NDArray[np.int64],
    padding: Padding, threads: int | None,
) -> Padded:  # fmt: skip
    """The lines of a table as rows of padding.length ids, which none of them exceeds; see `written.write_padded`."""
    shape = len(table), padding.length
    size = shape[0] * shape[1]
    pool = BufferPool(_kept)
    ids, words = _array(pool, size), _array(pool, -(-size // 4))
    mask = words.view(np.uint8)[:size]
    types = _array(pool, size) if padding.typed else np.zeros(size, np.int32)  # zeros that no one has touched
    flat = frozen(table.reshape(-1), np.int64)

    def write(begin: int, end: int) -> None:
        write_padded(template, *sources, flat, begin, end, padding, ids, mask, types)

    on_threads(write, len(table), size, threads)
    return Padded(ids.reshape(shape), mask.view(np.bool_).reshape(shape), types.reshape(shape))


def on_threads(write: Callable[[int, int], None], rows: int, size: int, threads: int | None) -> None:
    """write(begin, end) for all rows, in steps of about IDS_PER_STEP of their `size` ids, by several threads."""
    steps = min(rows, size // IDS_PER_STEP)
    count = thread_count(threads)
    if steps < 2 or count == 1:
        interruptible_if_long(4 * size)(write, 0, rows)
        return
    from jittok.kernels.jit.pool import Pool

    cuts = [rows * k // steps for k in range(steps + 1)]
    pool, wait = Pool(count), False
    try:
        for future in [pool.submit(write, *cut) for cut in pairwise(cuts)]:
            future.result()
        wait = True
    finally:
        pool.shutdown(wait, cancel_futures=True)


def padding_of(length: int, pad_id: int, pad_type: int, side: str, types: NDArray[np.int32]) -> Padding:
    """The padding of rows whose parts have these types."""
    typed = bool(types.any()) or pad_type != 0
    runs: list[Any] = [frozen([value] * RUN, np.int32) for value in (pad_id, pad_type)]
    return Padding(length, int(side == "left"), int(typed), *runs)


def _array(pool: BufferPool, count: int) -> NDArray[np.int32]:
    return pool.detach(pool.array(count), count)
