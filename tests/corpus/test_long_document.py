"""What a long document takes: a small multiple of its bytes, by the slope between two sizes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("filelock")
pytest.importorskip("orjson")

PROGRAM = """
import resource, sys
import jittok
from jittok.corpus import Options, compile_corpus
compile_corpus([sys.argv[1]], jittok.bundled("gpt-2"), sys.argv[2], Options(formats=("npy",)), threads=1,
               check_space=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
"""
SIZES = 20_000_000, 80_000_000
MOST = {"txt": 2.5, "jsonl": 3.2}
"""Of JSON Lines orjson holds a copy while it parses."""


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory in KB is that of Linux")
@pytest.mark.parametrize("kind", MOST)
def test_a_long_document_takes_a_small_multiple_of_its_bytes(tmp_path, kind):
    text, peaks = "the tokens of a text and more words that are here 1234\n" * 10_000, []
    for size in SIZES:
        whole, path = text * (size // len(text)), tmp_path / f"{size}.{kind}"
        path.write_text(json.dumps({"text": whole}) + "\n" if kind == "jsonl" else whole)
        command = [sys.executable, "-c", PROGRAM, str(path), str(tmp_path / f"out{size}")]
        peaks.append(int(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    assert (peaks[1] - peaks[0]) / (SIZES[1] - SIZES[0]) < MOST[kind]
