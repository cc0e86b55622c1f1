"""`jittok encode`: texts to ids."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from jittok.cli.common import Progress, add_texts, add_vocab, documents, encoding_options, open_vocab, write

if TYPE_CHECKING:
    from jittok.ragged import TokenArray
    from jittok.tokenizer import Tokenizer

HELP = "Turn texts into token ids."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add_vocab(parser)
    add_texts(parser)
    parser.add_argument("--ids", action="store_true", help="print the ids of a document as one list, [1, 2, 3]")
    parser.add_argument("--show-count", action="store_true", help="print the number of all tokens at the end")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="write DIR/ids.npy and DIR/offsets.npy instead"
    )


def run(options: argparse.Namespace) -> int:
    """Encode and print, or write, in bounded memory."""
    tok = open_vocab(options)
    stretches = tok.encode_stream(documents(options), **encoding_options(options))
    count = 0
    with Progress(" documents") as progress:
        if options.output is not None:
            from jittok.cli.token_files import TokenWriter

            with TokenWriter(options.output) as writer:
                for rows in stretches:
                    writer.append(rows)
                    progress.add(len(rows), tokens=writer.tokens)
            count = writer.tokens
            if options.json:
                facts = {"output": str(options.output), "documents": writer.documents, "tokens": count}
                write(json.dumps(facts) + "\n")
        else:
            first = 0
            for rows in stretches:
                _print_rows(tok, rows, first, options)
                first, count = first + len(rows), count + rows.ids.size
                progress.add(len(rows), tokens=count)
    if options.show_count and not (options.json and options.output):
        write(json.dumps({"tokens": count}) + "\n" if options.json else f"Total number of tokens: {count}\n")
    return 0


def _print_rows(tok: Tokenizer, rows: TokenArray, first: int, options: argparse.Namespace) -> None:
    """One line a document with --ids or --json; else one a token, as llama-tokenize has them, documents apart."""
    for number, row in enumerate(rows, first):
        if options.json:
            write(json.dumps({"document": number, "ids": row.tolist()}) + "\n")
        elif options.ids:
            write(f"{row.tolist()}\n")
        else:
            lines = [b"%6d -> '%b'\n" % (token, tok.token_to_piece(token, special=True)) for token in row.tolist()]
            write((b"\n" if number else b"") + b"".join(lines))
