"""An array that parts are put after one another in, without twice their memory at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SPARE_PART = 16
"""An array that has to grow gets capacity for one part in so many more than it needs."""


class Growing:
    """Elements of parts that come one after the other. A single part is kept as it is, more are copied.

    Whoever adds a part lets go of it, so only the parts that have not come yet take memory of their own.
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
