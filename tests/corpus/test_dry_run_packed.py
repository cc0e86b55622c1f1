"""A dry run looks at packed and Arrow files all along, so a start unlike the rest does not mislead."""

from __future__ import annotations

import gzip
import json

import pytest

from jittok.corpus import Options
from jittok.corpus.inputs.finding import find_sources
from jittok.corpus.prediction import predict
from jittok.corpus.ranges.encoder import RangeEncoder

pa = pytest.importorskip("pyarrow")
pytest.importorskip("orjson")


@pytest.mark.parametrize("kind", ["jsonl.gz", "arrow"])
def test_few_long_documents_before_many_short_ones(tmp_path, tok, kind, monkeypatch):
    monkeypatch.setattr("jittok.corpus.prediction.EXACT_BYTES", 1 << 10)
    texts = ["long " * 60_000] * 3 + [f"text {k} of the rest of this file {k * 7919}" for k in range(40_000)]
    path = tmp_path / f"a.{kind}"
    if kind == "arrow":
        table = pa.table({"text": texts})
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=500)
    else:
        path.write_bytes(gzip.compress("".join(json.dumps({"text": text}) + "\n" for text in texts).encode(), 1))
    sources, _ = find_sources([path], Options())
    found = predict(RangeEncoder(tok, sources, Options()), [])
    assert found.error["documents"] is not None
    off = abs(found.documents - len(texts)) / len(texts)
    assert off < max(3 * found.error["documents"], 0.5)
