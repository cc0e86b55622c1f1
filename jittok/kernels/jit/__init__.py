"""The only room that knows Numba: kernels, their options, the cache of machine code.

Decorators. `helper` marks a function that only kernels call: it is compiled inside its caller. `intrinsic` marks one
that writes LLVM code. `kernel` marks an entry point that Python calls:

- its one signature is read from the annotations (`U8`, `OutI32`, `int`, NamedTuples of these);
- nothing is compiled at import, and Numba is not even imported. The first call takes the machine code that lies in the
  wheel (`shipped`), else that in the user's cache (`store`, `object_code`). Else it compiles, under a lock
  (`compiler`);
- it takes one argument, a frame: int64 words in which addresses and sizes of all arrays and all numbers lie after
  each other. Python writes the frame (`Call`), so machine code needs nothing of Numba to run, and a caller that keeps
  its arrays keeps their part of the frame.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable
from itertools import chain
from typing import Annotated, Any, ClassVar, Generic, Literal, ParamSpec, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import COMPILER, Lock, compiler_is_lost, once
from jittok.kernels.jit import stamps, store
from jittok.kernels.jit.compiling import compile_turn, gc_paused
from jittok.kernels.jit.frame import Call, plan_of
from jittok.kernels.jit.interruptible import (
    LONG_WORK_BYTES,
    WouldCompile,
    compiles,
    interruptible_if_long,
    run_interruptible,
    without_compiling,
)
from jittok.kernels.jit.store import cache_dir

__all__ = [
    "CHECKED",
    "F32",
    "I32",
    "I64",
    "JIT",
    "LONG_WORK_BYTES",
    "PLAIN",
    "U8",
    "U16",
    "U32",
    "U64",
    "Call",
    "Deferred",
    "OutF32",
    "OutF64",
    "OutI32",
    "OutI64",
    "OutU8",
    "OutU16",
    "OutU32",
    "OutU64",
    "WouldCompile",
    "as_int64",
    "cache_dir",
    "frozen",
    "has_compiler",
    "helper",
    "inlined",
    "interruptible_if_long",
    "intrinsic",
    "kernel",
    "need_compiler",
    "run_interruptible",
    "standalone",
    "store",
    "warm",
    "without_compiling",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")
Origin = Literal["shipped", "cache", "compiled"]
"""Where the machine code of a kernel is from."""


def _set(name: str) -> bool:
    return os.environ.get(name, "0") not in ("", "0")


JIT = not _set("NUMBA_DISABLE_JIT")
CHECKED = _set("NUMBA_BOUNDSCHECK") or _set("JITTOK_CHECKED")
PLAIN = _set("JITTOK_PLAIN")
"""Leave out what only some processors have; another name in the cache of machine code."""
MODE = "checked" if CHECKED else "plain" if PLAIN else "fast"

# Arrays are 1-D and C-contiguous. Inputs are read-only, outputs belong to the caller.
U8 = Annotated[NDArray[np.uint8], ("u1", "in")]
U16 = Annotated[NDArray[np.uint16], ("u2", "in")]
U32 = Annotated[NDArray[np.uint32], ("u4", "in")]
U64 = Annotated[NDArray[np.uint64], ("u8", "in")]
I32 = Annotated[NDArray[np.int32], ("i4", "in")]
I64 = Annotated[NDArray[np.int64], ("i8", "in")]
F32 = Annotated[NDArray[np.float32], ("f4", "in")]
OutU8 = Annotated[NDArray[np.uint8], ("u1", "out")]
OutU16 = Annotated[NDArray[np.uint16], ("u2", "out")]
OutU32 = Annotated[NDArray[np.uint32], ("u4", "out")]
OutU64 = Annotated[NDArray[np.uint64], ("u8", "out")]
OutI32 = Annotated[NDArray[np.int32], ("i4", "out")]
OutI64 = Annotated[NDArray[np.int64], ("i8", "out")]
OutF32 = Annotated[NDArray[np.float32], ("f4", "out")]
OutF64 = Annotated[NDArray[np.float64], ("f8", "out")]


def frozen(array: Any, dtype: Any) -> NDArray[Any]:
    """A C-contiguous read-only view (a copy only if the dtype or layout differs)."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


class Helper:
    """A function without machine code of its own: called from Python it runs as Python. The compiler makes a
    dispatcher of it when a kernel that calls it is compiled, and keeps it in `made`."""

    inside = False  # see `inlined`

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.python, self.made = function, None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.python(*args, **kwargs)


class Intrinsic(Helper):
    """A function of types that gives LLVM code, for helpers to call."""

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise NotImplementedError(f"{self.python.__name__} is machine code only")


class Deferred(Helper):
    """A helper of a module that imports Numba: it is fetched when it is compiled or called."""

    def __init__(self, module: str, name: str) -> None:
        self.home, self.name = module, name

    def fetched(self) -> Any:
        """The helper itself."""
        return getattr(importlib.import_module(self.home), self.name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Fetch the operation and call it."""
        return self.fetched()(*args, **kwargs)


def helper(function: Callable[P, R]) -> Callable[P, R]:
    """Compile as part of the kernels that call it. What Python itself calls should be a kernel."""
    return Helper(function) if JIT else function


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A helper whose code is inside each of its callers whatever its size: for a loop over pieces, where handing
    windows over by the dozen would take longer than the work."""
    made = helper(function)
    if isinstance(made, Helper):
        made.inside = True
    return made


def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """LLVM code for helpers to call: function(typing context, types ...) -> (signature, code generator)."""
    return Intrinsic(function)


def standalone(function: Callable[P, R]) -> Callable[P, R]:
    """A helper that Python can call, for tests; it is compiled at its first call, for the types of the arguments."""
    if not JIT:
        return function
    from jittok.kernels.jit.compiler import alone

    return alone(function)


@helper
def as_int64(value: Any) -> int:
    """One array element as int64. NumPy (JIT off) keeps uint8 + uint8 at eight bits, Numba does not;
    widening every element before arithmetic makes the two modes one language."""
    return np.int64(value)  # type: ignore[return-value]


@functools.cache
def has_compiler() -> bool:
    """Whether Numba and llvmlite are installed. They are not imported."""
    return all(importlib.util.find_spec(name) for name in ("numba", "llvmlite"))


def need_compiler(what: str) -> None:
    """CompilerMissing for what needs Numba even where machine code is shipped."""
    if not has_compiler():
        from jittok.errors import CompilerMissing

        raise CompilerMissing(what, "only shipped machine code runs without the compiler")


on_compile: list[Callable[[bool], None]] = []
"""Told True when a kernel begins to be compiled, which takes seconds, and False when it is done."""


class kernel(Generic[P, R]):
    """One compiled entry point; see the module's docstring."""

    registry: ClassVar[list[kernel[Any, Any]]] = []

    def __init__(self, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)
        self.python = function
        self.compiled = JIT
        self.origin: Origin | None = None  # of its machine code; None until the first call
        self.entry: Callable[[int], int] | None = None  # frame's address -> result
        self._lock = Lock()
        self._keep: Any = None
        self._missing = False  # the cache has been asked in vain
        kernel.registry.append(self)

    @property
    def cache_hit(self) -> bool | None:
        """Whether nothing had to be compiled; None until the first call."""
        return None if self.origin is None else self.origin != "compiled"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the kernel once: its machine code, or Python where kernels are not compiled."""
        if not JIT:
            return self.python(*args, **kwargs)
        if kwargs:
            names = list(self.plan)
            args = (*args, *(kwargs[name] for name in names[len(args) :]))  # type: ignore[assignment]
        return self.call(*args)()  # type: ignore[no-any-return]

    def call(self, *args: Any) -> Call:
        """The call with these arguments, to be made as often as wanted; `Call.again` takes others."""
        return Call(self, args)

    @once
    def plan(self) -> dict[str, Any]:
        """How each argument is laid out in a frame, by name."""
        hints = get_type_hints(self.python, include_extras=True)
        self.result: type = hints.pop("return")
        return {name: plan_of(hint) for name, hint in hints.items()}

    def ready(self) -> Callable[[int], int]:
        """Load what is shipped or kept, or compile, once. CompilerMissing if there is nothing to do either with,
        WouldCompile where nothing is to be compiled (`without_compiling`)."""
        if self.waits():
            raise WouldCompile(".".join(self._name))
        return run_interruptible(self._ready)

    def waits(self) -> bool:
        """Whether the next call raises WouldCompile."""
        return not compiles() and not self.at_hand()

    def _ready(self) -> Callable[[int], int]:
        with self._lock:
            if self.entry is None and not self._missing:
                self._take(self._kept())
            if self.entry is None:
                self._take(self._compiled())
            return self.entry  # type: ignore[return-value]

    def at_hand(self) -> bool:
        """Whether the next call need not compile; if not, a caller with little to do may do it in Python."""
        if self.entry is None and JIT and not self._missing:
            with self._lock:
                if self.entry is None:
                    self._take(self._kept())
        return self.entry is not None or not JIT

    def _take(self, found: tuple[Origin, Any, Any] | None) -> None:
        if found is None:
            self._missing = True
        else:
            self.origin, entry, self._keep = found
            self.entry = entry

    @property
    def _name(self) -> tuple[str, str]:
        return self.python.__module__, self.python.__qualname__

    @once
    def _place(self) -> tuple[str | None, bytes]:
        """The file of the machine code for this processor, None for none, and its stamp."""
        return self._place_of(MODE, stamps.ASKED)

    def _place_of(self, mode: str, level: str) -> tuple[str | None, bytes]:
        from jittok.kernels.jit import object_code, stamps

        # the stamp reads this package's sources: a kernel defined elsewhere (a test, a notebook) is compiled each time
        module, name = self._name
        if not module.startswith("jittok.") or store.cache_dir() is None:
            return None, b""
        stamp = stamps.stamp(module, mode, object_code.host(level), level)
        return store.place(module, name, mode, stamp), stamp

    def _kept(self) -> tuple[Origin, Any, Any] | None:
        """Machine code that need not be compiled; None without: from where, its entry, what keeps it alive."""
        if not CHECKED and self.python.__module__.startswith("jittok."):
            from jittok.kernels.jit import shipped

            found = shipped.find(*self._name)
            if found is not None:
                return "shipped", *found
        return self._cached() if has_compiler() else None  # llvmlite loads what is in the cache

    def _cached(self) -> tuple[Origin, Any, Any] | None:
        """What `object_code.load` makes of the code in the cache; None without."""
        from jittok.kernels.jit import object_code

        of_levels = (self._place_of(*each) for each in ([] if CHECKED else stamps.modes()))
        for path, stamp in chain([self._place], of_levels):
            code = store.read(path, stamp) if path else None
            if code is not None:
                try:
                    return "cache", *object_code.load(code)
                except Exception as error:
                    store.log.warning("cached kernel ignored: %s: %s", path, error)
        return None

    def _compiled(self) -> tuple[Origin, Any, Any]:
        """What `object_code.load` makes of new code, which is kept; or of what another process has just kept.
        Callers in `on_compile` are told before: it takes seconds."""
        if not has_compiler():
            from jittok.errors import CompilerMissing
            from jittok.kernels.jit import shipped

            reason = "checked code is not shipped" if CHECKED else shipped.why_not(*self._name)
            raise CompilerMissing(".".join(self._name), reason)
        for tell in on_compile:
            tell(True)
        try:
            path, _ = self._place
            if path is None:
                return "compiled", *self._compile()
            with compile_turn(path, self._cached) as found:
                return found or ("compiled", *self._compile())
        finally:
            for tell in on_compile:
                tell(False)

    def _compile(self) -> tuple[Any, Any]:
        from jittok.kernels.jit import object_code
        from jittok.kernels.jit.compiling import compiling

        path, stamp = self._place
        if path and compiler_is_lost():
            from jittok.kernels.jit.compiling import compile_outside

            code = compile_outside(self.python.__module__, self.python.__qualname__)
        else:
            with COMPILER, gc_paused(), compiling(".".join(self._name).removeprefix("jittok.")):
                from jittok.kernels.jit.compiler import compile_kernel

                code = compile_kernel(self.python)
        if path:
            store.write(path, stamp, code)
        return object_code.load(code)


def warm() -> dict[str, bool | None]:
    """Make every kernel of the imported modules ready; name -> whether it came from the cache."""
    if JIT:
        for each in kernel.registry:
            each.ready()
    return {f"{k.python.__module__}.{k.python.__name__}": k.cache_hit for k in kernel.registry}
