"""Checkers of types find what is wrong in a user's program, and nothing in one that is right."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@functools.cache
def errors_of(checker: str) -> dict[str, set[int]]:
    """The lines of each program that a checker calls wrong."""
    if checker == "mypy":
        pytest.importorskip("mypy")
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--cache-dir", os.devnull]
    else:
        folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        if (found := shutil.which("pyright", path=folders)) is None:
            pytest.skip("needs pyright")
        command = [found, "--pythonpath", sys.executable]
    env = os.environ | {"PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)}
    files = [str(HERE / "right.py"), str(HERE / "wrong.py")]
    done = subprocess.run([*command, *files], capture_output=True, text=True, env=env, check=False, cwd=HERE)
    told = re.findall(r"(right|wrong)\.py:(\d+)[: ].*error", done.stdout)
    assert told, done
    return {name: {int(line) for each, line in told if each == name} for name in ("right", "wrong")}


@pytest.mark.process
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_right_program_has_no_error_and_each_wrong_line_one(checker: str) -> None:
    lines = (HERE / "wrong.py").read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(wrong) > 10
    assert errors_of(checker) == {"right": set(), "wrong": wrong}
