"""One long document for several threads: cut where no word reaches across, and put together again.

Special tokens are cut out first, in the document as a whole. A stretch of text between them may then be cut in front of
a space with four ASCII letters on its left and one on its right, where a model says so (`may_part`). Four letters: as
far as the first byte of a malformed character could reach.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.fragments import TEXT
from jittok.inputs import Documents

LEAST = 4 << 20
"""Bytes of a document that is worth cutting."""
WINDOW = 1 << 14
"""Bytes that are searched for a place to cut."""
_PLACE = re.compile(rb"[A-Za-z]{4} (?=[A-Za-z])")

Fragments = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]


def part_fragments(docs: Documents, fragments: Fragments, parts: int) -> tuple[Fragments, NDArray[np.int64]]:
    """(starts, stops and tokens of fragments, some of them cut; int64[parts + 1], the first fragment of each part).

    Parts have about the same number of bytes, if there are places to cut.
    """
    starts, stops, tokens = fragments
    ends = np.cumsum(stops - starts)
    marks = int(ends[-1]) * np.arange(1, parts) // parts
    cuts: list[tuple[int, int]] = []  # (fragment, place)
    for mark, fragment in zip(marks.tolist(), np.searchsorted(ends, marks, "right").tolist(), strict=True):
        if tokens[fragment] >= 0:
            continue
        at = int(stops[fragment]) - (int(ends[fragment]) - mark)
        found = _PLACE.search(docs.between(at, min(at + WINDOW, int(stops[fragment]))))
        if found and (fragment, at + found.end() - 1) not in cuts:
            cuts.append((fragment, at + found.end() - 1))
    where, places = [fragment for fragment, _ in cuts], [place for _, place in cuts]
    new = [fragment + 1 for fragment in where]
    cut = np.insert(starts, new, places), np.insert(stops, where, places), np.insert(tokens, new, TEXT)
    first = np.array([0, *(fragment + 1 + k for k, fragment in enumerate(where)), cut[0].size])
    return cut, first


def together(run: ThreadPoolExecutor, parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The parts behind each other, copied by several threads: touching new memory takes longer than copying."""
    ends = np.cumsum([0, *(part.size for part in parts)]).tolist()
    ids = np.empty(ends[-1], np.int32)

    def copy(k: int) -> None:
        ids[ends[k] : ends[k + 1]] = parts[k]

    list(run.map(copy, range(len(parts))))
    return ids


def in_parts(
    pool: ThreadPoolExecutor, docs: Documents, fragments: Fragments, parts: int, encode: Callable[..., Any]
) -> NDArray[np.int32]:
    """The ids of one document. encode(starts, stops, tokens) gives those of some fragments."""
    cut, first = part_fragments(docs, fragments, parts)
    for column in cut:
        column.flags.writeable = False
    futures = [
        pool.submit(encode, *(column[a:b] for column in cut))
        for a, b in zip(first[:-1].tolist(), first[1:].tolist(), strict=True)
    ]
    return together(pool, [future.result() for future in futures])
