"""The command line: one module a command, imported with nothing heavy so that --help need not wait for numba.

A command module has HELP, EXAMPLES, `add_arguments(parser)` and `run(arguments) -> int`. Status 0, 1 (the answer is
"no": a difference, a failed check), 2 (wrong use or bad input: one line on standard error).
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Container, Iterator, Sequence
from typing import Any

from jittok import __version__
from jittok.cli.common import note
from jittok.cli.parser import EXAMPLES, Parser, in_one_line
from jittok.errors import JittokError

COMMANDS = ("encode", "decode", "count", "info", "compare", "convert", "trace", "corpus", "verify", "train", "cache")
"""Modules of this package, in the order of --help."""
EXPECTED_FAILURES = (JittokError, OSError, ValueError, TypeError, KeyError, ImportError, EOFError, MemoryError)
"""What bad input, files and installations give. Anything else is a bug, and says so."""
NAMES = ("FILE", "FILE|NAME", "ID|FILE", "DIR", "OUT", "INPUT", "VOCAB", "A", "B")
"""What --help calls the name of a file or folder."""
OUTPUTS = ("out", "html", "work", "save_words", "trace")
"""Options that name an output."""
INTERRUPTED = 130
OF_WRITING = (errno.ENOSPC, errno.EFBIG, errno.EPIPE, getattr(errno, "EDQUOT", errno.ENOSPC))
"""Errors that only a write can have."""
ABOUT = (
    "Tokenize large corpora, exactly, with the tokenizer of any open model: a tokenizer file (GGUF, tokenizer.json, "
    ".model, ranks, ...) or a bundled vocabulary (bert, gpt-2, mistral, t5)."
)
FIRST = """# token ids of a text, with a bundled vocabulary
jittok encode --vocab gpt-2 -p "Hello, world"
# count the tokens of the files in a folder, with a model's own tokenizer
jittok count --vocab tokenizer.json docs/
# the options of a command
jittok encode --help"""


def _name(text: str) -> str:
    """The name of a file, for argparse. An empty one, as of a variable of the shell that is not set, would stand for
    the folder where one is, or for no option at all."""
    if not text:
        raise argparse.ArgumentTypeError("found an empty name, expected a file or folder")
    return text


def _output_name(text: str) -> str:
    """The same of an output, which would be a file that is called -."""
    if text == "-":
        raise argparse.ArgumentTypeError(
            "found '-', expected a file name (/dev/stdout for standard output, ./- for a file named -)"
        )
    return _name(text)


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = Parser(prog="jittok", description=ABOUT, epilog=f"{EXAMPLES}\n{FIRST}")
    parser.add_argument("--version", action="version", version=f"jittok {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for name in COMMANDS:
        module = importlib.import_module(f"jittok.cli.{name}")
        command = commands.add_parser(
            name, help=module.HELP, description=module.HELP, epilog=f"{EXAMPLES}\n{module.EXAMPLES}"
        )
        module.add_arguments(command)
        for action in command._actions:
            if action.dest in OUTPUTS and action.metavar:
                action.type = _output_name
            elif action.metavar in NAMES:
                action.type = _name
        command.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit status."""
    with _hearing() as heard:
        return _run(arguments, heard)


def _run(arguments: Sequence[str] | None, heard: Sequence[int]) -> int:
    """The same; `heard` holds something from the moment when Ctrl-C comes."""
    command, names = "", set[str]()
    try:
        if sys.stdout is None:
            note("jittok: standard output is closed (redirect it to /dev/null to discard the output)")
            return 2
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be no text of its encoding
        options = build_parser().parse_args(arguments)
        command, names = f" {options.command}", set(vars(options))
        status: int = options.run(options)
        if (error := _flush_or_forget()) is not None:
            raise error
    except SystemExit as leave:  # --help and wrong use; whoever reads the help may stop
        error = _flush_or_forget()
        if error is not None and not isinstance(error, BrokenPipeError):
            note(f"jittok: {one_line(error)}")
            return 2
        raise leave from None
    except BrokenPipeError:
        _flush_or_forget()
        return 0
    except KeyboardInterrupt:
        _flush_or_forget()
        note(f"jittok{command}: interrupted")
        return INTERRUPTED
    except Exception as error:
        if heard or _was_interrupt(error):
            _flush_or_forget()
            note(f"jittok{command}: interrupted")
            return INTERRUPTED
        if isinstance(error, EXPECTED_FAILURES):
            _flush_or_forget()
            note(f"jittok{command}: {one_line(error, names)}")
            return 2
        _flush_or_forget()
        if os.environ.get("JITTOK_TRACEBACK"):
            raise
        note(f"jittok{command}: internal error (JITTOK_TRACEBACK=1 prints the traceback): {one_line(error)}")
        return 2
    return status


@contextlib.contextmanager
def _hearing() -> Iterator[Sequence[int]]:
    """Something that is empty until Ctrl-C comes. Whatever fails from then on was interrupted: a module in C that is
    being imported, such as NumPy, makes an ImportError of it that does not tell."""
    heard: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield heard
        return

    def hear(number: int, frame: Any) -> None:
        heard.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, hear)
    try:
        yield heard
    finally:
        signal.signal(signal.SIGINT, before)


def _was_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is what an exception comes of: Python 3.11 wraps one that meets the body of a class."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def _flush_or_forget() -> Exception | None:
    """What has been printed goes out, or nowhere: the interpreter must not try it again, and complain, when it ends."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        if isinstance(error, OSError):
            error.filename = "standard output"
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return error
    return None


def one_line(error: BaseException, options: Container[str] = ()) -> str:
    """What an exception says, in one line. Those of `options` have the names of the command line."""
    if isinstance(error, OSError) and error.filename is not None:
        return in_one_line(f"{error.filename}: {error.strerror}")
    if isinstance(error, OSError) and error.strerror:
        if error.errno in OF_WRITING:
            return f"standard output: {error.strerror}"  # an error of any other output names its file
        return f"{error.strerror} (file unknown)"
    if isinstance(error, MemoryError):
        return "out of memory (fewer --threads need less)"
    if isinstance(error, ModuleNotFoundError) and "pip install" not in str(error):
        return f"{error.name} is not installed: pip install '.[cli,corpus]' in a checkout of jittok"
    if isinstance(error, JittokError) and error.on_command_line is not None:
        return in_one_line(error.on_command_line)
    said = error.args[0] if isinstance(error, KeyError) and error.args else error
    where, colon, rest = str(said).partition(": ")
    if where in options and not isinstance(error, OSError | JittokError):  # those name files
        said = f"--{where.replace('_', '-')}{colon}{rest}"
    return in_one_line(str(said)) or type(error).__name__
