"""Every kernel of the package is shipped: what `ship/emit.py` finds is what the sources define."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

import jittok
from jittok.kernels.jit import shipped

PACKAGE = Path(jittok.__file__).parent
EMIT = PACKAGE.parent / "ship" / "emit.py"


@functools.cache
def defined() -> frozenset[str]:
    """Every kernel, by reading the sources: however and wherever the decorator is written."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(("jittok", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "kernel" in text else ():
            if isinstance(node, ast.FunctionDef) and any("kernel" in ast.unparse(each) for each in node.decorator_list):
                found.add(f"{module}.{node.name}")
    return frozenset(found)


def test_the_sources_define_kernels_of_every_kind():
    names = defined()
    for room in (
        "kernels.models.bpe",
        "kernels.models.ugm",
        "kernels.models.spm",
        "train",
        "kernels.special",
        "decode",
        "align",
        "kernels.normalize",
    ):
        assert any(name.startswith(f"jittok.{room}") for name in names), room


@pytest.mark.process
@pytest.mark.skipif(not EMIT.exists(), reason="a checkout has ship/emit.py")
def test_the_build_finds_every_kernel():
    code = f"""
import importlib.util, sys
place = importlib.util.spec_from_file_location("emit", {str(EMIT)!r})
emit = importlib.util.module_from_spec(place)
place.loader.exec_module(emit)
print(*(f"{{each.python.__module__}}.{{each.python.__qualname__}}" for each in emit.kernels()), sep="\\n")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert set(done.stdout.split()) == defined()


@pytest.mark.skipif(not shipped.manifest()["kernels"], reason="no machine code is shipped with this package")
def test_a_wheel_has_every_kernel_for_this_machine():
    void = {}
    for name in sorted(defined()):
        module, _, function = name.rpartition(".")
        void[name] = shipped.why_not(module, function)
    edited = {"its sources are not those of the shipped code"} if EMIT.exists() else set()  # in a checkout
    assert set(void.values()) <= {""} | edited, void
