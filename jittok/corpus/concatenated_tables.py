"""Detects concatenated Parquet and Arrow files (cat a.parquet b.parquet): readers find the footer of the second and
apply its offsets to the first.

Writers put the footer right after the data that it refers to, except for an index that pyarrow does not expose. So a
single file has no unreferenced bytes at its end, while a concatenated one has at least the end of another file
there. Only that is refused: valid files may have gaps.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any

from jittok.errors import CorpusError, InWords

PARQUET, ARROW = b"PAR1", b"ARROW1"
"""How these files begin and end."""
ENCRYPTED = b"PARE"
INDEX = 16 << 20
"""Largest index between the last page and the footer. If it is larger, only a file without an index before another
one is detected."""
ASKED = 16
"""Offsets that are tested for the end of a footer: a file may contain the magic bytes at millions of offsets, and
each test may read much."""
EXPECTED = "a single file: concatenated tables are not one table, so pass each file (or write them as one)"


def check_parquet(file: Any, facts: Any, where: str, columns: Sequence[int]) -> None:
    """CorpusError where another file is before a Parquet file. `file`: opened, and read from anywhere;
    `facts`: what pyarrow says of it (`ParquetFile.metadata`); `columns`: those it may be asked about."""
    footer = file.seek(0, os.SEEK_END) - 2 * len(PARQUET) - facts.serialized_size
    gap = footer - _end_of_pages(facts, footer, columns)
    if gap <= 0:
        return
    found, first = _read(file, 0, len(PARQUET)), max(gap - INDEX, len(PARQUET))
    if found not in (PARQUET, ENCRYPTED):
        raise CorpusError(where, found, f"{PARQUET!r}, as Parquet files begin: {EXPECTED}")
    # the second file begins where no one names anything, or before, where it has an index
    around = _read(file, first - len(PARQUET), gap - first + 2 * len(PARQUET))
    at = around.rfind(2 * PARQUET)
    for _ in range(ASKED):
        if at < 0:
            break
        if _ends_here(file, first + at):
            raise CorpusError(where, InWords(f"another Parquet file before byte {first + at}"), EXPECTED)
        at = around.rfind(2 * PARQUET, 0, at + 2 * len(PARQUET) - 1)


def _end_of_pages(facts: Any, footer: int, columns: Sequence[int]) -> int:
    """End of the last page. Of a file with many row groups only the last is examined, as writers append."""
    ends = [len(PARQUET)]
    for group in range(facts.num_row_groups - 1, -1, -1):
        row_group = facts.row_group(group)
        for k in columns:
            column = row_group.column(k)
            positions = column.data_page_offset, column.dictionary_page_offset or 0
            ends.append(min(filter(None, positions), default=0) + column.total_compressed_size)
        if row_group.num_rows:
            break
    return min(max(ends), footer)


def _ends_here(file: Any, end: int) -> bool:
    """Whether a complete Parquet footer ends at an offset: a text may contain the magic bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = int.from_bytes(_read(file, end - 8, 4), "little")
    if not 0 < size <= end - 12:
        return False
    footer = _read(file, end - 8 - size, size + 8)
    try:
        pq.read_metadata(io.BytesIO(PARQUET + footer))
    except (pa.ArrowException, OSError):
        return False
    return True


def check_arrow(file: Any, gap: int, where: str) -> None:
    """CorpusError where another file is before an Arrow IPC file. `gap`: bytes between the last message that
    its footer names and the footer (as `arrow_buffers` reads it)."""
    found, first = _read(file, 0, len(ARROW)), max(gap - INDEX, len(ARROW))
    if found != ARROW:
        raise CorpusError(where, found, f"{ARROW!r}, as Arrow IPC files begin: {EXPECTED}")
    if gap <= first:
        return
    around = _read(file, first - len(ARROW), gap - first + 2 * len(ARROW) + 2)
    at = around.rfind(ARROW + ARROW + b"\0\0")
    begin = first + at
    size = begin - len(ARROW) - 4  # where the first file says how long its footer is
    if at >= 0 and 0 < int.from_bytes(_read(file, size, 4), "little") <= size:
        raise CorpusError(where, InWords(f"another Arrow file before byte {begin}"), EXPECTED)


def _read(file: Any, at: int, size: int) -> bytes:
    file.seek(at)
    return file.read(size)  # type: ignore[no-any-return]
