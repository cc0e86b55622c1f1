"""Write a TokenArray to disk incrementally: the two files of `TokenArray.save`, moved into place when complete."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.rows import TokenArray
from jittok.common.rows.npy_files import FILES, beside, check_free, put_in_place
from jittok.common.writers.atomic_files import naming
from jittok.errors import check_local

HEADER_BYTES = 128
"""Bytes of the header: it has capacity for any length, which is only known at the end."""


class NpyStream:
    """A one-dimensional .npy file that grows. The header is written last. Source: NumPy, NEP 1, version 1.0."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._count = 0
        self._file = path.open("wb")
        self._file.write(bytes(HEADER_BYTES))

    def append(self, values: NDArray[Any]) -> None:
        """Append values."""
        self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self._count += values.size

    def close(self) -> None:
        """Write the header and sync the file to disk."""
        about = f"{{'descr': '{self._dtype.str}', 'fortran_order': False, 'shape': ({self._count},), }}"
        text = about.encode().ljust(HEADER_BYTES - 11) + b"\n"
        self._file.seek(0)
        self._file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def abandon(self) -> None:
        """Close the file as it is; buffered data may not fit on the disk and is not needed."""
        with suppress(OSError):
            self._file.close()


class TokenWriter:
    """Collects rows in a hidden folder, which is renamed when the `with` block succeeds and removed otherwise."""

    def __init__(self, target: Path) -> None:
        check_local(target, "--out")
        given, target = target, check_free(target, "saved ids")
        target.parent.mkdir(parents=True, exist_ok=True)
        self.target, self.documents, self.tokens = target, 0, 0
        self._part = beside(target)
        try:
            self._part.mkdir()
        except OSError as error:  # the hidden name would not help the user
            raise OSError(error.errno, error.strerror, str(given)) from None
        self._ids = NpyStream(self._part / FILES[0], np.int32)
        self._offsets = NpyStream(self._part / FILES[1], np.int64)
        self._offsets.append(np.zeros(1, np.int64))

    def append(self, rows: TokenArray) -> None:
        """Append rows."""
        with naming(self.target):
            self._ids.append(rows.ids)
            self._offsets.append(rows.offsets[1:] + self.tokens)
        self.documents += len(rows)
        self.tokens += rows.ids.size

    def __enter__(self) -> TokenWriter:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        try:
            if failed is None:
                with naming(self.target):
                    self._ids.close()
                    self._offsets.close()
                    put_in_place(self._part, self.target)
        finally:
            self._ids.abandon()
            self._offsets.abandon()
            shutil.rmtree(self._part, ignore_errors=True)
