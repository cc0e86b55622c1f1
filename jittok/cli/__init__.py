"""The command line: a folder per task and a module per command, without heavy imports, so that --help does not wait
for numba.

A command module has HELP, EXAMPLES, `add_arguments(parser)` and `run(arguments) -> int`. Exit status: 0, 1 (a
difference or a failed check), 2 (wrong usage or bad input, with one line on standard error).
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
from jittok.cli.common.parser import EXAMPLES, Parser, in_one_line
from jittok.errors import JittokError, masked, see

TASKS = {
    "texts and tokens": ("encode", "decode", "count", "chunks", "chat"),
    "a tokenizer, seen from inside": ("info", "trace", "play"),
    "a tokenizer beside others": ("try", "compare", "convert"),
    "training data": ("corpus", "verify"),
    "a vocabulary of your own": ("train",),
    "this machine": ("vocabs", "cache", "completion"),
}
"""What people come for -> commands, in the order of --help."""
COMMANDS = tuple(name for names in TASKS.values() for name in names)
FOLDERS = dict(zip(TASKS, ("texts", "inside", "beside", "data", "", "machine"), strict=True))
"""What people come for -> the folder of its commands; `train` is a folder itself."""
MODULES = {name: f"{FOLDERS[task]}.{name}".lstrip(".") for task, names in TASKS.items() for name in names}
MODULES["try"] = "beside.try_file"  # the name of a command, but not of a module
"""Command -> its module within this package."""
EXPECTED_FAILURES = (JittokError, OSError, ValueError, TypeError, KeyError, ImportError, EOFError, MemoryError)
"""Exceptions caused by bad input, files or installations. Anything else is reported as an internal error."""
NAMES = ("FILE", "FILE|NAME", "ID|FILE", "DIR", "OUT", "INPUT", "VOCAB", "A", "B")
"""Metavars of arguments that are file or folder names."""
OUTPUTS = ("out", "html", "work", "save_words", "trace")
"""Options that name an output file or folder."""
INTERRUPTED = 130
OF_WRITING = (errno.ENOSPC, errno.EFBIG, errno.EPIPE, getattr(errno, "EDQUOT", errno.ENOSPC))
"""Error numbers that only writes raise."""
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
    """A file name, for argparse. An empty one, as from an unset shell variable, would mean the current folder, or no
    option at all."""
    if not text:
        raise argparse.ArgumentTypeError("found an empty name, expected a file or folder")
    return text


def _output_name(text: str) -> str:
    """The name of an output, for argparse; "-" would create a file of that name."""
    if text == "-":
        raise argparse.ArgumentTypeError(
            "found '-', expected a file name (/dev/stdout for standard output, ./- for a file named -)"
        )
    return _name(text)


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = Parser(prog="jittok", description=ABOUT, epilog=f"{EXAMPLES}\n{FIRST}")
    parser.add_argument("--version", action="version", version=f"jittok {__version__}")
    commands = parser.add_subparsers(
        title="commands", dest="command", required=True, metavar="COMMAND", parser_class=Parser
    )
    parser.tasks = TASKS
    parser._action_groups.insert(0, parser._action_groups.pop())  # commands before options
    for name in COMMANDS:
        module = importlib.import_module(f"jittok.cli.{MODULES[name]}")
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
    """Run one command; returns the exit status."""
    with _hearing() as heard:
        return _run(arguments, heard)


def _run(arguments: Sequence[str] | None, heard: Sequence[int]) -> int:
    """The same; `heard` is non-empty once Ctrl-C has been pressed."""
    command, names = "", set[str]()
    try:
        if sys.stdout is None:
            note("jittok: standard output is closed (redirect it to /dev/null to discard the output)")
            return 2
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # file names may not be encodable
        options = build_parser().parse_args(arguments)
        command, names = f" {options.command}", set(vars(options))
        status: int = options.run(options)
        if (error := _flush_or_forget()) is not None:
            raise error
    except SystemExit as leave:  # --help and wrong usage; the reader of the help may close the pipe
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
    """A list that is empty until Ctrl-C is pressed. Any failure after that counts as an interruption: a C extension
    that is being imported, such as NumPy, turns KeyboardInterrupt into an ImportError without a cause."""
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
    """Whether Ctrl-C caused an exception: Python 3.11 wraps one that is raised in a class body."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def _flush_or_forget() -> Exception | None:
    """Flush standard output, or discard its buffer if that fails: the interpreter must not retry at exit."""
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
    """The message of an exception in one line, without secrets of URLs. Names in `options` get their command-line
    spelling."""
    return masked(_one_line(error, options))


def _one_line(error: BaseException, options: Container[str]) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return in_one_line(f"{error.filename}: {error.strerror}")
    if isinstance(error, OSError) and error.strerror:
        if error.errno in OF_WRITING:
            return f"standard output: {error.strerror}"  # errors of all other outputs have a file name
        return f"{error.strerror} (file unknown)"
    if isinstance(error, MemoryError):
        return "out of memory (fewer --threads need less)"
    if isinstance(error, ModuleNotFoundError) and "pip install" not in str(error):
        return f"{error.name} is not installed: pip install '.[cli,corpus]' in a checkout of jittok{see('extra')}"
    if isinstance(error, JittokError) and error.on_command_line is not None:
        return in_one_line(error.on_command_line)
    said = error.args[0] if isinstance(error, KeyError) and error.args else error
    where, colon, rest = str(said).partition(": ")
    if where in options and not isinstance(error, OSError | JittokError):  # those begin with a file
        said = f"--{where.replace('_', '-')}{colon}{rest}"
    return in_one_line(str(said)) or type(error).__name__
