"""What a long document takes: a small multiple of its bytes, by the slope between two sizes."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile

import pytest

pytest.importorskip("filelock")
pytest.importorskip("orjson")

PROGRAM = """
import pathlib, sys
import jittok
from jittok.corpus import Options, compile_corpus
compile_corpus([sys.argv[1]], jittok.bundled("gpt-2"), sys.argv[2], Options(formats=("npy",)), threads=1,
               check_space=False)
status = pathlib.Path("/proc/self/status").read_text()  # the resource module counts the process that started this one
print(int(status.split("VmHWM:")[1].split()[0]) << 10)
"""
SIZES = 80_000_000, 140_000_000
"""Above what the C library keeps of freed blocks (`keep_freed_memory`), which is a constant more."""
MOST = {"parquet": 3.2}
"""Other kinds take 2.5 times at most. pyarrow itself takes three times the bytes of a value of a Parquet file."""
SLOW = "escaped.jsonl", "shorter.jsonl", "jsonl.gz", "parquet"


def as_json(text):
    """A line with a field before and one after the text, and an escape in every line of it."""
    return json.dumps({"id": 1, "text": text, "url": "b"}, ensure_ascii=False).encode() + b"\n"


def as_table(text, out, write):
    import pyarrow as pa

    table = pa.table({"text": pa.array(["short", text], pa.large_string())})
    if write == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, out)
    else:
        with pa.ipc.new_file(out, table.schema) as file:
            file.write_table(table)


WRITE = {
    "txt": lambda text, out: out.write_text(text),
    "jsonl": lambda text, out: out.write_bytes(as_json(text)),
    "escaped.jsonl": lambda text, out: out.write_text(json.dumps({"text": text[:-1] + "\u4e2d"}) + "\n"),
    "wide.jsonl": lambda text, out: out.write_bytes(as_json(text[:-4] + "\U0001f600")),
    "shorter.jsonl": lambda text, out: out.write_bytes(b'{"text": "a"}\n' + as_json(text) + b'{"text": "b"}\n'),
    "jsonl.gz": lambda text, out: out.write_bytes(gzip.compress(as_json(text), 1)),
    "parquet": lambda text, out: as_table(text, out, "parquet"),
    "arrow": lambda text, out: as_table(text, out, "arrow"),
}


def peak(kind, size, folder):
    """Bytes that the process had at its peak while it made a corpus of one document."""
    text, path = "the tokens of a text and more words that are here 1234\n" * 10_000, folder / f"{size}.{kind}"
    WRITE[kind](text * (size // len(text)), path)
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-c", PROGRAM, str(path), out]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a peak")
@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.slow] if k in SLOW else []) for k in WRITE])
def test_a_long_document_takes_a_small_multiple_of_its_bytes(tmp_path, kind):
    if kind in ("parquet", "arrow"):
        pytest.importorskip("pyarrow")
    # the first time, one of the two may compile kernels
    slopes = ((peak(kind, SIZES[1], tmp_path) - peak(kind, SIZES[0], tmp_path)) / (SIZES[1] - SIZES[0]) for _ in "12")
    assert any(slope <= MOST.get(kind, 2.5) for slope in slopes)
