"""The corpus compiler: what is promised of it, measured, beside what others would write and how they read.

    python bench/corpus.py [--mb 115] [--big 480 2000] [--peer-mb 10] [--parts ...] [--docs] [FILE.jsonl ...]

Parts: `share` (one worker of `encode_batch` of the same texts in memory, by layout), `lines` (30 lines of orjson,
gigatoken and NumPy), `peers` (datatrove, `datasets.map`, Megatron's preprocess_data), `threads` (the gain of a second
thread, of that of two processes), `ray`, `memory`, `reader` (`bench/reader.py`), `dry` (errors of `--dry-run`).
Each way runs in a fresh process, in turns with the others; ids are compared first, and a way whose ids differ is an
error. Ratios are of CPU time, the least of the rounds, so other work on the machine counts little; those of `threads`
and `ray` are of wall time, and say something only on an idle machine. What is not installed is left out, with a line
that says so; `--torch PYTHON` names an interpreter that has torch, litdata and mosaicml-streaming.

Without files, texts of the machine are taken (`bench/texts.py`), each once; where they do not suffice, again with a
number in each document.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import compare
import fsspec
import texts as machine

import jittok

HERE = Path(__file__).resolve().parent
LAYOUTS = ("npy", "nanogpt", "megatron", "arrow", "parquet")
SHARES = {
    "npy": (0.75, 0.9),
    "nanogpt": (0.75, 0.9),
    "megatron": (0.75, 0.9),
    "arrow": (0.65, 0.9),
    "parquet": (0.42, 0.5),
}
PEAKS = {"npy": 400, "arrow": 400, "parquet": 550}
LINES = {"gpt-2": (1.15, 1.5), "llama-bpe": (1.4, 1.5)}
PEERS = ("datasets.map + tokenizers", "datatrove", "Megatron's preprocess_data")
PARTS = ("share", "lines", "peers", "threads", "ray", "memory", "reader", "dry")
MARKS = ("<!-- corpus -->\n", "<!-- /corpus -->")
PROBED = ("english", "code", "multilingual")
LONGEST, MOST_TEXTS = 400_000, 500_000_000
"""Bytes of a text of the machine, and of all: where there must be more, they are repeated."""
STEP = 997
"""Characters by which the texts turn from one repetition to the next."""


class Row(NamedTuple):
    """A line of the table: what, found, the floor and goal; `most`: they are upper bounds."""

    what: str
    found: float
    floor: float | None = None
    goal: float | None = None
    most: bool = False
    unit: str = ""

    def reached(self) -> str:
        if self.floor is None:
            return ""
        return "yes" if (self.found <= self.floor if self.most else self.found >= self.floor) else "NO"

    def line(self) -> str:
        digits = 0 if abs(self.found) >= 20 else 1 if self.unit == "%" else 2
        floor, goal = ("" if bound is None else f"{bound:.4g}" for bound in (self.floor, self.goal))
        found = f"{self.found:,.{digits}f} {self.unit}".strip()
        return f"| {self.what} | {found} | {floor} | {goal} | {self.reached()} |"


# ---- inputs


def own_texts() -> Iterator[str]:
    """Sources of the standard library: real text, and everywhere the same for one version of Python."""
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        yield path.read_text("utf-8", "replace")


def machine_texts(most: int) -> list[str]:
    """Code and documents of this machine, each once, in a drawn order; up to so many bytes."""
    folders = [*machine.FOLDERS["english"], *machine.FOLDERS["code"]]
    endings = tuple({*machine.ENDINGS["code"], *machine.ENDINGS["english"]})
    found: dict[bytes, None] = {}
    for text in itertools.chain.from_iterable(machine.texts_of_folder(folder, endings) for folder in folders):
        if len(text) < LONGEST and text not in found:
            found[text], most = None, most - len(text)
        if most <= 0:
            break
    chosen = list(found)
    random.Random(1).shuffle(chosen)
    return [text.decode() for text in chosen]


def texts_of(files: list[str], most: int = MOST_TEXTS) -> list[str]:
    """Texts of JSON Lines, or of the machine."""
    if not files:
        return machine_texts(most)
    texts = []
    for name in files:
        with fsspec.open(name, "rb", compression="infer") as file:
            texts += [json.loads(line)["text"] for line in file]
    return texts


def make_input(folder: Path, texts: list[str], size: int) -> tuple[Path, int]:
    """A JSON Lines file of about so many bytes of text, and how many. A quarter of the lines has escapes."""
    path, total = folder / f"{size}.jsonl", 0
    with path.open("w", encoding="utf-8", errors="replace") as file:
        for repeat in itertools.count():
            for number, text in enumerate(texts):
                start = repeat * STEP % max(len(text), 1)
                new = f"{text[start:]}{text[:start]}{repeat * STEP + number}" if repeat else text
                file.write(json.dumps({"text": new}, ensure_ascii=number % 4 == 0) + "\n")
                total += len(new.encode("utf-8", "replace"))
                if total >= size:
                    return path, total
    raise AssertionError  # the loop above has no end


# ---- measuring


def command(path: Path, way: str, vocab: str, *more: str) -> list[str]:
    """A fresh process for one way."""
    return [sys.executable, "-W", "ignore", str(HERE / "corpus_ways.py"), str(path), way, "--vocab", vocab, *more]


def one(path: Path, way: str, vocab: str, threads: int = 1) -> dict[str, Any] | None:
    """What one way takes; None where it cannot be had."""
    done = subprocess.run(
        command(path, way, vocab, "--threads", str(threads)), capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"{way}: left out: {(done.stderr.strip() or 'nothing said').splitlines()[-1][:120]}", flush=True)
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def interleaved(path: Path, ways: list[str], vocab: str, rounds: int) -> dict[str, float]:
    """The least CPU seconds of each way, whose ids are all the same."""
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in list(found):
            row = one(path, way, vocab)
            if row is None:
                del found[way]
            else:
                found[way].append(row)
    if len(ids := {(row["ids"], row["count"]) for rows in found.values() for row in rows}) > 1:
        raise SystemExit(f"ids differ: {ids}")
    return {way: min(row["cpu"] for row in rows) for way, rows in found.items()}


def share(path: Path, vocab: str, rounds: int) -> Iterator[Row]:
    """One worker of encode_batch in memory."""
    ways = {f"jittok corpus, {form}": form for form in LAYOUTS}
    found = interleaved(path, ["encode_batch in memory", *ways], vocab, rounds)
    for way, form in ways.items():
        yield Row(
            f"one worker, {form}, of `encode_batch` in memory",
            found["encode_batch in memory"] / found[way],
            *SHARES[form],
        )


def lines(path: Path, vocabs: list[str], rounds: int) -> Iterator[Row]:
    """Beside 30 lines."""
    for vocab in vocabs:
        ways = ["jittok corpus, nanogpt", "orjson + gigatoken + NumPy"]
        found = interleaved(path, ways, vocab, rounds)
        if len(found) == 2:
            floor = LINES.get(vocab, (None, None))
            yield Row(
                f"orjson + gigatoken + NumPy over jittok, nanogpt, {vocab}", found[ways[1]] / found[ways[0]], *floor
            )


def peers(path: Path, vocab: str) -> Iterator[Row]:
    """Beside frameworks."""
    ways = ["jittok corpus, nanogpt", *PEERS]
    found = interleaved(path, ways, vocab, 1)
    for way in PEERS:
        if way in found:
            yield Row(f"{way} over jittok, nanogpt, {vocab}", found[way] / found[ways[0]], unit="x")


def wall_beside(paths: list[Path], vocab: str) -> float:
    """Seconds until processes of one thread each, which begin together, have all ended their file."""
    way = "jittok corpus, npy"
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen(command(path, way, vocab, "--wait"), stdin=pipe, stdout=pipe, text=True) for path in paths
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return max(float(json.loads(process.communicate()[0].splitlines()[-1])["wall"]) for process in started)


def halves(path: Path, folder: Path) -> list[Path]:
    """A file of lines in two."""
    found = [folder / "first.jsonl", folder / "second.jsonl"]
    with path.open("rb") as file, found[0].open("wb") as first, found[1].open("wb") as second:
        left = path.stat().st_size // 2
        for line in file:
            (first if left > 0 else second).write(line)
            left -= len(line)
    return found


def two_threads(path: Path, vocab: str, folder: Path, rounds: int) -> Iterator[Row]:
    """The gain of a second thread beside that of two processes."""
    parts, gains = halves(path, folder), []
    for _ in range(rounds):
        alone = wall_beside([path], vocab)
        apart = alone / wall_beside(parts, vocab)
        both = one(path, "jittok corpus, npy", vocab, threads=2)
        assert both is not None
        gains.append((alone / both["wall"], apart))
    for part in parts:
        part.unlink()
    threads, processes = (sorted(column)[len(gains) // 2] for column in zip(*gains, strict=True))
    yield Row("two threads over one, npy", threads)
    yield Row("two processes over one, npy", processes)
    yield Row("of what two processes gain", threads / processes, 0.95)


def resident_of_all(root: int, stop: threading.Event, found: list[float]) -> None:
    """The most megabytes that a process and all below it have of their own."""
    import psutil

    while not stop.wait(0.25):
        total = 0
        for process in [psutil.Process(root), *psutil.Process(root).children(recursive=True)]:
            with contextlib.suppress(psutil.Error):  # it has ended
                total += process.memory_full_info().pss
        found.append(total / 1e6)


def ray(path: Path, vocab: str) -> Iterator[Row]:
    """Ray beside threads, two of either."""
    threads = one(path, "jittok corpus, npy", vocab, threads=2)
    stop, memory = threading.Event(), [0.0]
    watch = threading.Thread(target=resident_of_all, args=(os.getpid(), stop, memory))
    watch.start()
    try:
        found = one(path, "jittok corpus, npy, Ray", vocab, threads=2)
    finally:
        stop.set()
        watch.join()
    if threads and found:
        yield Row("Ray over threads, wall", found["wall"] / threads["wall"], 1.3, 1.1, most=True)
        yield Row("memory of all its processes", max(memory), 1500, None, most=True, unit="MB")


def memory(path: Path, vocab: str, label: str) -> Iterator[Row]:
    """Peak resident memory of a process that compiles with two threads."""
    for form, floor in PEAKS.items():
        done = subprocess.run(
            command(path, f"peak, {form}", vocab, "--threads", "2"), capture_output=True, text=True, check=True
        )
        found = float(done.stdout)
        yield Row(f"peak memory, two threads, {label}, {form}", found, floor, None, most=True, unit="MB")


def dry(vocab: str, texts: list[str], folder: Path) -> Iterator[Row]:
    """Errors of a dry run, of tokens: by corpus, sorted by kind, packed, and of Parquet; 3 % is the goal."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from jittok.corpus import Options
    from jittok.corpus.compiler import formats_of
    from jittok.corpus.inputs.finding import find_sources
    from jittok.corpus.prediction import predict
    from jittok.corpus.ranges.encoder import RangeEncoder

    tok, options = jittok.bundled(vocab), Options()
    shared = Path(os.environ.get("JITTOK_SHARED", HERE.parents[1] / "shared"), "corpora")
    kinds = {name: shared / f"{name}.jsonl.xz" for name in PROBED}
    if all(path.exists() for path in kinds.values()):
        by_kind = {name: texts_of([str(path)]) for name, path in kinds.items()}
    else:
        by_kind = {"texts of this machine": texts}
    kinds_in_order = [text for some in by_kind.values() for text in some]
    cases: dict[str, Path] = {}
    for name, some in {**by_kind, "sorted by kind": kinds_in_order}.items():
        cases[f"{name}, JSON Lines"] = folder / f"{name}.jsonl"
        cases[f"{name}, JSON Lines"].write_text("".join(json.dumps({"text": text}) + "\n" for text in some))
    for size in (1 << 30, 500):
        name = "one row group" if size > 500 else "row groups of 500"
        cases[f"sorted by kind, Parquet, {name}"] = folder / f"{size}.parquet"
        pq.write_table(pa.table({"text": kinds_in_order}), folder / f"{size}.parquet", row_group_size=size)
    for name, path in cases.items():
        sources, _ = find_sources([path], options)
        found = predict(RangeEncoder(tok, sources, options), formats_of(tok, sources, options))
        some = kinds_in_order if "sorted" in name else by_kind[name.split(",")[0]]
        off = found.tokens / tok.encode_batch(some).ids.size - 1
        said = found.error["tokens"] or 0.0
        bound = min(10.0, 100 * said) if said else 0.0
        yield Row(
            f"dry run, error of tokens, {name} (said: {100 * said:.0f})", abs(100 * off), bound, 3, most=True, unit="%"
        )


def reader(python: str) -> None:
    """The table of bench/reader.py, as it is."""
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [python, "-W", "ignore", str(HERE / "reader.py")], env={**os.environ, "PYTHONPATH": path}, check=False
    )
    if done.returncode:
        print(f"reader: left out: {python} could not run bench/reader.py")


# ---- the table


def measured(given: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """All rows of the parts that are asked for."""
    most = max([given.mb, *given.big]) if {"memory", "threads", "ray"} & {*given.parts} else given.mb
    texts = texts_of(given.files, min(most * 1_000_000, MOST_TEXTS))
    path, size = make_input(folder, texts, given.mb * 1_000_000)
    print(
        f"{size / 1e6:.0f} MB of text, {given.vocab}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores",
        flush=True,
    )
    if "share" in given.parts:
        yield from share(path, given.vocab, given.rounds)
    if "lines" in given.parts:
        yield from lines(path, [given.vocab, "llama-bpe"] if given.vocab == "gpt-2" else [given.vocab], given.rounds)
    if "memory" in given.parts:
        yield from memory(path, given.vocab, f"{given.mb} MB")
    path.unlink()
    if "peers" in given.parts:
        path, _ = make_input(folder, texts, given.peer_mb * 1_000_000)
        yield from peers(path, given.vocab)
        path.unlink()
    if "dry" in given.parts:
        yield from dry(given.vocab, texts, folder)
    for mb in given.big if {"memory", "threads", "ray"} & {*given.parts} else ():
        path, _ = make_input(folder, texts, mb * 1_000_000)
        if "memory" in given.parts:
            yield from memory(path, given.vocab, f"{mb} MB")
        if "threads" in given.parts:
            yield from two_threads(path, given.vocab, folder, given.rounds)
        if "ray" in given.parts:
            yield from ray(path, given.vocab)
        path.unlink()
    if "reader" in given.parts:
        reader(given.torch)


def write_page(rows: list[Row], about: str, page: Path) -> None:
    """Replace what is between the marks."""
    before, rest = page.read_text(encoding="utf-8").split(MARKS[0])
    _, after = rest.split(MARKS[1])
    table = "\n".join([*HEAD, *(row.line() for row in rows)])
    page.write_text(f"{before}{MARKS[0]}{table}\n\n{about}\n\n{MARKS[1]}{after}", encoding="utf-8")


HEAD = ["| | found | floor | goal | reached |", "|---|---|---|---|---|"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--mb", type=int, default=115)
    parser.add_argument("--big", type=int, nargs="*", default=[480, 2000], help="MB of memory, threads and ray")
    parser.add_argument("--peer-mb", type=int, default=10)
    parser.add_argument("--vocab", default="gpt-2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--folder", help="for inputs and outputs: four times the largest input")
    parser.add_argument("--docs", action="store_true", help="write the table of docs/benchmarks.md")
    given = parser.parse_args()
    rows, begin = [], time.perf_counter()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        os.environ["TMPDIR"] = name
        print("\n".join(HEAD), flush=True)
        for row in measured(given, Path(name)):
            rows.append(row)
            print(row.line(), flush=True)
        shutil.rmtree(Path(name), ignore_errors=True)
        Path(name).mkdir()
    if given.docs:
        load = os.getloadavg()[2]
        cores = f"{os.cpu_count()} cores of {compare.processor()}, Python {sys.version.split()[0]}"
        about = f"{cores}, {time.perf_counter() - begin:.0f} s; load on average {load:.0f}."
        write_page(rows, about, HERE.parent / "docs" / "benchmarks.md")


if __name__ == "__main__":
    main()
