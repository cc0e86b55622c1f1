"""Ctrl-C while the command imports its modules: one line and status 130, from the first line of the package on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

COMMAND = """
import sys
moment = int(sys.argv.pop())
class Pressed:
    @staticmethod
    def find_spec(name, *_):
        global moment
        moment -= name != "jittok"  # what stands before its first line is Python's
        if moment == 0:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Pressed)
from jittok.__main__ import run
if __name__ == "__main__":
    sys.exit(run())
"""
"""What pip makes of an entry point, with Ctrl-C at an import that is counted."""
PRESSED_ONCE = """
import sys
class Pressed:
    @staticmethod
    def find_spec(name, *_):
        if name == "jittok.common.locks":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Pressed)
"""
"""What Python runs before the command: Ctrl-C at the first module that the package imports."""
MOMENTS = [1, 2, 3, 4, 5, 8, 13, 21, 34, 55]


def pressed(folder: Path, name: str, moment: int) -> tuple[int, str, str]:
    script = folder / name
    script.write_text(COMMAND)
    given = [sys.executable, script, "--version", str(moment)]
    done = subprocess.run(given, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_import_that_is_interrupted_is_told_in_a_line(tmp_path: Path, moment: int) -> None:
    assert pressed(tmp_path, "jittok", moment) == (130, "", "jittok: interrupted\n")


def test_other_programs_have_their_own_ways(tmp_path: Path) -> None:
    status, _, told = pressed(tmp_path, "mine", 1)
    assert status not in (0, 130)
    assert told.startswith("Traceback")
    assert told.endswith("KeyboardInterrupt\n")
    assert pressed(tmp_path, "jittok", 9999)[::2] == (0, "")


@pytest.mark.parametrize("name", ["mine", "jittok_mine"])
def test_ctrl_c_of_another_program_is_told_by_python(tmp_path: Path, name: str) -> None:
    program = "import jittok; raise KeyboardInterrupt"
    package = tmp_path / name
    package.mkdir()
    (package / "__init__.py").write_text("import jittok")
    (package / "__main__.py").write_text(program)
    (tmp_path / "mine.py").write_text(program)
    for given in (["-c", program], ["mine.py"], ["-m", name], ["-m", name, "-m", "jittok"], [f"-m{name}", "jittok"]):
        done = subprocess.run([sys.executable, *given], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stderr.startswith("Traceback"), given
        assert "jittok: interrupted" not in done.stderr, given


@pytest.mark.parametrize("given", [["-m", "jittok"], ["-W", "error", "-mjittok"], ["-Bm", "jittok"]])
def test_ctrl_c_is_a_line_however_python_is_told_to_run_the_command(tmp_path: Path, given: list[str]) -> None:
    (tmp_path / "sitecustomize.py").write_text(PRESSED_ONCE)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, *given, "--version"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "jittok: interrupted\n")
