"""An array that grows by parts, without twice their memory at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SPARE_PART = 16
"""An array that has to grow gets 1 / SPARE_PART more capacity than it needs."""


class Growing:
    """The concatenated elements of parts that are added one by one. A single part is kept as it is, more are copied.

    The caller releases each part once it is added, so the elements are not in memory twice.
    """

    def __init__(self, dtype: Any) -> None:
        self.size = 0
        self._only: NDArray[Any] | None = None
        self._array = np.empty(0, dtype)

    def add(self, part: NDArray[Any]) -> None:
        """Append the elements of a one-dimensional array of this dtype."""
        if self.size == 0:
            self._only = part
        else:
            if self._only is not None:
                self._array = np.empty(self.size + part.size, part.dtype)
                self._array[: self.size] = self._only
                self._only = None
            if self._array.size < self.size + part.size:  # in place where the system can: no one else has seen it
                self._array.resize((self.size + part.size) * (SPARE_PART + 1) // SPARE_PART, refcheck=False)
            self._array[self.size : self.size + part.size] = part
        self.size += part.size

    def detach(self) -> NDArray[Any]:
        """All elements, read-only; nothing can be added afterwards."""
        whole = self._only
        if whole is None:
            whole, self._array = self._array, np.empty(0, self._array.dtype)
            whole.resize(self.size, refcheck=False)
        whole = whole.view()
        whole.flags.writeable = False
        return whole
