"""`jittok play`: a page of this machine to look at tokenizers."""

from __future__ import annotations

import argparse
from pathlib import Path

from jittok.cli.common import add_overwrite, check_outputs, group, note, open_named, tell

HELP = "Open a page: tokens as you type, vocabularies side by side, how a word came to be."
EXAMPLES = """# two vocabularies side by side; the address is printed
jittok play gpt-2 tokenizer.json
# one file to send, without a server
jittok play gpt-2 --static page.html "Hello, world\""""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument(
        "files", nargs="*", metavar="FILE|NAME", help="tokenizer files or bundled names (default: every bundled one)"
    )
    group(parser, "serving").add_argument(
        "--port", type=int, default=0, metavar="N", help="port of the page (default: a free one)"
    )
    output = group(parser, "output")
    output.add_argument(
        "--static", nargs=2, metavar=("OUT", "TEXT"), help="write the page of one text to a file instead of serving"
    )
    add_overwrite(parser)


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted, or write one page; returns 0."""
    from jittok.vocab.bundled import bundled_names

    if not 0 <= options.port < 1 << 16:
        raise ValueError(f"--port: found {options.port}, expected 0 to 65535")
    given = options.files or bundled_names()
    if options.static:
        check_outputs([options.static[0]], options.overwrite, given, [])
    found = {}
    for vocab in given:
        name = Path(vocab).name or vocab
        found[name if name not in found else vocab] = open_named(vocab, cache=True, where="FILE")
    if options.static:
        from jittok.common.writers.atomic_files import atomic_file
        from jittok.play.still import still_page

        with atomic_file(options.static[0]) as new:
            new.write_text(still_page(found, options.static[1]), "utf-8", "backslashreplace")
        tell(f"wrote {options.static[0]}: {len(options.static[1])} characters, {', '.join(found)}\n")
        return 0
    from jittok.play.server import serve

    serve(found, options.port, lambda address: note(f"{address}\npress Ctrl-C to stop"))
    return 0
