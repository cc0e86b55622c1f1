"""Ways from JSON Lines to a file of ids, each in a fresh process: jittok corpus by layout, and what others would write.

    python bench/corpus_ways.py [--mb 100] [--vocab gpt-2] [--rounds 3] [FILE.jsonl]

Prints CPU seconds (minimum and median of interleaved rounds, without start-up and loading), the share of `encode_batch`
of the same texts in memory, peak memory, and the first digits of the SHA-256 of all ids, which should be one and the
same. Ways whose packages are not installed are left out. Ids without end-of-text tokens; one thread.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import corpus
import numpy as np
import peers

import jittok
import jittok.corpus

LAYOUTS = ("npy", "nanogpt", "megatron", "arrow", "parquet")


def in_memory(tok, path, folder):  # noqa: ARG001  as the others
    """The measure of all: texts that are there, ids that nobody writes."""
    texts = [json.loads(line)["text"] for line in path.open("rb")]
    start = time.process_time()
    ids = tok.encode_batch(texts, threads=1).ids
    return time.process_time() - start, ids


def layout(form):
    """jittok corpus."""

    def way(tok, path, folder):
        options = jittok.corpus.Options(formats=(form,))
        start = time.process_time()
        jittok.corpus.compile_corpus([path], tok, folder / form, options, threads=1, check_space=False)
        took = time.process_time() - start
        return took, jittok.corpus.open(folder / form).to_token_array().ids

    return way


def thirty_lines(tok, path, folder):
    """What one writes by hand: orjson, gigatoken, NumPy; nanoGPT's layout."""
    import gigatoken
    import orjson

    giga = gigatoken.Tokenizer(peers._json_file(tok, folder))
    giga.encode_batch([b"warm"], parallel=False)
    kind = np.uint16 if tok.vocab_size <= 1 << 16 else np.uint32
    start = time.process_time()
    with path.open("rb") as file, (folder / "train.bin").open("wb") as out:
        while lines := file.readlines(8 << 20):
            texts = [orjson.loads(line)["text"].encode() for line in lines]
            for row in giga.encode_batch(texts, parallel=False):
                out.write(np.asarray(getattr(row, "ids", row)).astype(kind).data)
    took = time.process_time() - start
    return took, np.fromfile(folder / "train.bin", kind)


def mapped(tok, path, folder):
    """`datasets.map` with jittok in it."""
    import datasets

    datasets.disable_progress_bars()
    start = time.process_time()
    data = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(folder / "cache"))
    data = data.map(
        lambda rows: {"input_ids": tok.encode_batch(rows["text"], threads=1).to_list()}, batched=True,
        remove_columns=data.column_names,
    )  # fmt: skip
    data.save_to_disk(str(folder / "mapped"))
    took = time.process_time() - start
    return took, np.concatenate([np.asarray(row, np.int32) for row in data["input_ids"]])


WAYS = {
    "encode_batch in memory": in_memory, **{f"jittok corpus, {form}": layout(form) for form in LAYOUTS},
    "orjson + gigatoken + NumPy": thirty_lines, "datasets.map + jittok": mapped,
}  # fmt: skip


def measured(name, vocab, path):
    """Seconds, peak memory and digest of one way, in this process."""
    tok = jittok.load(vocab) if Path(vocab).exists() else jittok.bundled(vocab)
    tok._wait_for_kernels()
    tok.encode_batch(["warm \u00e9"], threads=1)
    with tempfile.TemporaryDirectory() as folder:
        if name.startswith("jittok"):
            few = Path(folder) / "few.jsonl"
            few.write_bytes(b"".join(path.open("rb").readlines(1 << 16)))
            WAYS[name](tok, few, Path(folder) / "warm")
        took, ids = WAYS[name](tok, path, Path(folder))
    digest = hashlib.sha256(np.ascontiguousarray(ids, np.int32)).hexdigest()
    return {"seconds": took, "peak": corpus.peak_kilobytes() / 1e3, "ids": digest[:12], "count": int(ids.size)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--mb", type=int, default=100)
    parser.add_argument("--vocab", default="gpt-2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        print(json.dumps(measured(given.way, given.vocab, Path(given.file))))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = given.file
        if path is None:
            path, _ = corpus.make_input(Path(folder), corpus.texts_of([]), given.mb * 1_000_000)
        found = {name: [] for name in WAYS}
        for _ in range(given.rounds):
            for name, rows in found.items():
                command = [sys.executable, "-W", "ignore", __file__, str(path), "--vocab", given.vocab, "--way", name]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    rows.append(json.loads(done.stdout.splitlines()[-1]))
                elif not rows:
                    print(f"{name}: {done.stderr.strip().splitlines()[-1][:100]}")
    whole = min(row["seconds"] for row in found["encode_batch in memory"])
    for name, rows in found.items():
        if rows:
            times = [row["seconds"] for row in rows]
            print(f"{name:28} {min(times):7.2f} {statistics.median(times):7.2f} s {whole / min(times):6.2f} "
                  f"{max(row['peak'] for row in rows):8.0f} MB  {rows[0]['count']:,} ids {rows[0]['ids']}")  # fmt: skip


if __name__ == "__main__":
    main()
