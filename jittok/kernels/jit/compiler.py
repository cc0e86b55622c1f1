"""Kernels to object code, by Numba: imported when something has to be compiled.

Arrays are created by the caller and outlive the call, so nothing is reference counted (`_nrt=False`: half of what LLVM
would have to optimize). The wrapper that unpacks Python objects is replaced by one that unpacks a frame.

A NamedTuple that a kernel is called with is to it the address of the first of its words in the frame (`Fields`); a
field is read where it is named. Numba's own tuples are passed by value, seven words an array, and a compiled vocabulary
has sixty arrays: half of a kernel's code was handing them on, which LLVM then removes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, get_type_hints

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import typed_passes, untyped_passes
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager
from numba.core.datamodel.models import OpaqueModel, PrimitiveModel
from numba.core.datamodel.registry import register_default
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr, make_intrinsic_template
from numba.extending import typeof_impl
from numba.np.arrayobj import populate_array

from jittok.kernels.jit import CHECKED, Deferred, Helper, Intrinsic
from jittok.kernels.jit.frame import STATUS
from jittok.kernels.jit.numba_shortcuts import one_kernel, shortcuts_work
from jittok.kernels.jit.object_code import ENTRY

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


class _Passes(CompilerBase):  # type: ignore[misc]
    """Numba's pipeline without passes for what no kernel has: closures, `with`, generators, array expressions, literal
    arguments, inlining before types are known, variables that have to be deleted (nothing is reference counted). There
    are hundreds of helpers, so each pass counts."""

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
            typed_passes.AnnotateTypes,
            typed_passes.NativeLowering,
            typed_passes.NoPythonBackend,
        ):
            manager.add_pass(each, each.__name__)
        manager.finalize()
        return [manager]


OPTIONS = {"nogil": True, "boundscheck": CHECKED, "error_model": "numpy", "pipeline_class": _Passes}


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
    return numba.njit(**OPTIONS, _nrt=False)(function.python)  # type: ignore[no-any-return]


def compile_kernel(function: Callable[..., Any], lean: bool | None = None) -> bytes:
    """The object code of a kernel, with the symbol `object_code.ENTRY`; `lean`: None for what fits this Numba."""
    overload = _compiled(function, _optimize, shortcuts_work() if lean is None else lean)
    return bytes(overload.library._get_compiled_object())


def linked(function: Callable[..., Any]) -> bytes:
    """The bitcode of a kernel with all its helpers, before anything is optimized: for any processor."""
    found: list[bytes] = []

    def catch(library: Any) -> None:
        found.append(library._final_module.as_bitcode())
        raise _Enough

    with contextlib.suppress(_Enough):
        _compiled(function, catch, lean=True)
    (code,) = found
    return code


class _Enough(Exception):
    """What was wanted of compiling is there."""


def _compiled(function: Callable[..., Any], optimize: Callable[[Any], None], lean: bool) -> Any:
    hints = get_type_hints(function, include_extras=True)
    hints.pop("return")
    dispatcher = numba.njit(**OPTIONS, _nrt=False, no_cpython_wrapper=True)(function)
    others = []
    if lean:
        from jittok.kernels.jit.numba_shortcuts import replacements

        others = replacements(function.__qualname__, optimize)
    with one_kernel(function.__qualname__, _frame_wrapper, others):
        dispatcher.compile(tuple(map(numba_type, hints.values())))
    (overload,) = dispatcher.overloads.values()
    return overload


def _optimize(library: Any) -> None:
    """Numba's two passes over a whole module, a cheap one and all of it. Between them all but the entry is made
    internal, so that what was inlined everywhere goes away: half of the object code. Checked code has the second alone.
    """
    codegen, module = library._codegen, library._final_module
    settings = {"loop_vectorize": codegen._loopvect, "slp_vectorize": False, "opt": codegen._opt_level, "cost": "cheap"}
    passes = [codegen._module_pass_manager()]
    if CHECKED:
        _call_helpers(module)
    else:
        passes.insert(0, codegen._module_pass_manager(**settings))
    for manager, builder in passes:
        manager.run(module, builder)
        hide_all_but(ENTRY, module)


def _call_helpers(module: Any) -> None:
    """Helpers of checked code are called where they stand, not put there: each index has a test and an end of the
    function, so they are large, and such code is compiled more often than it has to be fast."""
    hide_all_but(ENTRY, module)
    for each in module.functions:
        if not each.is_declaration and b"alwaysinline" not in each.attributes:
            each.add_function_attribute("noinline")


def hide_all_but(entry: str, module: Any) -> None:
    """Make all that a module defines internal, but for its entry."""
    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration and each.name != entry:
            each.linkage = "internal"


def _frame_wrapper(context: Any, library: Any, fndesc: Any, *_unused: Any) -> None:
    """In place of Numba's wrapper for C: int64 entry(int64 *frame)."""
    module = context.create_module("frame_wrapper")
    callee = ir.Function(
        module, context.call_conv.get_function_type(fndesc.restype, fndesc.argtypes), fndesc.llvm_func_name
    )
    entry = ir.Function(module, ir.FunctionType(WORD, [WORD.as_pointer()]), ENTRY)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    at, args = STATUS + 1, []
    for kind in fndesc.argtypes:
        args.append(load(context, builder, kind, entry.args[0], at))
        at += words_of(kind)
    status, out = context.call_conv.call_function(builder, callee, fndesc.restype, fndesc.argtypes, args)
    with builder.if_then(status.is_error, likely=False):
        builder.store(ir.Constant(WORD, 1), builder.gep(entry.args[0], [ir.Constant(WORD, STATUS)]))
        builder.ret(ir.Constant(WORD, 0))
    if fndesc.restype == types.none:
        builder.ret(ir.Constant(WORD, 0))
    else:
        builder.ret(context.cast(builder, out, fndesc.restype, types.int64))
    library.add_ir_module(module)
