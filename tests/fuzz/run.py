"""Kernels against the references, and caches against none, for as long as you like: python tests/fuzz/run.py --minutes 5

Drawn vocabularies of every type, then the bundled ones and, where $JITTOK_VOCABS (a folder of GGUF files) or ../shared
has more, those. After each vocabulary comes a tokenizer file that is drawn, and a hundred with changes. A difference is cut down to the shortest text that still shows it, printed, and makes the exit code 1.
"""
# ruff: noqa: E501, T201  printing is its work

from __future__ import annotations

import argparse
import lzma
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests" / "data")]

from cases import Case  # noqa: E402
from file_rounds import CHANGES, rounds  # noqa: E402
from texts import Texts  # noqa: E402
from vocabs import random_vocab  # noqa: E402

from jittok.errors import JittokError  # noqa: E402
from jittok.vocab import Vocab, bundled_names, bundled_vocab, read_vocab  # noqa: E402

FINE = 6
"""Stretches up to this size are tried at every place: a character may have that many bytes with its mark."""


def shrink(text: bytes, fails: Callable[[bytes], Any]) -> bytes:
    """A text that still fails, but no longer does when any stretch of up to FINE bytes is left out of it.

    Delta debugging: large stretches side by side first, then every small one wherever it is, until nothing goes.
    """
    before = None
    while text != before:
        before, size = text, len(text)
        while size:
            at = 0
            while at + size <= len(text):
                less = text[:at] + text[at + size :]
                if fails(less):
                    text = less
                else:
                    at += size if size > FINE else 1
            size = size // 2 if size > FINE else size - 1
    return text


def show(case: Case, text: bytes, add: bool, parse: bool) -> None:
    """Print the shortest text that still makes a difference, and the answers."""
    text = shrink(text, lambda less: case.differs(less, add, parse))
    question, answers = case.differs(text, add, parse) or ("none any more", {})
    print(f"{case.name}: {text!r} add_special={add} parse_special={parse}: {question}")
    for who, answer in answers.items():
        print(f"    {who}: {answer}", flush=True)


def real_vocabs() -> Iterator[tuple[str, Callable[[], Vocab]]]:
    """Names and loaders of the vocabularies at hand."""
    for name in bundled_names():
        yield name, lambda name=name: bundled_vocab(name)  # type: ignore[misc]
    folders = [
        ROOT / "tests" / "data" / "vocabs",
        Path(os.environ.get("JITTOK_SHARED") or ROOT.parent / "shared") / "vocabs",
    ]
    folders += [Path(folder) for folder in [os.environ.get("JITTOK_VOCABS")] if folder]
    for folder in folders:
        for path in sorted([*folder.glob("*.gguf"), *folder.glob("*.gguf.xz")]):
            packed = path.suffix == ".xz"
            yield (
                path.name,
                lambda path=path, packed=packed: read_vocab(lzma.decompress(path.read_bytes()) if packed else path),
            )  # type: ignore[misc]


def cases(seed: int, only: str | None) -> Iterator[tuple[Case, int]]:
    """Vocabularies and how many texts each gets: drawn ones, with a real one in between."""
    random_ = random.Random(seed)
    real = [entry for entry in real_vocabs() if only is None or only in entry[0]]
    number = seed * 1_000_003
    while True:
        random_.shuffle(real)
        for name, load in real:
            try:
                yield Case(name, load()), 150
            except JittokError as error:
                print(f"{name}: left out, {error}", flush=True)
            for _ in range(0 if only else 6):
                number += 1
                kind, data = random_vocab(number)
                try:
                    vocab = read_vocab(data)
                    case = Case(f"drawn {kind} {number}, pre {vocab.pre}", vocab)
                except JittokError:
                    continue  # drawn so that loading refuses it
                yield case, 80


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="part of the name of a real vocabulary; no drawn ones then")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    counts, bytes_done, vocabs, failures, files = Counter[str](), 0, 0, 0, 0
    for case, texts in cases(options.seed, options.only):
        vocabs += 1
        source = Texts(options.seed * 7919 + vocabs, case.vocab)
        for _ in range(texts):
            if time.monotonic() > end:
                break
            text, add, parse = source.one(), source.random.random() < 0.2, source.random.random() < 0.5
            counts[case.vocab.type] += 1
            bytes_done += len(text)
            if case.differs(text, add, parse):
                failures += 1
                show(case, text, add, parse)
                break
        if time.monotonic() > end or failures >= 20:
            break
        if options.only is None:
            files += 1
            for wrong in rounds(options.seed, files):
                failures += 1
                print(wrong, flush=True)
    by_type = ", ".join(f"{kind} {count:,}" for kind, count in sorted(counts.items()))
    print(
        f"seed {options.seed}: {sum(counts.values()):,} texts ({bytes_done:,} bytes; {by_type}) on {vocabs} vocabularies, {files} drawn and {CHANGES * files:,} changed files, {failures} differences"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
