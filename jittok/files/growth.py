"""Bounds how many bytes one byte of text may become in the steps of a file, before anything runs.

A step that doubles a text is harmless, and forty of them need a terabyte for one character. So each step of a
normalizer, a splitter or a decoder says what it may make of a byte, and the step at which the product is too large is
refused. A step may also write something once for each piece of text; a piece has a byte at least.
"""

from __future__ import annotations

from jittok.common.pipeline.growth import GrowthProduct
from jittok.common.pipeline.steps import Decoder, Normalizer, Splitter
from jittok.errors import InWords
from jittok.files.json_nodes import Node

MOST_GROWTH = 1 << 16
"""Bytes that one byte of a text may become. The steps of real models make less than 2,000 of it."""
MOST_AROUND = 1 << 12
"""Ids that a template may put around a text."""


class Growth(GrowthProduct):
    """What one byte of a text may have become, step after step of a file."""

    def add(self, node: Node, step: Normalizer | Splitter | Decoder) -> None:
        """Count one step. node: its component in the file. Raises UnsupportedVocab where the product is too large."""
        most = self.count(step)
        if most > MOST_GROWTH:
            name = type(step).__name__
            raise node.unknown(
                InWords(f"{name}, which may expand one byte of text to {most:,.0f}"),
                f"steps that make at most {MOST_GROWTH:,} bytes of one, all together",
            )
