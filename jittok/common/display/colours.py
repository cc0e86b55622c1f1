"""Background colors for adjacent items, translucent so that text keeps the color of the page, light or dark."""

from __future__ import annotations

from collections.abc import Sequence

HUES = (
    (66, 133, 244),
    (244, 160, 0),
    (15, 157, 88),
    (219, 68, 160),
    (0, 172, 193),
    (171, 71, 188),
    (175, 150, 0),
)
"""Red, green, blue. Distinguishable on white and on black at the opacity below."""
OPACITY = 0.3
TERMINAL = ("blue", "yellow", "green", "magenta", "cyan", "red", "white")
"""The same number of colors by the names that terminals know."""


def alternate(keys: Sequence[int]) -> list[int]:
    """A hue per item of a row: the same for the same key where possible, never that of a neighbor."""
    chosen: list[int] = []
    for key in keys:
        hue = key % len(HUES)
        if chosen and hue == chosen[-1]:
            hue = (hue + 1) % len(HUES)
        chosen.append(hue)
    return chosen


def background(hue: int, opacity: float = OPACITY) -> str:
    """The CSS of one background."""
    red, green, blue = HUES[hue]
    return f"background:#{red:02x}{green:02x}{blue:02x}{round(255 * opacity):02x}"
