"""`jittok decode`: decode token ids to text."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jittok.cli.common import STDIN, add_vocab, group, open_vocab, write
from jittok.errors import InvalidToken

ID = re.compile(rb"0|[1-9][0-9]{0,18}")
"""A token id. int() would also accept 1_000 and +7."""
HELP = "Decode token ids to text; the texts of several rows are separated by a newline."
EXAMPLES = """# ids
jittok decode --vocab gpt-2 15496 11 995
# rows of ids, one per line
jittok encode --vocab gpt-2 --ids --lines a.txt | jittok decode --vocab gpt-2"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_vocab(parser)
    parser.add_argument(
        "files",
        nargs="*",
        metavar="ID|FILE",
        help="the ids of one row; or files with one row per line ([1, 2, 3], JSON with a field ids, or numbers); or "
        "folders written by encode --out; - or nothing: standard input",
    )
    output = group(parser, "output")
    output.add_argument("--remove-special", action="store_true", help="drop a BOS at the start and an EOS at the end")
    output.add_argument("--unparse-special", action="store_true", help="print special tokens as text")
    output.add_argument(
        "--no-clean",
        action="store_true",
        help="keep spaces before ? ! . , and around apostrophes, which some vocabularies (GPT-2, BERT) remove when "
        "decoding",
    )


def run(options: argparse.Namespace) -> int:
    """Decode row by row."""
    tok = open_vocab(options)
    how = {
        "remove_special": options.remove_special,
        "unparse_special": options.unparse_special,
        "clean": not options.no_clean,
    }
    number = 0
    for rows in [_given(options.files)] if _are_ids(options.files) else map(_rows_of, options.files or [STDIN]):
        for position, row in rows:
            try:
                text = tok.decode_bytes(row, **how)
            except InvalidToken as error:
                raise ValueError(f"{position}: {error}") from None
            if options.json:
                write(json.dumps({"document": number, "text": text.decode("utf-8", "replace")}) + "\n")
            else:
                write((b"\n" if number else b"") + text)
            number += 1
    return 0


def _are_ids(words: list[str]) -> bool:
    """Whether the arguments are ids rather than file names."""
    return bool(words) and all(re.fullmatch(r"[\d\s,\[\]]+", word) and not os.path.lexists(word) for word in words)


def _given(words: list[str]) -> Iterator[tuple[str, Any]]:
    """The row of ids given as arguments: 1 2 3, 1,2,3 or [1, 2, 3]."""
    line = re.sub(r"[\[\]]", " ", " ".join(words)).encode()
    for _, ids in _parsed(iter([line]), "ID"):
        yield "ID", ids


def _rows_of(name: str) -> Iterator[tuple[str, Any]]:
    """The position of each row, for errors, and its ids."""
    if name != STDIN and Path(name).is_dir():
        from jittok.common.rows import TokenArray

        yield from ((f"{name}, row {k}", row) for k, row in enumerate(TokenArray.load(name)))
        return
    yield from _parsed(_lines(name), name)


def _lines(name: str) -> Iterator[bytes]:
    """The lines of a file, decompressed if necessary; a truncated compressed file is an error."""
    from jittok.corpus.inputs.finding import find_sources
    from jittok.corpus.options import Options
    from jittok.corpus.ranges.documents import lines_of

    (source,), _ = find_sources([name], Options(kind="txt", lines=True), any_name=True)
    yield from lines_of(source)


def _parsed(lines: Iterator[bytes], name: str) -> Iterator[tuple[str, list[int]]]:
    """Parse the ids of each non-blank line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            if line.lstrip()[:1] in (b"[", b"{"):
                found = json.loads(line)
                ids = found["ids"] if isinstance(found, dict) else found
                if not isinstance(ids, list) or not all(type(token) is int for token in ids):
                    raise ValueError
            else:
                tokens = line.replace(b",", b" ").split()
                if not all(map(ID.fullmatch, tokens)):
                    raise ValueError
                ids = list(map(int, tokens))
        except (ValueError, KeyError, TypeError, RecursionError):
            expected = "token ids, as printed by encode --ids"
            raise ValueError(f"{name}, line {number}: found {line[:60]!r}, expected {expected}") from None
        yield f"{name}, line {number}", ids
