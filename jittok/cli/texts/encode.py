"""`jittok encode`: encode texts to token ids."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.cli.common import add_overwrite, add_vocab, check_outputs, group, open_vocab, tell_slow, write
from jittok.cli.common.texts import InputTexts, ProgressOf, add_texts
from jittok.common.display.terminal import harmless

if TYPE_CHECKING:
    from jittok.corpus.ranges.documents import Read
    from jittok.tokenizer import Tokenizer

HELP = "Encode texts to token ids."
EXAMPLES = """# the ids of a text, one token per line
jittok encode --vocab gpt-2 -p "Hello, world"
# a list of ids for each line of a file
jittok encode --vocab gpt-2 --ids --lines names.txt
# the ids of many documents, as NumPy arrays
jittok encode --vocab model.gguf --field body data/*.jsonl --out ids"""
LONG_DOCUMENT = 1 << 20
"""Documents of at least this many bytes are printed while they are encoded."""
IDS_PER_WRITE = 1 << 14
"""Number of ids that are formatted at a time."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_vocab(parser)
    add_texts(parser)
    output = group(parser, "output")
    output.add_argument("--ids", action="store_true", help="print the ids of each document as one list: [1, 2, 3]")
    output.add_argument("--show-count", action="store_true", help="print the total number of tokens at the end")
    output.add_argument("--out", "-o", metavar="DIR", help="write DIR/ids.npy and DIR/offsets.npy instead of printing")
    add_overwrite(parser)


def run(options: argparse.Namespace) -> int:
    """Encode and print, or write, in bounded memory."""
    check_outputs([options.out] if options.out else [], options.overwrite, folders=True)
    tok = open_vocab(options)
    texts = InputTexts(options)
    if texts.prompt is None:
        tell_slow(tok)
    count = _print_rows(tok, texts, options) if options.out is None else _write_files(tok, texts, options)
    if options.show_count and not (options.json and options.out):
        write(json.dumps({"tokens": count}) + "\n" if options.json else f"Total number of tokens: {count}\n")
    return 0


def _write_files(tok: Tokenizer, texts: InputTexts, options: argparse.Namespace) -> int:
    from jittok.cli.common.token_files import TokenWriter

    with TokenWriter(Path(options.out)) as writer, ProgressOf(texts.size) as progress:
        for read in texts.read():
            for rows in texts.encode(tok, read):
                writer.append(rows)
                progress.add(len(rows), rows.ids.size)
            progress.add(0, 0, read.new)
    if options.json:
        facts = {"output": str(options.out), "documents": writer.documents, "tokens": writer.tokens}
        write(json.dumps(facts) + "\n")
    return writer.tokens


def _print_rows(tok: Tokenizer, texts: InputTexts, options: argparse.Namespace) -> int:
    """Print one line per document with --ids or --json; else one per token, as llama-tokenize does, with a blank line
    between documents."""
    number = count = 0
    lines = _Lines(tok)
    with ProgressOf(texts.size, answers=True) as progress:
        for read in texts.read():
            for parts in _rows(texts, tok, read):
                if options.json:
                    write(f'{{"document": {number}, "ids": [')
                elif options.ids:
                    write("[")
                elif number:
                    write("\n")
                size = 0
                for ids in parts:
                    for at in range(0, ids.size, IDS_PER_WRITE):
                        some = ids[at : at + IDS_PER_WRITE].tolist()
                        if options.json or options.ids:
                            write((", " if size else "") + str(some)[1:-1])
                        else:
                            write(b"".join(map(lines.__getitem__, some)))
                        size += len(some)
                    progress.add(0, ids.size)
                if options.json or options.ids:
                    write("]}\n" if options.json else "]\n")
                number, count = number + 1, count + size
                progress.add(1, 0)
            progress.add(0, 0, read.new)
    return count


def _rows(texts: InputTexts, tok: Tokenizer, read: Read) -> Iterator[Iterator[Any]]:
    """The ids of each document of a range: in one part, or in several if it is long."""
    if read.sources.size == 1 and read.docs.size(0, 1) >= LONG_DOCUMENT:
        text = read.docs.between(int(read.docs.starts[0]), int(read.docs.stops[0]))
        how = {name: value for name, value in texts.encoding.items() if name != "threads"}
        yield texts.placed(read, lambda: tok.encode_parts(text, **how))
        return
    for rows in texts.encode(tok, read):
        for row in rows:
            yield iter((row,))


class _Lines(dict[int, bytes]):
    """The printed line of each id, made on first use."""

    def __init__(self, tok: Tokenizer) -> None:
        super().__init__()
        self._tok = tok
        self._looked_at = sys.stdout.isatty()  # read by people; a pipe gets the raw bytes of each token

    def __missing__(self, token: int) -> bytes:
        piece = self._tok.token_to_piece(token, special=True)
        if self._looked_at:
            piece = harmless(
                piece.decode("utf-8", "backslashreplace")
            ).encode()  # single bytes may be control characters
        line = self[token] = b"%6d -> '%b'\n" % (token, piece)
        return line
