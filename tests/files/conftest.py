"""Recorded sets of tokenizer files, unpacked once."""

import functools
import json
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from recorded_files import HERE, SHARED


class Recorded(NamedTuple):
    path: Path
    options: dict[str, Any]
    rows: list[dict[str, Any]]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Recorded]:
    """recorded(name): where a set's file or folder lies, how it is loaded, and its rows."""
    to = tmp_path_factory.mktemp("files")

    def unpack(name: str) -> Recorded:
        files, golden = (HERE, HERE) if (HERE / f"{name}.tar.xz").exists() else (
            SHARED / "tokenizer-files", SHARED / "golden-files",
        )  # fmt: skip
        with tarfile.open(files / f"{name}.tar.xz") as archive:
            archive.extractall(to, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(to)
        with lzma.open(golden / f"{name}.jsonl.xz", "rt", encoding="utf-8", errors="surrogatepass") as file:
            rows = [json.loads(line) for line in file]
        return Recorded(to / rows[0]["load"], rows[0]["options"], rows)

    return functools.cache(unpack)
