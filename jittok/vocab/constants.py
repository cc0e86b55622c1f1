"""Key names and numbers of the GGUF format, from the package `gguf`, which llama.cpp's own authors keep.

`import gguf` brings in requests and PyYAML: 0.4 s, more than reading a vocabulary takes. None of that is needed:
`gguf/constants.py` imports the standard library alone. So that one module is found where the package lies and run,
which takes 10 ms, and only in a process that reads a header: a compiled vocabulary that is kept needs no names.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import PathFinder
from types import ModuleType


def _constants() -> ModuleType:
    """The module gguf.constants, without its package where that was not imported. ModuleNotFoundError: no gguf."""
    package = None if "gguf.constants" in sys.modules else importlib.util.find_spec("gguf")
    found = package and PathFinder.find_spec("gguf.constants", package.submodule_search_locations)
    if not found or not found.loader:
        return importlib.import_module("gguf.constants")
    # Not in sys.modules: what others import later is the package's own.
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


_MODULE = _constants()
TokenizerKeys, GeneralKeys = _MODULE.Keys.Tokenizer, _MODULE.Keys.General
"""Names of keys."""
ValueType, TokenType = _MODULE.GGUFValueType, _MODULE.TokenType
"""Enumerations: the types of values, and what tokenizer.ggml.token_type says of a token."""
MAGIC = int(_MODULE.GGUF_MAGIC).to_bytes(4, "little")
DEFAULT_ALIGNMENT = int(_MODULE.GGUF_DEFAULT_ALIGNMENT)
