"""Which wheels get machine code, of which system and level."""

import importlib.util
import platform
import sys
from pathlib import Path

import pytest

import jittok
from jittok.kernels.jit import shipped

PLACE = Path(jittok.__file__).parents[1] / "ship" / "levels.py"
if not PLACE.exists():
    pytest.skip("a checkout has ship/levels.py", allow_module_level=True)
found = importlib.util.spec_from_file_location("ship_levels", PLACE)
levels = importlib.util.module_from_spec(found)
sys.modules["ship_levels"] = levels
found.loader.exec_module(levels)


def machine(monkeypatch, system, name):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: name)


@pytest.mark.parametrize(
    ("system", "name", "expected"),
    [
        ("linux", "x86_64", "linux-x86_64"),
        ("linux", "aarch64", "linux-aarch64"),
        ("darwin", "arm64", "macos-arm64"),
        ("darwin", "x86_64", "macos-x86_64"),
        ("win32", "AMD64", "windows-x86_64"),
        ("linux", "riscv64", ""),
        ("freebsd14", "amd64", ""),
    ],
)
def test_each_system_asks_for_the_libraries_that_are_made_for_it(monkeypatch, system, name, expected):
    machine(monkeypatch, system, name)
    assert levels.this_system() == expected
    shipped.system.cache_clear()
    try:
        asked = shipped.system()
    finally:
        shipped.system.cache_clear()
    of_system = [each for each in levels.LEVELS if each == asked or each.startswith(f"{asked}-v")]
    assert of_system == (levels.levels_of(expected) if expected else [])


def test_a_wheel_for_release_has_machine_code_and_an_installer_s_has_none(monkeypatch):
    machine(monkeypatch, "linux", "x86_64")
    assert levels.target({}, "dist") == "linux-x86_64"
    assert levels.target({"JITTOK_SHIP_FOR": "macos-arm64"}, "x") == "macos-arm64"
    assert levels.target({"JITTOK_SHIP_FOR": "macos-arm64", "PIP_BUILD_TRACKER": "x"}, "x") == "macos-arm64"
    assert levels.target({"JITTOK_SHIP_FOR": "none"}, "dist") == ""
    assert levels.target({"PIP_BUILD_TRACKER": "x"}, "dist") == ""
    assert levels.target({}, "pip-wheel-abc") == ""
    with pytest.raises(ValueError, match="found 'linux-x86', expected none or one of linux-x86_64, "):
        levels.target({"JITTOK_SHIP_FOR": "linux-x86"}, "dist")
    machine(monkeypatch, "linux", "riscv64")
    assert levels.target({}, "dist") == ""


def test_every_system_has_a_tag_and_a_library():
    assert {name.rsplit("-v", 1)[0] for name in levels.LEVELS} == set(levels.TAGS)
