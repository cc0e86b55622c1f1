"""Rows of unequal length over flat arrays: `Ragged` holds texts, `TokenArray` holds ids, a row of which is an `Ids`.

Memory from callers is checked here (`checks`) before a kernel reads it.
"""

from typing import TYPE_CHECKING, Any

from jittok.common.rows.ids import Ids
from jittok.common.rows.ragged import Ragged

if TYPE_CHECKING:
    from jittok.common.rows.token_array import TokenArray

__all__ = ["Ids", "Ragged", "TokenArray"]


def __getattr__(name: str) -> Any:
    """Import the classes for many rows on first use: a load and a single text need none of them."""
    if name == "TokenArray":
        from jittok.common.rows.token_array import TokenArray

        return TokenArray
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
