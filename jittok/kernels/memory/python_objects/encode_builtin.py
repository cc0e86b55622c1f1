"""One text to its ids without Python in between: a builtin function of Python, made of 100 lines of machine code.

A method of Python around a kernel takes two microseconds, most of a short text's time. Here the interpreter calls
machine code. This code reads the text where Python keeps it, walks a list of kernel calls (`Step`, laid out by
`encode.short_text.ShortTextFrame`), and has NumPy create the array. All that it knows is in `CallTable`: addresses,
also those of the functions of Python and NumPy that it calls. So a shared library can hold it without importing any.

It returns None for whatever is not encoded at once: another type, a text that is empty or long, a frame that is not
ready, a kernel that needs something. It never releases the GIL, so no two threads are in it; while NumPy creates the
array, which may run anything, `ready` is -1. The layout of objects is checked on known ones first.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import has_compiler
from jittok.kernels.memory.python_objects.c_api import function
from jittok.kernels.memory.python_objects.texts import TEXT_OF_BYTES, bytes_data_offset, str_layout, text_at

NAME = "jittok_one_text"
"""The function in a shipped library."""
Builtin = Callable[[object], Any]
"""text -> ids, or None."""
_ONE_ARGUMENT = 8
"""METH_O of the C API."""
_NEW_ARRAY = 94
"""PyArray_NewFromDescr in NumPy's table of functions."""
_DATA = 16
"""Where an array object has the address of its data."""


NO_LIMIT = (1 << 62) - 1


class Step(NamedTuple):
    """One call of a kernel, each a word. A list ends with a step whose words are all 0; the last kernel before it
    returns the number of ids."""

    kernel: int  # its machine code
    frame: int
    text: int  # address where the text's address and size are written; 0: nowhere
    number: int  # address where the number of fragments is written; 0: nowhere
    result: int  # address where the kernel's result is written; 0: nowhere
    least: int  # results from `least`
    most: int  # to `most` are success: the next step follows
    other: int  # address of the step that follows if the result is the text's size instead; 0: none


STEP = len(Step._fields)


class CallTable(NamedTuple):
    """What the machine code knows, each a word; addresses but for the first five."""

    header: int  # see `StrLayout`
    bits: int
    longest: int  # bytes of a text
    generation: int  # encodes only while *ready is this
    clear_size: int  # see `clear`
    of_bytes: int  # types
    of_str: int
    of_ids: int
    of_numbers: int  # NumPy's int32
    none: int
    ready: int
    size: int  # where the text's size is written
    number: int  # where the number of its fragments is: 1 until a step writes another
    held: int  # where the text is copied to, for steps that prepare it; 0: nowhere
    clear: int  # what is zeroed before, of zeros that are at `zeros`
    zeros: int
    steps: int  # the first `Step`
    ids: int  # what the steps write
    new_array: int  # functions
    copy: int
    hold: int


NUMBERS = 5
"""Fields that are no addresses."""
MAY_BE_NONE = ("clear_size", "held", "clear", "zeros")
"""Fields of a text that is encoded in place."""


def _field(name: str) -> str:
    """%name: a field of CallTable."""
    kind = "i64" if CallTable._fields.index(name) < NUMBERS else "ptr"
    at = CallTable._fields.index(name)
    return f"  %at_{name} = getelementptr i64, ptr %words, i64 {at}\n  %{name} = load {kind}, ptr %at_{name}\n"


def _fields(names: str) -> str:
    return "".join(map(_field, names.split()))


def _part(name: str) -> str:
    """%step_name: a field of the step at hand."""
    kind, at = "i64" if name in ("least", "most") else "ptr", Step._fields.index(name)
    address = f"  %at_step_{name} = getelementptr i64, ptr %step, i64 {at}\n"
    return f"{address}  %step_{name} = load {kind}, ptr %at_step_{name}\n"


def _parts(names: str) -> str:
    return "".join(map(_part, names.split()))


CODE = f"""
define ptr @{NAME}(ptr %self, ptr %text) {{
entry:
  %words = getelementptr i8, ptr %self, i64 {TEXT_OF_BYTES}
{_fields("header bits longest generation of_bytes of_str none ready size number hold")}
  %at_type = getelementptr i64, ptr %text, i64 1
  %type = load ptr, ptr %at_type
  %is_bytes = icmp eq ptr %type, %of_bytes
  br i1 %is_bytes, label %in_place, label %no_bytes
no_bytes:
  %is_str = icmp eq ptr %type, %of_str
  br i1 %is_str, label %a_str, label %nothing
a_str:
  %at_state = getelementptr i64, ptr %text, i64 4
  %state = load i32, ptr %at_state
  %wide_state = zext i32 %state to i64
  %set = and i64 %wide_state, %bits
  %is_ascii = icmp eq i64 %set, %bits
  br i1 %is_ascii, label %in_place, label %nothing
in_place:
  %offset = phi i64 [ {TEXT_OF_BYTES}, %entry ], [ %header, %a_str ]
  %address = getelementptr i8, ptr %text, i64 %offset
  %at_length = getelementptr i64, ptr %text, i64 2
  %length = load i64, ptr %at_length
  %before = sub i64 %length, 1
  %is_short = icmp ult i64 %before, %longest ; and not empty
  br i1 %is_short, label %short, label %nothing
short:
  %now = load i64, ptr %ready
  %is_ready = icmp eq i64 %now, %generation
  br i1 %is_ready, label %begin, label %nothing
begin:
{_fields("clear_size held clear zeros steps ids of_ids of_numbers new_array copy")}
  store i64 %length, ptr %size
  store i64 1, ptr %number
  %is_direct = icmp eq ptr %held, null
  br i1 %is_direct, label %next, label %prepare
prepare:
  %held_text = call ptr %copy(ptr %held, ptr %address, i64 %length)
  %cleared = call ptr %copy(ptr %clear, ptr %zeros, i64 %clear_size)
  br label %next
next:
  %step = phi ptr [ %steps, %begin ], [ %steps, %prepare ], [ %following, %success ], [ %step_other, %divert ]
  %ids_count = phi i64 [ 0, %begin ], [ 0, %prepare ], [ %made, %success ], [ %made, %divert ]
{_parts("kernel")}
  %is_end = icmp eq ptr %step_kernel, null
  br i1 %is_end, label %answer, label %run
run:
{_parts("frame text number result least most other")}
  %reads_text = icmp ne ptr %step_text, null
  br i1 %reads_text, label %give_text, label %with_text
give_text:
  %step_length = getelementptr i64, ptr %step_text, i64 1
  store ptr %address, ptr %step_text
  store i64 %length, ptr %step_length
  br label %with_text
with_text:
  %reads_number = icmp ne ptr %step_number, null
  br i1 %reads_number, label %give_number, label %with_number
give_number:
  %fragments = load i64, ptr %number
  store i64 %fragments, ptr %step_number
  br label %with_number
with_number:
  %made = call i64 %step_kernel(ptr %step_frame)
  %is_enough = icmp sge i64 %made, %step_least
  %is_little = icmp sle i64 %made, %step_most
  %went_well = and i1 %is_enough, %is_little
  br i1 %went_well, label %write, label %odd
write:
  %has_result = icmp ne ptr %step_result, null
  br i1 %has_result, label %write_result, label %success
write_result:
  store i64 %made, ptr %step_result
  br label %success
success:
  %following = getelementptr i64, ptr %step, i64 {STEP}
  br label %next
odd:
  %is_all = icmp eq i64 %made, %length
  %has_other = icmp ne ptr %step_other, null
  %diverts = and i1 %is_all, %has_other
  br i1 %diverts, label %divert, label %nothing
divert:
  br label %next
answer:
  store i64 -1, ptr %ready
  %shape = alloca i64
  store i64 %ids_count, ptr %shape
  call void %hold(ptr %of_numbers) ; the next line takes it
  %array = call ptr %new_array(ptr %of_ids, ptr %of_numbers, i32 1, ptr %shape, ptr null, ptr null, i32 0, ptr null)
  %has_failed = icmp eq ptr %array, null
  br i1 %has_failed, label %end, label %fill
fill:
  %at_data = getelementptr i8, ptr %array, i64 {_DATA}
  %data = load ptr, ptr %at_data
  %bytes = shl i64 %ids_count, 2
  %copied = call ptr %copy(ptr %data, ptr %ids, i64 %bytes)
  br label %end
end:
  store i64 %generation, ptr %ready
  ret ptr %array
nothing:
  call void %hold(ptr %none)
  ret ptr %none
}}
"""


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Own(bytes):
    """The words, where a builtin finds them, and what they are addresses in."""

    keep: Any


def address_of(function: Any) -> int:
    """Where a function of ctypes is."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def may_be_made() -> bool:
    """Whether objects are laid out as the machine code expects it, tried on known ones."""
    locked: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    if not locked() or not bytes_data_offset() or not str_layout().bits or not _numpy_function(_NEW_ARRAY):
        return False
    words, numbers = _Own(bytes(range(200))), np.arange(3, dtype=np.int32)
    if text_at(id(words) + TEXT_OF_BYTES, 200) != words:
        return False
    return ctypes.c_void_p.from_address(id(numbers) + _DATA).value == numbers.ctypes.data


def _numpy_function(number: int) -> int:
    """The address in NumPy's table of functions, 0 where there is none."""
    multiarray: Any = getattr(np, "_core", None) or getattr(np, "core", None)
    table = getattr(getattr(multiarray, "multiarray", None), "_ARRAY_API", None)
    if table is None:
        return 0
    pointer = function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    return ctypes.c_void_p.from_address((pointer(table, None) or 0) + 8 * number).value or 0


@functools.cache
def _method() -> tuple[_Method, Any] | None:
    """The function as Python's C API names one, and what keeps its code; None where it cannot be made."""
    from jittok.kernels.jit import shipped

    found = shipped.function(NAME, CODE) if may_be_made() else (0, None)
    if not found[0] and may_be_made() and has_compiler():
        from jittok.kernels.jit import object_code

        found = object_code.compiled(CODE, NAME)
    return (_Method(b"one_text", found[0], _ONE_ARGUMENT, None), found[1]) if found[0] else None


def ready() -> bool:
    """Whether `make` takes no time."""
    return bool(_method.cache_info().currsize)


def make(of_ids: type, numbers: NDArray[np.int32], keep: Any, **words: int) -> Builtin | None:
    """The builtin; None where this Python, this machine or this installation has none.

    of_ids: the type of arrays that it makes
    numbers: what the kernel writes to
    keep: what else the words lead to, without a way back to the builtin
    words: the fields of `CallTable` that are not known here
    """
    method = _method()
    if method is None:
        return None
    layout, kind = str_layout(), np.dtype(np.int32)
    own = _Own(
        np.array(
            CallTable(
                header=layout.header, bits=layout.bits, of_bytes=id(bytes), of_str=id(str), of_ids=id(of_ids),
                of_numbers=id(kind), none=id(None), ids=numbers.ctypes.data, new_array=_numpy_function(_NEW_ARRAY),
                copy=address_of(ctypes.memmove), hold=address_of(ctypes.pythonapi.Py_IncRef),
                **(dict.fromkeys(MAY_BE_NONE, 0) | words),
            ),
            np.int64,
        ).tobytes()
    )  # fmt: skip
    own.keep = method, of_ids, kind, numbers, keep
    new = function("PyCFunction_NewEx", ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return new(ctypes.addressof(method[0]), own, None)  # type: ignore[no-any-return]
