"""Converts a tokenizer file to another format, if that can represent it.

The module can be called: `jittok.convert(source, out)` is `jittok.convert.convert(source, out)`. `forms` reads a
tokenizer as one of a few forms, `targets` writes a form as a file, `api` encodes a sample with both: a difference is an
error with its example.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from jittok.convert.api import Converted, convert

__all__ = ["Converted", "convert"]


class _Callable(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Converted:
        """See `jittok.convert.convert`."""
        return convert(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
