"""`jittok info`: facts about a vocabulary, and where llama.cpp differs from the model's own tokenizer."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.cli.common import add_vocab, group, open_vocab, write
from jittok.cli.inside.info.file import show, show_cleaning, show_steps, steps_of
from jittok.common.display.terminal import print_notes, print_table, visible
from jittok.vocab import Vocab
from jittok.vocab.bundled import bundled_names, bundled_source
from jittok.vocab.release_diff import release_differences
from jittok.vocab.types import type_of

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

HELP = "Show facts about a vocabulary, and where its ids are known to differ from the model's own tokenizer."
EXAMPLES = """# a bundled vocabulary
jittok info gpt-2
# a model's own file: its steps, and whether compiled kernels run them
jittok info tokenizer.json
# what happens to a text, step by step, and where
jittok info gpt-2 --steps --text 'Hello 1234'"""
FLAGS = ("add_bos", "add_eos", "add_sep", "add_space_prefix")
KINDS = {"normal": 4, "unknown": 1, "control": 8, "user_defined": 16, "unused": 2, "byte": 32}
"""llama.cpp's attribute bits by name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("file", nargs="?", metavar="FILE|NAME", help="same as --vocab")
    add_vocab(parser, required=False)
    steps = group(parser, "steps")
    steps.add_argument(
        "--steps", action="store_true", help="print the steps from a text to its ids instead: what each does, by which "
        "kernel, and where that is",
    )  # fmt: skip
    steps.add_argument("--text", metavar="TEXT", help="the text that --steps shows after each step")


def run(options: argparse.Namespace) -> int:
    """Print the facts."""
    if (options.file is None) == (options.vocab is None):
        found = "no vocabulary" if options.vocab is None else f"{options.file} and --vocab {options.vocab}"
        raise ValueError(f"found {found}, expected one vocabulary: jittok info FILE|NAME")
    options.vocab = options.vocab or options.file
    if options.text is not None and not options.steps:
        raise ValueError("found --text without --steps, expected both or neither")
    tok = open_vocab(options)
    if options.steps:
        explained = tok.explain() if options.text is None else tok.explain(os.fsencode(options.text))
        write((json.dumps(explained.to_dicts()) if options.json else repr(explained)) + "\n")
        return 0
    if not isinstance(tok.vocab, Vocab):
        return show(tok, tok.vocab, options.json)
    known = facts_of(tok)
    bundle = bundled_source(options.vocab) if options.vocab in bundled_names() else None
    source = options.vocab if Path(options.vocab).exists() else bundle
    known["releases"] = release_differences(source, options.pre) if source is not None else []
    if options.json:
        write(json.dumps(known) + "\n")
        return 0
    rows = [
        (name, known[name]) for name in ("name", "architecture", "model", "type", "pre", "llama_cpp", "fingerprint")
    ]
    rows += [
        ("tokens", known["vocab_size"]),
        ("merges", known["merges"]),
        ("longest token", f"{known['longest']} bytes"),
    ]
    rows += [(name, count) for name, count in known["attributes"].items() if count]
    print_table(tok.vocab.source, [(name, value) for name, value in rows if value not in (None, "")], sys.stdout)
    specials = [(name, f"{token:>6}  {shown!r}") for name, (token, shown) in _shown_specials(tok).items()]
    print_table("special ids", specials, sys.stdout)
    print_table("flags", [(name, "yes" if known[name] else "no") for name in FLAGS], sys.stdout)
    print_table("end of generation", [("eog_ids", " ".join(map(str, known["eog_ids"])) or "none")], sys.stdout)
    show_steps(tok.pipeline)
    parting = "differences between the known llama.cpp releases"
    print_notes(parting, known["releases"] or ["none"], sys.stdout)
    differing = "differences of llama.cpp (and jittok) from the model's own tokenizer"
    print_notes(differing, known["differences"] or ["none known"], sys.stdout)
    sys.stdout.write("  to see them on documents: jittok compare FILE tokenizer.json --corpus DOCS\n")
    show_cleaning(tok.pipeline)
    return 0


def facts_of(tok: Tokenizer) -> dict[str, Any]:
    """All facts about a tokenizer, as data."""
    from jittok.tokenizer.facts import SPECIAL_IDS

    vocab = tok.vocab
    assert isinstance(vocab, Vocab)
    return {
        "source": vocab.source,
        "name": tok.name,
        "architecture": vocab.architecture,
        "model": vocab.model,
        "type": tok.type,
        "pre": tok.pre,
        "llama_cpp": tok.llama_cpp,
        "fingerprint": tok.fingerprint,
        "vocab_size": tok.vocab_size,
        "merges": vocab.merge_offsets.size - 1,
        "longest": vocab.max_token_length,
        "attributes": {name: int(((tok.attributes & bit) != 0).sum()) for name, bit in KINDS.items()},
        **{name: getattr(tok, name) for name in (*SPECIAL_IDS, *FLAGS)},
        "eog_ids": sorted(tok.eog_ids),
        "clean_spaces": vocab.clean_spaces,
        "special_ids": len(tok.special_ids),
        "steps": steps_of(tok.pipeline),
        "differences": type_of(vocab).differences(vocab),
    }


def _shown_specials(tok: Tokenizer) -> dict[str, tuple[int, str]]:
    from jittok.tokenizer.facts import SPECIAL_IDS

    ids = {name: getattr(tok, name) for name in SPECIAL_IDS}
    return {name: (token, visible(tok.id_to_token(token))) for name, token in ids.items() if token is not None}
