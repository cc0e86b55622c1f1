"""Compares two tokenizers: where, how often and why their tokens differ; or, without texts, whether they can differ.

The module can be called: `jittok.compare(a, b, texts)` is `jittok.compare.compare(a, b, texts)`. `cells` walks the
tokens of both in parallel, `tally` counts differences, `causes` finds the first stage that differs, `machines` compares
the components of the two. A *parting*, in names, is a difference in a text.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from jittok.compare.api import compare
from jittok.compare.result import Comparison, Parting

__all__ = ["Comparison", "Parting", "compare"]


class _Callable(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """See `jittok.compare.compare`."""
        return compare(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
