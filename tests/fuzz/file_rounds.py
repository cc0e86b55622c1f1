"""Tokenizer files for the fuzz run: drawn ones, by kernels as by the reference, and changed ones of every kind."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import small_files
from drawn_files import drawn_json, drawn_text, drawn_words
from mutated_kinds import FOLDERS, Files, changed, told

import jittok
from jittok.files import read_pipeline
from jittok.reference.pipeline import Runner

KINDS = [*small_files.FILES, *FOLDERS]
CHANGES, COMPILED = 100, 25
"""Changed files a round, and every how many of them kernels are asked as well."""
TEXTS = 40


def drawn_round(draw: random.Random) -> str | None:
    """What is wrong with a drawn file: the file and the shortest of the texts that show it. None if nothing is."""
    content = drawn_json(draw) if draw.random() < 0.7 else drawn_words(draw, draw.randrange(16))
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    parse = draw.random() < 0.5
    texts = [drawn_text(draw) for _ in range(TEXTS)]
    rows = tok.encode_batch(texts, parse_special=parse, threads=1).to_list()
    wrong = [text for text, ids in zip(texts, rows, strict=True) if ids != plain.encode(text, parse)]
    if not wrong:
        return None
    text = min(wrong, key=len)
    return f"drawn file: {text!r} parse_special={parse}: reference {plain.encode(text, parse)}: {_kept(content)}"


def changed_round(kind: str, seed: int) -> Iterator[str]:
    """What is wrong with changed files of a kind: neither read nor refused, or other ids by kernels."""
    with tempfile.TemporaryDirectory(prefix="changed-") as folder:
        for k, files in enumerate(changed(kind, CHANGES, seed)):
            said = told(files, Path(folder), k % COMPILED == 0)
            if said not in ("read", "refused"):
                yield f"changed {kind}: {said}: {kept_files(files)}"


def kept_files(files: Files) -> str:
    """Where the files are kept, as one JSON."""
    return _kept(json.dumps({name: content.decode("latin-1") for name, content in files.items()}).encode())


def _kept(content: bytes) -> str:
    with tempfile.NamedTemporaryFile(prefix="fuzz-", suffix=".json", delete=False) as file:
        file.write(content)
    return file.name


def rounds(seed: int, number: int) -> Iterator[str]:
    """What is wrong in one round: a drawn file, and changes of one kind after the other."""
    wrong = drawn_round(random.Random(f"{seed} {number}"))
    if wrong:
        yield wrong
    yield from changed_round(KINDS[number % len(KINDS)], seed * 1_000_003 + number)
