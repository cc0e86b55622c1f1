"""`jittok convert`: convert a tokenizer file to another format, if that can represent it."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from jittok.cli.common import (
    add_json,
    add_no_cache,
    add_overwrite,
    add_ranks,
    add_reading,
    check_outputs,
    group,
    open_either,
    write_report,
)
from jittok.cli.common.texts import find
from jittok.common.display.terminal import harmless_json

if TYPE_CHECKING:
    from jittok.convert.api import Kind

HELP = "Convert a tokenizer to another file format, checked by encoding with both."
EXAMPLES = """# a model's own tokenizer as a GGUF file for llama.cpp
jittok convert tokenizer.json --out model.gguf
# also checked with your own documents
jittok convert model.gguf --to tokenizer.json --corpus docs/"""
ENDS: dict[Kind, str] = {"gguf": ".gguf", "tokenizer.json": ".json", "tiktoken": ".tiktoken", "model": ".model"}
_EXTENSIONS = f"{', '.join([*ENDS.values()][:-1])} or {[*ENDS.values()][-1]}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("source", metavar="A", help="tokenizer file, folder with one, or bundled name")
    output = group(parser, "output")
    output.add_argument(
        "--to",
        choices=tuple(ENDS),
        metavar="KIND",
        help=f"format to write: {', '.join(ENDS)} (default: what the extension of --out tells)",
    )
    output.add_argument(
        "--out",
        "-o",
        metavar="FILE",
        help="output file (default: the name of A with the new extension, in this folder)",
    )
    add_overwrite(parser)
    output.add_argument(
        "--pre", metavar="NAME", help="llama.cpp pre-tokenizer for the GGUF (default: one that splits text identically)"
    )
    output.add_argument(
        "--allow-differences",
        action="store_true",
        help="write the file even if some texts get different ids (they are printed)",
    )
    add_json(parser)
    group(parser, "reading").add_argument(
        "--corpus", nargs="+", metavar="FILE", help="documents to check with, in addition to the built-in texts"
    )
    add_reading(parser)
    add_ranks(parser)
    add_no_cache(parser)
    parser.set_defaults(errors="strict")


def run(options: argparse.Namespace) -> int:
    """Convert; returns 0 if both give the same ids, 1 if there are (allowed) differences."""
    from jittok.convert import convert

    kind, out = _target(options)
    check_outputs([out], options.overwrite, [options.source], options.corpus or [])
    (tok,) = open_either(options, {"A": options.source})
    found = convert(
        tok, out, to=kind, texts=_documents(options), pre=options.pre,
        allow_differences=options.allow_differences, overwrite=options.overwrite,
    )  # fmt: skip
    if options.json:
        write_report(harmless_json(json.dumps(asdict(found), ensure_ascii=False)) + "\n", [out])
        return int(found.differing > 0)
    told = [f"{found.path}: {found.texts} texts checked, {found.differing} with different ids\n"]
    told += [f"  {text!r}: {ids[:20]} become {others[:20]}\n" for text, ids, others in found.examples]
    if found.call:
        told.append(f"load it with: {found.call}\n")
    write_report("".join(told), [out])
    return int(found.differing > 0)


def _target(options: argparse.Namespace) -> tuple[Kind, str]:
    """What is written, and where: each tells the other if it is left out. ValueError where neither tells the kind."""
    if options.to is not None:
        return options.to, options.out or f"{Path(options.source).stem}{ENDS[options.to]}"
    told = " (or name the kind with --to)"
    if options.out is None:
        raise ValueError(f"found no output, expected --out FILE with the extension {_EXTENSIONS}{told}")
    kinds: dict[str, Kind] = {end: kind for kind, end in ENDS.items()}
    kind = kinds.get(Path(options.out).suffix)
    if kind is None:
        raise ValueError(f"--out: found {options.out!r}, expected the extension {_EXTENSIONS}{told}")
    return kind, options.out


def _documents(options: argparse.Namespace) -> list[bytes] | None:
    """The documents to check with."""
    if options.corpus is None:
        return None
    from jittok.corpus.ranges.documents import read_documents

    sources, how = find(options.corpus, options)
    return [
        read.docs.between(start, stop)
        for read in read_documents(sources, how)
        for start, stop in zip(read.docs.starts.tolist(), read.docs.stops.tolist(), strict=True)
    ]
