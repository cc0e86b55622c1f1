"""Ctrl-C while the command imports its modules: one line and status 130, from the first line of the package on."""

from __future__ import annotations

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
