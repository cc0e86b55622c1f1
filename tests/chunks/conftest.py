"""Tokenizer files of the recorded sets, unpacked once."""

import functools
import json
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from recorded_files import HERE, SHARED


class Unpacked(NamedTuple):
    path: Path
    options: dict[str, Any]


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Unpacked]:
    """unpacked(name): where the file or folder of a set lies, and how it is loaded."""
    to = tmp_path_factory.mktemp("files")

    def unpack(name: str) -> Unpacked:
        here = (HERE / f"{name}.tar.xz").exists()
        files, golden = (HERE, HERE) if here else (SHARED / "tokenizer-files", SHARED / "golden-files")
        with tarfile.open(files / f"{name}.tar.xz") as archive:
            archive.extractall(to, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(to)
        with lzma.open(golden / f"{name}.jsonl.xz", "rt", encoding="utf-8", errors="surrogatepass") as file:
            first = json.loads(next(file))
        return Unpacked(to / first["load"], first["options"])

    return functools.cache(unpack)
