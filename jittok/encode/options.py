"""How documents are encoded: the options of one call, as the kernels need them."""

from __future__ import annotations

from typing import NamedTuple

from jittok.kernels.special.tables import SpecialTokens


class EncodeOptions(NamedTuple):
    """How documents are encoded: the special tokens to search for, the ids around each, what invalid text becomes."""

    special: SpecialTokens
    before: int  # id before each document, or NO_TOKEN
    after: int  # id after each document, or NO_TOKEN
    replace: bool

    @property
    def around(self) -> tuple[int, int]:
        """Number of ids before each document, and after it."""
        return int(self.before >= 0), int(self.after >= 0)
