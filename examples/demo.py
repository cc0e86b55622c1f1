"""Tokenize the sources of Python's standard library, and make a corpus of some: `make demo`, or
`python examples/demo.py [VOCABULARY]`.

VOCABULARY: a bundled name or the path of a GGUF file.
"""

from __future__ import annotations

import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

import jittok
import jittok.corpus

COLOURS = ("on #264653", "on #2a6f5e", "on #7a5c1e", "on #7a3b1e", "on #5b2a4e")
BYTES = 16 << 20
"""Text enough to see a speed."""
RUNS = 3
"""The fastest counts: other work on the machine only makes it slower."""
SHOWN = 90
"""Tokens to show of a document."""
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


def coloured(pieces: list[bytes]) -> Text:
    """One colour a token, so that their borders show."""
    shown = Text()
    for place, piece in enumerate(pieces):
        shown.append(piece.decode("utf-8", "replace"), COLOURS[place % len(COLOURS)])
    return shown


def corpus(tok: jittok.Tokenizer, folder: Path, out: Console) -> bool:
    """Compile documents to shards, check them, read them back; whether that is what the tokenizer gives."""
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    options = jittok.corpus.Options(
        FORMATS, kind="txt", append_eos=tok.eos_id is not None, range_bytes=RANGE_BYTES, shard_bytes=SHARD_BYTES
    )
    done = jittok.corpus.compile_corpus(paths, tok, folder, options)
    speed = f"{done.text_bytes / 1e6:.1f} MB of text in {done.seconds:.1f} s"
    out.print(f"\na corpus of {done.documents:,} files, {done.tokens:,} tokens, {speed}:")
    table = Table("file", "bytes")
    for path in sorted(path for name in FORMATS for path in (folder / name).iterdir()):
        table.add_row(path.relative_to(folder).as_posix(), f"{path.stat().st_size:,}")
    out.print(table)

    again = jittok.corpus.compile_corpus(paths, tok, folder, options)
    out.print(f"the same call again: {again.resumed:,} of {again.documents:,} documents were there already")
    found = jittok.corpus.verify(folder, tok, all=True)
    told = "all as it was written" if found.ok else f"{len(found.differences)} differences"
    out.print(f"verified: {found.files} files hashed, {found.documents:,} documents tokenized again, {told}")

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

    start = time.perf_counter()
    tok.encode_batch(["So much text compiles the kernels or loads them."] * 1000, threads=1)
    out.print(f"kernels ready after {time.perf_counter() - start:.1f} s (compiled once, then kept on disk)\n")

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

    place = max(range(len(texts)), key=lambda i: texts[i].startswith(b'"""'))
    pieces = [tok.token_to_piece(token) for token in rows[place].tolist()]
    out.print(f"\nthe first {SHOWN} tokens of document {place}:\n")
    out.print(coloured(pieces[:SHOWN]))
    out.print(f"\nids: {rows[place][:12].tolist()} …", soft_wrap=True)
    if tok.type == "bpe" and b"".join(pieces) != texts[place]:
        out.print("its tokens do not spell the document")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        return 0 if corpus(tok, Path(folder), out) else 1


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or ["gpt-2"])))
