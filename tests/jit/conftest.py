"""The small package, once for each test."""

from pathlib import Path

import pytest
from small_package import write_package


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with the small package."""
    write_package(tmp_path)
    return tmp_path
