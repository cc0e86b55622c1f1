"""Numbers of a JSON file as tokenizers reads them.

serde_json puts the digits into a 64-bit integer, rounds that to a double, and multiplies or divides once by a power of
ten. A quarter of the scores of real files end one unit off the nearest double so, and that decides among equal paths of
Unigram.
"""

from __future__ import annotations

MOST_SIGNIFICAND = (1 << 64) - 1
_POWERS = [float(f"1e{k}") for k in range(309)]


LONGEST = 400


def as_read(text: str) -> float:
    """The double that serde_json makes of a number's text. Raises OverflowError for one that is too large or long."""
    if len(text) > LONGEST:
        raise OverflowError(text[:LONGEST])
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
