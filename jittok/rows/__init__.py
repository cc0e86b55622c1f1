"""Rows of unequal length over flat arrays: `Ragged` holds texts, `TokenArray` holds ids, a row of which is an `Ids`.

Memory that others hand in is checked here (`checks`) before a kernel reads it.
"""

from jittok.rows.ids import Ids
from jittok.rows.ragged import Ragged
from jittok.rows.token_array import TokenArray

__all__ = ["Ids", "Ragged", "TokenArray"]
