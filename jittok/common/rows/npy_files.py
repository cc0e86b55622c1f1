"""The folder of a saved TokenArray, written atomically."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.errors import InWords, MalformedArray

FILES = ("ids.npy", "offsets.npy")
"""The files of a saved TokenArray."""


def is_saved(folder: Path) -> bool:
    """Whether a directory holds a saved TokenArray and nothing else (an empty one counts)."""
    return folder.is_dir() and {entry.name for entry in folder.iterdir()} in (set(), set(FILES))


def check_free(given: str | os.PathLike[str], what: str) -> Path:
    """The folder to write, links resolved. FileExistsError unless the name is free or an earlier TokenArray."""
    target = Path(os.path.realpath(given))
    if target.exists() and not is_saved(target):
        raise FileExistsError(f"{given}: found an existing file or folder that is not {what}, expected a new name")
    return target


def check_files(folder: Path) -> None:
    """ValueError if one of the files is a device or a pipe, reading which may never end."""
    for name in FILES:
        position = folder / name
        if position.exists() and not position.is_file():
            raise ValueError(f"{position}: found something other than a file, expected a saved array")


def read_array(path: Path) -> NDArray[Any]:
    """The array in a .npy file. Raises MalformedArray for a truncated file or one without an array; OSError."""
    try:
        with path.open("rb") as file:
            read: Callable[..., NDArray[Any]] = np.lib.format.read_array
            return read(file, allow_pickle=False)
    except (ValueError, MemoryError) as error:  # MemoryError: for the size in the file's header
        raise MalformedArray(str(path), InWords(str(error)), "a complete .npy file of numbers") from error


def put_in_place(part: Path, target: Path) -> None:
    """Rename a finished folder to its final name. An earlier one is removed only after that."""
    import shutil

    if not target.exists():
        part.rename(target)
        return
    old = beside(target)
    target.rename(old)
    part.rename(target)
    shutil.rmtree(old)


def beside(target: Path) -> Path:
    """An unused hidden name in the same folder, so that renaming moves no data."""
    return target.with_name(f".{target.name}.{os.urandom(6).hex()}")
