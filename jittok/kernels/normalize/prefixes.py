"""Adds prefixes to fragments, replaces runs of a byte, and strips white space."""

from __future__ import annotations

from jittok.kernels.jit import I32, I64, U8, OutI64, OutU8, as_int64, helper, kernel
from jittok.kernels.memory import get_u8, put_u8, window
from jittok.kernels.structures.white_space import white_after, white_before


@helper
def _begins_with(data: U8, start: int, stop: int, text: U8) -> bool:
    if stop - start < text.size:
        return False
    for k in range(text.size):
        if data[start + k] != text[k]:
            return False
    return True


@kernel
def write_prefixes(
    data: U8, starts: I64, stops: I64, tokens: I32, count: int, front: U8, unless: U8, other: U8, least: int,
    out: OutU8, out_starts: OutI64, out_stops: OutI64,
) -> int:  # fmt: skip
    """Write fragments to `out`, one after the other, with `front` before each non-empty one; how many bytes. Ids are
    empty.

    starts, stops: int64[count], tokens: int32[count] as in `jittok.kernels.fragments`
    least: fragments whose value in `tokens` is above it get no prefix
    unless, other: a text that begins with one of these gets no prefix; may be empty
    out: uint8[bytes + count * front.size]; out_starts, out_stops: int64[count] receive where each is
    """
    text, to, at = window(data), window(out), as_int64(0)
    for k in range(count):
        out_starts[k] = at
        start, stop = as_int64(starts[k]), as_int64(stops[k])
        if tokens[k] < 0 and start < stop:
            begun = unless.size > 0 and _begins_with(data, start, stop, unless)
            begun = begun or (other.size > 0 and _begins_with(data, start, stop, other))
            if tokens[k] <= least and not begun:
                for j in range(front.size):
                    put_u8(to, at + j, front[j])
                at += front.size
            for j in range(stop - start):
                put_u8(to, at + j, get_u8(text, start + j))
            at += stop - start
        out_stops[k] = at
    return at


@kernel
def write_runs(
    data: U8, starts: I64, stops: I64, tokens: I32, count: int, byte: int, least: int, content: U8, out: OutU8,
    out_starts: OutI64, out_stops: OutI64,
) -> int:  # fmt: skip
    """Write fragments to `out`, one after the other, with `content` for each run of `least` or more of an ASCII byte;
    how many bytes. Ids are empty.

    starts, stops: int64[count], tokens: int32[count] as in `jittok.kernels.fragments`
    out: uint8[(1 + content.size) * bytes]; out_starts, out_stops: int64[count] receive where each is
    """
    text, to, at = window(data), window(out), as_int64(0)
    for k in range(count):
        out_starts[k] = at
        i, stop = as_int64(starts[k]), as_int64(stops[k])
        while tokens[k] < 0 and i < stop:
            while i < stop and get_u8(text, i) != byte:
                put_u8(to, at, get_u8(text, i))
                i, at = i + 1, at + 1
            begun = i
            while i < stop and get_u8(text, i) == byte:
                i += 1
            if i - begun >= least:
                for j in range(content.size):
                    put_u8(to, at + j, content[j])
                at += content.size
            else:
                for j in range(i - begun):
                    put_u8(to, at + j, byte)
                at += i - begun
        out_stops[k] = at
    return at


@kernel
def strip_white(
    data: U8, starts: I64, stops: I64, tokens: I32, count: int, left: int, right: int, out_starts: OutI64,
    out_stops: OutI64,
) -> int:  # fmt: skip
    """Compute where fragments begin and end without white space at their ends; returns `count`.

    starts, stops, out_starts, out_stops: int64[count], tokens: int32[count]; left, right: 0 or 1, which ends
    """
    text = window(data)
    for k in range(count):
        start, stop = as_int64(starts[k]), as_int64(stops[k])
        if tokens[k] < 0 and start < stop:
            if left != 0:
                start = white_after(text, start, stop)
            if right != 0:
                stop = white_before(text, stop, start)
        out_starts[k], out_stops[k] = start, stop
    return count


@kernel
def gather(
    data: U8, starts: I64, stops: I64, other: U8, other_starts: I64, other_stops: I64, changes: I64, tokens: I32,
    count: int, out: OutU8, out_starts: OutI64, out_stops: OutI64,
) -> int:  # fmt: skip
    """Write fragments of `data`, or of `other` where changes[k] >= 0, to `out`, one after the other; how many bytes.

    Starts, stops and changes: int64[count]; tokens: int32[count]; out: uint8[total bytes]. Ids are empty.
    """
    to, at = window(out), as_int64(0)
    for k in range(count):
        out_starts[k] = at
        if tokens[k] < 0:
            if changes[k] >= 0:
                text, start, stop = window(other), as_int64(other_starts[k]), as_int64(other_stops[k])
            else:
                text, start, stop = window(data), as_int64(starts[k]), as_int64(stops[k])
            for j in range(stop - start):
                put_u8(to, at + j, get_u8(text, start + j))
            at += stop - start
        out_stops[k] = at
    return at
