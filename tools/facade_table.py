"""What each facade has of the class that it stands for.

`python tools/facade_table.py` writes the table of docs/compat.md.

Every public attribute of the real class is asked for: it is there, or it is refused with the call of jittok to write
instead, or it is not there.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import jittok
from jittok.compat import as_sentencepiece, as_tiktoken, as_tokenizers, as_transformers
from jittok.compat.missing import Missing

PAGE = Path(__file__).resolve().parents[1] / "docs" / "compat.md"
MARKS = ("<!-- facades -->\n", "<!-- /facades -->")
REFUSALS = {
    "as_transformers": {
        "train_new_from_iterator": lambda facade: facade.train_new_from_iterator([["a"]], 10),
        "add_tokens of a new token": lambda facade: facade.add_tokens(["<no such token>"]),
    },
    "as_tokenizers": {
        "add_tokens of a new token": lambda facade: facade.add_tokens(["<no such token>"]),
        "add_special_tokens of a new token": lambda facade: facade.add_special_tokens(["<no such token>"]),
    },
    "as_sentencepiece": {"encode with enable_sampling": lambda facade: facade.encode("a", enable_sampling=True)},
}
"""Calls that are refused, though the name is there."""


class Row(NamedTuple):
    """One class."""

    facade: str
    real: str
    present: list[str]
    refused: dict[str, str]  # name -> what to write instead
    absent: list[str]


def pairs() -> dict[str, tuple[Any, str, str]]:
    """Name of the row -> (a facade's object, module and class that it stands for)."""
    gpt2, mistral = jittok.bundled("gpt-2"), jittok.bundled("mistral")
    return {
        "as_transformers": (as_transformers(gpt2), "transformers", "PreTrainedTokenizerFast"),
        "as_tokenizers": (as_tokenizers(gpt2), "tokenizers", "Tokenizer"),
        "its rows": (as_tokenizers(gpt2).encode("a"), "tokenizers", "Encoding"),
        "as_tiktoken": (as_tiktoken(gpt2), "tiktoken", "Encoding"),
        "as_sentencepiece": (as_sentencepiece(mistral), "sentencepiece", "SentencePieceProcessor"),
    }


def instead_of(call: Any, facade: Any) -> str:
    """What the NotImplementedError of a call says to write."""
    try:
        call(facade)
    except NotImplementedError as error:
        return str(error).partition(": ")[2]
    raise AssertionError("expected a NotImplementedError")


def row_of(name: str, facade: Any, module: str, kind: str) -> Row:
    """The row of one facade."""
    real = getattr(importlib.import_module(module), kind)
    row = Row(name, f"{module}.{kind}", [], {}, [])
    whole = {}
    for refused, call in REFUSALS.get(name, {}).items():
        whole[refused] = instead_of(call, facade)
    for each in sorted(own for own in dir(real) if not own.startswith("_")):
        found = getattr(type(facade), each, None)
        if isinstance(found, Missing):
            row.refused[each] = found.instead
        elif each in whole:
            row.refused[each] = whole[each]
        elif found is None and each not in dir(facade):
            row.absent.append(each)
        else:
            row.present.append(each)
    row.refused.update({each: said for each, said in whole.items() if each not in row.refused})
    return row


def rows() -> list[Row]:
    """All rows."""
    return [row_of(name, *found) for name, found in pairs().items()]


def _by_call(refused: dict[str, str]) -> str:
    """Names that have the same replacement together."""
    groups: dict[str, list[str]] = {}
    for name, said in refused.items():
        groups.setdefault(said, []).append(name)
    return "; ".join(f"{', '.join(names)}: {said}" for said, names in groups.items()).replace("|", r"\|")


def _snake(names: list[str]) -> list[str]:
    """Names without those that are others in CamelCase."""
    spelled = {name.replace("_", "").lower() for name in names if name.islower()}
    return [name for name in names if name.islower() or name.lower() not in spelled]


def table(found: list[Row]) -> str:
    """The table, and every name that is there."""
    lines = ["| | of | has | refused, with what to write instead | not there |", "|---|---|---|---|---|"]
    for row in found:
        total = len(row.present) + len(row.absent) + sum(" " not in name for name in row.refused)
        refused = {name: row.refused[name] for name in _snake([*row.refused])}
        absent = ", ".join(_snake(row.absent))
        lines.append(f"| {row.facade} | {row.real} | {len(row.present)} of {total} | {_by_call(refused)} | {absent} |")
    for row in found:
        lines += ["", *textwrap.wrap(f"{row.facade} has: {', '.join(_snake(row.present))}.", 120)]
    return "\n".join(lines) + "\n"


def versions() -> str:
    """The releases that were asked."""
    names = ("transformers", "tokenizers", "tiktoken", "sentencepiece")
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def section() -> str:
    """What stands between the marks."""
    return f"{table(rows())}\n{versions()}; names in CamelCase are not listed.\n\n"


def main() -> int:
    """Write the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    PAGE.write_text(f"{before}{MARKS[0]}{section()}{MARKS[1]}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
