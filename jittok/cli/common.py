"""What several commands share: options, the vocabulary, standard output."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

STDIN = "-"
VOCABS = "a GGUF file (a model, or its header alone)"
"""What --vocab reads."""


def add_vocab(parser: argparse.ArgumentParser) -> None:
    """--vocab and --json, which every command has."""
    parser.add_argument(
        "--vocab", required=True, metavar="FILE|NAME", help="GGUF file, or name of a bundled vocabulary"
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="neither read nor write the compiled vocabulary on disk"
    )
    parser.add_argument("--json", action="store_true", help="print data as JSON")


def positive(text: str) -> int:
    """An integer of 1 or more, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"found {number}, expected 1 or more")
    return number


def open_vocab(options: argparse.Namespace, cache_bytes: int | None = None) -> Tokenizer:
    """The tokenizer that --vocab names: a file if there is one, else a bundled name. `cache_bytes`: see `load`."""
    return open_named(options.vocab, cache=not options.no_cache, cache_bytes=cache_bytes)


def open_named(vocab: str, cache: bool, cache_bytes: int | None = None) -> Tokenizer:
    """The tokenizer of a file if there is one, else of a bundled name. Errors say what --vocab reads."""
    import jittok

    path = Path(vocab)
    bound: dict[str, Any] = {} if cache_bytes is None else {"cache_bytes": cache_bytes}
    if path.exists():
        expected = f"expected {VOCABS} or a bundled name ({', '.join(jittok.bundled_names())})"
        if not path.is_file():
            found = "a folder" if path.is_dir() else "a device or pipe"
            raise ValueError(f"--vocab {vocab}: found {found}, {expected}")
        with path.open("rb") as file:
            start = file.read(16)
        if not start.startswith(b"GGUF"):
            found = f"a file that begins with {start!r}" if start else "an empty file"
            raise ValueError(f"--vocab {vocab}: found {found}, {expected}")
        return jittok.load(vocab, cache=cache, **bound)
    names = jittok.bundled_names()
    if vocab in names:
        return jittok.bundled(vocab, **bound)
    raise FileNotFoundError(f"--vocab {vocab}: found no such file, expected one or a name of {', '.join(names)}")


def encoding_options(options: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of Tokenizer.encode_stream."""
    return {
        "add_special": options.add_special,
        "parse_special": options.parse_special,
        "errors": options.errors,
        "threads": options.threads,
    }


def note(line: str) -> None:
    """A line beside the answer, on standard error, if anybody hears it."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # AttributeError: closed
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def write(text: bytes | str) -> None:
    """Bytes (or a text as UTF-8) to standard output. OSError that names it."""
    try:
        sys.stdout.buffer.write(text.encode() if isinstance(text, str) else text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from None
