"""What `ship/check.py` refuses; where `lief` and a linker are installed, as `make wheel` installs them."""

import hashlib
import importlib.util
import json
import sys
from pathlib import Path

import pytest

PLACE = Path(__file__).parents[3] / "ship" / "check.py"
pytest.importorskip("lief", reason="`make wheel` installs lief")
found = importlib.util.spec_from_file_location("ship_check", PLACE)
check = importlib.util.module_from_spec(found)
sys.modules["ship_check"] = check
found.loader.exec_module(check)

RIGHT = ("ELF", "X86_64", {"jittok__a", "one"}, {"memset"}, set(), False)


def complaints(tmp_path, monkeypatch, level, facts, digest=None):
    (tmp_path / "library").write_bytes(b"code")
    digest = digest or hashlib.sha256(b"code").hexdigest()
    libraries = {level: {"file": "library", "sha256": digest}}
    (tmp_path / "manifest.json").write_text(
        json.dumps({"kernels": {"jittok__a": {}}, "functions": {"one": ""}, "libraries": libraries})
    )
    monkeypatch.setattr(check, "facts_of", lambda _: facts)
    return check.complaints(tmp_path)


def test_a_library_as_it_should_be_is_not_complained_of(tmp_path, monkeypatch):
    assert complaints(tmp_path, monkeypatch, "linux-x86_64-v3", RIGHT) == []


@pytest.mark.parametrize(
    ("level", "place", "value", "said"),
    [
        ("linux-x86_64-v3", 0, "PE", "format PE, expected ELF"),
        ("linux-x86_64-v3", 1, "AARCH64", "processor AARCH64, expected X86_64"),
        ("linux-x86_64-v3", 2, {"one"}, "lacks ['jittok__a']"),
        ("linux-x86_64-v3", 2, {"jittok__a", "one", "b"}, "gives ['b'] too"),
        ("linux-x86_64-v3", 3, {"system"}, "asks for ['system']"),
        ("linux-x86_64-v3", 4, {"libc.so.6"}, "asks ['libc.so.6']"),
        ("macos-arm64", 5, False, "is not signed, which macOS asks for"),
    ],
)
def test_what_is_not_as_it_should_be_is_named(tmp_path, monkeypatch, level, place, value, said):
    facts = list(RIGHT)
    if level == "macos-arm64":
        facts[:2] = "MACHO", "ARM64"
    facts[place] = value
    assert complaints(tmp_path, monkeypatch, level, tuple(facts)) == [f"library: {said}"]


def test_a_damaged_library_is_named(tmp_path, monkeypatch):
    assert complaints(tmp_path, monkeypatch, "linux-x86_64-v3", RIGHT, "0") == ["library: its digest is another"]
