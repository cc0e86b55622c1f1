"""A dry run looks at packed and Arrow files all along, so a start unlike the rest does not mislead."""

from __future__ import annotations

import gzip
import json
import random

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


@pytest.mark.parametrize("row_group_size", [100_000, 300])
@pytest.mark.parametrize("repeated", [False, True])
def test_the_footer_of_a_parquet_file_tells_its_rows_and_its_text(tmp_path, tok, row_group_size, repeated, monkeypatch):
    import pyarrow.parquet as pq

    monkeypatch.setattr("jittok.corpus.prediction.EXACT_BYTES", 100)
    monkeypatch.setattr("jittok.corpus.prediction.PROBE_BYTES", 8 << 10)
    texts = [f"{k * 7919} words " * (1 + (k // 300) ** 3 // 8) for k in range(2400)]  # sorted, the last are long
    if repeated:  # of which the footer counts each once
        texts = [f"{k * 7919} words " * (1 + k % 40) for k in range(240)] * 20
        random.Random(2).shuffle(texts)
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", row_group_size=row_group_size)
    sources, _ = find_sources([tmp_path / "a.parquet"], Options())
    found = predict(RangeEncoder(tok, sources, Options()), [])
    true = {
        "documents": len(texts), "tokens": tok.encode_batch(texts).ids.size, "text_bytes": sum(map(len, texts)),
    }  # fmt: skip
    assert found.documents == pytest.approx(true["documents"], rel=0.001)
    for name in ("tokens", "text_bytes"):
        assert abs(getattr(found, name) / true[name] - 1) <= min(0.3 if repeated else 0.1, found.error[name])
