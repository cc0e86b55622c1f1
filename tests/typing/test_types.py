"""Checkers of types find what is wrong in a user's program, and nothing in one that is right."""

from __future__ import annotations

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAMS = ("right", "wrong", "program")
PLAIN_DATA = "dict[str, Any]"
"""Records that become JSON, the one kind of result that names no types of its values."""
PUBLIC = (
    "tokenizer/tokenizer.py", "tokenizer/batching.py", "tokenizer/chunking.py", "tokenizer/chatting.py",
    "tokenizer/looking.py", "tokenizer/loading.py", "tokenizer/objects.py", "common/rows/token_array.py",
    "chunks/rows.py", "corpus/compiler.py", "corpus/verifier.py", "corpus/reading/sequences.py", "train/__init__.py",
    "compare/api.py", "convert/api.py", "arrow.py", "polars.py", "ray.py", "trace/trace.py", "align/alignment.py",
    "decode/stream.py",
)  # fmt: skip
"""Files of the package that hold what users call."""
RECIPES = {
    "gguf_of",
    "rebundle",
    "reload",
    "rebuild",
    "rank_options",
    "table_options",
    "joined",
    "arrays",
    "count_options",
}
"""Functions of these that only the package itself and pickles call; `arrays` are a type's own."""


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
    files = [str(HERE / f"{name}.py") for name in PROGRAMS]
    done = subprocess.run([*command, *files], capture_output=True, text=True, env=env, check=False, cwd=HERE)
    told = re.findall(r"(right|wrong|program)\.py:(\d+)[: ].*error", done.stdout)
    assert told, done
    return {name: {int(line) for each, line in told if each == name} for name in PROGRAMS}


@pytest.mark.process
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_right_program_has_no_error_and_each_wrong_line_one(checker: str) -> None:
    lines = (HERE / "wrong.py").read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(wrong) > 10
    assert errors_of(checker) == {"right": set(), "wrong": wrong, "program": set()}


def signatures(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(name, annotation) of what public functions and methods take and give."""
    classes = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    for node in chain(tree.body, *classes):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
            for each in [*(one.annotation for one in given if one is not None), node.returns]:
                if each is not None:
                    yield node.name, ast.unparse(each)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_signatures_say_their_types(name: str) -> None:
    tree = ast.parse((ROOT / "jittok" / name).read_text("utf-8"))
    found = [
        f"{function}: {told}"
        for function, told in signatures(tree)
        if re.search(r"\bAny\b", told.replace(PLAIN_DATA, "").replace("integer[Any]", "")) and function not in RECIPES
    ]
    assert not found
