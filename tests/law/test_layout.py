"""What a reader can rely on: no file, no function and no folder is too long, no two modules import each other in a
circle, and no call goes from a package back to one above it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import jittok

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 800


def python_files() -> list[Path]:
    """Every Python file of the checkout that is no product of another (environments and builds lie in folders of git's
    ignore list); without git, those of the folders that hold sources."""
    try:
        said = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "*.py"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        found = [ROOT / name for name in said.stdout.splitlines()]
    except (OSError, subprocess.CalledProcessError):
        found = [
            path
            for folder in ("jittok", "tests", "bench", "ship", "upstream")
            for path in (ROOT / folder).rglob("*.py")
        ]
    return [path for path in found if path.is_file()]


def test_no_file_is_longer_than_800_lines() -> None:
    lines = {path: path.read_bytes().count(b"\n") for path in python_files()}
    assert len(lines) > 300  # the search finds something
    long = {str(path.relative_to(ROOT)): count for path, count in lines.items() if count > MOST_LINES}
    assert not long, f"more than one concept in {long}?"


MOST_OF_A_FUNCTION = 60
LONGER = {"split_llama3": "masks stay in registers", "split_spans": "masks stay in registers"}
"""Functions that are longer, each with why: kernels' loops that would be slower in parts."""


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function besides its docstring."""
    first = function.body[1] if ast.get_docstring(function) and function.body[1:] else function.body[0]
    return (function.end_lineno or 0) - first.lineno + 1 + (function.body[0].lineno - function.lineno)


def test_no_function_is_longer_than_60_lines_but_for_loops_that_would_be_slower_in_parts() -> None:
    found = {
        node.name: lines_of(node)
        for path in (ROOT / "jittok").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines_of(node) > MOST_OF_A_FUNCTION
    }
    assert found.keys() == LONGER.keys(), found


MOST_MODULES = 12


def test_no_folder_holds_more_than_12_modules() -> None:
    modules: dict[str, int] = {}
    for path in (ROOT / "jittok").rglob("*.py"):
        folder = str(path.parent.relative_to(ROOT))
        modules[folder] = modules.get(folder, 0) + (path.stem != "__init__")
    assert len(modules) > 50  # the search finds something
    full = {folder: count for folder, count in modules.items() if count > MOST_MODULES}
    assert not full, f"which of these modules are one concept: {full}?"


MOST_NAMES = 24
"""What a newcomer meets in the package: what users import, and the rooms between a text and its ids."""
INNER = ("kernels", "common")
"""Packages that only hold others."""


def names_in(folder: Path) -> set[str]:
    """Packages and modules of a folder."""
    found = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    return found - {"__init__", "__main__"}


def rooms() -> set[str]:
    """Packages and modules of the package that hold code of their own, as `encode` or `kernels.special`."""
    inner = {f"{outer}.{name}" for outer in INNER for name in names_in(ROOT / "jittok" / outer)}
    return names_in(ROOT / "jittok") - {*INNER} | inner


def test_a_newcomer_meets_at_most_24_names() -> None:
    assert len(names_in(ROOT / "jittok")) <= MOST_NAMES


def test_every_room_has_its_place_in_the_contract_and_on_the_map() -> None:
    contract = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("layers = [")[1].split("\n]")[0]
    layers = [set(re.findall(r"jittok\.((?:kernels\.|common\.)?\w+)", line)) for line in contract.splitlines()]
    assert rooms() - set.union(*layers) == {"reference"}  # which has contracts of its own
    design = (
        (ROOT / "DESIGN.md")
        .read_text(encoding="utf-8")
        .split("## The tree")[1]
        .split("| packages |")[1]
        .split("\n\n")[0]
    )
    rows = [row.split("|")[1] for row in design.splitlines() if row.startswith("| `")]
    told = [{name.replace("/", ".") for name in re.findall(r"`([\w/]+)`", row)} for row in rows]
    assert set.union(*told) == rooms()
    heights = {room: height for height, layer in reversed([*enumerate(layers)]) for room in layer}  # its highest
    for above, below in pairwise(told[:-1]):
        assert max(heights[room] for room in above) < min(heights[room] for room in below)


def _imports(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    """The imports that run when a module is imported: neither those of functions nor those for type checkers."""
    found: list[ast.Import | ast.ImportFrom] = []
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for field in ("body", "orelse", "finalbody"):
                waiting += getattr(node, field, [])
            waiting += [line for handler in getattr(node, "handlers", []) for line in handler.body]
    return found


def arrows(package: Path) -> dict[str, set[str]]:
    """Module -> modules of the package that it imports when it is imported itself."""
    names = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in package.rglob("*.py")
    }
    found: dict[str, set[str]] = {name: set() for name in names}
    for name, path in names.items():
        for node in _imports(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found[name] |= {alias.name for alias in node.names if alias.name in names}
            elif node.module in names:
                parts = {f"{node.module}.{alias.name}" for alias in node.names}
                found[name] |= (parts & names.keys()) or {str(node.module)}
    return found


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules of a circle, the first of which the last imports; none of there is none."""
    done: set[str] = set()
    for start in list(graph):
        path, ways = [start], [iter(sorted(graph[start]))]
        while path:
            if (there := next(ways[-1], None)) is None:
                done.add(path.pop())
                ways.pop()
            elif there in path:
                return path[path.index(there) :]
            elif there not in done:
                path.append(there)
                ways.append(iter(sorted(graph[there])))
    return []


def test_no_module_imports_itself_by_way_of_others() -> None:
    found = arrows(ROOT / "jittok")
    assert sum(map(len, found.values())) > 1000  # the search finds something
    assert circle(found) == []


def test_a_circle_would_be_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert sorted(circle({"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"b"}})) == ["b", "c", "d"]


GROUND = {"kernels.jit", "kernels.memory", "errors", "kernels.fragments", "common.locks", "__init__"}
"""What every room calls."""
CALLS_BACK = {("kernels.models", "encode")}
"""A type that chooses between kernels hands its choice to the workspace, which keeps the frames of kernels."""


def calls_between_rooms(way: Callable[[], object]) -> dict[str, set[str]]:
    """Room -> rooms that it calls while `way` runs in a thread of its own."""
    found: dict[str, set[str]] = {}
    package = Path(jittok.__file__).parent

    def room(frame: Any) -> str | None:
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(package):
            return None
        parts = path.relative_to(package).with_suffix("").parts
        name = ".".join(parts[:2] if parts[0] in INNER else parts[:1])
        return None if name in GROUND else name

    def note(frame: Any, event: str, _argument: Any) -> None:
        if event == "call" and (here := room(frame)) is not None:
            while (frame := frame.f_back) is not None and room(frame) is None:
                pass
            above = None if frame is None else room(frame)
            if above not in (None, here) and (above, here) not in CALLS_BACK:
                found.setdefault(str(above), set()).add(here)
                found.setdefault(here, set())

    def walk() -> None:
        sys.setprofile(note)
        try:
            way()
        finally:
            sys.setprofile(None)

    with ThreadPoolExecutor(1) as alone:  # what the main thread has others do, any other thread does itself
        alone.submit(walk).result()
    return found


@pytest.mark.parametrize("way", ["encode_batch", "load", "decode", "compile_corpus"])
def test_a_main_way_goes_down_through_the_rooms(way: str, tmp_path: Path) -> None:
    tok = jittok.bundled("gpt-2")
    (tmp_path / "a.txt").write_text("a text")

    def compile_corpus() -> None:
        pytest.importorskip("filelock")
        from jittok.corpus import compile_corpus

        compile_corpus([tmp_path / "a.txt"], tok, tmp_path / "out", threads=1)

    ways: dict[str, Callable[[], object]] = {
        "encode_batch": lambda: tok.encode_batch(["a text", "another"], threads=1),
        "load": lambda: jittok.bundled("gpt-2"),
        "decode": lambda: tok.decode([1, 2, 3]),
        "compile_corpus": compile_corpus,
    }
    found = calls_between_rooms(ways[way])
    assert len(found) > 2  # the walk sees something
    assert circle(found) == []
