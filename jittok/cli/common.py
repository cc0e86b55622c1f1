"""What several commands share: options, the vocabulary, reading documents, progress."""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import lzma
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

STDIN = "-"
PACKED = (".gz", ".xz", ".bz2", ".zst")


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


def add_texts(parser: argparse.ArgumentParser) -> None:
    """Where texts come from and how they are encoded."""
    parser.add_argument(
        "files",
        nargs="*",
        default=[],
        metavar="FILE",
        help="texts, also .gz .xz .bz2 .zst; - or nothing: standard input",
    )
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="this text in place of files")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--jsonl", action="store_true", help="a document a line, JSON (implied by names in .jsonl)")
    kinds.add_argument("--lines", action="store_true", help="a document a line, plain text")
    parser.add_argument("--field", default="text", help="field of the JSON objects that holds the text (default: text)")
    parser.add_argument("--add-special", action="store_true", help="BOS and EOS where the vocabulary wants them")
    parser.add_argument("--parse-special", action="store_true", help="control tokens in the text become control tokens")
    parser.add_argument(
        "--errors", choices=("strict", "replace"), default="strict", help="what to do with impossible text"
    )
    parser.add_argument("--threads", type=positive, metavar="N", help="default: every core this process may use")


def positive(text: str) -> int:
    """An integer of 1 or more, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"found {number}, expected 1 or more")
    return number


def open_vocab(options: argparse.Namespace) -> Tokenizer:
    """The tokenizer that --vocab names: a file if there is one, else a bundled name."""
    return open_named(options.vocab, not options.no_cache, options.llama_cpp, options.pre)


def open_named(vocab: str, cache: bool, llama_cpp: str | None = None, pre: str | None = None) -> Tokenizer:
    """The tokenizer of a file if there is one, else of a bundled name; for a release and with a `pre` if given."""
    import jittok

    if Path(vocab).exists():
        return jittok.load(vocab, cache=cache, llama_cpp=llama_cpp, pre=pre)
    names = jittok.bundled_names()
    if vocab in names:
        return jittok.bundled(vocab, llama_cpp=llama_cpp, pre=pre)
    raise FileNotFoundError(f"--vocab {vocab}: found no such file, expected one or a name of {', '.join(names)}")


def encoding_options(options: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of Tokenizer.encode_stream."""
    return {
        "add_special": options.add_special,
        "parse_special": options.parse_special,
        "errors": options.errors,
        "threads": options.threads,
    }


def open_source(name: str) -> IO[bytes]:
    """A file, unpacked by its ending, or standard input. Raises ImportError where zstandard is missing."""
    if name == STDIN:
        return sys.stdin.buffer
    openers: dict[str, Callable[[str], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open, ".zst": _open_zst}
    opened: IO[bytes] = openers.get(Path(name).suffix, _open_plain)(name)
    return opened


def _open_plain(name: str) -> IO[bytes]:
    return Path(name).open("rb")


def _open_zst(name: str) -> IO[bytes]:
    try:
        import zstandard
    except ImportError:
        raise ImportError(f"{name}: reading .zst needs zstandard: pip install 'jittok[cli]'") from None
    opener: Any = zstandard.open
    return io.BufferedReader(opener(name, "rb"))


def sources(options: argparse.Namespace) -> list[str]:
    """Names of the inputs, in order."""
    if options.prompt is not None and options.files:
        raise ValueError("found FILE and --prompt, expected one of them")
    return options.files or [STDIN]


def documents(options: argparse.Namespace) -> Iterator[str | bytes]:
    """All documents of all inputs, one after the other."""
    names = sources(options)
    if options.prompt is not None:
        yield options.prompt
        return
    for name in names:
        yield from documents_of(name, options)


def documents_of(name: str, options: argparse.Namespace) -> Iterator[str | bytes]:
    """The documents of one input: lines, JSON lines, or the whole of it."""
    plain = name[: -len(Path(name).suffix)] if Path(name).suffix in PACKED else name
    with open_source(name) as file:
        if options.lines:
            yield from (line.removesuffix(b"\n").removesuffix(b"\r") for line in file)
        elif options.jsonl or plain.endswith(".jsonl"):
            yield from _json_texts(file, name, options.field)
        else:
            yield file.read()


def _json_texts(file: IO[bytes], name: str, field: str) -> Iterator[str]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{name}, line {number}: found no JSON ({error})") from None
        text = row.get(field) if isinstance(row, dict) else None
        if not isinstance(text, str):
            raise ValueError(f"{name}, line {number}: found {line[:60]!r}, expected an object with a text in {field!r}")
        yield text


class Progress:
    """A bar on standard error, silent where that is no terminal."""

    def __init__(self, unit: str) -> None:
        self._bar: Any = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(unit=unit, unit_scale=True)

    def add(self, count: int, **shown: object) -> None:
        """Move on by `count`; `shown` stands behind the bar."""
        if self._bar is not None:
            self._bar.set_postfix(shown, refresh=False)
            self._bar.update(count)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def write(text: bytes | str) -> None:
    """Bytes (or a text as UTF-8) to standard output."""
    sys.stdout.buffer.write(text.encode() if isinstance(text, str) else text)
