"""The saved lesson about speed does not contradict the measured tables: figures of a busy machine are not kept."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[2]
FACTOR = 2.5
"""What the machine and the text may change."""
PROMPT = 3.0
"""Microseconds of a call with four words, at most."""


def shown() -> str:
    """What the saved lesson prints."""
    notebook = nbformat.read(ROOT / "notebooks" / "10_speed.ipynb", as_version=4)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "\n".join(output.get("text", "") for output in outputs)


def measured(table: str, name: str) -> list[list[str]]:
    """The rows of a vocabulary in a table of docs/benchmarks.md."""
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    rows = text.partition(f"<!-- {table} -->")[2].partition(f"<!-- /{table} -->")[0].splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if row.startswith(f"| {name} |")]


def rate(name: str, peer: str, text: str) -> float | None:
    """MB/s of one text at a time."""
    found = re.search(rf"^{name} +{peer} +([\d.]+) MB/s$", text, re.MULTILINE)
    return float(found[1]) if found else None


def contradictions(text: str) -> list[str]:
    """What a lesson shows that is further from the tables than the factor."""
    found = []
    for name in ("gpt-2", "t5"):
        told = [float(row[2]) for row in measured("single", name)] or [float(row[3]) for row in measured("speed", name)]
        own = rate(name, "jittok", text)
        assert own is not None
        if own < min(told) / FACTOR:
            found.append(f"{name}: {own} MB/s, measured {told}")
        if (peer := rate(name, "gigatoken", text)) is not None:
            ratios = [float(row[5]) for row in measured("single", name)]
            if own / peer < min(ratios) / FACTOR:
                found.append(f"{name}: {own / peer:.2f} of gigatoken's rate, measured {ratios}")
    calls = re.findall(r"^jittok +([\d.]+) microseconds$", text, re.MULTILINE)
    assert len(calls) == 1
    return found + [f"{call} microseconds a call" for call in calls if float(call) > PROMPT]


def test_the_saved_lesson_does_not_contradict_the_tables() -> None:
    assert contradictions(shown()) == []


def test_figures_of_a_busy_machine_are_found() -> None:
    busy = """gpt-2  jittok            53.3 MB/s
gpt-2  gigatoken         361.6 MB/s
t5     jittok             290.1 MB/s
jittok         18.54 microseconds
"""
    assert len(contradictions(busy)) == 3
