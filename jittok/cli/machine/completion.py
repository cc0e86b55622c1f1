"""`jittok completion`: a script that completes commands, options and their values in bash, zsh or fish.

The script is made from the parser, so it knows what `--help` knows, and calls nothing when a key is pressed.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from jittok.cli.common import write

HELP = "Print a script that completes commands and options in a shell."
EXAMPLES = """# in ~/.bashrc (in ~/.zshrc after compinit: zsh)
source <(jittok completion bash)
# in ~/.config/fish/config.fish
jittok completion fish | source"""
VOCABS = ("FILE|NAME", "A", "B", "VOCAB")
"""Metavars of arguments that are a tokenizer file or a bundled name."""
FOLDERS = ("DIR",)
TEXTS = ("TEXT", "REGEX", "PATTERN", "ID|TEXT", "TOKEN", "N", "SHARE", "GLOB=X", "TEXT=ID")
"""Metavars of what no file name can be."""


class Argument(NamedTuple):
    """An option, or a positional argument without names."""

    names: tuple[str, ...]
    about: str
    takes: str  # "" for a flag, "file", "folder", "vocab", "text", or choices, separated by spaces


class Command(NamedTuple):
    """A command of the program."""

    name: str
    about: str
    arguments: tuple[Argument, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("shell", choices=tuple(_SCRIPTS), metavar="bash|zsh|fish", help="the shell to complete in")


def run(options: argparse.Namespace) -> int:
    """Print the script; returns 0."""
    from jittok.cli import build_parser
    from jittok.vocab.bundled import bundled_names

    write(_SCRIPTS[options.shell](commands_of(build_parser()), bundled_names()))
    return 0


def commands_of(parser: argparse.ArgumentParser) -> list[Command]:
    """Every command of a parser, with its arguments."""
    found = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            about = {each.dest: each.help or "" for each in action._get_subactions()}
            for name, sub in action.choices.items():
                arguments = tuple(map(_argument, sub._actions))
                found.append(Command(name, about.get(name, ""), arguments))
    return found


def _argument(action: argparse.Action) -> Argument:
    about = (action.help or "").replace("%%", "%").split(" (default")[0].split("; ")[0]
    named = action.metavar if isinstance(action.metavar, str) else ""
    if action.nargs == 0:
        takes = ""
    elif action.choices or ("|" in named and named == named.lower()):
        takes = " ".join(map(str, action.choices or named.split("|")))
    elif named in FOLDERS:
        takes = "folder"
    else:
        takes = "vocab" if named in VOCABS else "text" if named in TEXTS or not named else "file"
    return Argument(tuple(action.option_strings), about, takes)


def _values(arguments: tuple[Argument, ...]) -> Iterator[tuple[str, str]]:
    """(names of options, what they take) for options with values, and ("", ...) for positional arguments."""
    for each in arguments:
        if each.takes:
            yield "|".join(each.names), each.takes


def _bash(commands: list[Command], bundled: list[str]) -> str:
    """A function for `complete -F`; what it cannot know is completed as a file name."""

    def reply(takes: str) -> str:
        words = {"vocab": " ".join(bundled), "text": "", "file": "", "folder": ""}.get(takes, takes)
        kind = {"vocab": "-f ", "file": "-f ", "folder": "-d "}.get(takes, "")
        return f'COMPREPLY=($(compgen {kind}-W "{words}" -- "$word"))'

    cases = []
    for command in commands:
        rows = [*_values(command.arguments)]
        options = " ".join(name for each in command.arguments for name in each.names)
        lines = [f"    {names}) {reply(takes)}; return ;;" for names, takes in rows if names]
        places = next((reply(takes) for names, takes in rows if not names), reply("file"))
        before = "\n".join(["    case $before in", *lines, "    esac"]) if lines else ""
        cases.append(
            f"  {command.name})\n{before}\n"
            f'    if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "{options}" -- "$word")); else {places}; fi ;;'
        )
    names = " ".join(command.name for command in commands)
    return "\n".join([
        "# completion of jittok for bash; made by: jittok completion bash",
        "_jittok() {",
        '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD - 1]}"',
        "  COMPREPLY=()",
        "  if ((COMP_CWORD == 1)); then",
        f'    COMPREPLY=($(compgen -W "{names} --help --version" -- "$word")); return',
        "  fi",
        '  case "${COMP_WORDS[1]}" in',
        *cases,
        "  esac",
        "}",
        "complete -o filenames -F _jittok jittok",
        "",
    ])  # fmt: skip


def _zsh(commands: list[Command], bundled: list[str]) -> str:
    """A function for `compdef`, with the description of each option."""

    def clean(text: str) -> str:
        return text.replace("\\", "").replace("[", "(").replace("]", ")").replace(":", " -").replace("'", "")

    def action(takes: str) -> str:
        kinds = {
            "vocab": "_jittok_vocabularies", "file": "_files", "folder": "_files -/", "text": " ",
        }  # fmt: skip
        return kinds.get(takes, f"({takes})")

    lines = ["#compdef jittok", "# completion of jittok for zsh; made by: jittok completion zsh",
             f"_jittok_vocabularies() {{ _alternative 'files:file:_files' 'names:bundled:({' '.join(bundled)})' }}",
             "_jittok() {",
             "  local context state line", "  local -a commands", "  commands=("]  # fmt: skip
    lines += [f"    {shlex.quote(f'{each.name}:{clean(each.about)}')}" for each in commands]
    lines += ["  )", "  _arguments -C '1: :->command' '*:: :->arguments'", "  case $state in",
              "  command) _describe command commands ;;", "  arguments) case $words[1] in"]  # fmt: skip
    for command in commands:
        specs = []
        for each in command.arguments:
            value = f":value:{action(each.takes)}" if each.takes else ""
            specs += [f"{name}[{clean(each.about)}]{value}" for name in each.names]
            if not each.names:
                specs.append(f"*:argument:{action(each.takes)}")
        places = [spec for spec in specs if spec.startswith("*:")][:1]
        specs = [spec for spec in specs if not spec.startswith("*:")] + places
        quoted = " \\\n      ".join(
            '"' + spec.replace("`", "").replace('"', "").replace("$", "") + '"' for spec in specs
        )
        lines.append(f"    {command.name}) _arguments \\\n      {quoted} ;;")
    return "\n".join([*lines, "    esac ;;", "  esac", "}", 'if [[ $funcstack[1] == _jittok ]]; then _jittok "$@"',
                      "else compdef _jittok jittok; fi", ""])  # fmt: skip


def _fish(commands: list[Command], bundled: list[str]) -> str:
    """One `complete` a command and option."""

    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = ["# completion of jittok for fish; made by: jittok completion fish", "complete -c jittok -f"]
    for command in commands:
        here = quoted(f"__fish_seen_subcommand_from {command.name}")
        lines.append(f"complete -c jittok -n __fish_use_subcommand -a {command.name} -d {quoted(command.about)}")
        for each in command.arguments:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in each.names)
            kinds = {"": "", "file": "-F", "folder": "-a '(__fish_complete_directories)'", "text": "-f",
                     "vocab": f"-F -a {quoted(' '.join(bundled))}"}  # fmt: skip
            value = kinds.get(each.takes, f"-f -a {quoted(each.takes)}")
            need = " -r" if names and each.takes else ""
            about = f" -d {quoted(each.about)}" if names else ""
            lines.append(f"complete -c jittok -n {here} {names}{need} {value}{about}".replace("  ", " "))
    return "\n".join([*lines, ""])


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
