"""`jittok compare`: where two tokenizers differ, on documents or part by part."""

from __future__ import annotations

import argparse

import numpy as np

from jittok.cli.common import (
    add_errors,
    add_json,
    add_no_cache,
    add_overwrite,
    add_ranks,
    add_reading,
    add_special,
    add_threads,
    check_outputs,
    group,
    open_either,
    write_report,
)
from jittok.cli.common.texts import ProgressOf, find
from jittok.common.display.terminal import harmless_json
from jittok.common.writers.atomic_files import atomic_file

HELP = "Compare two tokenizers: their tokens on documents, or their parts."
EXAMPLES = """# documents that are tokenized differently, and why
jittok compare model.gguf tokenizer.json --corpus docs/
# the parts of both, and a text on which they differ
jittok compare gpt-2 tokenizer.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("a", metavar="A", help="tokenizer file, folder with one, or bundled name")
    parser.add_argument("b", metavar="B", help="the tokenizer to compare it with")
    group(parser, "reading").add_argument(
        "--corpus",
        nargs="+",
        metavar="FILE",
        help="documents to compare on, as for count (default: compare the parts of the tokenizers)",
    )
    add_reading(parser)
    add_special(parser)
    add_errors(parser)
    add_threads(parser)
    add_ranks(parser)
    add_no_cache(parser)
    output = group(parser, "output")
    output.add_argument("--ids", action="store_true", help="compare ids, not the text of tokens")
    add_json(parser)
    output.add_argument("--html", metavar="OUT", help="also write an HTML page to this file")
    add_overwrite(parser)


def run(options: argparse.Namespace) -> int:
    """Compare; returns 0 if nothing differs, else 1."""
    from jittok.compare.api import tally_of
    from jittok.compare.result import of_tally

    outputs = [options.html] if options.html else []
    check_outputs(outputs, options.overwrite, [options.a, options.b], options.corpus or [])
    toks = open_either(options, {"A": options.a, "B": options.b})
    if options.corpus is None:
        from jittok.compare.machines import machines

        return _told(machines(toks[0], toks[1], by_id=options.ids), options)
    sources, how = find(options.corpus, options)
    from jittok.corpus.ranges.documents import place, read_documents

    tally = tally_of(
        toks[0], toks[1], options.ids, options.add_special, options.parse_special, options.errors, options.threads
    )
    firsts: list[int] = []
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    sizes = [source.size for source in sources]
    with ProgressOf(None if None in sizes else sum(size or 0 for size in sizes)) as progress:
        for read in read_documents(sources, how):
            before = sum(tally.tokens)
            firsts.append(tally.documents)
            parts.append((read.sources, read.lines))
            tally.add(read.docs)
            progress.add(read.docs.starts.size, sum(tally.tokens) - before, read.new)

    def where(document: int) -> str:
        part = int(np.searchsorted(firsts, document, "right")) - 1
        row = document - firsts[part]
        return place(sources, int(parts[part][0][row]), int(parts[part][1][row]))

    return _told(of_tally(tally, where), options)


def _told(found: object, options: argparse.Namespace) -> int:
    """Print the result; returns the exit status."""
    if options.html:
        with atomic_file(options.html) as new:
            new.write_text(found.to_html(), "utf-8", "backslashreplace")  # type: ignore[attr-defined]
    told = f"{harmless_json(found.to_json())}\n" if options.json else str(found)  # type: ignore[attr-defined]
    write_report(told, [options.html] if options.html else [])
    return 1 if found.differs else 0  # type: ignore[attr-defined]
