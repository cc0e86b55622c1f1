"""A server of the page, and a browser that looks at it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def chromium() -> str | None:
    """The browser of the system."""
    return next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of a server with two vocabularies."""
    pytest.importorskip("uvicorn", reason="needs the extra play")
    pytest.importorskip("starlette", reason="needs the extra play")
    server = subprocess.Popen(
        [sys.executable, "-m", "jittok", "play", "gpt-2", "t5"], stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert server.stderr is not None
        line = server.stderr.readline()
        found = re.match(r"http://127\.0\.0\.1:\d+/\?key=[\w-]{20,}", line)
        assert found, line
        yield found[0]
    finally:
        server.terminate()
        server.wait(30)
        server.stderr.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, by Playwright."""
    api = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
    path = chromium()
    if path is None:
        pytest.skip("no Chromium here")
    with api.sync_playwright() as play:
        made = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield made
        made.close()
