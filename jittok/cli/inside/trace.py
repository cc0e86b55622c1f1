"""`jittok trace`: show every stage of tokenizing one text, in a terminal."""

from __future__ import annotations

import argparse
import os
import sys

from jittok.cli.common import STDIN, add_errors, add_reading, add_special, add_vocab, group, open_vocab, positive, write
from jittok.cli.common.texts import find, refuse_kinds
from jittok.common.display.terminal import harmless_json

HELP = "Show every stage of tokenizing one text: fragments, words, merges, lattice, tokens."
EXAMPLES = """# every stage of a text
jittok trace --vocab gpt-2 " LoRA"
# the merges alone, as data
jittok trace --vocab gpt-2 --stage merges --json " LoRA\""""
STAGES = (
    "fragments", "normalized", "charsmap", "words", "symbols", "merges", "resegment", "matches", "lattice", "path",
    "tokens",
)  # fmt: skip
LINES = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_vocab(parser)
    parser.add_argument("text", nargs="?", default="-", metavar="TEXT", help="the text; - or nothing: standard input")
    reading = group(parser, "reading")
    reading.add_argument(
        "-f", "--file", metavar="FILE", help="read the text from this file, in any format that encode reads"
    )
    reading.add_argument(
        "--document",
        type=positive,
        metavar="N",
        help="trace this document of the file, counted from 1 (default: the only one)",
    )
    add_reading(parser)
    add_special(parser)
    add_errors(parser)
    output = group(parser, "output")
    output.add_argument(
        "--stage", action="append", choices=STAGES, metavar="STAGE",
        help=f"show only this stage; repeatable: {', '.join(STAGES)}",
    )  # fmt: skip
    output.add_argument("--all", action="store_true", help=f"show all lines of a stage, not just the first {LINES}")
    output.add_argument("--gdb", action="store_true", help="print a gdb script that shows the same steps in llama.cpp")


def run(options: argparse.Namespace) -> int:
    """Trace and print."""
    if options.file is not None and options.text != "-":
        raise ValueError("found TEXT and --file, expected only one of them")
    if options.text != "-":
        refuse_kinds(options, "TEXT")
        if options.document:
            raise ValueError("found TEXT and --document, expected --document only with a file or standard input")
    if options.gdb and (options.json or options.stage):
        raise ValueError("found --gdb with --json or --stage, expected --gdb alone")
    tok = open_vocab(options)
    text = _document(options) if options.text == STDIN else os.fsencode(options.text)
    trace = tok.trace(text, add_special=options.add_special, parse_special=options.parse_special, errors=options.errors)
    if options.gdb:
        write(trace.gdb())
    elif options.json:
        import json

        data = trace.to_dict()
        kept = {name: data[name] for name in options.stage} if options.stage else data
        write(harmless_json(json.dumps(kept, ensure_ascii=False)) + "\n")
    else:
        trace.print(*options.stage or (), stream=sys.stdout, rows=None if options.all else LINES)
    return 0


def _document(options: argparse.Namespace) -> bytes:
    """The text of a file or of standard input. ValueError if there are several and none was selected."""
    from jittok.corpus.ranges.documents import read_documents

    name = options.file or STDIN
    sources, how = find([name], options)
    wanted, before, found = options.document, 0, b""
    for read in read_documents(sources, how):
        docs, count = read.docs, read.sources.size
        k = (wanted or 1) - before - 1
        if 0 <= k < count:
            found = docs.between(int(docs.starts[k]), int(docs.stops[k]))
            if wanted is not None:
                return found
        before += count
        if wanted is None and before > 1:
            raise ValueError(f"{name}: found several documents, expected one (--document 1 selects the first)")
    if wanted is not None or not before:
        raise ValueError(f"{name}: found {before} documents, expected {wanted or 1} or more")
    return found
