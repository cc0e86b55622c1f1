"""exp(x) and log(exp(x) + exp(y)) of 32-bit numbers, from tables and short series, right to the last bits of a double.

Machine code that is shipped may ask for no C library, and answers must not depend on which one there is.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from jittok._jit import OutF64, helper

GRID = 64
"""Values a unit: a number is at most 1 / 128 from one of them."""
CUT = 50
"""log(exp(x) + exp(y)) is x when y is below x by more."""
TERMS = 6
LEAST_EXPONENT = -87.0
"""exp of less is 0."""


class ExponentTables(NamedTuple):
    """What the functions read."""

    log_sums: OutF64  # [TERMS * (GRID * CUT + 2)] the Taylor series of log(1 + exp(-k / GRID)) for each k
    powers: OutF64  # [GRID * 88 + 2] exp(-k / GRID)


@cache
def tables() -> ExponentTables:
    """The tables."""
    rows = []
    for k in range(GRID * CUT + 2):
        x = math.exp(-k / GRID)
        s = x / (1 + x)  # the derivative, and polynomials of it are the further ones
        t = s * (1 - s)
        rows.append((
            math.log1p(x), s, t / 2, t * (1 - 2 * s) / 6, t * (1 - 6 * t) / 24, t * (1 - 2 * s) * (1 - 12 * t) / 120,
        ))  # fmt: skip
    powers = [math.exp(-k / GRID) for k in range(GRID * 88 + 2)]
    return ExponentTables(np.array(rows, np.float64).reshape(-1), np.array(powers, np.float64))


@helper
def log_sum(found: ExponentTables, x: Any, y: Any) -> Any:
    """float32: log(exp(x) + exp(y)) of two float32."""
    low, high = (x, y) if x < y else (y, x)
    if high > np.float32(low + np.float32(50.0)):
        return high
    d = np.float64(np.float32(low - high))
    k = int(0.5 - d * GRID)
    r, c, at = d + k / GRID, found.log_sums, TERMS * k
    square = r * r
    near = c[at] + r * c[at + 1]
    far = (c[at + 2] + r * c[at + 3]) + square * (c[at + 4] + r * c[at + 5])
    return np.float32(np.float64(high) + (near + square * far))


@helper
def exp(found: ExponentTables, x: Any) -> float:
    """float64: exp(x) of a float32 that is 0 or less, but for rounding."""
    if x < LEAST_EXPONENT:
        return 0.0
    d = np.float64(x)
    k = max(int(0.5 - d * GRID), 0)
    r = d + k / GRID
    square = r * r
    series = (1.0 + r) + square * ((1 / 2 + r / 6) + square * (1 / 24 + r / 120 + square / 720))
    return float(found.powers[k] * series)
