"""An Arrow stream ends once, at the end of its file: else readers take a part of it for all there is."""

import io
from pathlib import Path

import pytest

from jittok.corpus.inputs.finding import find_sources
from jittok.corpus.inputs.hostile_tables import ArrowMessages, check_table
from jittok.corpus.options import Options
from jittok.corpus.ranges.documents import read_documents
from jittok.errors import CorpusError

pa = pytest.importorskip("pyarrow")


def stream(texts: int = 20) -> tuple[bytes, list[int]]:
    """A stream of batches of five rows, and where each message ends."""
    table, file = pa.table({"text": pa.array([f"text {k}" for k in range(texts)], pa.string())}), io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as writer:
        ends = []
        for batch in table.to_batches(max_chunksize=5):
            writer.write_batch(batch)
            ends.append(file.tell())
    return file.getvalue(), ends


def read(path: Path, data: bytes) -> int:
    path.write_bytes(data)
    sources, _ = find_sources([path], Options())
    return sum(part.docs.starts.size for part in read_documents(sources, Options()))


def test_a_whole_stream_is_read(tmp_path: Path) -> None:
    data, _ = stream()
    assert read(tmp_path / "a.arrow", data) == 20
    assert read(tmp_path / "a.arrow", data + bytes(56)) == 20
    assert read(tmp_path / "a.arrow", stream(0)[0]) == 0
    check_table(io.BytesIO(data[:-8] + bytes(4)), "as old versions end it", ArrowMessages(stream=True))


@pytest.mark.parametrize("batch", range(4))
def test_a_stream_that_is_cut_between_two_batches_is_an_error(tmp_path: Path, batch: int) -> None:
    data, ends = stream()
    with pytest.raises(CorpusError, match=r"a\.arrow: found a stream without its end"):
        read(tmp_path / "a.arrow", data[: ends[batch]])


def test_two_streams_in_a_file_are_an_error(tmp_path: Path) -> None:
    data, _ = stream()
    with pytest.raises(CorpusError, match=r"a\.arrow: found a stream with data after its end, expected one stream"):
        read(tmp_path / "a.arrow", data + data)


def test_a_stream_that_is_cut_anywhere_is_an_error(tmp_path: Path) -> None:
    data, _ = stream(10)
    for cut in range(len(data) - 4):
        with pytest.raises(CorpusError):
            read(tmp_path / "a.arrow", data[:cut])
