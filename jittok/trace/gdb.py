from __future__ import annotations
from typing import Any
def gdb_script(vocab: Any, facts: Any, stages: Any) -> str:
    return ""
