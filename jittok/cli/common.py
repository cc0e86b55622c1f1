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
VOCABS = "a GGUF file, another tokenizer file, a folder of one"
"""What --vocab reads."""


def add_vocab(parser: argparse.ArgumentParser) -> None:
    """--vocab and --json, which every command has."""
    parser.add_argument(
        "--vocab", required=True, metavar="FILE|NAME", help="GGUF file, or name of a bundled vocabulary"
    )
    parser.add_argument(
        "--llama-cpp",
        metavar="RELEASE",
        help="the llama.cpp whose answers are wanted, such as 0.3.36 (default: the newest that jittok knows; for a "
        "corpus the one it was begun with)",
    )
    parser.add_argument(
        "--pre", metavar="NAME", help="tokenizer.ggml.pre in place of the file's, where jittok does not know that"
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
    return open_named(options.vocab, not options.no_cache, options.llama_cpp, options.pre, cache_bytes)


def open_named(
    vocab: str, cache: bool, llama_cpp: str | None = None, pre: str | None = None, cache_bytes: int | None = None
) -> Tokenizer:
    """The tokenizer of a file if there is one, else of a bundled name; for a release and with a `pre` if given. Errors
    say what --vocab reads."""
    import jittok

    path = Path(vocab)
    bound: dict[str, Any] = {} if cache_bytes is None else {"cache_bytes": cache_bytes}
    if path.exists():
        if not path.is_file() and not path.is_dir():
            bundled = ", ".join(jittok.bundled_names())
            raise ValueError(
                f"--vocab {vocab}: found a device or pipe, expected {VOCABS} or a bundled name ({bundled})"
            )
        return jittok.load(vocab, cache=cache, llama_cpp=llama_cpp, pre=pre, **bound)
    names = jittok.bundled_names()
    if vocab in names:
        return jittok.bundled(vocab, llama_cpp=llama_cpp, pre=pre, **bound)
    raise FileNotFoundError(f"--vocab {vocab}: found no such file, expected one or a name of {', '.join(names)}")


def tell_slow(tok: Tokenizer) -> None:
    """A line on standard error where plain Python encodes: for megabytes that is minutes."""
    if tok.runs != "kernels":
        note(f"{tok.runs}: about 0.1 MB/s; docs/files.md says which files have kernels")


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
