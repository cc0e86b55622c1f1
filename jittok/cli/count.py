"""`jittok count`: count the tokens of texts."""

from __future__ import annotations

import argparse
import json

import numpy as np

from jittok.cli.common import add_vocab, group, open_vocab, tell_slow, write
from jittok.cli.common.texts import InputTexts, ProgressOf, add_texts
from jittok.common.display.terminal import one_name

HELP = "Count the tokens of texts."
EXAMPLES = """# a text
jittok count --vocab gpt-2 "Hello, world"
# each file of a folder, and the total
jittok count --vocab tokenizer.json docs/
# each line of standard input
jittok count --vocab gpt-2 --lines --each < prompts.txt"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_vocab(parser)
    add_texts(parser)
    group(parser, "output").add_argument(
        "--each", action="store_true", help="print one count per document, not per file"
    )


def run(options: argparse.Namespace) -> int:
    """Count file by file, in bounded memory."""
    tok = open_vocab(options)
    texts = InputTexts(options)
    if texts.prompt is None:
        tell_slow(tok)
    names = texts.names
    tokens, rows = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    with ProgressOf(texts.size, answers=options.each) as progress:
        for read in texts.read():
            done = 0
            for stretch in texts.encode(tok, read):
                lengths, sources = stretch.lengths, read.sources[done : done + len(stretch)]
                if options.each:
                    _print_each(names, sources.tolist(), rows, lengths.tolist(), options.json)
                np.add.at(tokens, sources, lengths)
                np.add.at(rows, sources, 1)
                done += len(stretch)
                progress.add(len(stretch), stretch.ids.size)
            progress.add(0, 0, read.new)
    if options.each:
        return 0
    counts = zip(names, rows.tolist(), tokens.tolist(), strict=True)
    found = [{"source": name, "documents": documents, "tokens": count} for name, documents, count in counts]
    total = int(tokens.sum())
    if options.json:
        write(json.dumps({"tokens": total, "sources": found}) + "\n")
    elif len(found) == 1:
        write(f"{total}\n")
    else:
        width = len(str(total))
        for row in [*found, {"source": "total", "tokens": total}]:
            write(f"{row['tokens']:>{width}} {one_name(str(row['source']))}\n")
    return 0


def _print_each(names: list[str], sources: list[int], before: np.ndarray, counts: list[int], as_json: bool) -> None:
    """Print one line per document. `before`: number of documents already printed, by source."""
    if not as_json:
        write("".join(f"{count}\n" for count in counts))
        return
    at = before.tolist()
    for source, count in zip(sources, counts, strict=True):
        write(json.dumps({"source": names[source], "document": at[source], "tokens": count}) + "\n")
        at[source] += 1
