"""Shared by several commands: options, loading the vocabulary, standard output."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import glob
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.common.display.terminal import harmless, one_name
from jittok.common.writers.atomic_files import is_standard_output, is_stream, naming
from jittok.errors import check_local

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

STDIN = "-"
VOCABS = "a tokenizer file, a folder with one,"
"""Kinds of vocabularies, for error messages."""


def group(parser: argparse.ArgumentParser, title: str) -> argparse._ArgumentGroup:
    """The group of options with this title."""
    for known in parser._action_groups:
        if known.title == title:
            return known
    return parser.add_argument_group(title)


def add_vocab(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Add --vocab and the options that belong to it, and --json."""
    tokenizer = group(parser, "tokenizer")
    tokenizer.add_argument(
        "--vocab",
        required=required,
        metavar="FILE|NAME",
        help="tokenizer file (GGUF, tokenizer.json, .model, ...), folder with one, or bundled name: bert, gpt-2, "
        "mistral, t5",
    )
    tokenizer.add_argument(
        "--llama-cpp",
        metavar="RELEASE",
        help="give the ids of this llama.cpp release, such as 0.3.36 (default: the newest known; for an existing "
        "corpus, the release it was started with)",
    )
    tokenizer.add_argument(
        "--pre", metavar="NAME", help="use this pre-tokenizer if jittok does not know the file's tokenizer.ggml.pre"
    )
    add_ranks(parser)
    add_no_cache(parser)
    add_json(parser)


def add_ranks(parser: argparse.ArgumentParser) -> None:
    """Add the options for what a file of tiktoken ranks does not hold."""
    tokenizer = group(parser, "tokenizer")
    tokenizer.add_argument(
        "--pattern", metavar="REGEX", help="regex that splits text into pre-tokens, for tiktoken ranks"
    )
    tokenizer.add_argument(
        "--special-token",
        action="append",
        type=special_token,
        metavar="TEXT=ID",
        help="special token, for tiktoken ranks; repeatable",
    )
    tokenizer.add_argument(
        "--encoding",
        metavar="NAME",
        help="which encoding, if several share the same ranks: o200k_harmony, llama-3.1, whisper-v3, ...",
    )


def add_no_cache(parser: argparse.ArgumentParser) -> None:
    """Add --no-cache."""
    group(parser, "tokenizer").add_argument(
        "--no-cache", action="store_true", help="do not read or write compiled vocabularies on disk"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json, which every command has."""
    group(parser, "output").add_argument("--json", action="store_true", help="print the result as JSON")


def add_special(parser: argparse.ArgumentParser) -> None:
    """Add --add-special and --parse-special."""
    encoding = group(parser, "encoding")
    encoding.add_argument("--add-special", action="store_true", help="add BOS and EOS as the vocabulary specifies")
    encoding.add_argument(
        "--parse-special", action="store_true", help="parse special tokens, such as <|endoftext|>, in the text"
    )


def add_threads(parser: argparse.ArgumentParser, title: str = "encoding") -> None:
    """Add --threads."""
    group(parser, title).add_argument(
        "--threads", type=positive, metavar="N", help="number of threads (default: all cores available to this process)"
    )


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Add --overwrite, for commands that write files."""
    group(parser, "output").add_argument("--overwrite", action="store_true", help="overwrite existing output files")


def _holds(source: str, path: Path) -> bool:
    """Whether a source is this file, or the folder that contains it."""
    given = Path(source)
    return given.exists() and (path.parent.samefile(given) if given.is_dir() else path.samefile(given))


def _reads(texts: str, path: Path) -> bool:
    """Whether an input (a file, a folder with its subfolders, or a glob) includes this file."""
    if not os.path.lexists(texts) and glob.has_magic(texts):
        return any(_holds(found, path) for found in glob.iglob(texts, recursive=True) if Path(found).is_file())  # noqa: PTH207
    given = Path(texts)
    return _holds(texts, path) or (given.is_dir() and any(folder.samefile(given) for folder in path.resolve().parents))


def check_outputs(
    paths: Iterable[str | os.PathLike[str]], overwrite: bool, sources: Iterable[str] = (), texts: Iterable[str] = (),
    folders: bool = False,
) -> None:  # fmt: skip
    """Check the names of outputs before any work. sources: tokenizers; texts: inputs, which may be globs.

    Raises FileExistsError for an existing output without `overwrite`; ValueError for an output that is also an input or
    another output, or that is a folder; FileNotFoundError for a file in a missing folder; CorpusError for a URL.
    `folders`: outputs are folders, which are created together with their parents."""
    sources, texts, seen = list(sources), list(texts), set[str]()
    for given in paths:
        check_local(given, "--out")
        path = Path(given)
        if is_stream(path) and folders:
            raise ValueError(f"--out {path}: found a device, pipe or open file, expected a folder name")
        if is_stream(path):
            continue
        if os.path.realpath(path) in seen:
            raise ValueError(f"--out {path}: found the same name for two outputs, expected two names")
        seen.add(os.path.realpath(path))
        if path.exists() and (any(_holds(each, path) for each in sources) or any(_reads(each, path) for each in texts)):
            raise ValueError(f"--out {path}: found an input file, expected another name")
        if not overwrite and os.path.lexists(path):
            raise FileExistsError(f"{path}: found an existing file or folder, expected a new name, or --overwrite")
        if folders:
            continue
        if path.is_dir():
            raise ValueError(f"{path}: found a folder, expected a file name")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"{path}: found no folder {path.parent}, expected an existing one")


def positive(text: str) -> int:
    """An integer of 1 or more, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected an integer, 1 or more")
    return int(text)


def sizes(text: str) -> list[int]:
    """Comma-separated integers of 1 or more, for argparse."""
    return [positive(part.strip()) for part in text.split(",")]


def weight(text: str) -> tuple[str, float]:
    """A glob and the weight of the words of its files, for argparse."""
    glob, equals, number = text.rpartition("=")
    try:
        if equals:
            return glob, float(number)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"found {text!r}, expected GLOB=X, such as 'news/*=2'")


def special_token(text: str) -> tuple[str, int]:
    """A text and its id, for argparse."""
    token, equals, number = text.rpartition("=")
    if not equals or not token or not number.isascii() or not number.isdecimal() or len(number) > 9:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected TEXT=ID, such as '<|im_end|>=151645'")
    return token, int(number)


def open_vocab(options: argparse.Namespace, cache_bytes: int | None = None) -> Tokenizer:
    """Open the tokenizer of --vocab: a file if it exists, else a bundled name. `cache_bytes`: see `load`."""
    return open_named(
        options.vocab, not options.no_cache, options.llama_cpp, options.pre, cache_bytes, ranks=ranks_of(options)
    )


def ranks_of(options: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of `load` for a file of tiktoken ranks (see `add_ranks`)."""
    given = {
        "pattern": options.pattern,
        "special_tokens": dict(options.special_token or ()) or None,
        "encoding": options.encoding,
    }
    return {name: value for name, value in given.items() if value is not None}


def _options_of(ranks: dict[str, Any]) -> str:
    """The command-line options of the keyword arguments of `ranks_of`."""
    return ", ".join(f"--{name.removesuffix('s').replace('_', '-')}" for name in ranks)


def open_either(options: argparse.Namespace, names: dict[str, str]) -> list[Tokenizer]:
    """Open the tokenizers of several arguments. Files of tiktoken ranks get the options of `add_ranks`.

    Raises ValueError if such an option is given but none of the arguments is such a file."""
    from jittok.files import holds_ranks

    ranks = ranks_of(options)
    takes = {where: bool(ranks) and holds_ranks(vocab) for where, vocab in names.items()}
    if ranks and not any(takes.values()):
        raise ValueError(
            f"{_options_of(ranks)}: found no file of tiktoken ranks, expected one for {' or '.join(names)}"
        )
    return [
        open_named(vocab, not options.no_cache, where=where, ranks=ranks if takes[where] else None)
        for where, vocab in names.items()
    ]


def open_named(
    vocab: str,
    cache: bool,
    llama_cpp: str | None = None,
    pre: str | None = None,
    cache_bytes: int | None = None,
    where: str = "--vocab",
    ranks: dict[str, Any] | None = None,
) -> Tokenizer:
    """Open the tokenizer of a file if it exists, else of a bundled name. `where`: the argument that errors name;
    `ranks`: keyword arguments for a file of tiktoken ranks."""
    import jittok
    from jittok.files.places import is_name

    path = Path(vocab)
    bound: dict[str, Any] = {} if cache_bytes is None else {"cache_bytes": cache_bytes}
    if is_name(vocab):  # of another program's file, as hf:org/name
        return jittok.load(vocab, cache=cache, llama_cpp=llama_cpp, pre=pre, **bound, **(ranks or {}))
    if path.exists():
        if not path.is_file() and not path.is_dir():
            bundled = ", ".join(jittok.bundled_names())
            raise ValueError(f"{where} {vocab}: found a device or pipe, expected {VOCABS} or a bundled name: {bundled}")
        with naming(path):
            return jittok.load(vocab, cache=cache, llama_cpp=llama_cpp, pre=pre, **bound, **(ranks or {}))
    names = jittok.bundled_names()
    if ranks:
        raise ValueError(
            f"{where} {vocab}: found no such file, "
            f"expected a file of tiktoken ranks (which {_options_of(ranks)} is for)"
        )
    if vocab in names:
        return jittok.bundled(vocab, llama_cpp=llama_cpp, pre=pre, **bound)
    near = difflib.get_close_matches(vocab.lower(), names, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    if re.fullmatch(r"[\w.-]+/[\w.-]+", vocab) and not path.suffix[1:].isalpha():
        hint = f"; for that repository of Hugging Face: hf:{vocab}"
    found = f"{where} {vocab}: found no such file, expected a tokenizer file, a folder with one, or a bundled name"
    raise FileNotFoundError(f"{found}: {', '.join(names)}{hint}")


def left_out_text(paths: Sequence[str]) -> str:
    """One line about the files that were skipped in folders and globs."""
    more = f" and {len(paths) - 1:,} more" if len(paths) > 1 else ""
    why = "unknown extension, hidden, a linked folder, a folder matched by a glob, or unreadable"
    return f"skipped ({why}): {one_name(paths[0])}{more}"


def tell_slow(tok: Tokenizer) -> None:
    """Print a line on standard error if plain Python encodes, which takes minutes for megabytes."""
    if tok.runs != "kernels":
        note(f"{tok.runs}: about 0.1 MB/s; docs/files.md lists the files that compiled kernels run")


def add_errors(parser: argparse.ArgumentParser) -> None:
    """Add --on-error, for commands that encode."""
    group(parser, "encoding").add_argument(
        "--on-error",
        dest="errors",
        type=on_error,
        default="strict",
        metavar="fail|replace",
        help="for text that cannot be encoded, such as invalid UTF-8 with some vocabularies: fail, or replace it with "
        "U+FFFD (default: fail)",
    )


def add_reading(parser: argparse.ArgumentParser, separator: bool = False) -> None:
    """Add the options for reading files; `separator`: also --separator. The limit guards against hostile files."""
    reading = group(parser, "reading")
    kinds = reading.add_mutually_exclusive_group()
    kinds.add_argument(
        "--input-format", choices=("txt", "jsonl", "parquet", "arrow"), metavar="KIND",
        help="force the input format (txt, jsonl, parquet or arrow), ignoring file extensions",
    )  # fmt: skip
    kinds.add_argument("--jsonl", action="store_true", help="same as --input-format jsonl")
    reading.add_argument(
        "--field", default="text", help="JSON Lines field with the text, a.b: b of the object a (default: text)"
    )
    reading.add_argument(
        "--column", default="text", help="table column with the text, a.b: member b of the struct a (default: text)"
    )
    reading.add_argument(
        "--join",
        metavar="TEXT",
        type=unescaped,
        help=r"a list of texts is one text, with TEXT between them (\n and \t are escapes)",
    )
    cuts = reading.add_mutually_exclusive_group()
    cuts.add_argument("--lines", action="store_true", help="plain text: one document per line")
    if separator:
        cuts.add_argument(
            "--separator", metavar="TEXT", help=r"plain text: documents are separated by TEXT (\n and \t are escapes)"
        )
    reading.add_argument(
        "--max-document-bytes", default="1G", metavar="N", help="fail on longer documents (default: 1G)"
    )


def unescaped(text: str) -> str:
    """A text of the command line in which \\n and \\t are escapes."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


def add_on_error(parser: argparse.ArgumentParser) -> None:
    """Add --on-error, for commands that can skip documents."""
    group(parser, "reading").add_argument(
        "--on-error", choices=("fail", "skip", "replace"), default="fail", metavar="fail|skip|replace",
        help="for unreadable lines and documents: fail, skip them, or replace what is unreadable with U+FFFD "
        "(default: fail)",
    )  # fmt: skip


def kind_of(options: argparse.Namespace) -> str | None:
    """The forced input format; None to go by file extensions."""
    return "jsonl" if options.jsonl else options.input_format


def on_error(text: str) -> str:
    """The value of `errors` in Python, for argparse; "strict" is the former name of "fail"."""
    known = {"fail": "strict", "strict": "strict", "replace": "replace"}
    if text not in known:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected fail or replace")
    return known[text]


def encoding_options(options: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of Tokenizer.encode_stream."""
    return {
        "add_special": options.add_special,
        "parse_special": options.parse_special,
        "errors": options.errors,
        "threads": options.threads,
    }


def note(line: str) -> None:
    """Write a line to standard error; errors are ignored."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # AttributeError: closed
        sys.stderr.write(f"{harmless(line)}\n")
        sys.stderr.flush()


def write_report(text: str, outputs: Iterable[str | os.PathLike[str]]) -> None:
    """Write a report to standard output, or to standard error if standard output is one of the outputs."""
    if any(map(is_standard_output, outputs)):
        note(text.rstrip("\n"))
    else:
        tell(text)


def tell(text: str) -> None:
    """Write text for people to standard output, with terminal control characters escaped. OSErrors name the stream."""
    write(harmless(text))


def write(text: bytes | str) -> None:
    """Write bytes, or a text as UTF-8 with lone surrogates escaped, to standard output. OSErrors name the stream."""
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from None
