"""Rows of flat byte arrays as Python objects."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


def ragged_bytes(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> list[bytes]:
    """The rows of a flat byte array as bytes objects."""
    blob, positions = data.tobytes(), offsets.tolist()
    return [blob[i:j] for i, j in pairwise(positions)]
