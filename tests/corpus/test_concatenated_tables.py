"""Two Parquet or Arrow files one after the other are no file: readers would take the second one's footer, and answer
with a part. Legal files of any layout are read."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import pytest

from jittok.corpus.inputs import hostile_tables
from jittok.corpus.inputs.finding import find_sources
from jittok.corpus.inputs.hostile_tables import ArrowMessages, ParquetFooter, check_table
from jittok.corpus.options import Options
from jittok.corpus.ranges.documents import read_documents
from jittok.errors import CorpusError

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

WAYS = {
    "plain": {"compression": "none", "use_dictionary": False},
    "packed": {"compression": "zstd", "row_group_size": 7},
    "indexed": {"write_page_index": True, "row_group_size": 7},
    "version 2": {"data_page_version": "2.0"},
}


def table(rows: int = 20, letter: str = "a") -> pa.Table:
    texts = pa.array([f"{letter} text {k}" for k in range(rows)], pa.string())
    return pa.table({"text": texts, "n": range(rows)})


def parquet(rows: int = 20, letter: str = "a", **how: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(table(rows, letter), out, **how)
    return out.getvalue()


def arrow(rows: int = 20, letter: str = "a", packing: str | None = None, dictionary: bool = False) -> bytes:
    out, rows_of = io.BytesIO(), table(rows, letter)
    if dictionary:
        rows_of = rows_of.set_column(0, "text", rows_of["text"].dictionary_encode())
    options = pa.ipc.IpcWriteOptions(compression=packing)
    with pa.ipc.new_file(out, rows_of.schema, options=options) as writer:
        for batch in rows_of.to_batches(max_chunksize=6):
            writer.write_batch(batch)
    return out.getvalue()


def without_end(data: bytes) -> bytes:
    """An Arrow file whose messages have no end after them, as the first versions wrote it."""
    footer = len(data) - 10 - int.from_bytes(data[-10:-6], "little")
    return data[: footer - 8] + data[footer:]


def read(path: Path, data: bytes) -> int:
    path.write_bytes(data)
    sources, _ = find_sources([path], Options())
    return sum(part.docs.starts.size for part in read_documents(sources, Options()))


PARQUETS = {name: parquet(**how) for name, how in WAYS.items()} | {
    "no rows": parquet(0),
    "letters": parquet(letter="PAR1PAR1", compression="none", use_dictionary=False, write_page_index=True),
}
ARROWS = {
    "plain": arrow(),
    "packed": arrow(packing="lz4"),
    "dictionary": arrow(dictionary=True),
    "no rows": arrow(0),
    "no end": without_end(arrow()),
    "letters": arrow(letter="ARROW1ARROW1\0\0"),
}


@pytest.mark.parametrize(("first", "second"), [*itertools.product(PARQUETS, PARQUETS)])
def test_parquet_files_behind_each_other_are_an_error(tmp_path: Path, first: str, second: str) -> None:
    place = len(PARQUETS[first])
    with pytest.raises(CorpusError, match=rf"a\.parquet: found another Parquet file before byte {place}, expected"):
        read(tmp_path / "a.parquet", PARQUETS[first] + PARQUETS[second])


@pytest.mark.parametrize(("first", "second"), [*itertools.product(ARROWS, ARROWS)])
def test_arrow_files_behind_each_other_are_an_error(tmp_path: Path, first: str, second: str) -> None:
    place = len(ARROWS[first])
    with pytest.raises(CorpusError, match=rf"a\.arrow: found another Arrow file before byte {place}, expected"):
        read(tmp_path / "a.arrow", ARROWS[first] + ARROWS[second])


@pytest.mark.parametrize("name", PARQUETS)
def test_a_parquet_file_of_any_layout_is_read(tmp_path: Path, name: str) -> None:
    assert read(tmp_path / "a.parquet", PARQUETS[name]) == (0 if name == "no rows" else 20)


@pytest.mark.parametrize("name", ARROWS)
def test_an_arrow_file_of_any_layout_is_read(tmp_path: Path, name: str) -> None:
    assert read(tmp_path / "a.arrow", ARROWS[name]) == (0 if name == "no rows" else 20)


@pytest.mark.parametrize(("suffix", "data"), [("parquet", PARQUETS["plain"]), ("arrow", ARROWS["plain"])])
def test_other_bytes_in_front_of_a_file_are_an_error(tmp_path: Path, suffix: str, data: bytes) -> None:
    with pytest.raises(CorpusError, match=r"found b'othe.*, expected b'(PAR1|ARROW1)', as \w+( IPC)? files begin"):
        read(tmp_path / f"a.{suffix}", b"other bytes" + data)


def test_a_footer_that_lies_about_places_is_an_error_or_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(hostile_tables, "_ends_here", lambda _, end: asked.append(end))
    data = b"PAR1" * 400 + PARQUETS["plain"]
    facts = pq.read_metadata(io.BytesIO(data))
    check_table(io.BytesIO(data), "a.parquet", ParquetFooter(facts, range(facts.num_columns)))
    assert len(asked) == hostile_tables.ASKED  # however many places look like an end
    footer = ARROWS["plain"]
    for at in range(1, 300):
        wrong = bytearray(footer)
        wrong[-at] ^= 0xFF
        try:
            check_table(io.BytesIO(bytes(wrong)), "a.arrow", ArrowMessages(stream=False))
        except CorpusError:
            continue
