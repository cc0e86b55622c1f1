"""Writes docs/jittok.1, the manual page, from the parser of the command line: python tools/man_page.py

A package of a system can install it as share/man/man1/jittok.1. tests/cli/test_completion.py checks that it is current.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from jittok.cli import TASKS, build_parser
from jittok.cli.common.parser import EXAMPLES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "jittok.1"


def roff(text: str) -> str:
    """A text for troff: no line is a request, no hyphen a minus sign of another width."""
    shown = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in shown.splitlines())


def _examples(epilog: str) -> Iterator[str]:
    yield ".nf"
    for line in epilog.removeprefix(f"{EXAMPLES}\n").splitlines():
        yield roff(f"    {line}")
    yield ".fi"


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) or action.help == argparse.SUPPRESS:
            continue
        value = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
        shown = f"\\fI{roff(str(value))}\\fR" if value else ""
        names = ", ".join(f"\\fB{roff(name)}\\fR" for name in action.option_strings)
        yield ".TP"
        yield f"{names} {shown}".strip()
        yield roff((action.help or "") % {"default": action.default, "prog": parser.prog})


def page() -> str:
    """The whole manual page."""
    parser = build_parser()
    subs = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    about = {each.dest: each.help or "" for each in subs._get_subactions()}
    lines = [
        '.TH JITTOK 1 "" "jittok" "User Commands"', ".SH NAME", "jittok \\- tokenize large corpora, exactly",
        ".SH SYNOPSIS", "\\fBjittok\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] ...", ".SH DESCRIPTION",
        roff(parser.description or ""),
    ]  # fmt: skip
    for task, names in TASKS.items():
        lines.append(f".SH {roff(task.upper())}")
        for name in names:
            command = subs.choices[name]
            lines += [
                f".SS jittok {name}",
                roff(about[name]),
                *_options(command),
                ".PP",
                *_examples(command.epilog or ""),
            ]
    lines += [
        ".SH EXIT STATUS", "0: done. 1: a difference, or a failed check. 2: wrong usage or bad input, with one line on",
        "standard error. 130: interrupted.",
        ".SH ENVIRONMENT", ".TP", "\\fBJITTOK_CACHE_DIR\\fR", "folder of machine code and compiled vocabularies",
        ".TP", "\\fBJITTOK_PROGRESS\\fR", "off: show no progress",
        ".TP", "\\fBJITTOK_TRACEBACK\\fR", "print the traceback of an internal error",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
