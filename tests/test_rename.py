"""tools/rename over a small repository: what a rename reaches, and what it leaves."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ruff", reason="formats what was renamed")
TOOL = Path(__file__).resolve().parents[1] / "tools" / "rename"
TABLE = """
jittok.a.old -> jittok.a.new
jittok.a.old:Thing -> Item  # a class
*.room -> capacity
jittok.a.*(place) -> position|offset
jittok.a.old:gone -> lost
"""
FILES = {
    "jittok/__init__.py": "",
    "jittok/a/__init__.py": 'from jittok.a.old import Thing\n\n__all__ = ["Thing"]\n',
    "jittok/a/old.py": '"""See `Thing`."""\n\n\nclass Thing:\n    room: int = 3\n\n\n'
    "def find(place: int, thing: Thing) -> int:\n    position = 1\n    return position + place + thing.room\n",
    "jittok/b.py": '"""As `a.old`: `old.find`, jittok/a/old.py."""\n\nfrom jittok.a import Thing, old\n\n\n'
    "def place(thing: Thing) -> int:\n    return old.find(place=1, thing=thing)\n",
    "tests/a/test_old.py": "from jittok.a import old\n\n\ndef test_it(monkeypatch):\n"
    '    monkeypatch.setattr(old, "Thing", None)\n    assert old.Thing is None\n',
    "tests/mutants/a.txt": "== jittok/a/old.py: tests/a/test_old.py\n- return position + place + thing.room\n"
    "+ return position - place + thing.room\n",
    "MAP.md": "`jittok/a/old.py` has `Thing.room`; old things have room.\n",
}


def run(home, *options):
    command = [sys.executable, str(home / "tools" / "rename"), str(home / "table"), *options]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


@pytest.fixture
def home(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    shutil.copytree(TOOL, tmp_path / "tools" / "rename")
    (tmp_path / "table").write_text(TABLE, encoding="utf-8")
    return tmp_path


@pytest.mark.process
def test_a_rename_reaches_code_tests_mutants_and_documents_and_tells_what_matches_nothing(home):
    assert run(home, "--dry-run")[1] == ["matches nothing: jittok.a.old:gone -> lost"]
    assert (home / "jittok/a/old.py").exists()
    status, told = run(home)
    assert status == 1
    assert told == ["matches nothing: jittok.a.old:gone -> lost"]
    texts = {name: (home / name).read_text(encoding="utf-8") for name in ("jittok/a/new.py", "jittok/b.py", "MAP.md")}
    assert "def find(offset: int, thing: Item)" in texts["jittok/a/new.py"]  # `position` is there already
    assert "return position + offset + thing.capacity" in texts["jittok/a/new.py"]
    assert '"""As `a.new`: `new.find`, jittok/a/new.py."""' in texts["jittok/b.py"]
    assert "def place(thing: Item) -> int:\n    return new.find(offset=1, thing=thing)" in texts["jittok/b.py"]
    assert texts["MAP.md"] == "`jittok/a/new.py` has `Item.capacity`; old things have room.\n"
    assert '__all__ = ["Item"]' in (home / "jittok/a/__init__.py").read_text(encoding="utf-8")
    assert 'setattr(new, "Item", None)' in (home / "tests/a/test_new.py").read_text(encoding="utf-8")
    mutants = (home / "tests/mutants/a.txt").read_text(encoding="utf-8").splitlines()
    assert mutants[0] == "== jittok/a/new.py: tests/a/test_new.py"
    assert mutants[1:] == ["- return position + offset + thing.capacity", "+ return position - offset + thing.capacity"]
