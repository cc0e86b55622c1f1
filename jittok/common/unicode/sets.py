"""Sets of code points as rising ranges (first, last) that do not touch."""

from __future__ import annotations

from collections.abc import Iterable

LAST = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]


def merged(parts: Iterable[tuple[int, int]]) -> Ranges:
    """The set of what is in any of some ranges."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(parts):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        else:
            out.append((low, high))
    return tuple(out)


def complement(parts: Iterable[tuple[int, int]], last: int = LAST) -> Ranges:
    """All other characters up to `last`."""
    out, at = [], 0
    for low, high in merged(parts):
        if at < low:
            out.append((at, low - 1))
        at = high + 1
    return tuple([*out, (at, last)] if at <= last else out)


def common(whole: Ranges | None, part: Iterable[tuple[int, int]]) -> Ranges:
    """The characters that both sets have; None: all."""
    if whole is None:
        return merged(part)
    return complement([*complement(whole), *complement(part)])


def without(whole: Ranges, *parts: Ranges) -> Ranges:
    """A set without others."""
    return common(whole, complement([each for part in parts for each in part]))
