"""Training: vocabularies learned from texts, exactly, the same for any threads, memory and order of files.

The module can be called: `jittok.train(texts, size=32000)` is `jittok.train.train(texts, size=32000)`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from jittok.train.api import train
from jittok.train.bpe import Options
from jittok.train.counting import How, count
from jittok.train.counts import Counts
from jittok.train.result import Trained

__all__ = ["Counts", "How", "Options", "Trained", "count", "count_files", "train"]


def __getattr__(name: str) -> Any:
    if name == "count_files":  # readers of files are only imported for files
        from jittok.train.files import count_files

        return count_files
    raise AttributeError(f"module 'jittok.train' has no attribute {name!r}")


class _Callable(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Trained:
        """See `jittok.train.train`."""
        return train(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
