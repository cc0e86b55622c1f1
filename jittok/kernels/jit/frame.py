"""What a kernel is called with: one array of int64 words, an array being two of them, its address and its size."""

from __future__ import annotations

import ctypes
from array import array
from operator import is_
from typing import Any, get_type_hints

import numpy as np

from jittok.common.record import Record

PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
"""A kernel's machine code: int64 entry(int64 *frame). It runs without the GIL."""
STATUS = 0
"""The word that a kernel sets when it failed, in checked code; arguments follow."""


class ArrayPlan(Record):
    """An array: address and size."""

    typestr: str  # as in NumPy's array interface
    writable: bool


class TuplePlan(Record):
    """A NamedTuple: its fields one after the other."""

    kind: type
    fields: tuple[Any, ...]


INT, FLOAT = "int", "float"


def plan_of(hint: Any) -> Any:
    """How a value of one annotation is laid out; TypeError for anything a kernel may not take."""
    if hint is int:
        return INT
    if hint is float:
        return FLOAT
    if hasattr(hint, "__metadata__"):
        dtype, direction = hint.__metadata__[0]
        return ArrayPlan(np.dtype(dtype).str, direction == "out")
    if isinstance(hint, type) and issubclass(hint, tuple):
        fields = get_type_hints(hint, include_extras=True)
        return TuplePlan(hint, tuple(map(plan_of, fields.values())))
    raise TypeError(f"a kernel takes U8 ... OutF64, int, float or a NamedTuple of these, not {hint!r}")


def lay(plan: Any, value: Any, words: list[int]) -> None:
    """Append the words of one argument. TypeError for another dtype, layout or kind."""
    if plan is INT:
        words.append(value)
    elif type(plan) is ArrayPlan:
        try:
            facts = value.__array_interface__
        except AttributeError:
            raise TypeError(f"a kernel was given {type(value).__name__}, expected an array {plan.typestr}") from None
        (address, readonly), shape = facts["data"], facts["shape"]
        if facts["typestr"] != plan.typestr or facts["strides"] is not None or len(shape) != 1:
            expected = f"a contiguous one of one dimension, {plan.typestr}"
            raise TypeError(f"a kernel was given an array {facts['typestr']} of shape {shape}, expected {expected}")
        if plan.writable and readonly:
            raise TypeError("a kernel was given a read-only array to write to")
        words += address, shape[0]
    elif type(plan) is TuplePlan:
        if len(value) != len(plan.fields):
            raise TypeError(f"a kernel was given {type(value).__name__}, expected {plan.kind.__name__}")
        for field, item in zip(plan.fields, value, strict=True):
            lay(field, item, words)
    else:
        words.append(np.float64(value).view(np.int64).item())


class Call:
    """A kernel with its arguments, laid out: `call()` runs it. Not for two threads at once.

    It keeps the arguments alive. `words[slots[i]]` is where argument i begins.
    """

    __slots__ = ("_address", "_entry", "_plans", "args", "kernel", "slots", "words")

    def __init__(self, kernel: Any, args: tuple[Any, ...]) -> None:
        self.kernel, self.args = kernel, list(args)
        self._entry = None
        if not kernel.compiled:
            return
        self._plans = plans = list(kernel.plan.values())
        if len(plans) != len(args):
            raise TypeError(f"{kernel.__name__} takes {len(plans)} arguments, found {len(args)}")
        words, slots = [0], []
        for plan, value in zip(plans, args, strict=True):
            slots.append(len(words))
            lay(plan, value, words)
        self.words, self.slots = array("q", words), slots
        self._address = self.words.buffer_info()[0]
        self._entry = kernel.entry or kernel.ready()

    def again(self, *args: Any) -> Any:
        """Run with these arguments; those that are the objects of the last time keep their words."""
        if self._entry is None:
            return self.kernel.python(*args)
        if not all(map(is_, self.args, args)):
            self._lay_changed(args)
        result = self._entry(self._address)
        return self._failed() if self.words[STATUS] else result

    def _lay_changed(self, args: tuple[Any, ...]) -> None:
        held, words = self.args, self.words
        for at, value in enumerate(args):
            if held[at] is value:
                continue
            held[at] = value
            if type(value) is int:
                words[self.slots[at]] = value
            else:
                laid: list[int] = []
                lay(self._plans[at], value, laid)
                for path, word in enumerate(laid, self.slots[at]):
                    words[path] = word

    def release(self, *positions: int) -> None:
        """Keep these arguments alive no longer; `again` must be given others."""
        for at in positions:
            self.args[at] = None

    def __call__(self) -> Any:
        """Run the machine code over the frame's words as they are now."""
        if self._entry is None:
            return self.kernel.python(*self.args)
        result = self._entry(self._address)
        return self._failed() if self.words[STATUS] else result

    def _failed(self) -> None:
        self.words[STATUS] = 0
        raise IndexError(f"raw access outside its array, in kernel {self.kernel.__name__}")
