"""`jittok count`: count the tokens of texts."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

import numpy as np

from jittok.cli.common import add_vocab, group, open_vocab, tell_slow, write
from jittok.cli.common.texts import InputTexts, ProgressOf, add_texts
from jittok.cli.texts.chat import add_rendering, rendering
from jittok.common.display.terminal import one_name

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

HELP = "Count the tokens of texts."
EXAMPLES = """# a text
jittok count --vocab gpt-2 "Hello, world"
# each file of a folder, and the total
jittok count --vocab tokenizer.json docs/
# each line of standard input
jittok count --vocab gpt-2 --lines --each < prompts.txt
# chats, one a line, by the template of the model's file
jittok count --vocab model.gguf --chat chats.jsonl"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_vocab(parser)
    add_texts(parser)
    group(parser, "output").add_argument(
        "--each", action="store_true", help="print one count per document, not per file"
    )
    group(parser, "reading").add_argument(
        "--chat", action="store_true", help="each FILE is a chat, or one a line (see jittok chat)"
    )
    add_rendering(parser)


def run(options: argparse.Namespace) -> int:
    """Count file by file, in bounded memory."""
    tok = open_vocab(options)
    if options.chat:
        return _count_chats(tok, options)
    for name in ("template", "add_generation_prompt", "continue_final_message", "trusted", "variable"):
        if getattr(options, name):
            raise ValueError(f"--{name.replace('_', '-')}: found without --chat, expected --chat")
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
    _print_totals(names, rows.tolist(), tokens.tolist(), options.json)
    return 0


def _count_chats(tok: Tokenizer, options: argparse.Namespace) -> int:
    """The same for files of chats."""
    from jittok.chat.files import read_chats

    names, asked = options.files or ["-"], rendering(options)
    rows, tokens = [0] * len(names), [0] * len(names)
    for k, name in enumerate(names):
        for _, chat in read_chats(name):
            count = tok.count_chat(**{**chat, **asked})
            if options.each:
                _print_each(names, [k], np.array(rows), [count], options.json)
            rows[k], tokens[k] = rows[k] + 1, tokens[k] + count
    if not options.each:
        _print_totals(names, rows, tokens, options.json)
    return 0


def _print_totals(names: list[str], rows: list[int], tokens: list[int], as_json: bool) -> None:
    """Print the number of each source, and of all."""
    counts = zip(names, rows, tokens, strict=True)
    found = [{"source": name, "documents": documents, "tokens": count} for name, documents, count in counts]
    total = sum(tokens)
    if as_json:
        write(json.dumps({"tokens": total, "sources": found}) + "\n")
    elif len(found) == 1:
        write(f"{total}\n")
    else:
        width = len(str(total))
        for row in [*found, {"source": "total", "tokens": total}]:
            write(f"{row['tokens']:>{width}} {one_name(str(row['source']))}\n")


def _print_each(names: list[str], sources: list[int], before: np.ndarray, counts: list[int], as_json: bool) -> None:
    """Print one line per document. `before`: number of documents already printed, by source."""
    if not as_json:
        write("".join(f"{count}\n" for count in counts))
        return
    at = before.tolist()
    for source, count in zip(sources, counts, strict=True):
        write(json.dumps({"source": names[source], "document": at[source], "tokens": count}) + "\n")
        at[source] += 1
