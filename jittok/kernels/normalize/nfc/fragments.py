"""Fragments in NFC: which of them change, their new bytes, and a map of offsets back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.fragments import PAD
from jittok.kernels.jit import I32, I64, U8, frozen
from jittok.kernels.normalize.nfc.normalizer import GROWTH, NO_MAP, find_changed, make_nfc_work, normalize_changed
from jittok.kernels.normalize.nfc.tables import Nfc, nfc_tables

__all__ = ["Changed", "Nfc", "NotUtf8", "changed_fragments", "nfc", "nfc_tables"]


class NotUtf8(Exception):
    """A fragment is invalid UTF-8; holds its number."""


class Changed(NamedTuple):
    """The fragments that NFC changes, one after the other, with PAD bytes after the last."""

    changes: NDArray[np.int64]  # [fragments] where the first change is, -1 if there is none
    data: U8
    starts: I64  # [fragments] offsets in `data`; fragments that do not change are empty
    stops: I64
    map_starts: I64  # [bytes] the source span of each byte of `data`, or empty
    map_stops: I64
    source: tuple[U8, I64, I64]  # the caller's bytes, starts and stops
    tables: Nfc | None  # of NFC; else `before` returns starts of fragments

    def runs(self, tokens: NDArray[np.int32]) -> Iterator[tuple[int, int, bool]]:
        """(first, last, whether they change) of runs of fragments; an id belongs to the run before it."""
        state = np.where(tokens[: self.changes.size] >= 0, -1, (self.changes >= 0).astype(np.int8))
        texts = np.flatnonzero(state >= 0)
        borders = texts[1:][np.diff(state[texts]) != 0].tolist()
        first, changed = 0, bool(state[texts[0]])
        for last in [*borders, state.size]:
            yield first, last, changed
            first, changed = last, not changed

    def before(self, fragment: int, position: int) -> int:
        """The offset in the caller's bytes of `position` in `data`, which is in `fragment`."""
        data, starts, stops = self.source
        if self.tables is None:
            return int(starts[fragment])
        part = slice(fragment, fragment + 1)
        tokens = frozen([-1], np.int32)
        one = changed_fragments(self.tables, data, starts[part], stops[part], tokens, 1, with_map=True)
        at = position - int(self.starts[fragment])
        return int(stops[fragment]) if one is None or at >= one.map_starts.size else int(one.map_starts[at])


def changed_fragments(
    tables: Nfc, data: U8, starts: I64, stops: I64, tokens: I32, count: int, with_map: bool = False,
    strict: bool = False,
) -> Changed | None:  # fmt: skip
    """Normalize the fragments (see `jittok.kernels.fragments`) that NFC changes; None if it changes none.

    strict: raise NotUtf8 for invalid UTF-8; else bad bytes become U+FFFD.
    """
    changes = np.empty(count, np.int64)
    total = find_changed(tables, data, starts, stops, tokens, count, int(strict), changes)
    if not total:
        return None
    if total < 0:
        raise NotUtf8(-1 - total)
    longest = int((stops[:count] - starts[:count])[changes >= 0].max())
    capacity = GROWTH * total
    out, positions = np.empty(capacity + PAD, np.uint8), np.empty(2 * count, np.int64)
    maps = [np.empty(capacity if with_map else NO_MAP, np.int64) for _ in range(2)]
    size = normalize_changed(
        tables, make_nfc_work(longest), data, starts, stops, frozen(changes, np.int64), count, out, *maps, positions
    )
    out[size : size + PAD] = 0
    return Changed(
        changes, frozen(out[: size + PAD], np.uint8), frozen(positions[0::2], np.int64), frozen(positions[1::2],
        np.int64), frozen(maps[0][:size], np.int64), frozen(maps[1][:size], np.int64), (data, starts, stops), tables,
    )  # fmt: skip


def nfc(text: bytes) -> bytes:
    """One text in NFC."""
    data, ends = frozen(np.frombuffer(text, np.uint8), np.uint8), frozen([0, len(text)], np.int64)
    found = changed_fragments(nfc_tables(), data, ends[:1].copy(), ends[1:].copy(), frozen([-1], np.int32), 1)
    return text if found is None else found.data[: found.stops[0]].tobytes()
