"""What `make demo` shows: something at once, and at the end each token with its id below it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import jittok

DEMO = Path(__file__).resolve().parents[1] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    for name in ("rich", "filelock", "pyarrow"):
        pytest.importorskip(name)
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("columns", [20, 80, 200])
def test_the_picture_has_each_token_above_its_id(demo: ModuleType, columns: int) -> None:
    tok = jittok.bundled("gpt-2")
    lines = demo.picture(tok, demo.LINE, columns).plain.split("\n")[:-1]
    assert all(len(line) <= columns for line in lines)
    tokens, ids = lines[::2], lines[1::2]
    assert [int(each) for line in ids for each in line.split()] == tok.encode(demo.LINE).tolist()
    for above, below in zip(tokens, ids, strict=True):
        assert len(above) == len(below)
        places = [k for k, character in enumerate(below) if character != " " and below[k - 1 : k] in ("", " ")]
        for place, end in zip(places, [*places[1:], len(below)], strict=True):
            token = int(below[place:end])
            piece = tok.token_to_piece(token).decode()
            assert above[place:end].startswith(piece), token


@pytest.mark.process
def test_the_demo_says_something_before_it_imports_anything_large() -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen([sys.executable, DEMO], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        line = child.stdout.readline()
        child.kill()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert line == "jittok: loading the tokenizer ...\n"
    assert after.ru_utime - before.ru_utime < 1
