"""The corpus compiler beside `encode_batch` on the same texts in memory, what the rest is made of, and its memory.

    python bench/corpus.py [--mb 100] [--vocab gpt-2] [--threads 2] [--format npy] [--memory 100 1000] [FILE.jsonl ...]

Without files, texts of the Python standard library are taken. They are repeated until there is enough, each time begun
at another place, so that no two documents are the same.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import fsspec

import jittok
from jittok.corpus import Options, compile_corpus
from jittok.corpus.inputs.finding import find_sources
from jittok.corpus.ranges.documents import read_texts
from jittok.corpus.ranges.encoder import RangeEncoder
from jittok.corpus.ranges.units import read_unit, units

STEP = 997
"""Characters by which the texts turn from one repetition to the next."""


def own_texts():
    """Sources of the standard library: real text, and everywhere the same for one version of Python."""
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        yield path.read_text("utf-8", "replace")


def texts_of(files):
    """Texts of JSON Lines, or of the standard library."""
    if not files:
        return list(own_texts())
    texts = []
    for name in files:
        with fsspec.open(name, "rb", compression="infer") as file:
            texts += [json.loads(line)["text"] for line in file]
    return texts


def make_input(folder, texts, size):
    """A JSON Lines file of about so many bytes of text, and how many."""
    row_of_nothing = json.dumps({"text": ""}) + "\n"
    path, total = folder / f"{size}.jsonl", 0
    with path.open("w", encoding="utf-8", errors="replace") as file:
        for repeat in itertools.count():
            for text in texts:
                start = repeat * STEP % max(len(text), 1)
                row = json.dumps({"text": text[start:] + text[:start]}, ensure_ascii=False) + "\n"
                total += len(row.encode("utf-8", "replace")) - len(row_of_nothing)
                file.write(row)
                if total >= size:
                    return path, total
    raise AssertionError  # the loop above has no end


def seconds(call, rounds=3):
    """The best of some rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def speed(tok, path, size, threads, form, folder):
    """End to end, in memory, and the parts, in MB of text a second."""
    in_memory = [json.loads(line)["text"] for line in path.open("rb")]
    options = Options(formats=(form,))
    sources, _ = find_sources([path], options)
    encoder = RangeEncoder(tok, sources, options)

    def end_to_end():
        shutil.rmtree(folder / "out", ignore_errors=True)
        compile_corpus([path], tok, folder / "out", options, threads=threads)

    def raw_ranges(_):
        for unit in units(sources, options):
            yield from read_unit(unit, sources, options, digests=[])

    parts = {
        "encode_batch in memory": lambda: tok.encode_batch(in_memory, threads=threads),
        "jittok corpus": end_to_end,
        "  reading and hashing bytes": lambda: [None for _ in raw_ranges(encoder)],
        "  and JSON": lambda: [None for raw in raw_ranges(encoder) if read_texts(raw, "jsonl", options) is None],
    }
    found = {}
    for name, call in parts.items():
        call()
        found[name] = size / seconds(call) / 1e6
        print(f"{name:26} {found[name]:8.1f} MB/s")
    print(f"{'ratio':26} {found['jittok corpus'] / found['encode_batch in memory']:8.2f}")


def peak_kilobytes():
    """The most memory this process has had. Linux hands getrusage's number down from the parent; its own is VmHWM."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def memory(vocab, texts, sizes, threads, form, folder):
    """Peak resident memory of a process that compiles, for inputs of several sizes."""
    for size in sizes:
        path, _ = make_input(folder, texts, size * 1_000_000)
        given = {"peak": path, "vocab": vocab, "threads": threads, "format": form, "out": folder / "peak"}
        command = [sys.executable, __file__, *(f"--{name}={value}" for name, value in given.items())]
        peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print(f"{size:6} MB of text          {int(peak) / 1e3:8.1f} MB at most")
        path.unlink()
        shutil.rmtree(folder / "peak")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--mb", type=int, default=100)
    parser.add_argument("--vocab", default="gpt-2")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--format", default="npy")
    parser.add_argument("--memory", type=int, nargs="*", default=[])
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peak:
        tok = jittok.bundled(given.vocab)
        compile_corpus([given.peak], tok, given.out, Options(formats=(given.format,)), threads=given.threads)
        print(peak_kilobytes())
        return
    texts = texts_of(given.files)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, size = make_input(folder, texts, given.mb * 1_000_000)
        speed(jittok.bundled(given.vocab), path, size, given.threads, given.format, folder)
        path.unlink()
        memory(given.vocab, texts, given.memory, given.threads, given.format, folder)


if __name__ == "__main__":
    main()
