"""What lies in a frame, to compiled code: numbers, arrays, and NamedTuples of these.

A NamedTuple that a kernel is called with is to it the address of the first of its words; a field is read where it is
named. Numba's own tuples are passed by value, seven words an array, and a compiled vocabulary has sixty arrays: half of
a kernel's code was handing them on, which LLVM then removes.
"""

from __future__ import annotations

from typing import Any, get_type_hints

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.datamodel.registry import register_default
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.np.arrayobj import populate_array

WORD = ir.IntType(64)


class Fields(types.Type):  # type: ignore[misc]
    """A NamedTuple in the frame: `kinds`, name -> Numba's type of a field; `positions`, name -> its first word."""

    def __init__(self, hint: type) -> None:
        self.kinds = {name: numba_type(field) for name, field in get_type_hints(hint, include_extras=True).items()}
        self.positions, self.words = {}, 0
        for name, kind in self.kinds.items():
            self.positions[name] = self.words
            self.words += words_of(kind)
        super().__init__(f"{hint.__module__}.{hint.__qualname__}")


def numba_type(hint: Any) -> Any:
    """The Numba type of one annotation that `frame.plan_of` has accepted."""
    if hint is int:
        return types.int64
    if hint is float:
        return types.float64
    if hasattr(hint, "__metadata__"):
        dtype, direction = hint.__metadata__[0]
        return types.Array(numba.from_dtype(np.dtype(dtype)), 1, "C", readonly=direction == "in")
    return Fields(hint)


def words_of(kind: Any) -> int:
    """How many words of a frame a value of this type has."""
    if isinstance(kind, Fields):
        return kind.words
    return 2 if isinstance(kind, types.Array) else 1


@register_default(Fields)
class _Address(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, WORD.as_pointer())


@infer_getattr
class _FieldTypes(AttributeTemplate):  # type: ignore[misc]
    key = Fields

    def generic_resolve(self, kind: Any, name: str) -> Any:
        """The type of a field; None when there is none of that name."""
        return kind.kinds.get(name)


@lower_getattr_generic(Fields)  # type: ignore[untyped-decorator]
def _field(context: Any, builder: Any, kind: Any, words: Any, name: str) -> Any:
    return load(context, builder, kind.kinds[name], words, kind.positions[name])


def load(context: Any, builder: Any, kind: Any, words: Any, at: int) -> Any:
    """The value whose words begin at `at`. Nothing writes to them while the kernel runs."""

    def word(i: int) -> Any:
        value = builder.load(builder.gep(words, [ir.Constant(WORD, i)]))
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    if isinstance(kind, Fields):
        return builder.gep(words, [ir.Constant(WORD, at)])
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder)
        size, item = word(at + 1), ir.Constant(WORD, np.dtype(str(kind.dtype)).itemsize)
        data = builder.inttoptr(word(at), array.data.type)
        populate_array(array, data=data, shape=[size], strides=[item], itemsize=item, meminfo=None)
        return array._getvalue()
    return builder.bitcast(word(at), ir.DoubleType()) if kind == types.float64 else word(at)
