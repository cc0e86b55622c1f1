"""The exercises of the notebooks can be solved, but not by anything. `make test` also runs them from a fresh kernel."""

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def code_cells(name: str) -> list[str]:
    notebook = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def first_tokens() -> dict[str, Any]:
    """The names of the first lesson after its last cell."""
    names: dict[str, Any] = {}
    for cell in code_cells("01_first_tokens.ipynb"):
        exec(cell, names)
    return names


@pytest.mark.parametrize("verdict", ["right", "not yet, try again", "no answer yet"])
def test_answers_to_the_first_lesson_are_judged(first_tokens, verdict, capsys):
    rows = first_tokens["rows"]
    answers = {
        "right": ("possible", "<s>", rows.to_padded(12, pad_id=0, side="left")[0]),
        "not yet, try again": ("the", "text", rows.to_padded(12, pad_id=0)[0]),
        "no answer yet": (..., ..., ...),
    }[verdict]
    exec(
        code_cells("01_first_tokens.ipynb")[-1],
        first_tokens | dict(zip(("word", "marked", "left_padded"), answers, strict=True)),
    )
    assert capsys.readouterr().out.splitlines()[-3:] == [f"exercise {number}: {verdict}" for number in (1, 2, 3)]


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_short_and_was_run(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(cells) < 20
    assert path.stat().st_size < 100_000
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
