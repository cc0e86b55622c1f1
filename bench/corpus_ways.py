"""Ways from JSON Lines to a file of ids: jittok corpus by layout, and what others would write. `bench/corpus.py` runs
each in a fresh process of this script, which prints what it took.

All ids are compared by their SHA-256. They are without end-of-text tokens; one thread, unless said otherwise.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import compare
import numpy as np
import peers

import jittok
import jittok.corpus

LAYOUTS = ("npy", "nanogpt", "megatron", "arrow", "parquet")


class Given(NamedTuple):
    """What a way is given."""

    tok: Any
    path: Path
    folder: Path
    threads: int


class Took(NamedTuple):
    """CPU seconds of this process, seconds of the clock, all ids."""

    cpu: float
    wall: float
    ids: Any


class Clock:
    """Both clocks."""

    def __init__(self) -> None:
        self.begin = time.process_time(), time.perf_counter()

    def took(self, ids: Any) -> Took:
        """Call it before the ids are read back: they may be a function."""
        cpu, wall = time.process_time() - self.begin[0], time.perf_counter() - self.begin[1]
        return Took(cpu, wall, ids() if callable(ids) else ids)


def in_memory(given: Given) -> Took:
    """The measure of all: texts that are there, ids that nobody writes."""
    texts = [json.loads(line)["text"] for line in given.path.open("rb")]
    clock = Clock()
    ids = given.tok.encode_batch(texts, threads=given.threads).ids
    return clock.took(ids)


def layout(form: str, engine: str = "threads") -> Any:
    """jittok corpus."""

    def way(given: Given) -> Took:
        options, out = jittok.corpus.Options(formats=(form,)), given.folder / form
        clock = Clock()
        jittok.corpus.compile_corpus(
            [given.path],
            given.tok,
            out,
            options,
            threads=given.threads,
            engine=engine,
            check_space=False,
            progress=False,
        )
        if engine == "ray":
            return clock.took(np.zeros(0, np.int32))
        return clock.took(lambda: jittok.corpus.open(out).to_token_array().ids)

    return way


def thirty_lines(given: Given) -> Took:
    """What one writes by hand: orjson, gigatoken, NumPy; nanoGPT's layout."""
    import gigatoken
    import orjson

    giga = gigatoken.Tokenizer(peers._json_file(given.tok, given.folder))
    giga.encode_batch([b"warm"], parallel=False)
    kind = np.uint16 if given.tok.vocab_size <= 1 << 16 else np.uint32
    clock = Clock()
    with given.path.open("rb") as file, (given.folder / "train.bin").open("wb") as out:
        while lines := file.readlines(8 << 20):
            texts = [orjson.loads(line)["text"].encode() for line in lines]
            for row in giga.encode_batch(texts, parallel=False):
                out.write(np.asarray(getattr(row, "ids", row)).astype(kind).data)
    return clock.took(lambda: np.fromfile(given.folder / "train.bin", kind))


def mapped(given: Given) -> Took:
    """`datasets.map` with tokenizers in it, as its documentation shows; saved to disk."""
    import datasets
    import tokenizers

    datasets.disable_progress_bars()
    other = tokenizers.Tokenizer.from_file(peers._json_file(given.tok, given.folder))

    def ids_of(rows: Any) -> Any:
        return {"input_ids": [row.ids for row in other.encode_batch(rows["text"], add_special_tokens=False)]}

    clock, cache = Clock(), str(given.folder / "cache")
    data = datasets.load_dataset("json", data_files=str(given.path), split="train", cache_dir=cache)
    data = data.map(ids_of, batched=True, remove_columns=data.column_names)
    data.save_to_disk(str(given.folder / "mapped"))
    return clock.took(lambda: np.concatenate([np.asarray(row, np.int32) for row in data["input_ids"]]))


def megatron_way(given: Given) -> Took:
    """The loop of Megatron's preprocess_data: a worker that parses and encodes line by line, and an index of documents;
    with tokenizers, as its HuggingFaceTokenizer has it."""
    import tokenizers

    other = tokenizers.Tokenizer.from_file(peers._json_file(given.tok, given.folder))
    kind = np.uint16 if given.tok.vocab_size < 65500 else np.int32
    clock, lengths = Clock(), []
    with given.path.open(encoding="utf-8") as file, (given.folder / "text_document.bin").open("wb") as out:
        for line in file:
            ids = other.encode(json.loads(line)["text"], add_special_tokens=False).ids
            lengths.append(len(ids))
            out.write(np.array(ids, dtype=kind).tobytes(order="C"))
    sizes = np.array(lengths, np.int32)
    with (given.folder / "text_document.idx").open("wb") as index:
        for part in (sizes, np.cumsum(sizes, dtype=np.int64) * kind().itemsize, np.arange(sizes.size + 1)):
            index.write(part.tobytes())
    return clock.took(lambda: np.fromfile(given.folder / "text_document.bin", kind))


def datatrove(given: Given) -> Took:
    """datatrove's reader and DocumentTokenizer, without a shuffle."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.tokens import DocumentTokenizer
    from loguru import logger

    logger.remove()
    name = peers._json_file(given.tok, given.folder)
    reader = JsonlReader(str(given.path.parent), glob_pattern=given.path.name, compression=None)
    out = given.folder / "trove"
    writer = DocumentTokenizer(str(out), name, eos_token=None, shuffle_documents=False, save_filename="a")
    clock = Clock()
    writer.run(reader.run())
    kind = np.uint16 if given.tok.vocab_size <= 1 << 16 else np.uint32
    return clock.took(lambda: np.concatenate([np.fromfile(path, kind) for path in sorted(out.glob("*.ds"))]))


WAYS = {
    "encode_batch in memory": in_memory, **{f"jittok corpus, {form}": layout(form) for form in LAYOUTS},
    "jittok corpus, npy, Ray": layout("npy", "ray"), "orjson + gigatoken + NumPy": thirty_lines,
    "datasets.map + tokenizers": mapped, "datatrove": datatrove, "Megatron's preprocess_data": megatron_way,
}  # fmt: skip


def peak_kilobytes() -> int:
    """The most memory this process has had. Linux hands getrusage's number down from the parent; its own is VmHWM."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1])
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measured(name: str, vocab: str, path: Path, threads: int, wait: bool) -> dict[str, Any]:
    """What one way takes in this process. `wait`: for a line of standard input, once everything is loaded."""
    tok = compare.load(vocab)
    tok._wait_for_kernels()
    tok.encode_batch(["warm \u00e9"], threads=1)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        few = folder / "few.jsonl"
        few.write_bytes(b"".join(path.open("rb").readlines(1 << 16)))
        (folder / "warm").mkdir()
        if name.startswith("jittok") and "Ray" not in name:
            WAYS[name](Given(tok, few, folder / "warm", 1))
        if wait:
            print("ready", flush=True)
            sys.stdin.readline()
        took = WAYS[name](Given(tok, path, folder, threads))
    peak = peak_kilobytes() / 1e3  # with the ids that are read back, where they are
    digest = hashlib.sha256(np.ascontiguousarray(took.ids, np.int32)).hexdigest()
    return {"cpu": took.cpu, "wall": took.wall, "peak": peak, "ids": digest[:12], "count": int(took.ids.size)}


def peak_of(vocab: str, path: Path, form: str, threads: int, folder: Path) -> float:
    """Peak resident megabytes of a process that compiles, and does nothing else."""
    options = jittok.corpus.Options(formats=(form,))
    jittok.corpus.compile_corpus([path], compare.load(vocab), folder / "peak", options, threads=threads, progress=False)
    return peak_kilobytes() / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("way", choices=[*WAYS, *(f"peak, {form}" for form in LAYOUTS)])
    parser.add_argument("--vocab", default="gpt-2")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--wait", action="store_true")
    given = parser.parse_args()
    if given.way.startswith("peak"):
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(peak_of(given.vocab, given.file, given.way[6:], given.threads, Path(folder))))
        return
    print(json.dumps(measured(given.way, given.vocab, given.file, given.threads, given.wait)))


if __name__ == "__main__":
    main()
