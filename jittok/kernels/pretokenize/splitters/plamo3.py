"""Where PLaMo-3 cuts a text into parts, each of which is encoded by itself: around control sequences and long runs.

Over code points. A control sequence is <|plamo: and |> with up to LONGEST_BODY code points between, none of which is
white space or "|". It need not be a token. A run of one code point is long from RUN on; of spaces, from two on; of
newlines, never. Source: llama.cpp, `llm_tokenizer_plamo3`.
"""

from __future__ import annotations

from jittok.common.unicode.characters import NEWLINE, SPACE_BYTE
from jittok.kernels.jit import OutI32, OutU8, as_int64, helper

BOUNDARY = 0xEE00
"""Ends a part and belongs to no part."""
RUN, LONGEST_BODY = 4, 64
BAR, CLOSING = 0x7C, 0x3E
OPENED = b"<|plamo:"


@helper
def mark_segments(codes: OutI32, size: int, cuts: OutU8) -> None:
    """Set cuts[i] to 1 where a part begins before code point i of `size`, and cuts[size]; all others to 0."""
    for i in range(size + 1):
        cuts[i] = 0
    cuts[0], cuts[size] = 1, 1
    i = as_int64(0)
    while i < size:
        stop = _control_end(codes, i, size)
        if stop > i:
            cuts[i], cuts[stop] = 1, 1
            i = stop
        else:
            i += 1
    i = as_int64(0)
    while i < size:
        code, stop, inside = as_int64(codes[i]), i + 1, False
        while stop < size and as_int64(codes[stop]) == code:
            inside = inside or cuts[stop] != 0
            stop += 1
        if not inside and code != NEWLINE and stop - i >= (2 if code == SPACE_BYTE else RUN):
            cuts[i], cuts[stop] = 1, 1
        i = stop


@helper
def _control_end(codes: OutI32, start: int, size: int) -> int:
    """The offset after the control sequence that begins at `start`, or `start` if none does."""
    if start + len(OPENED) + 2 > size:
        return start
    for k in range(len(OPENED)):
        if as_int64(codes[start + k]) != OPENED[k]:
            return start
    i = start + len(OPENED)
    last = min(i + LONGEST_BODY, size)
    while i < last and as_int64(codes[i]) != BAR and not is_blank(as_int64(codes[i])):
        i += 1
    return i + 2 if i + 2 <= size and as_int64(codes[i]) == BAR and as_int64(codes[i + 1]) == CLOSING else start


@helper
def is_blank(c: int) -> bool:
    """White space as Unicode defines it, and U+001C to U+001F."""
    if c < 0x1680:
        return 9 <= c < 14 or 0x1C <= c <= 0x20 or c in (0x85, 0xA0)
    return c == 0x1680 or 0x2000 <= c < 0x200B or c in (0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
