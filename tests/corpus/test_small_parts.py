"""Small row groups and small files of all kinds share ranges, and a footer is read once."""

from __future__ import annotations

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from conftest import make_texts

from jittok.corpus import Options, compile_corpus, verify
from jittok.corpus import open as open_corpus
from jittok.corpus.inputs.finding import find_sources
from jittok.corpus.ranges import tables
from jittok.corpus.ranges.units import read_unit, units
from jittok.corpus.shards.manifest import read_manifest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("filelock")
TEXTS = make_texts(400, seed=5)


def arrow(texts):
    sink, found = pa.BufferOutputStream(), pa.table({"text": texts})
    with pa.ipc.new_file(sink, found.schema) as writer:
        writer.write_table(found)
    return sink.getvalue().to_pybytes()


def parquet(texts):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": texts}), sink)
    return sink.getvalue().to_pybytes()


def lines(texts):
    return "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()


KINDS = {
    ".jsonl": lines, ".jsonl.gz": lambda texts: gzip.compress(lines(texts)), ".parquet": parquet, ".arrow": arrow,
    ".txt": lambda texts: texts[0].encode(),
}  # fmt: skip


@pytest.mark.parametrize("kinds", [*([kind] for kind in KINDS), list(KINDS)], ids=[*KINDS, "all"])
def test_small_files_of_all_kinds_share_ranges(tmp_path, tok, kinds):
    data = tmp_path / "data"
    data.mkdir()
    for k, text in enumerate(TEXTS):
        kind = kinds[k % len(kinds)]
        (data / f"{k:03d}{kind}").write_bytes(KINDS[kind]([text]))
    options = Options(formats=("npy", "olmo"), append_eos=True)
    assert compile_corpus([data], tok, tmp_path / "out", options).documents == len(TEXTS)
    (shard,) = read_manifest(tmp_path / "out")["shards"]
    assert len(shard["ranges"]) == 1
    corpus = open_corpus(tmp_path / "out", tok)
    assert [row.tolist() for row in corpus] == [[*tok.encode(text).tolist(), tok.eos_id] for text in TEXTS]
    assert verify(tmp_path / "out", tok, all=True).ok
    small = Options(formats=("npy", "olmo"), append_eos=True, range_bytes=3000)
    compile_corpus([data], tok, tmp_path / "small", small)
    for path in (tmp_path / "out").rglob("*.npy"):
        assert path.read_bytes() == (tmp_path / "small" / path.relative_to(tmp_path / "out")).read_bytes()


def test_a_bad_line_of_a_small_file_is_named_by_file_and_line(tmp_path, tok):
    for k in range(5):
        (tmp_path / f"{k}.jsonl").write_bytes(lines(["a", "b"]) + (b"{bad\n" if k == 3 else b"\n") + lines(["c"]))
    options = Options(formats=("npy",), on_error="skip")
    found = compile_corpus([tmp_path], tok, tmp_path / "out", options)
    assert (found.documents, found.bad_documents, found.blank_lines) == (15, 1, 4)
    row = json.loads((tmp_path / "out" / "errors" / "00000.jsonl").read_text())
    assert (row["file"], row["line"]) == (str(tmp_path / "3.jsonl"), 3)


@pytest.mark.parametrize("range_bytes", [1000, 20_000, 8 << 20])
def test_small_row_groups_share_ranges_and_one_footer_is_read(tmp_path, tok, monkeypatch, range_bytes):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": range(len(TEXTS)), "text": TEXTS}), path, row_group_size=4)
    read, calls = tables._read_footer, []
    monkeypatch.setattr(tables, "_read_footer", lambda *given: calls.append(given) or read(*given))
    tables._footer_of.cache_clear()
    sources, _ = find_sources([path], Options())
    options = Options(range_bytes=range_bytes)
    found = [raw for unit in units(sources, options) for raw in read_unit(unit, sources, options)]
    assert [text for raw in found for text in raw.payload.to_pylist()] == TEXTS
    assert len({raw.key for raw in found}) == len(found) < 3 * path.stat().st_size / range_bytes + 2
    assert len(calls) == 1
    compile_corpus([path], tok, tmp_path / "out", Options(formats=("npy",), range_bytes=range_bytes))
    assert len(calls) == 1
    assert verify(tmp_path / "out", tok, all=True).ok


class Served(BaseHTTPRequestHandler):
    """A file by HTTP, with ranges."""

    content, sent = b"", 0

    def _answer(self, body):
        start, stop = 0, len(self.content)
        wanted = self.headers.get("Range")
        if wanted:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, stop = int(first), min(int(last or stop) + 1, stop)
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(stop - start))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", "one")
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(self.content)}")
        self.end_headers()
        if body:
            Served.sent += stop - start
            self.wfile.write(self.content[start:stop])

    def do_HEAD(self):
        self._answer(body=False)

    def do_GET(self):
        self._answer(body=True)

    def log_message(self, *_):
        """Silent."""


def test_parquet_by_url_is_fetched_once_to_be_read_and_once_to_be_hashed(tmp_path, tok):
    pytest.importorskip("aiohttp")
    texts = make_texts(6000, seed=6)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": texts}), path, row_group_size=100, compression="none", use_dictionary=False)
    Served.content, Served.sent = path.read_bytes(), 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Served)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        url, options = (
            f"http://127.0.0.1:{server.server_port}/a.parquet",
            Options(formats=("npy",), range_bytes=500_000),
        )
        found = compile_corpus([url], tok, tmp_path / "far", options, check_space=False)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert found.documents == len(texts)
    assert Served.sent < 2.2 * len(Served.content) + (1 << 17)
    compile_corpus([path], tok, tmp_path / "near", options)
    for near in (tmp_path / "near" / "npy").iterdir():
        assert near.read_bytes() == (tmp_path / "far" / "npy" / near.name).read_bytes()
