"""Functions of Python's C API, each with types of its own.

`ctypes.pythonapi.NAME` is one object for the whole process. Who writes types to it changes them for every other
library; and a call that reads them at that moment, in another thread or around a collector's callback, reads freed
memory. So a function is made again here, once for all its callers.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any


@functools.cache
def function(name: str, result: Any, *arguments: Any) -> Any:
    """A function by its name, called with Python's lock held. result, arguments: types of ctypes."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))
