"""No document has more bytes than is allowed: the reading ends there, says where, and has not filled the memory."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import tracemalloc
from types import SimpleNamespace

import pytest

from jittok.corpus import compile_corpus
from jittok.corpus.inputs import hostile_tables
from jittok.corpus.inputs.hostile_tables import ArrowMessages, ParquetColumn, Refused, check_table
from jittok.corpus.inputs.sources import Source
from jittok.corpus.options import Options
from jittok.corpus.ranges import tables
from jittok.corpus.ranges.cutting import Limit, cut_lines, cut_separated, interval
from jittok.corpus.ranges.encoder import keep_freed_memory
from jittok.corpus.ranges.tables import arrow_rows, parquet_rows
from jittok.errors import CorpusError

pytest.importorskip("orjson")

MOST = 1000
LONG = b'{"text": "' + b"x" * MOST + b'"}'
SHORT = b'{"text": "short"}'


def packed(data, suffix):
    if suffix == ".zst":
        return pytest.importorskip("zstandard").ZstdCompressor().compress(data)
    return {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix](data)


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("range_bytes", [64, 1 << 20])
@pytest.mark.parametrize("line", [1, 3, 200])
def test_a_long_line_is_named(tmp_path, tok, suffix, range_bytes, line):
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(packed(b"".join([*[SHORT + b"\n"] * (line - 1), LONG + b"\n", SHORT + b"\n"]), suffix))
    options = Options(range_bytes=range_bytes, max_document_bytes=MOST)
    with pytest.raises(CorpusError, match=rf"a.jsonl{suffix}, line {line}: found .*max_document_bytes"):
        compile_corpus([path], tok, tmp_path / "out", options)
    longer = compile_corpus([path], tok, tmp_path / "out", options, max_document_bytes=len(LONG))
    assert longer.documents == line + 1


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_long_file_is_named(tmp_path, tok, suffix):
    for name, size in (("a", MOST), ("b", MOST + 1)):
        (tmp_path / f"{name}.txt{suffix}").write_bytes(packed(b"y" * size, suffix))
    with pytest.raises(CorpusError, match=rf"b.txt{suffix}: found"):
        compile_corpus([tmp_path], tok, tmp_path / "out", Options(max_document_bytes=MOST))


def test_a_long_text_between_separators_is_named(tmp_path, tok):
    path = tmp_path / "a.txt"
    path.write_bytes(b"|".join([b"a", b"b" * MOST, b"c" * (MOST + 1), b"d"]))
    with pytest.raises(CorpusError, match=r"a.txt, document 3: found"):
        compile_corpus([path], tok, tmp_path / "out", Options(separator="|", max_document_bytes=MOST))


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_long_row_is_named(tmp_path, tok, kind):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / f"a.{kind}"
    table = pa.table({"text": ["short", "x" * MOST, None, "y" * (MOST + 1)]})
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    with pytest.raises(CorpusError, match=rf"a.{kind}.*, row 4: found"):
        compile_corpus([path], tok, tmp_path / "out", Options(max_document_bytes=MOST))


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("most", [1 << 17, 1 << 30])
def test_a_value_that_stands_many_times_in_a_small_table_is_unpacked_a_few_rows_at_a_time(tmp_path, kind, most):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path, rows, long = tmp_path / f"a.{kind}", 2500, "x" * (1 << 18)
    indices = pa.array([0] * (rows - 1) + [None], pa.int32())
    table = pa.table({"text": pa.DictionaryArray.from_arrays(indices, [long, "y"])})
    if kind == "parquet":
        pq.write_table(table.cast(pa.schema([("text", pa.string())])), path, compression="zstd", store_schema=False)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    assert path.stat().st_size < 1 << 20
    del table
    options, source = Options(range_bytes=1 << 22, max_document_bytes=most), Source(str(path), 1, "", kind, "")
    before = pa.total_allocated_bytes()
    found = tables.parquet_rows(source, [0], options, 0) if kind == "parquet" else tables.arrow_rows(source, options, 0)
    if most < len(long):
        with pytest.raises(CorpusError, match="max_document_bytes"):
            next(found)
        return
    sizes = [(len(array), pa.total_allocated_bytes() - before) for _, array, _ in found]
    assert sum(size for size, _ in sizes) == rows
    assert max(memory for _, memory in sizes) < 200 << 20  # all of it is 655 MB


class Endless:
    """A line without an end."""

    def __init__(self):
        self.given = 0

    def read(self, count):
        self.given += count
        return b"x" * count


@pytest.mark.parametrize(
    "read",
    [
        lambda source, limit: next(cut_lines(source.read, 1 << 20, limit)),
        lambda source, limit: next(cut_separated(source.read, 1 << 20, b"|", limit)),
        lambda source, limit: interval(source, 0, 1 << 20, limit),
    ],
    ids=["lines", "separated", "interval"],
)
def test_no_more_is_read_than_shows_that_it_is_too_much(read):
    source, most = Endless(), 5 << 20
    source.seek = lambda _place: None
    tracemalloc.start()
    try:
        with pytest.raises(CorpusError, match="max_document_bytes"):
            read(source, Limit("endless", most, "line"))
        assert tracemalloc.get_traced_memory()[1] < 4 * most
    finally:
        tracemalloc.stop()
    assert source.given < 3 * most


def test_a_bomb_is_an_error_before_it_is_unpacked(tmp_path, tok):
    path = tmp_path / "bomb.txt.gz"
    path.write_bytes(gzip.compress(bytes(64 << 20)))
    keep_freed_memory()  # once a process, and no page of it is touched
    tracemalloc.start()
    try:
        with pytest.raises(CorpusError, match=r"bomb.txt.gz: found"):
            compile_corpus([path], tok, tmp_path / "out", Options(max_document_bytes=1 << 20), check_space=False)
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


def test_the_limit_is_recorded_and_may_change(tmp_path, tok):
    path = tmp_path / "a.jsonl"
    path.write_bytes(SHORT + b"\n")
    compile_corpus([path], tok, tmp_path / "out", Options(max_document_bytes=50))
    assert json.loads((tmp_path / "out/manifest.json").read_text())["options"]["max_document_bytes"] == 50
    assert compile_corpus([path], tok, tmp_path / "out").documents == 1
    with pytest.raises(CorpusError, match=r"max_document_bytes: found 0"):
        Options(max_document_bytes=0)


def test_an_input_that_is_read_in_small_pieces_ends_as_soon():
    data = io.BytesIO(b"a\nb\n" + b"c" * 50 + b"\nd")
    with pytest.raises(CorpusError, match="line 3"):
        list(cut_lines(lambda count: data.read(min(count, 3)), 10, Limit("name", 49, "line")))


def footer_that_lies(path, size):
    """A Parquet file whose footer says that its columns have one byte unpacked."""
    raw = path.read_bytes()
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    said, number = [], 2 * size  # as Thrift writes a number: seven bits a byte, the sign lowest
    while number:
        said.append(number & 0x7F | 0x80 * (number > 0x7F))
        number >>= 7
    assert raw.count(bytes(said), start) == 2  # of the column and of the row group
    path.write_bytes(raw[:start] + raw[start:].replace(bytes(said), b"\x82" + b"\x80" * (len(said) - 2) + b"\0"))


@pytest.mark.parametrize("how", ["plain", "dictionary", "version 2", "lying"])
def test_a_page_is_an_error_before_it_is_unpacked(how, tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(hostile_tables, "LARGE_PAGE", 1 << 20)
    path, size = tmp_path / "bomb.parquet", 3 << 20
    version = "2.0" if how == "version 2" else "1.0"
    table = pa.table({"text": ["a", "x" * size]})
    pq.write_table(table, path, compression="zstd", use_dictionary=how == "dictionary", data_page_version=version)
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    assert column.total_compressed_size < size // 100
    if how == "lying":
        footer_that_lies(path, column.total_uncompressed_size)
        assert pq.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size == 1
    options, source = Options(max_document_bytes=2 << 20), Source(str(path), 1, "", "parquet", "")
    assert sum(len(array) for _, array, _ in parquet_rows(source, [0], Options(), 0)) == 2  # the limit is 1 GiB
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)  # which unpacks
    with pytest.raises(CorpusError, match=r"row group 0: found a page of 3.* bytes, expected up to 2097152: write"):
        next(parquet_rows(source, [0], options, 0))


def test_a_footer_that_is_believed_spares_reading_heads_only_of_small_columns(tmp_path, monkeypatch):
    """Of a file that is far away, where each head is a request."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(hostile_tables, "LARGE_PAGE", 1 << 20)
    path, size = tmp_path / "bomb.parquet", 3 << 20
    pq.write_table(pa.table({"text": ["a", "x" * size]}), path, compression="zstd", use_dictionary=False)
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    check_table(None, "here", ParquetColumn(column), 2 * size, believe=True)
    with path.open("rb") as raw:
        check_table(raw, "here", ParquetColumn(column), 2 * size)
        for believe in (False, True):
            with pytest.raises(CorpusError, match=r"here: found a page of 3.* bytes, expected up to 2097152"):
                check_table(raw, "here", ParquetColumn(column), 2 << 20, believe)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_the_heads_of_pages_tell_their_sizes(version, tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    table = pa.table({"n": range(900), "text": [f"{k} " * k for k in range(900)]})  # heads hold the least and the most
    small = {"row_group_size": 400, "data_page_size": 9000, "write_batch_size": 20, "use_dictionary": False}
    pq.write_table(table, path, data_page_version=version, **small)
    facts = pq.ParquetFile(path).metadata
    for group in range(facts.num_row_groups):
        for number in range(2):
            column = facts.row_group(group).column(number)
            with path.open("rb") as file:
                sizes = list(hostile_tables.page_sizes(file, column))
                heads = column.total_uncompressed_size - sum(sizes)
                assert 10 * len(sizes) < heads < 9000 * len(sizes)
                raw = file.read()
            assert number == 0 or len(sizes) > 3
    with pytest.raises(Refused, match="no page header at byte"):
        list(hostile_tables.page_sizes(io.BytesIO(b"\xff" * len(raw)), column))


@pytest.mark.parametrize("count", [0, 3, 14, 15, 16, 200])
def test_a_list_in_the_head_of_a_page_ends_where_its_last_value_does(count):
    """From fifteen values on their number stands apart, in seven bits a byte."""
    number = bytes([count]) if count < 0x80 else bytes([count & 0x7F | 0x80, count >> 7])
    values = (bytes([count << 4 | 5]) if count < 15 else b"\xf5" + number) + b"\x06" * count  # i32 of 3 each
    head = b"\x15\x00\x15\x0a\x15\x04\x19" + values + b"\x00"  # 5 bytes unpacked, 2 packed
    column = SimpleNamespace(data_page_offset=0, has_dictionary_page=False, total_compressed_size=2 * len(head) + 4)
    assert list(hostile_tables.page_sizes(io.BytesIO(2 * (head + b"ab")), column)) == [5, 5]


@pytest.mark.parametrize("sizes", [b"\x15\x01\x15\x02", b"\x15\x02\x15\x01"], ids=["unpacked", "packed"])
def test_a_page_of_less_than_no_bytes_is_an_error(sizes):
    head = b"\x15\x00" + sizes + b"\x00"  # Thrift writes -1 as 1 and 1 as 2
    column = SimpleNamespace(data_page_offset=0, has_dictionary_page=False, total_compressed_size=2 * len(head))
    with pytest.raises(Refused, match="no page header at byte 0"):
        next(hostile_tables.page_sizes(io.BytesIO(2 * head), column))


@pytest.mark.parametrize("how", ["file", "stream", "dictionary", "lz4"])
def test_a_packed_buffer_is_an_error_before_it_is_unpacked(how, tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    monkeypatch.setattr(hostile_tables, "LARGE_PAGE", 1 << 20)
    path, size = tmp_path / "bomb.arrow", 3 << 20
    texts = pa.array(["a", "x" * size])
    table = pa.table({"n": [1, 2], "text": texts.dictionary_encode() if how == "dictionary" else texts})
    kind = pa.ipc.new_stream if how == "stream" else pa.ipc.new_file
    packing = pa.ipc.IpcWriteOptions(compression="lz4" if how == "lz4" else "zstd")
    with pa.OSFile(str(path), "wb") as file, kind(file, table.schema, options=packing) as writer:
        writer.write_table(table)
    assert path.stat().st_size < size // 100
    source = Source(str(path), 1, "", "arrow", "")
    assert sum(len(array) for _, array, _ in arrow_rows(source, Options(), 0)) == 2  # the limit is 1 GiB
    for reader in (pa.RecordBatchFileReader, pa.RecordBatchStreamReader):
        monkeypatch.setattr(
            reader, "get_batch" if reader is pa.RecordBatchFileReader else "__next__", None, raising=False
        )
    with pytest.raises(CorpusError, match=r"bomb.arrow: found a buffer of 3.* bytes, expected up to 2097152: write"):
        next(arrow_rows(source, Options(max_document_bytes=2 << 20), 0))


@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
@pytest.mark.parametrize("legacy", [False, True], ids=["new", "legacy"])
def test_packed_buffers_tell_their_sizes(stream, legacy):
    pa = pytest.importorskip("pyarrow")
    texts = ["a", None, "x" * 5000] * 20
    words = pa.array(texts).dictionary_encode()
    table = pa.table({"l": [[1]] * 60, "text": texts, "d": words, "v": pa.array(texts).cast(pa.string_view())})
    for packing in (None, "zstd"):
        out, options = io.BytesIO(), pa.ipc.IpcWriteOptions(compression=packing, use_legacy_format=legacy)
        with (pa.ipc.new_stream if stream else pa.ipc.new_file)(out, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=30)
        sizes = list(hostile_tables.unpacked_sizes(out, stream))
        assert (sizes.count(50_010) > 0, sizes.count(5001), len(sizes) > 0) == (
            bool(packing),
            bool(packing),
            bool(packing),
        )
    raw = out.getvalue()
    for end in range(0, len(raw), 97):
        cut = io.BytesIO(raw[:end])
        try:
            check_table(cut, "here", ArrowMessages(stream))
        except CorpusError as error:
            assert "end too early" in str(error) or "without its end" in str(error)  # noqa: PT017  some cuts may pass


def test_a_stream_that_leads_back_ends():
    pa = pytest.importorskip("pyarrow")
    out, table = io.BytesIO(), pa.table({"text": ["abc"] * 9})
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    size = pa.ipc.read_message(
        pa.BufferReader(out.getvalue()[pa.ipc.read_message(out.getvalue()).metadata.size + 8 :])
    ).body.size
    raw = out.getvalue().replace(size.to_bytes(8, "little"), (-size).to_bytes(8, "little", signed=True))
    assert raw != out.getvalue()
    with pytest.raises(CorpusError, match="lead nowhere"):
        check_table(io.BytesIO(raw), "here", ArrowMessages(stream=True))


def test_a_large_row_group_is_not_read_at_once(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    row, rows = random.Random(1).randbytes(1 << 16), 512  # 32 MB that no packing makes smaller
    texts = pa.array([row[k:] + row[:k] for k in range(rows)], pa.binary())
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": texts}), path, compression=None, use_dictionary=False, write_batch_size=8)
    del texts
    source, options = Source(str(path), path.stat().st_size, "", "parquet", ""), Options(range_bytes=1 << 20)
    before, seen, most = pa.total_allocated_bytes(), 0, 0
    for _, array, _ in parquet_rows(source, [0], options, 0):
        seen, most = seen + len(array), max(most, pa.total_allocated_bytes() - before)
    assert seen == rows
    assert most < path.stat().st_size // 2
