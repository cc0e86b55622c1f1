"""Recorded sets of tokenizer files, loaded once."""

import functools
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from recorded_files import HERE, SHARED


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """files(name): the tokenizer file of a set, from the repository or the shared folder; skips the test without it."""
    to = tmp_path_factory.mktemp("files")

    @functools.cache
    def unpack(name: str) -> Path:
        packed = HERE / f"{name}.tar.xz"
        packed = packed if packed.exists() else SHARED / "tokenizer-files" / packed.name
        if not packed.exists():
            pytest.skip(f"the set {name} is not in {packed.parent}; set JITTOK_SHARED")
        with tarfile.open(packed) as archive:
            archive.extractall(to, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(to)
        names = ("tokenizer.json", "*.tiktoken", "*.model")
        found = [path for pattern in names for path in sorted((to / name).rglob(pattern))]
        return found[0] if found else to / name

    return unpack


@pytest.fixture(scope="session")
def same() -> Callable[..., None]:
    """same(call, *objects): a call gives the same of each, or the same error."""

    def answer(call: Callable[..., object], holder: object) -> object:
        try:
            return call(holder)
        except Exception as error:  # noqa: BLE001  each library has errors of its own
            return type(error).__name__

    def check(call: Callable[..., object], *holders: object) -> None:
        said = [json.dumps(answer(call, holder), default=repr) for holder in holders]
        assert len({*said}) == 1, said

    return check
