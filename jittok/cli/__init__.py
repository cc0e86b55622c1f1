"""The command line: one module a command, imported with nothing heavy so that --help need not wait for numba.

A command module has HELP, `add_arguments(parser)` and `run(arguments) -> int`. Status 0, 1 (the answer is "no": a
difference, a failed check), 2 (wrong use or bad input: one line on standard error).
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from jittok import __version__
from jittok.errors import JittokError

COMMANDS = ("encode", "decode", "count", "info", "trace", "corpus", "verify", "train", "cache")
"""Modules of this package, in the order of --help."""
EXPECTED_FAILURES = (JittokError, OSError, ValueError, TypeError, KeyError, ImportError, EOFError, MemoryError)
"""What bad input, files and installations give. Anything else is a bug, and says so."""
INTERRUPTED = 130


class Parser(argparse.ArgumentParser):
    """argparse, with wrong use told in one line."""

    def error(self, message: str) -> NoReturn:
        """Print one line and leave with status 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = Parser(prog="jittok", description="llama.cpp's tokenizers for large corpora.")
    parser.add_argument("--version", action="version", version=f"jittok {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for name in COMMANDS:
        module = importlib.import_module(f"jittok.cli.{name}")
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit status."""
    options = build_parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has enough; the interpreter must not try to flush the rest when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        sys.stderr.write(f"jittok {options.command}: interrupted\n")
        return INTERRUPTED
    except EXPECTED_FAILURES as error:
        sys.stderr.write(f"jittok {options.command}: {one_line(error)}\n")
        return 2
    except Exception as error:
        if os.environ.get("JITTOK_TRACEBACK"):
            raise
        sys.stderr.write(f"jittok {options.command}: a bug (JITTOK_TRACEBACK=1 shows where): {one_line(error)}\n")
        return 2
    return status


def one_line(error: BaseException) -> str:
    """What an exception says, in one line."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    said = error.args[0] if isinstance(error, KeyError) and error.args else error
    return " ".join(str(said).split()) or type(error).__name__
