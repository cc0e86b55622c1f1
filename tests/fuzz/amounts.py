"""How much a test does. Machine code that checks each index takes several times as long as other machine code, and
plain Python about a hundred times, so tests do less there."""

from typing import TypeVar

from jittok.kernels.jit import CHECKED, JIT

T = TypeVar("T")


def amount(compiled: T, checked: T, interpreted: T) -> T:
    """The one for the way in which kernels run here."""
    return checked if JIT and CHECKED else compiled if JIT else interpreted
