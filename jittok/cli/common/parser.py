"""argparse with one-line usage errors that suggest a fix, and --help that fits the terminal."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from jittok.cli.common import note
from jittok.common.display.terminal import harmless
from jittok.common.hints import nearest

LONGEST = 3000
"""Maximum number of printed characters of an error."""
EXAMPLES = "examples:"
"""First line of an epilog. The lines after it are commands, or comments on them (#)."""
RENAMED = {"--output": "--out", "--errors": "--on-error"}
"""Former option names, which still work -> current names."""
OF_OTHERS = {
    "--tokenizer": "--vocab",
    "--tokenizer-file": "--vocab",
    "--tokenizer-path": "--vocab",
    "--tokenizer-name": "--vocab",
    "--model": "--vocab",
    "-m": "--vocab",
    "--vocabulary": "--vocab",
    "--vocab-file": "--vocab",
    "--vocab-size": "--size",
    "--text": "--prompt",
    "--string": "--prompt",
    "--stdin": "- (standard input, also the default without a file)",
    "--add-special-tokens": "--add-special",
    "--add-bos": "--add-special",
    "--bos": "--add-special",
    "--no-bos": "nothing: BOS is added only with --add-special",
    "--no-parse-special": "nothing: special tokens are parsed only with --parse-special",
    "--allow-special": "--parse-special",
    "--skip-special-tokens": "--remove-special",
    "--special": "--unparse-special",
    "--num-threads": "--threads",
    "--num-workers": "--threads",
    "--workers": "--threads",
    "--jobs": "--threads",
    "-j": "--threads",
    "-t": "--threads",
    "--output-dir": "--out",
    "--output-file": "--out",
    "--force": "--overwrite",
    "--text-field": "--field",
    "--json-key": "--field",
    "--jsonl-field": "--field",
    "--text-column": "--column",
    "--input": "the file names alone, without an option",
    "--files": "the file names alone, without an option",
    "--special-tokens": "--special",
    "--eod": "--append-eos",
}
"""Options of other programs -> what to write instead, if the command has it."""
COMMANDS_OF_OTHERS = {
    "help": "--help",
    "version": "--version",
    "tokenize": "encode",
    "detokenize": "decode",
    "ids": "encode",
    "wc": "count",
    "show": "info",
    "inspect": "info",
    "diff": "compare",
    "export": "convert",
    "explain": "trace",
    "debug": "trace",
    "preprocess": "corpus",
    "dataset": "corpus",
    "check": "verify",
    "warm": "cache warm",
}


def in_one_line(text: str) -> str:
    """A text as one line: each line end and the blanks around it become one space. Other white space stays, as file
    names may contain it. The middle of a long text is omitted: a whole text may be passed as a file name."""
    line = " ".join(filter(None, (line.strip() for line in text.strip().splitlines())))
    if len(line) <= LONGEST:
        return line
    half = LONGEST // 2
    return f"{line[:half]} … {len(line) - 2 * half:,} characters … {line[-half:]}"


class Help(argparse.HelpFormatter):
    """Help with a short usage line, commands by task, and examples wrapped with shell continuations."""

    tasks: Mapping[str, Sequence[str]] = {}

    def _format_action(self, action: argparse.Action) -> str:
        """Commands under the tasks that they are for."""
        if not isinstance(action, argparse._SubParsersAction) or not self.tasks:
            return super()._format_action(action)
        subs = {each.dest: each for each in action._get_subactions()}
        lines = []
        for task, names in self.tasks.items():
            lines.append(f"{'':{self._current_indent}}{task}\n")
            self._indent()
            lines += [super(Help, self)._format_action(subs[name]) for name in names]
            self._dedent()
        return "".join(lines)

    def add_usage(self, usage: Any, actions: Iterable[argparse.Action], groups: Any, prefix: Any = None) -> None:
        """Show required options and file arguments; all other options together are [OPTIONS]."""
        actions = list(actions)
        shown = [action for action in actions if action.required or not action.option_strings]
        if len(shown) < len(actions):
            shown.insert(0, argparse.Action([], "options", nargs="?", metavar="OPTIONS"))
        super().add_usage(usage, shown, groups and [], prefix)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if not text.startswith(EXAMPLES):
            return super()._fill_text(text, width, indent)
        lines = [EXAMPLES]
        for line in text.splitlines()[1:]:
            if line.startswith("#"):
                lines += textwrap.wrap(line, width, initial_indent="  ", subsequent_indent="  # ")
            else:
                lines += _broken(line, width)
        return "\n".join(lines)


def _broken(command: str, width: int) -> list[str]:
    """Wrap a command with backslash continuations; quoted words are not broken."""
    lines, line = [], " "
    for word in re.findall(r"""(?:'[^']*'|"[^"]*"|\S)+""", command):
        if line.strip() and len(line) + 1 + len(word) > width - 2:
            lines.append(f"{line} \\")
            line = "     "
        line += f" {word}"
    return [*lines, line]


class Parser(argparse.ArgumentParser):
    """argparse with one-line usage errors."""

    tasks: Mapping[str, Sequence[str]] = {}
    """Tasks -> names of commands, for --help; empty for a command."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": Help, **options})

    def _get_formatter(self) -> argparse.HelpFormatter:
        made = super()._get_formatter()
        if isinstance(made, Help):
            made.tasks = self.tasks
        return made

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with status 2."""
        names = message.removeprefix("the following arguments are required: ")
        if names != message:
            message = f"found no {names}"
            message += ", expected a tokenizer file, a folder with one, or a bundled name" if "--vocab" in names else ""
        self.exit(2, harmless(in_one_line(f"{self.prog}: {message} (see {self.prog} --help)")) + "\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """As in argparse, except that a failing write to standard output is an error and not ignored."""
        if message and file is not None and file is not sys.stderr:
            file.write(message)
        elif message:
            note(message.removesuffix("\n"))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in argparse, but misspelt options are reported first; argparse would first report missing ones."""
        given = list(sys.argv[1:] if args is None else args)
        if self._subparsers is None:
            given = self._renamed(given)
            self._check_options(given)
        else:
            self._check_command(given)
        found, rest = super().parse_known_args(given, namespace)
        if rest and "--out" in self._option_string_actions:
            self.error(f"unrecognized arguments: {' '.join(rest)}; --out FILE names what is written")
        return found, rest

    def _renamed(self, given: Sequence[str]) -> list[str]:
        """Replace former option names with the current ones; nothing after -- is changed."""
        end = given.index("--") if "--" in given else len(given)
        known = self._option_string_actions
        found = list(given)
        for k in range(end):
            name, equals, value = given[k].partition("=")
            if name not in known and RENAMED.get(name) in known:
                found[k] = RENAMED[name] + equals + value
        return found

    def _check_options(self, given: Sequence[str]) -> None:
        """Exit with an error for an unknown option; values of options are left to argparse."""
        known = self._option_string_actions
        takes_value = False
        for each in given:
            if each == "--":
                return
            name = each.partition("=")[0]
            if (
                each.startswith("-") and each != "-" and not takes_value and " " not in each and name not in known
                and not re.fullmatch(r"-\d.*", each)
            ):  # fmt: skip
                found = [own for own in known if own.startswith(name)] if name.startswith("--") else [each[:2]]
                if not any(own in known for own in found):
                    self.error(f"unrecognized option {name}{self._meant(name)}")
            action = known.get(name)
            takes_value = action is not None and action.nargs is None and "=" not in each

    def _meant(self, name: str) -> str:
        """A hint what an unknown option may mean."""
        known = [own for own in self._option_string_actions if own.startswith("--")]
        other = OF_OTHERS.get(name)
        if other is not None and (other in known or not other.startswith("-") or other.startswith("- ")):
            return f"; write {other}"
        near = nearest(name, known)
        return f"; did you mean {near}?" if near else ""

    def _check_command(self, given: Sequence[str]) -> None:
        """Exit with an error if the first word is not a command."""
        choices: list[str] = []
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                choices = list(action.choices)
        name = next(iter(given), "")
        if not name or name in choices or name in self._option_string_actions:
            return
        if name.startswith("-"):
            if not any(own.startswith(name) for own in self._option_string_actions):
                self.error(f"found {name} before the command, expected {self.prog} COMMAND {name} ...")
            return
        meant = COMMANDS_OF_OTHERS.get(name) or nearest(name, choices)
        said = f"; did you mean {self.prog} {meant}?" if meant else ""
        self.error(f"found no command {name!r}, expected one of {', '.join(choices)}{said}")
