"""What a pickle holds of a tokenizer that came from memory: its vocabulary, and what a class of the user's added."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def own_of(tok: Any, base: type) -> dict[str, Any] | None:
    """What an object of a derived class has beside what `base` gives it, None where that is nothing."""
    constructor = vars(base)["__init__"].__code__
    given = {*constructor.co_names, *dir(base)}  # what is set at first, and what is found later
    return {name: value for name, value in vars(tok).items() if name not in given} or None


def read_only(kind: Callable[..., Any], state: dict[str, Any]) -> Any:
    """A Vocab or Pipeline of unpickled fields, whose arrays nobody may write to."""
    for value in state.values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return kind(**state)
