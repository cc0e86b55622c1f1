"""What a pickle holds of a tokenizer that came from memory: its vocabulary, and what a class of the user's added."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import MemberDescriptorType
from typing import Any

import numpy as np

from jittok.common.locks import once


def own_of(tok: Any, base: type) -> Any:
    """The state of an object in addition to that of `base`, as in `copyreg`; None if there is none.

    It is the result of `__getstate__` of a derived class, or else its attributes, including those in `__slots__`.
    """
    kind, given = type(tok), _given_by(base)
    asks = getattr(kind, "__getstate__", None) is not getattr(object, "__getstate__", None)
    state = tok.__getstate__() if asks else vars(tok)
    if isinstance(state, dict):  # often all attributes but some
        state = {name: value for name, value in state.items() if name not in given}
    if asks:
        return state
    members = {name for each in kind.__mro__ for name, it in vars(each).items() if isinstance(it, MemberDescriptorType)}
    slots = {name: getattr(tok, name) for name in members if hasattr(tok, name)}
    return (state, slots) if slots else state or None


@cache
def _given_by(base: type) -> frozenset[str]:
    """The attributes that the constructor of `base` sets, and those that are found later."""
    import dis  # it takes time, and few pickles need it

    steps = dis.get_instructions(vars(base)["__init__"])
    later = {name for each in base.__mro__ for name, it in vars(each).items() if isinstance(it, once)}
    return frozenset(later.union(step.argval for step in steps if step.opname == "STORE_ATTR"))


def read_only(kind: Callable[..., Any], state: dict[str, Any]) -> Any:
    """A Vocab or Pipeline of unpickled fields, with read-only arrays."""
    for value in state.values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return kind(**state)
