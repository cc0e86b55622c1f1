"""`jittok vocabs`: the tokenizer files that are on this machine."""

from __future__ import annotations

import argparse
import json

from jittok.cli.common import add_json, tell

HELP = "List the vocabularies of this machine: bundled ones, and those of Hugging Face, Ollama, LM Studio, llama.cpp."
EXAMPLES = """# names that every --vocab takes
jittok vocabs
# one of them
jittok encode --vocab hf:org/name -p "Hello"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """List them."""
    from jittok.files.places import places
    from jittok.vocab.bundled import bundled_names, bundled_path

    found = [(name, "bundled", str(bundled_path(name))) for name in bundled_names()]
    found += [(place.name, place.program, str(place.path)) for place in places()]
    if options.json:
        keys = ("name", "program", "path")
        tell(json.dumps([dict(zip(keys, row, strict=True)) for row in found]) + "\n")
        return 0
    width = max(len(name) for name, _, _ in found)
    for name, program, path in found:
        tell(f"{name:<{width}}  {program:<12}  {path}\n")
    return 0
