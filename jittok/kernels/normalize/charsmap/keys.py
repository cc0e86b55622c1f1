"""Analysis of a character map when a vocabulary is loaded: all of its keys, and which of them an ASCII byte can
begin."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import I64, U8, U32, OutI64, OutU8, as_int64, frozen, kernel
from jittok.kernels.normalize.charsmap.xcda import ENDS, VALUE, Charsmap, base_of, links_of

PLAIN, TIED, MAPPED, BEGINS_USER = 0, 1, 2, 4
"""Kinds of bytes: no key begins with it; every key that does continues with a byte of a character beyond ASCII; all
other bytes (bytes of characters beyond ASCII among them). BEGINS_USER is added where a user-defined token begins with
the byte."""
LONGEST_KEY = 64
"""Limit of bytes of a key, beyond which a charsmap is ODD,"""
MOST_KEY_BYTES = 1 << 22
"""and limit of bytes of all keys."""
ODD = -1


class CharsmapKeys(NamedTuple):
    """The keys of a charsmap and their replacements: concatenated bytes, and offsets."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]  # [keys + 1]
    images: NDArray[np.uint8]
    image_offsets: NDArray[np.int64]  # [keys + 1]


FIRST_CAPACITY = 1 << 20
"""Initial capacity for bytes of keys, enough for the largest known charsmaps; unwritten memory costs nothing."""

MANY_UNITS = 1 << 15
"""From so many units on, the initial capacity is the limit."""
_last: list[tuple[bytes, CharsmapKeys | None]] = []
"""The digest of a charsmap and its keys: three packages need the keys when a vocabulary is first used."""


def charsmap_keys(charsmap: Charsmap, longest: int = LONGEST_KEY) -> CharsmapKeys | None:
    """All keys; None for a charsmap with a link out of bounds, or that exceeds the limits above.

    longest: limit of bytes of the keys that are returned; errors beyond it are not detected
    """
    digest = hashlib.blake2b(charsmap.units.tobytes())
    digest.update(longest.to_bytes(8, "little"))
    digest.update(charsmap.replacements.tobytes())
    digest.update(charsmap.replacements_end.to_bytes(8, "little"))
    known = _last[-1:]
    if not known or known[0][0] != digest.digest():
        known = _last[:] = [(digest.digest(), _all_keys(charsmap, longest))]
    return known[0][1]


def _all_keys(charsmap: Charsmap, longest: int = LONGEST_KEY) -> CharsmapKeys | None:
    nothing = np.zeros(0, np.uint8), np.zeros(1, np.int64)
    if charsmap.units.size == 0:
        return CharsmapKeys(*nothing, *nothing)
    links = links_of(charsmap.units)
    capacity = FIRST_CAPACITY if charsmap.units.size < MANY_UNITS else MOST_KEY_BYTES
    while True:
        data, offsets, positions = (
            np.empty(capacity, np.uint8),
            np.zeros(capacity, np.int64),
            np.empty(capacity, np.int64),
        )
        count = list_keys(
            charsmap.units, *links, longest, data, offsets, positions, np.zeros(3 * LONGEST_KEY + 3, np.int64)
        )
        if count == ODD or capacity > MOST_KEY_BYTES:
            return None
        if count >= 0:
            break
        capacity *= 4
    offsets, positions = offsets[: count + 1], positions[:count]
    if count and int(positions.max()) >= charsmap.replacements_end:
        return None
    stops = np.flatnonzero(charsmap.replacements == 0)
    lengths = stops[np.searchsorted(stops, positions)] - positions
    image_offsets = np.concatenate([[0], np.cumsum(lengths)])
    within = np.arange(int(image_offsets[-1])) - np.repeat(image_offsets[:-1], lengths)
    images = charsmap.replacements[np.repeat(positions, lengths) + within]
    return CharsmapKeys(data[: offsets[-1]], offsets, images, image_offsets)


@kernel
def list_keys(
    units: U32, begins: I64, labels: U8, longest: int, data: OutU8, offsets: OutI64, positions: OutI64, path: OutI64
) -> int:  # fmt: skip
    """Write every key of up to `longest` bytes to data, its end to offsets[1:], the offset of its replacement to
    `positions`.

    begins, labels: of `links_of`; longest: up to LONGEST; a longer key is ODD if it is LONGEST, else it is left out
    data: uint8[capacity], offsets: int64[capacity], positions: int64[capacity]
    path: int64[3 * LONGEST + 3] scratch: base, next link, label that led there, for each depth

    Returns how many, ODD, or -2 if the capacity is too small. Linear in the bytes of keys.
    """
    count, used, depth = as_int64(0), as_int64(0), as_int64(0)
    base = base_of(as_int64(units[0]))
    if base | 0xFF >= units.size:
        return ODD
    path[0], path[1] = base, begins[base]
    while depth >= 0:
        base, link = path[3 * depth], path[3 * depth + 1]
        if link == begins[base + 1]:
            depth -= 1
            continue
        path[3 * depth + 1] = link + 1
        if depth == longest < LONGEST_KEY:
            depth -= 1
            continue
        label = as_int64(labels[link])
        position = base ^ label
        unit = as_int64(units[position])
        below = position ^ base_of(unit)
        depth += 1
        if depth > LONGEST_KEY or below | 0xFF >= units.size:
            return ODD
        path[3 * depth], path[3 * depth + 1], path[3 * depth + 2] = below, begins[below], label
        if unit & ENDS:
            if used + depth > data.size or count + 2 > offsets.size:
                return -2
            for k in range(depth):
                data[used + k] = path[3 * k + 5]
            used += depth
            positions[count] = as_int64(units[below]) & VALUE
            count += 1
            offsets[count] = used
    return count


def byte_kinds(keys: CharsmapKeys) -> NDArray[np.uint8]:
    """uint8[256]: PLAIN, TIED or MAPPED."""
    kinds = np.full(256, PLAIN, np.uint8)
    starts, lengths = keys.offsets[:-1], np.diff(keys.offsets)
    first = keys.data[starts]
    second = np.where(lengths > 1, keys.data[np.minimum(starts + 1, keys.data.size - 1)], 0) if first.size else first
    kinds[first] = TIED
    kinds[first[second < 0x80]] = MAPPED
    kinds[0x80:] = MAPPED
    return frozen(kinds, np.uint8)
