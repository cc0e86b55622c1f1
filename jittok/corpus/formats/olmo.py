"""OLMo's part-*.npy (no NumPy file: bare ids) and part-*.csv.gz. Source: dolma, tokenizer/memmap_writer.py."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import shutil
import zlib
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.formats.base import Block, Format, Output, Rows, Shard, Stream
from jittok.errors import CorpusError

AT_ONCE = 1 << 22
"""Bytes of rows that are read at once."""


class Olmo(Format):
    """A row `start,end,id,src,loc` for each document, without a header row; ends are exclusive. loc is the offset of
    the document's line in its (unpacked) file, of a table the row from 1.

    The stream of rows has lengths in place of start and end, which depend on what came before.
    """

    name = "olmo"
    per_document = 40
    layout = 2

    def streams(self) -> list[Stream]:
        """Ids and rows."""
        return [self.ids_stream("olmo.npy"), Stream("olmo.rows", 0, self._rows)]

    def _rows(self, rows: Rows) -> bytes:
        """Rows of the stream, as `csv.writer` writes them; it runs once for each path."""
        parts = []
        assert rows.places is not None
        borders = np.flatnonzero(np.diff(rows.sources)) + 1
        for start, stop in pairwise([0, *borders.tolist(), rows.sources.size]):
            if start == stop:
                continue
            path = self.facts.sources[rows.sources[start]]
            before, after = f",{name_of(path)}-", f",{quoted(path)},"
            lengths, places = rows.lengths[start:stop].tolist(), rows.places[start:stop].tolist()
            parts += [
                f"{length}{before}{place}{after}{place}\r\n" for length, place in zip(lengths, places, strict=True)
            ]
        return "".join(parts).encode("utf-8", "surrogateescape")

    def finish(self, shard: Shard) -> list[Output]:
        """The rows with their places, packed. No time is in the gzip header, so equal rows are equal bytes."""
        plain, packed, at, held = shard.path("olmo.csv"), shard.path("olmo.csv.gz"), 0, b""
        with shard.path("olmo.rows").open("rb") as rows, plain.open("wb") as out:
            while lines := rows.readlines(AT_ONCE):
                found = []
                for given in lines:
                    line = held + given
                    if line.count(b'"') & 1:  # a path with a line feed
                        held = line
                        continue
                    length, _, rest = line.partition(b",")
                    end = at + int(length)
                    found.append(b"%d,%d,%b" % (at, end, rest))
                    at, held = end, b""
                out.writelines(found)
        with (
            plain.open("rb") as source,
            packed.open("wb") as target,
            gzip.GzipFile("", "wb", 6, target, mtime=0) as zipped,
        ):
            shutil.copyfileobj(source, zipped, 1 << 20)
        plain.unlink()
        paths = shard.path("olmo.npy"), packed
        return [Output(path, name) for path, name in zip(paths, self.names(), strict=True)]

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Ids and rows."""
        return "olmo/part-{}.npy", "olmo/part-{}.csv.gz"

    def ids_file(self, label: str) -> str:
        """The file of ids."""
        return f"part-{label}.npy"

    def block(self, path: Path) -> Block:
        """The ids, and the offsets from the file beside them."""
        rows = path.with_suffix(".csv.gz")
        with rows.open("rb") as file:
            return Block(self.ids_of(path), np.concatenate([np.zeros(1, np.int64), ends_in(file, str(rows))]))


def ends_in(packed: IO[bytes], where: str) -> NDArray[np.int64]:
    """Where documents end, by the rows of a shard. CorpusError for what are no rows."""
    try:
        with gzip.open(packed, "rt", encoding="utf-8", errors="surrogateescape", newline="") as file:
            return np.fromiter((int(row[1]) for row in csv.reader(file)), np.int64)
    except (EOFError, LookupError, OverflowError, csv.Error, gzip.BadGzipFile, zlib.error) as error:
        raise CorpusError(where, str(error), "rows in the form that they were written") from None
    except ValueError as error:
        if isinstance(error, CorpusError):
            raise
        raise CorpusError(where, str(error), "rows in the form that they were written") from None


@lru_cache(4096)
def quoted(path: str) -> str:
    """A path as a field of a row."""
    text = io.StringIO(newline="")
    csv.writer(text).writerow((path, ""))
    return text.getvalue().removesuffix(",\r\n")


@lru_cache(4096)
def name_of(path: str) -> str:
    """What dolma makes of a path when documents have no id of their own."""
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()
