"""The precompiled charsmap of a Unigram vocabulary: byte strings -> replacements, in SentencePiece's XCDA.

A charsmap is a uint32 L, L bytes of units (uint32) and NUL-terminated replacements. Bits of a unit: 0-7 label, 8 "a
key ends here, its value is in the unit of its base", 9 "base is shifted left by 8", 10-31 base, 31 "holds a value"
(which is in bits 0-30). The child of base b under byte c is unit b ^ c, if its label is c.

Charsmaps come from files. Each unit index is checked where it is used, as llama.cpp does, so a text that does not reach
a bad index is still encoded. A cyclic path is refused when the charsmap is read: each position of a text could walk to
the end of the text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.errors import InWords, MalformedVocab
from jittok.kernels.jit import I64, U8, U32, OutI64, OutU8, as_int64, frozen, helper, kernel

KEY = "tokenizer.ggml.precompiled_charsmap"
CHECK = 0x800000FF
"""Label and bit 31: a unit that holds a value never matches a byte."""
ENDS, WIDE, VALUE = 0x100, 0x200, 0x7FFFFFFF
NO_MATCH = 0
LEVELS = 256
"""Limit of bytes of keys; a charsmap with a longer path is walked unit by unit."""
OUTSIDE = -1
"""A link leads outside of the units."""


class Charsmap(NamedTuple):
    """Units below 2 ** 30; no path over them has a cycle, so a walk is at most `units.size` steps long."""

    units: U32  # [units] empty when nothing is replaced
    replacements: U8  # [bytes]
    replacements_end: int  # after the last NUL: a replacement that begins before it has an end


def read_charsmap(charsmap: NDArray[np.uint8], source: str) -> Charsmap:
    """The charsmap of a vocabulary; one without units when `charsmap` is empty. `source` names the file in errors.

    Raises MalformedVocab when the sizes do not fit (as llama.cpp does) or a path has a cycle.
    """
    if charsmap.size == 0:
        return Charsmap(frozen([], np.uint32), frozen([], np.uint8), 0)
    blob = charsmap.tobytes()
    size = int.from_bytes(blob[:4], "little")
    if len(blob) < 4 or size + 4 >= len(blob):
        raise MalformedVocab(
            source, KEY, InWords(f"{size} bytes of units"), f"less than the array's {len(blob)} bytes - 4"
        )
    units = frozen(np.frombuffer(blob, "<u4", size // 4, 4), np.uint32)
    replacements = frozen(np.frombuffer(blob, np.uint8, offset=4 + size), np.uint8)
    begins, labels = links_of(units)
    found = -1
    if not ends_soon(units, begins, labels):
        found = find_cycle(
            units, begins, labels, np.zeros(units.size, np.uint8), np.empty(2 * units.size + 2, np.int64)
        )
    if found >= 0:
        raise MalformedVocab(source, KEY, InWords(f"unit {found} below itself"), "paths that come to an end")
    return Charsmap(units, replacements, blob.rfind(b"\0", 4 + size) + 1 - (4 + size) if 0 in replacements else 0)


@helper
def base_of(unit: int) -> int:
    """Bits 10-31, shifted left by 8 when bit 9 is set: below 2 ** 30."""
    return unit >> 10 << ((unit & WIDE) >> 6)


def root_base(charsmap: Charsmap) -> int:
    """Where walks begin; 0 without units."""
    unit = int(charsmap.units[0]) if charsmap.units.size else 0
    return unit >> 10 << ((unit & WIDE) >> 6)


@helper
def longest_key(charsmap: Charsmap, text: U8, start: int, stop: int) -> tuple[int, int]:
    """(bytes, replacement) of the longest key that text[start:stop] begins with; (NO_MATCH, 0) when there is none.

    (OUTSIDE, index) when the walk leads to a unit that does not exist. NUL ends the walk.
    """
    length, value = NO_MATCH, as_int64(0)
    if charsmap.units.size == 0:
        return length, value
    node = base_of(as_int64(charsmap.units[0]))
    for i in range(start, stop):
        byte = as_int64(text[i])
        if byte == 0:
            break
        node ^= byte
        if node >= charsmap.units.size:
            return OUTSIDE, node
        unit = as_int64(charsmap.units[node])
        if unit & CHECK != byte:
            break
        node ^= base_of(unit)
        if unit & ENDS:
            if node >= charsmap.units.size:
                return OUTSIDE, node
            length, value = i + 1 - start, as_int64(charsmap.units[node]) & VALUE
    return length, value


def links_of(units: U32) -> tuple[I64, U8]:
    """(where the labels below each base begin, int64[bases + 1]; these labels, ascending): a unit's index and its label
    determine the one base that it can be below. Bases are in blocks of 256, of which the last may not be full of
    units."""
    positions = np.flatnonzero(((units & CHECK) > 0) & ((units & CHECK) <= 0xFF))
    own = (units[positions] & 0xFF).astype(np.int64)
    bases, labels = positions ^ own, np.zeros(units.size, np.uint8)
    labels[: positions.size] = own[np.lexsort((own, bases))]
    begins = np.zeros((units.size | 0xFF) + 2, np.int64)
    begins[1:] = np.cumsum(np.bincount(bases, minlength=begins.size - 1))
    return frozen(begins, np.int64), frozen(labels, np.uint8)


def ends_soon(units: U32, begins: I64, labels: U8) -> bool:
    """Whether all paths from the root end within LEVELS units, so that none has a cycle.

    begins, labels: of `links_of`
    """
    nodes = np.zeros(min(units.size, 1), np.int64)
    for _ in range(LEVELS + 1):
        values = units[nodes].astype(np.int64)
        bases = np.unique(nodes ^ (values >> 10 << ((values & WIDE) >> 6)))
        bases = bases[bases + 1 < begins.size]
        counts = begins[bases + 1] - begins[bases]
        ends = np.cumsum(counts)
        if not ends.size or not ends[-1]:
            return True
        links = np.arange(int(ends[-1])) + np.repeat(begins[bases] - ends + counts, counts)
        nodes = np.repeat(bases, counts) ^ labels[links]
    return False


@kernel
def find_cycle(units: U32, begins: I64, labels: U8, color: OutU8, stack: OutI64) -> int:
    """A unit that is below itself on a path from the root, or -1. Linear in the units.

    begins, labels: of `links_of`; color: uint8[units] zeroed: 0 not seen, 1 on the path, 2 done
    stack: int64[2 * (units + 1)] scratch: (base, next link) along the path; units on it are distinct, so it suffices
    """
    if units.size == 0:
        return -1
    # A unit is reached under one label only, its own, so marking units marks (node, label).
    depth = 2
    stack[0] = base_of(as_int64(units[0]))
    stack[1] = _first_link(begins, stack[0])
    while depth:
        base, link = stack[depth - 2], stack[depth - 1]
        if base + 1 >= begins.size or link == begins[base + 1]:
            depth -= 2
            if depth:
                color[stack[depth - 2] ^ as_int64(labels[stack[depth - 1] - 1])] = 2
            continue
        stack[depth - 1] = link + 1
        node = as_int64(base ^ as_int64(labels[link]))
        if color[node] == 2:
            continue
        if color[node] == 1:
            return node
        color[node] = 1
        stack[depth] = node ^ base_of(as_int64(units[node]))
        stack[depth + 1] = _first_link(begins, stack[depth])
        depth += 2
    return -1


@helper
def _first_link(begins: I64, base: int) -> int:
    return begins[base] if base + 1 < begins.size else 0
