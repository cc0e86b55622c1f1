"""Parts of Numba replaced for the thread that compiles a kernel, while it does (`one_kernel`).

One has no substitute: the entry of a kernel unpacks a frame, where Numba's would take its arguments one by one. The
others save time (`replacements`). A kernel has a hundred helpers of a few lines each. Numba does some work once for
every function: it searches for new declarations, tells listeners, analyses variables again, optimizes and links. This
takes most of the time, and it is done again when helpers are linked into their callers. Here helpers are left as they
are until their kernel is optimized as a whole. The meaning of a function does not change.

Shortcuts lean on private names of Numba. With the versions that the tests have run with they are taken. With another
one they are tried first (`shortcuts_work`): the names must be there, and a small kernel with a helper inside must give
the right answer. Else Numba compiles as it always does, which takes two to three times as long.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import numba
from numba.core import base, entrypoints, errors, event, interpreter, lowering, typeinfer, types
from numba.core.base import BaseContext
from numba.core.codegen import CPUCodeLibrary, JITCPUCodegen
from numba.core.compiler_machinery import PassManager
from numba.core.cpu import CPUContext
from numba.core.postproc import PostProcessor
from numba.core.registry import cpu_target
from numba.core.transforms import canonicalize_cfg
from numba.core.typing.context import BaseContext as TypingContext
from numba.core.typing.npydecl import NumpyRulesArrayOperator

from jittok.kernels.jit import OutI64, helper
from jittok.kernels.jit.compiling import gc_paused
from jittok.kernels.jit.object_code import LOCK, load
from jittok.kernels.jit.trust import log

TESTED_VERSIONS = ("0.68",)
"""Minor versions of Numba that all tests have run with."""


@functools.cache
def shortcuts_work() -> bool:
    """Whether `numba_shortcuts` does what it should, with this Numba."""
    if os.environ.get("JITTOK_LEAN", "") == "0":
        return False
    if numba.__version__.rpartition(".")[0] in TESTED_VERSIONS:
        return True
    reason = _why_not()
    if reason:
        log.warning(
            "compiling takes longer with Numba %s than with %s: %s", numba.__version__, TESTED_VERSIONS[-1], reason
        )
    return not reason


def _why_not() -> str:
    try:
        from jittok.kernels.jit.compiler import compile_kernel
        from jittok.kernels.jit.numba_shortcuts import replacements

        gone = [name for owner, name, _ in replacements("", lambda _library: None) if not hasattr(owner, name)]
        if gone:
            return f"it has no {', '.join(gone)}"
        out = array("q", [0] * 5)
        frame = array("q", [0, out.buffer_info()[0], len(out), 7])
        entry, _keep = load(compile_kernel(count_steps, lean=True))
        found = (entry(frame.buffer_info()[0]), list(out))
    except Exception as error:  # noqa: BLE001  whatever it is, Numba can do without
        return f"{type(error).__name__}: {error}"
    return "" if found == (35, [0, 7, 14, 21, 28]) else f"a small kernel gave {found}"


@helper
def _scaled(value: int, by: int) -> int:
    return value * by


def count_steps(out: OutI64, by: int) -> int:
    """The small kernel."""
    for i in range(out.size):
        out[i] = _scaled(i, by)
    return _scaled(out.size, by)


Replacement = tuple[Any, str, Callable[[Any], Any]]
"""Owner, name, what makes the replacement of the original."""
COMPILING: set[int] = set()
"""The thread that compiles a kernel, if one does."""
_originals: list[tuple[Any, str, Any]] = []
"""What that thread has replaced: owner, name, original."""


@contextlib.contextmanager
def one_kernel(name: str, wrapper: Callable[..., None], others: list[Replacement]) -> Iterator[None]:
    """While the kernel `name` is compiled in this thread; `wrapper` makes its entry in place of Numba's for C."""
    alone: Replacement = (entrypoints, "init_all", _without_extensions)
    with gc_paused():
        with _replaced([alone]):
            cpu_target.target_context.refresh()  # all declarations, once
        with _replaced([alone, (CPUContext, "create_cfunc_wrapper", _wrapped(name, wrapper)), *others]):
            COMPILING.add(threading.get_ident())
            try:
                yield
            finally:
                COMPILING.clear()


def _without_extensions(_original: Any) -> Any:
    """Packages that extend Numba are imported before it compiles for the first time, which may take as long as Numba's
    own import; no kernel needs one. What else is compiled in the process still gets them."""
    return lambda: None


@contextlib.contextmanager
def _replaced(replacements: list[Replacement]) -> Iterator[None]:
    """With these in place; other threads get the originals."""
    thread = threading.get_ident()

    def chosen(ours: Any, original: Any) -> Any:
        def choose(*args: Any, **kwargs: Any) -> Any:
            return (ours if threading.get_ident() == thread else original)(*args, **kwargs)

        return choose

    with LOCK:
        try:
            for owner, name, make in replacements:
                original = getattr(owner, name)
                _originals.append((owner, name, original))
                setattr(owner, name, chosen(make(original), original))
            yield
        finally:
            _put_back()


def _put_back() -> None:
    while _originals:
        owner, name, original = _originals.pop()
        setattr(owner, name, original)


def _after_fork() -> None:
    """In the child of a fork: undo what a thread that is gone has changed."""
    if threading.get_ident() in COMPILING:
        return
    COMPILING.clear()
    _put_back()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _wrapped(kernel_name: str, wrapper: Callable[..., None]) -> Any:
    """What Numba makes of min() and the like gets no wrapper at all."""

    def make(_original: Any) -> Any:
        def create(context: Any, library: Any, *rest: Any) -> None:
            if library.name == kernel_name:
                wrapper(context, library, *rest)

        return create

    return make


_MANGLED = "_ZN"
"""How the names of compiled Python functions begin."""
_PLAIN_VALUES = (int, bool, float, str, tuple)


def replacements(name: str, optimize: Callable[[Any], None]) -> list[Replacement]:
    """What is replaced while the kernel `name` is compiled; `optimize` does what Numba would do to its whole module."""
    return [
        (BaseContext, "refresh", _new_intrinsics_only),
        (TypingContext, "refresh", _nothing),
        (event, "start_event", _nothing),
        (event, "end_event", _nothing),
        (PostProcessor, "run", _lives_at_the_end),
        (typeinfer, "new_error_context", _quick_context),
        (lowering, "new_error_context", _quick_context),
        (errors.WarningsFixer, "catch_warnings", _warnings_as_they_come),  # type: ignore[attr-defined]
        (NumpyRulesArrayOperator, "generic", _numbers_are_no_arrays),
        (types.Function, "get_call_type", _asked_once),
        (base, "_has_loc", _known_by_function),
        (BaseContext, "get_abi_sizeof", _known_by_type),
        (PassManager, "_runPass", _pass_alone),
        (interpreter, "peep_hole_delete_with_exit", _as_it_is),
        (interpreter, "peep_hole_split_at_pop_block", _as_it_is),
        (TypingContext, "resolve_value_type", _known_by_value),
        (TypingContext, "find_matching_getattr_template", _known_by_name),
        (lowering, "_lit_or_omitted", _known_by_constant),
        (CPUCodeLibrary, "finalize", _linked_at_the_end(name, optimize)),
        (JITCPUCodegen, "set_env", _no_place_for_helpers),
    ]


def _nothing(_original: Any) -> Any:
    return lambda *_args, **_kwargs: None


class _Context:
    """Numba's context for errors, entered for each instruction, without a generator."""

    __slots__ = ("_facts", "_more", "_text")

    def __init__(self, text: str, *facts: Any, **more: Any) -> None:
        self._text, self._facts, self._more = text, facts, more

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: Any, error: Any, _trace: Any) -> None:
        if isinstance(error, errors.NumbaError):
            error.add_context(self._text.format(*self._facts, **self._more))


def _quick_context(_original: Any) -> Any:
    return _Context


def _warnings_as_they_come(_original: Any) -> Any:
    """For each constraint of each helper Numba collects warnings, to tell each of them once."""
    return lambda *_args, **_kwargs: contextlib.nullcontext()


def _new_intrinsics_only(_original: Any) -> Any:
    """What is new since the kernel was begun can only be the code of intrinsics."""

    def refresh(context: Any) -> None:
        for registry in context._registries:
            context.install_registry(registry)

    return refresh


def _lives_at_the_end(original: Any) -> Any:
    """After most passes Numba works out where variables live; only the last time it is used, for deleting them."""

    def run(processor: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        if emit_dels:
            original(processor, emit_dels, extend_lifetimes)
            return
        processor.func_ir.blocks = canonicalize_cfg(processor.func_ir.blocks)
        processor.func_ir.generator_info = None  # no kernel has generators

    return run


def _numbers_are_no_arrays(original: Any) -> Any:
    """For each operator Numba goes through NumPy's rules and then sees that no array takes part."""

    def generic(template: Any, args: Any, kws: Any) -> Any:
        return original(template, args, kws) if any(isinstance(a, types.ArrayCompatible) for a in args) else None

    return generic


def _asked_once(original: Any) -> Any:
    """Which signature fits `int64 + int64` is found by trying all that there are; it is the same a thousand times."""
    found: dict[tuple[Any, Any], Any] = {}

    def get_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return original(function, context, args, kws)
        signature = found.get((function, args))
        if signature is None:
            signature = found[function, args] = original(function, context, args, kws)
        return signature

    return get_call_type


def _known_by_function(original: Any) -> Any:
    """For each operation that is lowered Numba reads the signature of what lowers it."""
    return functools.lru_cache(maxsize=None)(original)


def _known_by_type(original: Any) -> Any:
    """For each variable Numba writes a module of its type, for LLVM to read and to tell its size: few types differ."""
    found: dict[Any, int] = {}

    def size_of(context: Any, kind: Any) -> int:
        size = found.get(kind)
        if size is None:
            size = found[kind] = original(context, kind)
        return size

    return size_of


def _pass_alone(_original: Any) -> Any:
    """Around each pass, Numba measures its time, searches for deletions and rewrites loops, which change nothing
    here."""

    def run_pass(manager: Any, _index: int, each: Any, state: Any) -> None:
        each.analysis = manager._analysis
        with _Context("Pass {name}", name=each.name()):
            each.run_pass(state)

    return run_pass


def _as_it_is(_original: Any) -> Any:
    """What Numba does to `with` takes a list of all variables of each statement; no kernel has `with`."""
    return lambda func_ir: func_ir


def _known_by_value(original: Any) -> Any:
    """A function or a module that is named has the same type each time."""
    found: dict[int, tuple[Any, Any]] = {}

    def resolve_value_type(context: Any, value: Any) -> Any:
        known = found.get(id(value))
        if known is None:
            if type(value) in _PLAIN_VALUES:  # True == 1
                return original(context, value)
            known = found[id(value)] = original(context, value), value  # kept alive, so that the id stays its own
        return known[0]

    return resolve_value_type


def _known_by_name(original: Any) -> Any:
    """Numba searches for a field of a type again wherever it is named, and again in each round of its type
    inference."""
    found: dict[tuple[Any, str], Any] = {}

    def find_matching_getattr_template(context: Any, kind: Any, name: str) -> Any:
        if (kind, name) not in found:
            found[kind, name] = original(context, kind, name)
        return found[kind, name]

    return find_matching_getattr_template


def _known_by_constant(original: Any) -> Any:
    """Whether an operand is constant is asked several times for each operation."""
    found: dict[tuple[type, Any], Any] = {}

    def lit_or_omitted(value: Any) -> Any:
        if type(value) is slice:  # has no hash
            return original(value)
        key = type(value), value
        if key not in found:
            found[key] = original(value)
        return found[key]

    return lit_or_omitted


def _linked_at_the_end(kernel_name: str, optimize: Callable[[Any], None]) -> Any:
    """Numba optimizes every function and makes machine code of it, then links it into its callers and optimizes it
    again there, level by level. Helpers are never called alone: they are linked once, into the kernel."""

    def make(original: Any) -> Any:
        def finalize(library: Any) -> None:
            if library.name == kernel_name:
                library._linking_libraries[:] = _all_parts(library)
                library._verify_declare_only_symbols = lambda: _raise_if_missing(library)
                library._optimize_final_module = lambda: optimize(library)
                original(library)
                return
            library._raise_if_finalized()
            library._finalize_dynamic_globals()
            library._finalized = True
            library._get_module_for_linking = lambda: _module_for_linking(library)

        return finalize

    return make


def _raise_if_missing(library: Any) -> None:
    """RuntimeError for a helper that is called and was not linked; Numba searches for fewer names. It asks before
    handing the code to LLVM's engine, which ends the process over such a call."""
    for function in library._final_module.functions:
        if function.is_declaration and function.name.startswith(_MANGLED):
            raise RuntimeError(f"kernel {library.name}: its helper {function.name} is missing")


def _all_parts(library: Any) -> list[Any]:
    """What a library calls, directly or not; each part after all its callers, as LLVM leaves out what nothing that is
    linked so far calls. Helpers do not call each other in circles."""
    called: dict[Any, None] = {}

    def visit(part: Any) -> None:
        for each in part._linking_libraries:
            if each not in called:
                visit(each)
        called[part] = None

    visit(library)
    return list(reversed(called))[1:]


def _module_for_linking(library: Any) -> Any:
    """A helper's code: alone for a kernel, with all that it calls for what Numba compiles alone."""
    bare = CPUCodeLibrary._get_module_for_linking
    if threading.get_ident() in COMPILING:
        return bare(library)
    whole = bare(library).clone()
    for part in _all_parts(library):
        whole.link_in(bare(part), preserve=True)
    return whole


def _no_place_for_helpers(original: Any) -> Any:
    """A helper has no machine code, so no place for its environment either."""

    def set_env(codegen: Any, name: str, env: Any) -> None:
        if codegen._engine.get_global_value_address(name):
            original(codegen, name, env)

    return set_env
