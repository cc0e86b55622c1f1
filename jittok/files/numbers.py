"""Numbers of a JSON file as tokenizers reads them.

serde_json puts the digits into a 64-bit integer, rounds that to a double, and multiplies or divides once by a power of
ten. A quarter of the scores of real files end one unit off the nearest double so, and that decides among equal paths of
Unigram.
"""

from __future__ import annotations

import re
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

MOST_SIGNIFICAND = (1 << 64) - 1
_POWERS = [float(f"1e{k}") for k in range(309)]


LONGEST_NUMBER = 400
_PLAIN = re.compile(r"(?:-?[0-9]{1,9}\.[0-9]{1,18},)*")
_WHOLE = 19
"""Digits that an unsigned number of 64 bits holds in any case."""


def all_as_read(texts: list[str]) -> NDArray[np.float64]:
    """The same of many. Raises what `as_read` raises; `as_read` says for which."""
    joined = ",".join([*texts, ""])
    if not _PLAIN.fullmatch(joined):
        return np.array([*map(as_read, texts)], np.float64)
    digits = joined.replace(".", "").replace("-", "").split(",")[:-1]
    if max(map(len, digits), default=0) > _WHOLE:
        return np.array([*map(as_read, texts)], np.float64)
    after = np.fromiter(map(str.find, texts, repeat(".")), np.int64, len(texts))
    decimals = np.fromiter(map(len, texts), np.int64, len(texts)) - after - 1
    numbers: NDArray[np.float64] = np.array([*map(int, digits)], np.uint64).astype(np.float64)
    numbers /= np.array(_POWERS)[decimals]
    numbers[[text.startswith("-") for text in texts]] *= -1
    return numbers


def as_read(text: str) -> float:
    """The double that serde_json makes of a number's text. Raises OverflowError for one that is too large or long."""
    if len(text) > LONGEST_NUMBER:
        raise OverflowError(text[:LONGEST_NUMBER])
    mantissa, _, exponent_text = text.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = whole + fraction
    exponent = (int(exponent_text) if exponent_text else 0) - len(fraction)
    significand, dropped = (int(digits), 0) if len(digits) < 20 else _cut(digits)
    return _scaled(significand, exponent + dropped, text)


def _cut(digits: str) -> tuple[int, int]:
    """(as many leading digits as 64 bits hold, how many are left out)."""
    significand = 0
    for k, digit in enumerate(digits):
        more = significand * 10 + int(digit)
        if more > MOST_SIGNIFICAND:
            return significand, len(digits) - k
        significand = more
    return significand, 0


def _scaled(significand: int, exponent: int, text: str) -> float:
    number = float(significand)
    while number and exponent < -308:
        number, exponent = number / _POWERS[308], exponent + 308
    if number and exponent < 0:
        number /= _POWERS[-exponent]
    elif number:
        if exponent > 308 or number * _POWERS[exponent] == float("inf"):
            raise OverflowError(text)
        number *= _POWERS[exponent]
    return -number if text.startswith("-") else number
