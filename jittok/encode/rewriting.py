"""Fragments that are rewritten before they are encoded, as by NFC: those that change are copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jittok.encode.workspace import Workspace
from jittok.kernels.fragments import NOT_UTF8, Failure
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import frozen
from jittok.kernels.memory import FAST
from jittok.kernels.normalize.nfc_fragments import Changed, NotUtf8

if TYPE_CHECKING:
    from jittok.encode.encoder import Encoder


Rewrite = Callable[..., Changed | None]
"""(data, starts, stops, tokens, fragments) -> what becomes of those that change. May raise NotUtf8."""


def run_rewritten(
    encoder: Encoder, rewrite: Rewrite, workspace: Workspace, docs: Documents, starts: NDArray[np.int64],
    stops: NDArray[np.int64], tokens: NDArray[np.int32], fragments: int, count: int, ends: NDArray[np.int64],
    replace: bool,
) -> int | Failure:  # fmt: skip
    """`Encoder._run` on the rewritten fragments; NOT_UTF8 if one is invalid UTF-8."""
    try:
        found = rewrite(docs.data, starts, stops, tokens, fragments)
    except NotUtf8 as bad:
        return Failure(NOT_UTF8, bad.args[0], 0, 0)
    if found is None:
        return encoder._run(workspace, docs, starts, stops, tokens, fragments, count, ends, replace)
    beside = _beside(found, docs, starts, stops)
    if beside is not None:
        all_, there, here = beside
        done = encoder._run(workspace, all_, all_.starts, all_.stops, tokens, fragments, count, ends, replace)
        if isinstance(done, int):
            return done
        k = done.fragment
        offset = found.before(k, done.offset - there) if found.changes[k] >= 0 else done.offset - here
        return Failure(done.code, k, offset, done.found)
    for first, last, changed in found.runs(tokens):
        if changed:
            part, begins, after = Documents(found.data, found.starts, found.stops), found.starts, found.stops
        else:
            part, begins, after = docs, starts, stops
        its = slice(first, last)
        done = encoder._run(
            workspace, part, begins[its], after[its], tokens[its], last - first, count, ends[its], replace
        )
        if not isinstance(done, int):
            k = first + done.fragment
            return Failure(done.code, k, found.before(k, done.offset) if changed else done.offset, done.found)
        count = done
    return count


def _beside(
    found: Changed, docs: Documents, starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> tuple[Documents, int, int] | None:
    """(all fragments as offsets from one address; the offsets where the rewritten fragments, and the caller's bytes,
    begin); None if kernels cannot read at such offsets."""
    if not FAST:
        return None
    here, there = docs.data.ctypes.data, found.data.ctypes.data
    base, changed = min(here, there), found.changes >= 0
    begins = np.where(changed, found.starts + (there - base), starts[: changed.size] + (here - base))
    ends = np.where(changed, found.stops + (there - base), stops[: changed.size] + (here - base))
    first = docs.data if here == base else found.data
    kept = (docs, found.data)
    return Documents(first, frozen(begins, np.int64), frozen(ends, np.int64), kept), there - base, here - base
