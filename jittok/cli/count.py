"""`jittok count`: how many tokens texts have."""

from __future__ import annotations

import argparse
import json
from typing import Any

from jittok.cli.common import (
    Progress,
    add_texts,
    add_vocab,
    documents,
    documents_of,
    encoding_options,
    open_vocab,
    sources,
    write,
)

HELP = "Count the tokens of texts."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add_vocab(parser)
    add_texts(parser)
    parser.add_argument("--each", action="store_true", help="print the count of each document, not of each file")


def run(options: argparse.Namespace) -> int:
    """Count file by file, in bounded memory."""
    tok = open_vocab(options)
    how = encoding_options(options)
    if options.prompt is not None:
        inputs = [("", documents(options))]
    else:
        inputs = [(name, documents_of(name, options)) for name in sources(options)]
    found: list[dict[str, Any]] = []
    with Progress(" documents") as progress:
        for name, texts in inputs:
            tokens, rows = 0, 0
            for stretch in tok.encode_stream(texts, **how):
                if options.each:
                    _print_each(name, rows, stretch.lengths.tolist(), options.json)
                tokens, rows = tokens + stretch.ids.size, rows + len(stretch)
                progress.add(len(stretch), tokens=tokens)
            found.append({"source": name, "documents": rows, "tokens": tokens})
    if options.each:
        return 0
    total = sum(row["tokens"] for row in found)
    if options.json:
        write(json.dumps({"tokens": total, "sources": found}) + "\n")
    elif len(found) == 1:
        write(f"{total}\n")
    else:
        width = len(str(total))
        for row in [*found, {"source": "total", "tokens": total}]:
            write(f"{row['tokens']:>{width}} {row['source']}\n")
    return 0


def _print_each(name: str, first: int, lengths: list[int], as_json: bool) -> None:
    for document, count in enumerate(lengths, first):
        row = {"source": name, "document": document, "tokens": count}
        write((json.dumps(row) if as_json else str(count)) + "\n")
