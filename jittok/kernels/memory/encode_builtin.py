"""One text to its ids without Python in between: a builtin function of Python, made of 130 lines of machine code.

A method of Python around a kernel takes two microseconds, most of a short text's time. Here the interpreter calls
machine code. This code reads the text where Python keeps it, and writes its address and size into the frames of some
kernels (see `encode.short_text.ShortTextFrame`). One cuts the text, one looks whether it may be encoded as it is, one
writes what becomes of a text that changes, one encodes. Or several prepare a copy of the text, and one joins ids. It
calls them, and has NumPy make the array. All that it knows is in `CallTable`: addresses, also those of the functions
of Python and NumPy that it calls. So it can lie in a shared library that asks for none.

It returns None for whatever is not encoded at once: another type, a text that is empty or long, a frame that is not
ready, a kernel that asks for something. It never lets go of Python's lock, so no two threads are in it; while NumPy
makes the array, which may run anything, `ready` is -1. How objects are laid out is tried on known ones first.
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
from jittok.kernels.memory.c_api import function
from jittok.kernels.memory.objects import TEXT_OF_BYTES, bytes_data_offset, str_layout, text_at

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


class CallTable(NamedTuple):
    """What the machine code knows, each a word; addresses but for the first six. Kernels that are not called are 0."""

    header: int  # see `StrLayout`
    bits: int
    longest: int  # bytes of a text
    generation: int  # encodes only while *ready is this
    unchanged: int  # what `look` gives for fragments that do not change
    clear_size: int  # see `clear`
    of_bytes: int  # types
    of_str: int
    of_ids: int
    of_numbers: int  # NumPy's int32
    none: int
    ready: int
    size: int  # where the text's size is written
    cut: int  # the kernel that cuts
    cut_frame: int
    cut_text: int  # where in it the text's address and size are written
    look: int  # the kernel that looks; where it gives the text's size, all of the text is one fragment that changes
    look_frame: int
    look_text: int
    look_fragments: int  # where in it the number of fragments is written
    change: int  # the kernel that writes what becomes of such a text, and gives its size
    change_frame: int
    change_text: int
    change_fragments: int
    changed_stop: int  # where that size is written
    changed_frame: int  # the frame of `model` for it
    changed_fragments: int
    held: int  # where the text is copied to, for `steps` that prepare it: then the model reads what they leave
    clear: int  # what is zeroed before, of zeros that are at `zeros`
    zeros: int
    steps: int  # records of STEP words: kernel, frame, where the number of fragments is written, its least and most
    steps_end: int  # answer; after the last one
    join: int  # the kernel that joins ids, and gives their number
    join_frame: int
    join_fragments: int
    model: int  # the kernel that encodes
    model_frame: int
    model_text: int
    fragments: int  # where in it the number of fragments is written
    ids: int  # what it writes
    new_array: int  # functions
    copy: int
    hold: int


NUMBERS = 6
"""Fields that are no addresses."""
STEP = 5
"""Words of a step."""
MAY_BE_NONE = (
    CallTable._fields[4:6] + CallTable._fields[CallTable._fields.index("cut") : CallTable._fields.index("model")]
)
"""Fields of kernels that not every tokenizer calls."""


def _field(name: str) -> str:
    """%name: a field of Words."""
    kind = "i64" if CallTable._fields.index(name) < NUMBERS else "ptr"
    at = CallTable._fields.index(name)
    return f"  %at_{name} = getelementptr i64, ptr %words, i64 {at}\n  %{name} = load {kind}, ptr %at_{name}\n"


def _fields(names: str) -> str:
    return "".join(map(_field, names.split()))


CODE = f"""
define ptr @{NAME}(ptr %self, ptr %text) {{
entry:
  %words = getelementptr i8, ptr %self, i64 {TEXT_OF_BYTES}
{_fields("header bits longest generation of_bytes of_str none ready size hold")}
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
{_fields("unchanged cut cut_frame cut_text look look_frame look_text look_fragments")}
{_fields("change change_frame change_text change_fragments changed_stop changed_frame changed_fragments")}
{_fields("clear_size held clear zeros steps steps_end join join_frame join_fragments")}
{_fields("model model_frame model_text fragments ids of_ids of_numbers new_array copy")}
  store i64 %length, ptr %size
  %is_whole = icmp eq ptr %cut, null
  br i1 %is_whole, label %whole, label %divide
divide:
  %cut_length = getelementptr i64, ptr %cut_text, i64 1
  store ptr %address, ptr %cut_text
  store i64 %length, ptr %cut_length
  %parts = call i64 %cut(ptr %cut_frame)
  %has_parts = icmp sgt i64 %parts, 0
  br i1 %has_parts, label %divided, label %nothing
divided:
  store i64 %parts, ptr %fragments
  br label %whole
whole:
  %number = phi i64 [ 1, %begin ], [ %parts, %divided ]
  %is_known = icmp eq ptr %look, null
  br i1 %is_known, label %encode, label %examine
examine:
  %look_length = getelementptr i64, ptr %look_text, i64 1
  store ptr %address, ptr %look_text
  store i64 %length, ptr %look_length
  store i64 %number, ptr %look_fragments
  %seen = call i64 %look(ptr %look_frame)
  %stays = icmp eq i64 %seen, %unchanged
  br i1 %stays, label %encode, label %odd
odd:
  %is_all = icmp eq i64 %seen, %length
  %can_change = icmp ne ptr %change, null
  %changes = and i1 %is_all, %can_change
  br i1 %changes, label %rewrite, label %nothing
rewrite:
  %change_length = getelementptr i64, ptr %change_text, i64 1
  store ptr %address, ptr %change_text
  store i64 %length, ptr %change_length
  store i64 %number, ptr %change_fragments
  %new_length = call i64 %change(ptr %change_frame)
  store i64 %new_length, ptr %changed_stop
  store i64 %number, ptr %changed_fragments
  %new_count = call i64 %model(ptr %changed_frame)
  br label %counted
encode:
  %is_direct = icmp eq ptr %held, null
  br i1 %is_direct, label %direct, label %prepare
prepare:
  %held_text = call ptr %copy(ptr %held, ptr %address, i64 %length)
  %cleared = call ptr %copy(ptr %clear, ptr %zeros, i64 %clear_size)
  br label %next
next:
  %step = phi ptr [ %steps, %prepare ], [ %behind, %run ]
  %is_ready_text = icmp eq ptr %step, %steps_end
  br i1 %is_ready_text, label %prepared, label %run
run:
  %kernel = load ptr, ptr %step
  %at_frame = getelementptr i64, ptr %step, i64 1
  %frame = load ptr, ptr %at_frame
  %at_number = getelementptr i64, ptr %step, i64 2
  %its_number = load ptr, ptr %at_number
  %at_least = getelementptr i64, ptr %step, i64 3
  %least = load i64, ptr %at_least
  %at_most = getelementptr i64, ptr %step, i64 4
  %most = load i64, ptr %at_most
  store i64 %number, ptr %its_number
  %made = call i64 %kernel(ptr %frame)
  %is_enough = icmp sge i64 %made, %least
  %is_little = icmp sle i64 %made, %most
  %went_well = and i1 %is_enough, %is_little
  %behind = getelementptr i64, ptr %step, i64 {STEP}
  br i1 %went_well, label %next, label %nothing
prepared:
  store i64 %number, ptr %fragments
  %its_count = call i64 %model(ptr %model_frame)
  %is_joined = icmp eq ptr %join, null
  %has_failed_now = icmp slt i64 %its_count, 0
  %is_final = or i1 %is_joined, %has_failed_now
  br i1 %is_final, label %counted, label %unite
unite:
  store i64 %number, ptr %join_fragments
  %fewer = call i64 %join(ptr %join_frame)
  br label %counted
direct:
  %model_length = getelementptr i64, ptr %model_text, i64 1
  store ptr %address, ptr %model_text
  store i64 %length, ptr %model_length
  %own_count = call i64 %model(ptr %model_frame)
  br label %counted
counted:
  %count = phi i64 [ %own_count, %direct ], [ %new_count, %rewrite ], [ %its_count, %prepared ], [ %fewer, %unite ]
  %is_done = icmp sge i64 %count, 0
  br i1 %is_done, label %answer, label %nothing
answer:
  store i64 -1, ptr %ready
  %shape = alloca i64
  store i64 %count, ptr %shape
  call void %hold(ptr %of_numbers) ; the next line takes it
  %array = call ptr %new_array(ptr %of_ids, ptr %of_numbers, i32 1, ptr %shape, ptr null, ptr null, i32 0, ptr null)
  %has_failed = icmp eq ptr %array, null
  br i1 %has_failed, label %end, label %fill
fill:
  %at_data = getelementptr i8, ptr %array, i64 {_DATA}
  %data = load ptr, ptr %at_data
  %bytes = shl i64 %count, 2
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
