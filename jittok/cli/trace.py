"""`jittok trace`: every stage of one text, in a terminal."""

from __future__ import annotations

import argparse
import sys

from jittok.cli.common import add_vocab, open_source, open_vocab, write

HELP = "Show every stage of tokenizing one text: fragments, words, merges, lattice, tokens."
STAGES = (
    "fragments", "normalized", "charsmap", "words", "symbols", "merges", "resegment", "matches", "lattice", "path",
    "tokens",
)  # fmt: skip
LINES = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add_vocab(parser)
    parser.add_argument("text", nargs="?", default="-", metavar="TEXT", help="the text; - or nothing: standard input")
    parser.add_argument("-f", "--file", metavar="FILE", help="a file in place of TEXT, also .gz .xz .bz2 .zst")
    parser.add_argument("--stage", action="append", choices=STAGES, help="only this stage (may be given several times)")
    parser.add_argument("--add-special", action="store_true", help="BOS and EOS where the vocabulary wants them")
    parser.add_argument("--parse-special", action="store_true", help="control tokens in the text become control tokens")
    parser.add_argument(
        "--errors", choices=("strict", "replace"), default="strict", help="what to do with impossible text"
    )
    parser.add_argument("--all", action="store_true", help=f"all lines of a stage, not the first {LINES}")
    parser.add_argument("--gdb", action="store_true", help="print a gdb script that shows the same steps in llama.cpp")


def run(options: argparse.Namespace) -> int:
    """Trace and print."""
    if options.file is not None and options.text != "-":
        raise ValueError("found TEXT and --file, expected one of them")
    if options.gdb and (options.json or options.stage):
        raise ValueError("found --gdb with --json or --stage, expected it alone")
    if options.text == "-":
        with open_source(options.file or "-") as file:
            text: str | bytes = file.read()
    else:
        text = options.text
    trace = open_vocab(options).trace(
        text, add_special=options.add_special, parse_special=options.parse_special, errors=options.errors
    )
    if options.gdb:
        write(trace.gdb())
    elif options.json:
        import json

        data = trace.to_dict()
        kept = {name: data[name] for name in options.stage} if options.stage else data
        write(json.dumps(kept, ensure_ascii=False) + "\n")
    else:
        trace.print(*options.stage or (), stream=sys.stdout, rows=None if options.all else LINES)
    return 0
