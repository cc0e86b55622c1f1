"""The pictures of the documents show the bytes that are there."""

import importlib.util
from pathlib import Path

import pytest

from jittok.kernels.jit import JIT

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.skipif(not JIT, reason="without the compiler a short text goes another way")
def test_the_pictures_are_those_of_todays_tables():
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    text = pictures.TABLES.read_text("utf-8")
    assert pictures.drawn(text) == text, "python docs/pictures.py"
    assert "32 1a" in text  # id 6706, low byte first
    for theme in ("light", "dark"):
        assert pictures.tree(theme) == (ROOT / "docs" / f"trace-{theme}.svg").read_text("utf-8"), (
            "python docs/pictures.py"
        )
