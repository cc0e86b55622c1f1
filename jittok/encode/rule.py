"""How documents are encoded: the options of one call, as the kernels need them."""

from __future__ import annotations

from typing import NamedTuple

from jittok.special.tables import SpecialTokens


class Rule(NamedTuple):
    """How documents are encoded: what is cut out, what stands around, what happens to impossible text."""

    special: SpecialTokens
    before: int  # id in front of each document, or NO_TOKEN
    after: int  # id behind each document, or NO_TOKEN
    replace: bool

    @property
    def around(self) -> tuple[int, int]:
        """How many ids stand in front of each document, and behind it."""
        return int(self.before >= 0), int(self.after >= 0)
