"""Memory whose neighbors cannot be read: who looks at a byte before a text or after it dies of it.

A text is at the end of a page, or at the beginning of one; the pages around it are protected. In checked code, and
without the compiler, a text is an array of its own instead: there every place is tested against its array.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.inputs import Documents
from jittok.kernels.jit import frozen
from jittok.kernels.memory import FAST

PAGE = mmap.PAGESIZE
_NO_ACCESS = 0


class Guarded:
    """Room for `count` texts of up to a page each, with a page that cannot be read around each."""

    def __init__(self, count: int) -> None:
        self._map = mmap.mmap(-1, (2 * count + 1) * PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for page in range(0, 2 * count + 1, 2):
            if protect(start + page * PAGE, PAGE, _NO_ACCESS):
                raise OSError(ctypes.get_errno(), "mprotect")
        self.bytes = np.frombuffer(self._map, np.uint8)

    def position(self, k: int, text: bytes, at_end: bool) -> tuple[int, int]:
        """Where text number k stands now, in `bytes`: before a page that cannot be read, or after one."""
        page = (2 * k + 1) * PAGE
        start = page + PAGE - len(text) if at_end else page
        self.bytes[start : start + len(text)] = np.frombuffer(text, np.uint8)
        return start, start + len(text)

    def one(self, text: bytes, at_end: bool) -> NDArray[np.uint8]:
        """A text alone, as a read-only array."""
        if not FAST:
            return frozen(np.frombuffer(text, np.uint8).copy(), np.uint8)
        start, stop = self.position(0, text, at_end)
        found = self.bytes[start:stop].view()
        found.flags.writeable = False
        return found

    def documents(self, texts: Sequence[bytes], at_end: bool) -> list[Documents]:
        """All of them: one batch, which goes past the end of its `data` as texts in place do; checked, one by one."""
        if not FAST:
            return [Documents(self.one(text, at_end), _places([0]), _places([len(text)])) for text in texts]
        places = np.array([self.position(k, text, at_end) for k, text in enumerate(texts)]).reshape(-1, 2) - PAGE
        data = self.bytes[PAGE : PAGE + 1].view()
        data.flags.writeable = False
        return [Documents(data, _places(places[:, 0]), _places(places[:, 1]), (b"",))]


def _places(values: Any) -> NDArray[np.int64]:
    return frozen(np.array(values, np.int64), np.int64)
