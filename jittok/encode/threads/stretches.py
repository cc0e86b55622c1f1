"""Stretches: groups of consecutive documents that are handed to threads, with results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jittok.common.display.progress import Bar, Show, count_of
from jittok.encode import limits
from jittok.kernels.inputs import documents

if TYPE_CHECKING:
    from concurrent.futures import Future

DOCUMENT_WEIGHT = 16
"""Bytes that a document counts beside its text when stretches are cut: empty documents cost time as well."""


class Stretch(NamedTuple):
    """Documents first .. last - 1 of some, which one thread encodes."""

    docs: Any  # Documents; or the exception that reading them raised
    base: int  # number of document 0
    first: int
    last: int
    alone: bool = False  # whether these are all of the documents

    @property
    def number(self) -> int:
        """The number of documents."""
        return self.last - self.first

    @property
    def size(self) -> int:
        """Their bytes."""
        return self.docs.size(self.first, self.last)  # type: ignore[no-any-return]

    @property
    def weight(self) -> int:
        """Bytes that they count as."""
        return self.size + DOCUMENT_WEIGHT * self.number

    def checked(self) -> Stretch:
        """The same. Raises the exception that reading the documents raised."""
        if isinstance(self.docs, BaseException):
            raise self.docs
        return self

    def replaced(self, docs: Any, first: int, last: int) -> Stretch:
        """Documents first .. last - 1 of these as all documents of `docs`, which are copies."""
        return Stretch(docs, self.base + first, 0, last - first)


def thread_count(threads: int | None) -> int:
    """The number of threads to use: at most the cores that this process may use, as more are not faster; None: all
    cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads is None:
        return cores
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer):
        raise TypeError(f"threads: found {type(threads).__name__}, expected an int or None")
    if threads < 1:
        raise ValueError(f"threads: found {threads}, expected 1 or more")
    return min(int(threads), cores)


def finished(pending: deque[Future[Any]], keep: int, bar: Any) -> Iterator[Any]:
    """Yields results in order while more than `keep` are pending, then those that are done already. No reference is
    kept to a result that was yielded."""
    while len(pending) > keep or (pending and pending[0].done()):
        if bar is not None:
            bar.update(pending[0].result()[1].size)
        yield pending.popleft().result()


def stretches_of(
    texts: Any, replace: bool, threads: int, whole: bool, in_place: bool, most: int | None = None, wide: int = 0
) -> Iterator[Stretch]:
    """Yields the stretches of texts.

    If reading failed, the last one has the exception in the place of documents.

    whole: a part is one stretch; else no stretch has many more bytes than `most` (STRETCH_BYTES). in_place, wide: see
    `documents`.
    """
    most = most or limits.STRETCH_BYTES
    base, parts = 0, documents(texts, replace, in_place, wide)
    while True:
        try:
            docs = next(parts, None)
        except Exception as error:  # noqa: BLE001  raised by the caller when its turn has come
            yield Stretch(error, base, 0, 0)
            return
        if docs is None:
            return
        if docs.starts.size:
            weights = np.cumsum(docs.stops - docs.starts + DOCUMENT_WEIGHT)
            target = min(max(int(weights[-1]) // (4 * threads), limits.STRETCH_MIN), most)
            target = int(weights[-1]) if whole else target
            marks = np.arange(1, -(-int(weights[-1]) // target)) * target
            # no np.unique: at its first call it imports np.ma, 5 to 8 ms
            cuts = sorted({0, *np.searchsorted(weights, marks, "right").tolist(), docs.starts.size})
            for first, last in pairwise(cuts):
                yield Stretch(docs, base, first, last, len(cuts) == 2)
        base += docs.starts.size


def progress_bar(work: str, texts: Any, progress: Show) -> Bar:
    """Documents that are done, of all where their number is known."""
    return Bar(work, count_of(texts), "documents", progress)
