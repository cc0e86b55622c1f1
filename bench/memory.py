"""Peak memory of every call for a byte of text: `python bench/memory.py [FILE or FOLDER ...]`.

A file is a vocabulary or a tokenizer file; `.xz` and `.tar.xz` are unpacked. Without files, those beside the checkout
are taken. The law is DESIGN's: at most twenty bytes for a byte of text, or ten beside what the call gives back. Only
what is above it is printed, unless --all is given. Each call has a process of its own for each of two sizes. What is
printed is the slope between the two: so caches and tables, which do not grow with the text, are left out. Linux only.
"""

from __future__ import annotations

import argparse
import lzma
import os
import random
import signal
import sys
import tarfile
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import conftest

import jittok

LAW, BESIDE = 20, 10
ROW = 100_000
TIMEOUT = 300
"""CPU seconds after which a call is given up."""
RANDOM = random.Random(5).randbytes(1 << 16)
TEXTS = {
    "FF": b"\xff",
    "NUL": b"\0",
    "U+FDFA": "\ufdfa".encode(),
    "Chinese": "".join(map(chr, range(0x4E00, 0x5200, 7))).encode(),
    "one ideograph": "这".encode(),
    "spaces": b" ",
    "newlines": b"\n",
    "a": b"a",
    "digits": b"0123456789",
    "emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467".encode(),
    "random": RANDOM,
    "marks": "\u0301\u0323".encode(),
}
"""What is repeated."""


def rows_of(text: bytes) -> list[bytes]:
    """A text in rows."""
    return [text[at : at + ROW] for at in range(0, len(text), ROW)]


def size_of(made: Any) -> int:
    """Bytes of what a call gives back."""
    if isinstance(made, list):
        return sum(map(sys.getsizeof, made))
    if isinstance(made, str):
        return sys.getsizeof(made)
    arrays = [getattr(made, name) for name in ("ids", "spans") if hasattr(made, name)] or [made]
    return sum(int(getattr(array, "nbytes", 0)) for array in arrays)


def streamed(tok: jittok.Tokenizer, ids: Any) -> None:
    """Every id through a stream decoder, whose texts no one keeps."""
    stream = tok.stream_decoder()
    for token in ids:
        stream.push(int(token))
    stream.finish()


def batch_of(tok: jittok.Tokenizer, text: bytes) -> jittok.TokenArray:
    """The rows that `decode_batch` takes."""
    return tok.encode_batch(rows_of(text), errors="replace")


CALLS: dict[str, tuple[Callable[..., Any] | None, Callable[..., Any]]] = {
    "encode": (None, lambda tok, text: tok.encode(text, errors="replace")),
    "count": (None, lambda tok, text: tok.count(text, errors="replace")),
    "encode_batch": (None, lambda tok, text: tok.encode_batch(rows_of(text), errors="replace")),
    "encode_pair": (
        None, lambda tok, text: tok.encode_pair(
            text[: len(text) // 2], text[len(text) // 2 :], errors="replace", add_special=False
        ),
    ),
    "align": (None, lambda tok, text: tok.align(text, errors="replace")),
    "align_batch": (None, lambda tok, text: tok.align_batch(rows_of(text), errors="replace")),
    "decode": (lambda tok, text: tok.encode(text, errors="replace"), lambda tok, ids: tok.decode(ids)),
    "decode_batch": (batch_of, lambda tok, rows: tok.decode_batch(rows)),
    "stream_decoder": (lambda tok, text: tok.encode(text, errors="replace"), streamed),
}  # fmt: skip
"""name -> (what is made ready before, the call)."""


def said(key: str) -> int:
    """Bytes that the system tells of this process."""
    rows = Path("/proc/self/status").read_text().splitlines()
    return next(int(row.split()[1]) << 10 for row in rows if row.startswith(key))


def measured(tok: jittok.Tokenizer, call: str, text: bytes, short: int) -> tuple[int, int, float]:
    """(peak, bytes given back, seconds) of one call, in this process. A short call brings in code and tables."""
    before, run = CALLS[call]
    run(tok, before(tok, text[:short]) if before else text[:short])
    given = before(tok, text) if before else text
    Path("/proc/self/clear_refs").write_text("5")
    held, start = said("VmRSS"), time.perf_counter()
    made = run(tok, given)
    return said("VmHWM") - held, size_of(made), time.perf_counter() - start


def apart(run: Callable[[], tuple[Any, ...]]) -> list[float] | str:
    """The numbers that a function gives, or its error, from a process of its own."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fork beside threads, which are waited for
        child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_PROF, TIMEOUT)
        try:
            answer = " ".join(map(str, run()))
        except Exception as error:  # noqa: BLE001  whatever it is, it is shown
            answer = f"{type(error).__name__}: {error}"
        os.write(writing, answer.encode()[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answers:
        answer = answers.read()
    os.waitpid(child, 0)
    try:
        return [float(each) for each in answer.split()] or f"no answer within {TIMEOUT} CPU seconds"
    except ValueError:
        return answer


def row_of(
    tok: jittok.Tokenizer, call: str, unit: bytes, megabytes: float, seconds: float
) -> tuple[float, float, float] | str:
    """(peak for a byte of text, what is given back for a byte of text, megabytes), or an error."""
    size = int(megabytes * 1e6)

    def text(size: int) -> bytes:
        return unit * (size // len(unit) + 1)

    if tok.runs != "kernels" or "align" in call or "decode" in call:  # may be slow
        tried = apart(lambda: measured(tok, call, text(100_000), 1000))
        if isinstance(tried, str):
            return tried
        size = min(size, max(600_000, int(1e5 * seconds / max(tried[2], 1e-9))))
    short = min(300_000, size // 4)
    found = [apart(lambda: measured(tok, call, text(part), short)) for part in (size // 2, size)]  # noqa: B023
    for each in found:
        if isinstance(each, str):
            return each
    (less, few, _), (more, many, _) = found
    grown = len(text(size)) - len(text(size // 2))
    return (more - less) / grown, (many - few) / grown, size / 1e6


def files_of(paths: list[Path], folder: Path) -> Iterator[tuple[str, Path]]:
    """(name, file that can be loaded), archives unpacked to a folder."""
    for path in paths:
        if path.is_dir():
            yield from files_of(sorted(path.iterdir()), folder)
        elif path.name.endswith(".tar.xz"):
            with tarfile.open(path) as tar:
                tar.extractall(folder, filter="data")
            found = folder / path.name.removesuffix(".tar.xz")
            inside = [file for name in ("tokenizer.json", "tokenizer.model") if (file := found / name).exists()]
            others = [file for file in sorted(found.iterdir()) if not file.name.endswith(("_config.json", "_map.json"))]
            yield path.name, (inside or (others if len(others) == 1 else [found]))[0]
        elif path.name.endswith(".gguf.xz"):
            plain = folder / path.stem
            plain.write_bytes(lzma.decompress(path.read_bytes()))
            yield path.name, plain
        elif path.suffix in (".gguf", ".json", ".model", ".tiktoken", ".txt") and path.name != "manifest.json":
            yield path.name, path


def main() -> int:
    """Print the table; status 1 where anything is above the law."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="vocabularies, tokenizer files, folders of them")
    parser.add_argument("--calls", nargs="+", default=list(CALLS), choices=list(CALLS), metavar="CALL")
    parser.add_argument("--texts", nargs="+", default=list(TEXTS), choices=list(TEXTS), metavar="TEXT")
    parser.add_argument("--megabytes", type=float, default=4, help="of the larger text; the other is half of it")
    parser.add_argument("--seconds", type=float, default=4, help="about what a slow call may take: its text is shorter")
    parser.add_argument("--all", action="store_true", help="what keeps the law, too")
    options = parser.parse_args()
    files = options.files or [conftest.SHARED / "tokenizer-files", conftest.SHARED / "vocabs"]
    print("| file | call | text | bytes taken | given back | MB |\n|---|---|---|---|---|---|", flush=True)
    above, cells = 0, 0
    with tempfile.TemporaryDirectory() as name:
        for file, path in files_of(files, Path(name)):
            try:
                tok = jittok.load(path)
                tok.decode(tok.encode("A text. " * 40_000))
            except jittok.JittokError as error:
                print(f"| {file} | load | | {error} | | |", flush=True)
                continue
            for call in options.calls:
                for text in options.texts:
                    found, cells = row_of(tok, call, TEXTS[text], options.megabytes, options.seconds), cells + 1
                    if isinstance(found, str):
                        print(f"| {file} | {call} | {text} | {found} | | |", flush=True)
                        continue
                    taken, given, size = found
                    bad = taken > max(LAW, given + BESIDE)
                    above += bad
                    if bad or options.all:
                        print(f"| {file} | {call} | {text} | {taken:.1f} | {given:.1f} | {size:.1f} |", flush=True)
    print(f"{above} of {cells} are above the law")
    return int(above > 0)


if __name__ == "__main__":
    sys.exit(main())
