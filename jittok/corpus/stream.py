"""Documents of any inputs, a range at a time: what `count`, `encode` and `trace` read, by the compiler's own reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.decompression import open_unpacked
from jittok.corpus.limits import Limit
from jittok.corpus.options import MAX_DOCUMENT_BYTES, Options
from jittok.corpus.ranges import cut_lines, opened, read_unit, units
from jittok.corpus.reader import read_texts
from jittok.corpus.sources import Source
from jittok.errors import CorpusError, InWords
from jittok.kernels.inputs import Documents

LINES_BYTES = 1 << 16
"""Bytes of lines that are read at once."""


class Read(NamedTuple):
    """Documents of one range."""

    docs: Documents
    sources: NDArray[np.int64]  # int64[n]: which source each is from
    lines: NDArray[np.int64]  # int64[n]: its line (row, document) in there, from 1
    new: int  # bytes of input read for it


def read_documents(sources: Sequence[Source], options: Options) -> Iterator[Read]:
    """All documents in order, as their bytes are: a text need not be UTF-8.

    A line or row that holds no text is a CorpusError with file and line, whatever `on_error`; "replace" mends what can
    be read. Raises OSError, CorpusError.
    """
    source, base = -1, 0
    for unit in units(sources, options):
        for raw in read_unit(unit, sources, options):
            if raw.key.source != source:
                source, base = raw.key.source, 0
            texts = read_texts(raw, sources[source].kind, options, any_bytes=True)
            for bad in texts.bad:
                if options.on_error != "replace" or bad.lost or bad.input:
                    raise CorpusError(place(sources, bad.source, bad.line + base), InWords(bad.found), bad.expected)
            yield Read(texts.docs, texts.sources, texts.lines + base, raw.new)
            base += texts.seen


def lines_of(source: Source) -> Iterator[bytes]:
    """The lines of a text, packed or not, without their ends."""
    with opened(source) as raw:
        limit = Limit(source.path, MAX_DOCUMENT_BYTES, "line")
        for _, block in cut_lines(open_unpacked(raw, source.packing, source.path), LINES_BYTES, limit):
            yield from block.removesuffix(b"\n").split(b"\n")


def place(sources: Sequence[Source], source: int, line: int) -> str:
    """A document in words."""
    name = sources[source].path
    return name if sources[source].kind == "txt" else f"{name}, line {line}"
