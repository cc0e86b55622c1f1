"""The small package, once for each test."""

import shutil
from pathlib import Path

import pytest
from small_package import SHOW, python, write_package


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with the small package."""
    write_package(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("compiled")
    write_package(home)
    assert python(home, SHOW) == "[1, 2, 3] False"
    return home


@pytest.fixture
def kept(home: Path, _compiled: Path) -> Path:
    """A folder with the small package and a cache that has its machine code."""
    shutil.copytree(_compiled / "cache", home / "cache")
    return home
