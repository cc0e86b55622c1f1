"""Tokenize the sources of Python's standard library: `make demo`, or `python examples/demo.py [VOCABULARY]`.

VOCABULARY: a bundled name or the path of a GGUF file.
"""

from __future__ import annotations

import sys
import sysconfig
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

import jittok

COLOURS = ("on #264653", "on #2a6f5e", "on #7a5c1e", "on #7a3b1e", "on #5b2a4e")
BYTES = 16 << 20
"""Text enough to see a speed."""
RUNS = 3
"""The fastest counts: other work on the machine only makes it slower."""
SHOWN = 90
"""Tokens to show of a document."""


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


def main(vocabulary: str) -> int:
    """Print what was done; 1 if the tokens do not spell the text."""
    out = Console(highlight=False)
    tok = jittok.bundled(vocabulary) if vocabulary in jittok.bundled_names() else jittok.load(vocabulary)
    out.print(repr(tok), markup=False)

    start = time.perf_counter()
    tok.encode_batch(["The first call compiles the kernels or loads them."], threads=1)
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
    return 0


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or ["gpt-2"])))
