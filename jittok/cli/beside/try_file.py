"""`jittok try`: a tokenizer file in jittok and in its own library, on the same texts."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from jittok.cli.common import add_json, add_ranks, add_reading, group, note, ranks_of, tell, write
from jittok.cli.common.texts import ProgressOf, find
from jittok.common.display.terminal import harmless_json

HELP = "Compare a tokenizer file with its own library: ids, text, spans, speed."
EXAMPLES = """# a model's tokenizer, on texts of many scripts and sources of Python
jittok try tokenizer.json
# on your own documents; the block to paste into a report
jittok try model.gguf docs/ --report"""
MOST = "8MB"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("file", metavar="FILE|NAME", help="tokenizer file, folder with one, or bundled name")
    parser.add_argument(
        "data", nargs="*", metavar="DATA", help="documents, as for count (default: bundled texts, sources of Python)"
    )
    group(parser, "comparing").add_argument(
        "--bytes", default=MOST, metavar="N", help="stop after this much of DATA; 0: never (default: %(default)s)"
    )
    group(parser, "comparing").add_argument("--no-speed", action="store_true", help="do not time the two")
    add_reading(parser)
    parser.set_defaults(errors="replace")  # libraries take a str
    add_ranks(parser)
    add_json(parser)
    group(parser, "output").add_argument("--report", action="store_true", help="print a block of Markdown")


def run(options: argparse.Namespace) -> int:
    """Compare; returns 0 if nothing differs, else 1."""
    for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "TOKENIZERS_PARALLELISM"):  # both on one thread
        os.environ.setdefault(name, "false" if name.endswith("PARALLELISM") else "1")
    from jittok.compat.proof.prove import bundled_texts, prove

    with _file(options.file) as path:
        if options.data:
            texts, size = _documents(options)
        else:
            own = bundled_texts()
            texts, size = iter(own), sum(len(text.encode()) for _, text in own)
        first = next(texts, None)
        if first is None:
            raise ValueError("DATA: found no document, expected at least one")
        with ProgressOf(size) as progress:
            found = prove(
                path, chain([first], texts), name=options.file, timed=not options.no_speed,
                on_text=lambda encoded: progress.add(1, 0, encoded), **ranks_of(options),
            )  # fmt: skip
    if options.json:
        write(f"{harmless_json(found.to_json())}\n")
    else:
        tell(found.report() if options.report else str(found))
    return 0 if found.same else 1


@contextlib.contextmanager
def _file(name: str) -> Iterator[str]:
    """The path of a tokenizer file. A bundled vocabulary is unpacked, as its library reads files only."""
    from jittok.files.places import is_name, located
    from jittok.vocab.bundled import bundled_names, bundled_source

    if is_name(name):
        yield located(name)
        return
    if Path(name).exists() or name not in bundled_names():
        yield name
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.gguf"
        path.write_bytes(bundled_source(name))
        yield str(path)


def _documents(options: argparse.Namespace) -> tuple[Iterator[tuple[str, str]], int | None]:
    """(where, text) of the documents of DATA up to --bytes, and the size of the files if that is known and read."""
    from jittok.corpus.options import parse_bytes
    from jittok.corpus.ranges.documents import place, read_documents

    most = 0 if options.bytes == "0" else parse_bytes(options.bytes, "--bytes")
    sources, how = find(options.data, options)

    def documents() -> Iterator[tuple[str, str]]:
        left = most or sys.maxsize
        for read in read_documents(sources, how):
            rows = zip(read.sources.tolist(), read.lines.tolist(), read.docs.starts, read.docs.stops, strict=True)
            for source, line, start, stop in rows:
                if left <= 0:
                    note(f"jittok try: stopped after {options.bytes} of DATA (--bytes 0: all of it)")
                    return
                left -= int(stop - start)
                text = read.docs.data[start:stop].tobytes().decode("utf-8", "replace")
                yield place(sources, source, line), text

    sizes = [source.size for source in sources]
    known = None if None in sizes else sum(size or 0 for size in sizes)
    return documents(), min(known, most) if known is not None and most else known
