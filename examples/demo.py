"""Tokenize the sources of Python's standard library, make a corpus of some, show a line of text: `make demo`, or
`python examples/demo.py [VOCABULARY]`.

VOCABULARY: a bundled name or the path of a GGUF file.
"""

from __future__ import annotations

import sys

print("jittok: loading the tokenizer ...", flush=True)  # before imports, which take a second

import contextlib
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

import jittok
import jittok.corpus
from jittok.kernels import jit

COLOURS = ("on #264653", "on #2a6f5e", "on #7a5c1e", "on #7a3b1e", "on #5b2a4e")
BYTES = 16 << 20
"""Text enough to see a speed."""
RUNS = 3
"""The fastest counts: other work on the machine only makes it slower."""
LINE = "def tokenize(text): return [café.id for café in text.split()]  # 12,345 tokens"
"""What the picture at the end shows."""
FORMATS = ("npy", "megatron", "parquet")
RANGE_BYTES, SHARD_BYTES = 1 << 20, 2 << 20
"""Small, so that there are several shards."""
LENGTH, SIZE = 2048, 8
"""A training batch: ids of a sequence, sequences."""


def documents() -> list[bytes]:
    """Sources of the standard library."""
    texts, size = [], 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" not in path.parts and size < BYTES:
            texts.append(path.read_bytes())
            size += len(texts[-1])
    return texts


def picture(tok: jittok.Tokenizer, text: str, columns: int) -> Text:
    """Each token in a color of its own, and its id below it, in lines of at most so many columns."""
    cells = []
    for token in tok.encode(text).tolist():
        piece = tok.token_to_piece(token).decode("utf-8", "replace").replace("\n", "\\n")
        cells.append((piece, str(token), max(len(piece), len(str(token)))))
    shown = Text()
    while cells:
        row, width = [], 0
        while cells and (not row or width + cells[0][2] + 1 <= columns):
            row.append(cells.pop(0))
            width += row[-1][2] + 1
        for part in (0, 1):
            for place, cell in enumerate(row):
                shown.append(cell[part].ljust(cell[2]), COLOURS[place % len(COLOURS)] if part == 0 else "dim")
                shown.append(" ")
            shown.append("\n")
    return shown


@contextlib.contextmanager
def told(what: str, out: Console) -> Iterator[None]:
    """Say what begins, how many kernels it had to compile, and its seconds."""
    compiled = 0

    def count(begins: bool) -> None:
        nonlocal compiled
        compiled += begins
        if begins and out.is_terminal:
            print(f"\r{what} ... compiling kernel {compiled}", end="", flush=True)

    start = time.perf_counter()
    out.print(f"{what} ...", end="" if out.is_terminal else "\n")
    jit.on_compile.append(count)
    try:
        yield
    finally:
        jit.on_compile.remove(count)
    kernels = f", {compiled} kernels compiled for this machine, once" if compiled else ""
    line = f"{what}: {time.perf_counter() - start:.1f} s{kernels}"
    print(f"\r{line:<60}" if out.is_terminal else line, flush=True)


def corpus(tok: jittok.Tokenizer, folder: Path, out: Console) -> bool:
    """Compile documents to shards, check them, read them back; whether that is what the tokenizer gives."""
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    options = jittok.corpus.Options(
        FORMATS, kind="txt", append_eos=tok.eos_id is not None, range_bytes=RANGE_BYTES, shard_bytes=SHARD_BYTES
    )
    print()
    with told("compiling a corpus", out):
        done = jittok.corpus.compile_corpus(paths, tok, folder, options)
    speed = f"{done.text_bytes / 1e6:.1f} MB of text in {done.seconds:.1f} s"
    out.print(f"a corpus of {done.documents:,} files, {done.tokens:,} tokens, {speed}:")
    table = Table("file", "bytes")
    for path in sorted(path for name in FORMATS for path in (folder / name).iterdir()):
        table.add_row(path.relative_to(folder).as_posix(), f"{path.stat().st_size:,}")
    out.print(table)

    again = jittok.corpus.compile_corpus(paths, tok, folder, options)
    out.print(f"the same call again: {again.resumed:,} of {again.documents:,} documents were there already")
    with told("verifying it", out):
        found = jittok.corpus.verify(folder, tok, all=True)
    result = "all as it was written" if found.ok else f"{len(found.differences)} differences"
    out.print(f"verified: {found.files} files hashed, {found.documents:,} documents tokenized again, {result}")

    read = jittok.corpus.open(folder, tok)
    tail = [tok.eos_id] if options.append_eos else []
    agree = all(read[i].tolist() == [*tok.encode(path.read_bytes()).tolist(), *tail] for i, path in enumerate(paths))
    out.print(f"read back: {len(read):,} documents, {'equal' if agree else 'NOT equal'} to encoding each file alone")
    packed = list(jittok.corpus.batches(read, LENGTH, SIZE))
    out.print(f"packed for training: {len(packed)} batches, ids {packed[0].ids.shape} of {packed[0].ids.dtype}")
    return found.ok and agree


def main(vocabulary: str) -> int:
    """Print what was done; 1 if the tokens do not spell the text."""
    out = Console(highlight=False)
    tok = jittok.bundled(vocabulary) if vocabulary in jittok.bundled_names() else jittok.load(vocabulary)
    out.print(repr(tok), markup=False)

    with told("first texts", out):
        tok.encode_batch(["So much text compiles the kernels or loads them."] * 1000, threads=1)

    texts = documents()
    size = sum(map(len, texts))
    table = Table("threads", "seconds", "MB/s", "tokens", "bytes a token")
    for threads in (1, None):
        seconds = float("inf")
        for _ in range(RUNS):
            start = time.perf_counter()
            rows = tok.encode_batch(texts, threads=threads)
            seconds = min(seconds, time.perf_counter() - start)
        cells = f"{seconds:.3f}", f"{size / seconds / 1e6:.0f}", f"{rows.ids.size:,}", f"{size / rows.ids.size:.2f}"
        table.add_row(str(threads or "all"), *cells)
    out.print(f"{len(texts):,} files of Python's standard library, {size / 1e6:.1f} MB:")
    out.print(table)

    if tok.type == "bpe" and b"".join(map(tok.token_to_piece, rows[0].tolist())) != texts[0]:
        out.print("its tokens do not spell the document")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        well = corpus(tok, Path(folder), out)
    out.print("\nwhat happened to a line of text: its tokens, and their ids\n")
    out.print(picture(tok, LINE, out.width), no_wrap=True)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or ["gpt-2"])))
