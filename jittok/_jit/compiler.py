"""Kernels to object code, by Numba: imported when something has to be compiled.

Arrays are created by the caller and outlive the call, so nothing is reference counted (`_nrt=False`: half of what LLVM
would have to optimize). The wrapper that unpacks Python objects is replaced by one that unpacks a frame.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_type_hints

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import typed_passes, untyped_passes
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager
from numba.core.datamodel.models import OpaqueModel
from numba.core.datamodel.registry import register_default
from numba.core.typing.templates import make_intrinsic_template
from numba.extending import typeof_impl
from numba.np.arrayobj import populate_array

from jittok._jit import CHECKED, Deferred, Helper, Intrinsic
from jittok._jit.frame import STATUS
from jittok._jit.lean import one_kernel
from jittok._jit.machine import ENTRY

_WORD = ir.IntType(64)


class _Passes(CompilerBase):  # type: ignore[misc]
    """Numba's pipeline without passes for what no kernel has: closures, `with`, generators, array expressions, literal
    arguments, inlining before types are known. There are hundreds of helpers, so each pass counts."""

    def define_pipelines(self) -> list[Any]:
        """The passes, in Numba's order."""
        manager = PassManager("jittok")
        for each in (
            untyped_passes.TranslateByteCode,
            untyped_passes.FixupArgs,
            untyped_passes.IRProcessing,
            untyped_passes.RewriteSemanticConstants,
            untyped_passes.DeadBranchPrune,
            untyped_passes.GenericRewrites,
            untyped_passes.ReconstructSSA,
            typed_passes.NopythonTypeInference,
            typed_passes.PreLowerStripPhis,
            typed_passes.IRLegalization,
            typed_passes.AnnotateTypes,
            typed_passes.NativeLowering,
            typed_passes.NoPythonBackend,
        ):
            manager.add_pass(each, each.__name__)
        manager.finalize()
        return [manager]


OPTIONS = {"nogil": True, "boundscheck": CHECKED, "error_model": "numpy", "pipeline_class": _Passes}


def numba_type(hint: Any) -> Any:
    """The Numba type of one annotation that `frame.plan_of` has accepted."""
    if hint is int:
        return types.int64
    if hint is float:
        return types.float64
    if hasattr(hint, "__metadata__"):
        dtype, direction = hint.__metadata__[0]
        return types.Array(numba.from_dtype(np.dtype(dtype)), 1, "C", readonly=direction == "in")
    fields = get_type_hints(hint, include_extras=True)
    # Numba tells NamedTuples apart by short name and fields: without the module in the name, the `Work` of two models
    # with equal fields is one type to it, and the kernel that comes second refuses its own.
    hint.__name__ = f"{hint.__module__}.{hint.__qualname__}"
    # Not types.NamedTuple(...): equal fields make Numba use another type, NamedUniTuple.
    return types.BaseTuple.from_types([numba_type(field) for field in fields.values()], hint)


class _HelperType(types.Dispatcher):  # type: ignore[misc]
    """What a helper is to its callers. A constant is passed as a number: Numba would compile the helper once for each
    constant, and once for the constant that a loop's variable begins with; LLVM sees constants when it inlines."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature of a call with arguments of these types; what is new is compiled."""
        args = tuple(map(types.unliteral, args))
        made = self.dispatcher.overloads.get(args)
        if made is not None and not kws:
            return made.signature.replace(pysig=self.dispatcher._compiler.pysig)
        return super().get_call_type(context, args, {name: types.unliteral(kind) for name, kind in dict(kws).items()})


register_default(_HelperType)(OpaqueModel)  # no value at run time


@typeof_impl.register(Helper)  # type: ignore[untyped-decorator]
def _type_of_helper(value: Any, context: Any) -> Any:
    """What a helper is to the kernel that names it: made on first need."""
    if isinstance(value, Deferred):
        return typeof_impl(value.fetched(), context)
    if value.made is None:
        if isinstance(value, Intrinsic):  # Numba's own decorator would register it too late: typing has begun
            value.made = types.Function(make_intrinsic_template(value, value.python, value.python.__name__))
        else:
            options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": value.inside}
            value.made = numba.njit(**OPTIONS, **options)(value.python)
    # The type refers to the dispatcher weakly, so the dispatcher is what is kept.
    return value.made if isinstance(value, Intrinsic) else _HelperType(value.made)


def alone(function: Any) -> Callable[..., Any]:
    """A helper that Python can call."""
    while isinstance(function, Deferred):
        function = function.fetched()
    return numba.njit(**OPTIONS)(function.python)  # type: ignore[no-any-return]


def compile_kernel(function: Callable[..., Any]) -> bytes:
    """The object code of a kernel, with the symbol `machine.ENTRY`."""
    hints = get_type_hints(function, include_extras=True)
    hints.pop("return")
    dispatcher = numba.njit(**OPTIONS, _nrt=False, no_cpython_wrapper=True)(function)
    with one_kernel(function.__qualname__, _frame_wrapper):
        dispatcher.compile(tuple(map(numba_type, hints.values())))
    (overload,) = dispatcher.overloads.values()
    return bytes(overload.library._get_compiled_object())


def _load(context: Any, builder: Any, kind: Any, words: Any, at: int) -> tuple[Any, int]:
    """The argument whose words begin at `at`, and the place behind them."""

    def word(i: int) -> Any:
        return builder.load(builder.gep(words, [ir.Constant(_WORD, i)]))

    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder)
        size, item = word(at + 1), ir.Constant(_WORD, np.dtype(str(kind.dtype)).itemsize)
        data = builder.inttoptr(word(at), array.data.type)
        populate_array(array, data=data, shape=[size], strides=[item], itemsize=item, meminfo=None)
        return array._getvalue(), at + 2
    if isinstance(kind, types.BaseTuple):
        items = []
        for field in kind:
            item, at = _load(context, builder, field, words, at)
            items.append(item)
        return context.make_tuple(builder, kind, items), at
    value = word(at)
    return (builder.bitcast(value, ir.DoubleType()) if kind == types.float64 else value), at + 1


def _frame_wrapper(context: Any, library: Any, fndesc: Any, *_unused: Any) -> None:
    """In place of Numba's wrapper for C: int64 entry(int64 *frame)."""
    module = context.create_module("frame_wrapper")
    callee = ir.Function(
        module, context.call_conv.get_function_type(fndesc.restype, fndesc.argtypes), fndesc.llvm_func_name
    )
    entry = ir.Function(module, ir.FunctionType(_WORD, [_WORD.as_pointer()]), ENTRY)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    at, args = STATUS + 1, []
    for kind in fndesc.argtypes:
        value, at = _load(context, builder, kind, entry.args[0], at)
        args.append(value)
    status, out = context.call_conv.call_function(builder, callee, fndesc.restype, fndesc.argtypes, args)
    with builder.if_then(status.is_error, likely=False):
        builder.store(ir.Constant(_WORD, 1), builder.gep(entry.args[0], [ir.Constant(_WORD, STATUS)]))
        builder.ret(ir.Constant(_WORD, 0))
    if fndesc.restype == types.none:
        builder.ret(ir.Constant(_WORD, 0))
    else:
        builder.ret(context.cast(builder, out, fndesc.restype, types.int64))
    library.add_ir_module(module)
