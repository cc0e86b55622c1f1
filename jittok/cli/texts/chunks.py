"""`jittok chunks`: cut texts into pieces of at most so many tokens."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.cli.common import add_overwrite, add_vocab, check_outputs, group, open_vocab, positive, tell_slow, write
from jittok.cli.common.texts import InputTexts, ProgressOf, add_texts

if TYPE_CHECKING:
    from jittok.chunks.texts.pieces import PieceRows
    from jittok.corpus.ranges.documents import Read
    from jittok.tokenizer import Tokenizer

HELP = "Cut texts into pieces that have at most so many tokens each."
EXAMPLES = """# the files of a folder as a table of pieces, for a document store
jittok chunks docs/ --vocab gpt-2 --size 512 --overlap 64 --out chunks.parquet
# pieces of whole sentences, as JSON Lines
jittok chunks --vocab tokenizer.json --size 256 --by sentence book.txt
# a text
jittok chunks --vocab gpt-2 --size 2 -p "one two three four\""""
COLUMNS = ("source", "document", "piece", "text", "start", "stop", "byte_start", "byte_stop", "count")
"""What a piece is of, its number there, and what `Piece` says of it."""
KINDS = (".parquet", ".jsonl")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_vocab(parser)
    add_texts(parser)
    pieces = group(parser, "pieces")
    pieces.add_argument(
        "--size", type=positive, required=True, metavar="N", help="the most tokens of a piece, encoded alone"
    )
    pieces.add_argument(
        "--overlap", type=_number, default=0, metavar="N", help="the most tokens that two pieces share (default: 0)"
    )
    pieces.add_argument(
        "--by", choices=("token", "sentence", "line"), default="token",
        help="where pieces end: as late as they can, or at a sentence or line that ends in them (default: token)",
    )  # fmt: skip
    output = group(parser, "output")
    output.add_argument(
        "--out", "-o", metavar="OUT", help="write a table, OUT.parquet or OUT.jsonl, instead of printing JSON Lines"
    )
    add_overwrite(parser)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"found {text!r}, expected an integer, 0 or more")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Cut and print, or write, in bounded memory. The output is there as a whole or not at all."""
    if options.parse_special:
        raise ValueError("--parse-special: pieces are texts, in which special tokens are text; expected no such option")
    if options.overlap >= options.size:
        raise ValueError(f"--overlap: found {options.overlap}, expected fewer than --size {options.size}")
    if options.out is not None and Path(options.out).suffix not in KINDS:
        raise ValueError(f"--out {options.out}: found another extension, expected {' or '.join(KINDS)}")
    check_outputs([options.out] if options.out else [], options.overwrite, texts=options.files)
    tok, texts = open_vocab(options), InputTexts(options)
    if texts.prompt is None:
        tell_slow(tok)
    documents, pieces, begun = 0, 0, dict[int, int]()
    with _output(options.out) as put, ProgressOf(texts.size, answers=options.out is None) as progress:
        for read in texts.read():
            (rows,) = texts.placed(read, partial(_cut, tok, read, options))
            put(_table(texts, read, rows, begun))
            documents, pieces = documents + len(rows), pieces + rows.counts.size
            progress.add(len(rows), int(rows.counts.sum()), read.new)
    if options.out:
        facts = {"output": str(options.out), "documents": documents, "pieces": pieces}
        told = json.dumps(facts) if options.json else f"{options.out}: {pieces:,} pieces of {documents:,} documents"
        write(told + "\n")
    return 0


def _cut(tok: Tokenizer, read: Read, options: argparse.Namespace) -> Iterator[PieceRows]:
    """The pieces of the documents of a range, at once."""
    given: Any = read.docs
    if options.errors == "replace":
        places = zip(read.docs.starts.tolist(), read.docs.stops.tolist(), strict=True)
        given = [read.docs.between(*place).decode("utf-8", "replace") for place in places]
    how = {"overlap": options.overlap, "by": options.by, "add_special": options.add_special}
    yield tok.chunks_batch(given, options.size, threads=options.threads, **how)


def _table(texts: InputTexts, read: Read, rows: PieceRows, begun: dict[int, int]) -> dict[str, list[Any]]:
    """The columns of the pieces of a range. begun: documents of each source so far."""
    names, document, piece = list[str](), list[int](), list[int]()
    for source, pieces in zip(read.sources.tolist(), rows.lengths.tolist(), strict=True):
        begun[source] = begun.get(source, -1) + 1
        names += [texts.names[source]] * pieces
        document += [begun[source]] * pieces
        piece += range(pieces)
    columns = rows.starts, rows.stops, rows.byte_starts, rows.byte_stops, rows.counts
    found = [names, document, piece, rows.texts(), *(column.tolist() for column in columns)]
    return dict(zip(COLUMNS, found, strict=True))


@contextmanager
def _output(out: str | None) -> Iterator[Callable[[dict[str, list[Any]]], None]]:
    """What writes tables: to standard output, or to a file that takes its name when all is written."""
    from jittok.common.writers.atomic_files import atomic_file

    if out is None:
        yield lambda table: write("".join(_lines(table)))
        return
    with atomic_file(out) as path:
        if Path(out).suffix == ".jsonl":
            with path.open("w", encoding="utf-8") as file:
                yield lambda table: file.writelines(_lines(table))
            return
        pa, parquet = _parquet()
        kinds = {"source": pa.string(), "text": pa.string()}
        schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in COLUMNS])
        with parquet.ParquetWriter(path, schema) as writer:
            yield lambda table: writer.write_table(pa.table(table, schema=schema))


def _lines(table: dict[str, list[Any]]) -> Iterator[str]:
    for row in zip(*table.values(), strict=True):
        yield json.dumps(dict(zip(COLUMNS, row, strict=True)), ensure_ascii=False) + "\n"


def _parquet() -> tuple[Any, Any]:
    from jittok.errors import missing

    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise missing("a .parquet table", "pyarrow", "arrow") from None
    return pa, pyarrow.parquet
