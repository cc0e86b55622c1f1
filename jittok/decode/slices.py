"""Texts of rows, and of very many ids a slice at a time: all bytes and characters at once would fill the memory."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jittok.common.display.progress import Bar, Show
from jittok.decode.stream import certain, cleaned
from jittok.kernels.jit import I32, interruptible_if_long
from jittok.vocab import NO_TOKEN

if TYPE_CHECKING:
    from jittok.common.rows import TokenArray
    from jittok.decode.rows import DecodeFrame, Decoder

MOST_SLICES = 64
"""Slices of a row: where Python copies a text that grows, a text is copied so many times at most."""
MOST_HELD = 1 << 24
"""Bytes that may be held until cleaning can be cut; beyond that all ids are decoded at once."""
BY_PART = frozenset({"backslashreplace", "ignore", "replace", "strict", "surrogateescape"})
"""Ways to treat bytes that are no characters, which look at these bytes alone."""


def text_of(parts: Iterable[bytes | None], errors: str) -> str | None:
    """The text of parts of bytes. None if it has to be decoded as a whole: for cleaning, or for the error about invalid
    UTF-8. Raises InvalidToken."""
    if errors not in BY_PART:
        return None
    known, text = codecs.getincrementaldecoder("utf-8")(errors), ""
    try:
        for part in parts:
            if part is None:
                return None
            text += known.decode(part)  # in place, as there is no other reference to this str
        text += known.decode(b"", True)
    except UnicodeDecodeError:
        return None
    return text


def size_of_slices(count: int, at_once: int) -> int:
    """The number of ids, of `count`, that are decoded at once: `at_once` or more."""
    return max(at_once, count // MOST_SLICES, 1)


def parts_of(decoder: Decoder, ids: I32, frame: DecodeFrame, at_once: int) -> Iterator[bytes | None]:
    """Yields the bytes of one row, part by part; None if they cannot be cut."""
    raw, last = bytearray(), ids.size - 1
    for at in range(0, ids.size, at_once):
        some = ids[at : at + at_once]
        first, ends = at == 0, at + at_once > last
        own = frame._replace(
            strip=frame.strip * first,
            bos=frame.bos if first else NO_TOKEN,
            eos=frame.eos if ends else NO_TOKEN,
            clean=0,
        )
        known = len(raw)
        raw += interruptible_if_long(ids.nbytes)(decoder.one, some, own)
        cut = certain(raw, known) if frame.clean and not ends else len(raw)
        if len(raw) - cut > MOST_HELD:
            yield None
        yield cleaned(raw[:cut]) if frame.clean else bytes(raw)
        del raw[:cut]


def text_of_row(ids: NDArray[np.int32], errors: str, decoder: Decoder, frame: DecodeFrame, most: int) -> str | None:
    """The text of more than `most` ids; None where they have to be decoded at once."""
    at_once = size_of_slices(ids.size, most >> 2)
    if hasattr(decoder, "parts"):  # a file's own decoder says where it may be cut
        return text_of(*decoder.parts(ids, frame, errors, at_once))
    return text_of(parts_of(decoder, ids, frame, at_once), errors)


def texts_of_rows(
    rows: TokenArray, errors: str, decoder: Decoder, frame: DecodeFrame, most: int, progress: Show = False
) -> list[str]:
    """The texts of rows, up to `most` ids at a time: of all there would be bytes and characters at once."""
    out = list[str]()
    with Bar("decode", rows.ids.size, "tokens", progress) as bar:
        for first, last in pairwise(groups_of_rows(rows.offsets, most)):
            offsets = rows.offsets[first : last + 1]
            ids = rows.ids[offsets[0] : offsets[-1]]
            whole = text_of_row(ids, errors, decoder, frame, most) if last - first == 1 and ids.size > most else None
            if whole is not None:
                out.append(whole)
            else:
                text, ends = interruptible_if_long(rows.ids.nbytes)(decoder.rows, ids, offsets - offsets[0], frame)
                raw, start = text.tobytes(), 0
                for end in ends.tolist():
                    out.append(raw[start:end].decode("utf-8", errors))
                    start = end
            bar.update(ids.size)
    return out


def groups_of_rows(offsets: NDArray[np.int64], most: int) -> list[int]:
    """The first row of each group of rows with few ids together, and how many rows there are. A long row is alone."""
    marks = np.searchsorted(offsets, np.arange(0, offsets[-1], most), "left").tolist()
    long = np.flatnonzero(np.diff(offsets) > most)
    return sorted({0, *marks, *long.tolist(), *(long + 1).tolist(), offsets.size - 1})


def several(rows: Iterable[ArrayLike]) -> Iterator[ArrayLike]:
    """The rows; TypeError if a single row of ids is given instead."""
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes):
        raise TypeError(f"rows: found {type(rows).__name__}, expected rows of ids")
    for k, row in enumerate(rows):
        if isinstance(row, int | np.integer):
            raise TypeError(f"rows: found an id as row {k}, expected rows of ids: decode(ids) takes one row")
        yield row
