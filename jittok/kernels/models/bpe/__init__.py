"""BPE: llama.cpp's models `gpt2`, `gemma4`, hybriddna and `whitespace`.

The interface for other packages is in `entry`. Names are imported on first use, so that code that needs one helper of
this package does not wait for all of its kernels.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jittok.kernels.models.bpe.arrays import BpeArrays
    from jittok.kernels.models.bpe.compile import compile_pipeline, with_chain
    from jittok.kernels.models.bpe.entry import IDS_PER_BYTE, can_split_at_spaces, encode_fragments, optimized_layout
    from jittok.kernels.models.bpe.scratch import BpeWork, make_work, regrow

__all__ = [
    "IDS_PER_BYTE",
    "BpeArrays",
    "BpeWork",
    "can_split_at_spaces",
    "compile_pipeline",
    "encode_fragments",
    "make_work",
    "optimized_layout",
    "regrow",
    "with_chain",
]  # fmt: skip

_HOMES = {
    "compile_pipeline": "compile",
    "with_chain": "compile",
    "BpeArrays": "arrays",
} | dict.fromkeys(("BpeWork", "make_work", "regrow"), "scratch")
"""The modules of names that `entry` does not define; a vocabulary loaded from the cache never imports `compile`."""


def __getattr__(name: str) -> Any:
    """Import a name of `__all__` on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(
        importlib.import_module(f"jittok.kernels.models.bpe.{_HOMES.get(name, 'entry')}"),
        name,
    )
    return globals()[name]
