"""The only module that knows Numba: options, signatures, the cache of machine code.

Two decorators. `helper` marks a function that only kernels call: it is compiled inside its caller.
`kernel` marks an entry point that Python calls:

- its one signature is read from the annotations (`U8`, `OutI32`, `int`, NamedTuples of these);
- nothing is compiled at import; the first call compiles or loads, under a lock, then seals the dispatcher, so that a
  wrong dtype is a TypeError and never a silent second compilation;
- it alone is cached on disk (helpers live inside it), in one place, under a stamp of every source file that its module
  imports, directly or not. Numba's own stamp covers one file, so a helper edited elsewhere would leave stale code, and
  its key leaves out NUMBA_BOUNDSCHECK, so a checked run would load unchecked code.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, ParamSpec, TypeVar, get_type_hints

import numba
import numpy as np
from numba import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import CPUCodeLibrary, JITCPUCodegen
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.misc.appdirs import AppDirs
from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")
log = logging.getLogger("jittok")

JIT = not numba.config.DISABLE_JIT
CHECKED = bool(numba.config.BOUNDSCHECK) or os.environ.get("JITTOK_CHECKED", "0") not in ("", "0")
PLAIN = os.environ.get("JITTOK_PLAIN", "0") not in ("", "0")
"""Leave out what only some processors have; another name in the cache of machine code."""
OPTIONS = {"nogil": True, "boundscheck": CHECKED, "error_model": "numpy"}

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
OutF64 = Annotated[NDArray[np.float64], ("f8", "out")]


def frozen(array: Any, dtype: Any) -> NDArray[Any]:
    """A C-contiguous read-only view (a copy only if the dtype or layout differs)."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def numba_type(hint: Any) -> Any:
    """The Numba type of one annotation; TypeError for anything a kernel may not take."""
    if hint is int:
        return types.int64
    if hint is float:
        return types.float64
    if hasattr(hint, "__metadata__"):
        dtype, direction = hint.__metadata__[0]
        return types.Array(numba.from_dtype(np.dtype(dtype)), 1, "C", readonly=direction == "in")
    if isinstance(hint, type) and issubclass(hint, tuple):
        fields = get_type_hints(hint, include_extras=True)
        # The dispatcher tells NamedTuples apart by short name and fields: without the module in the name, the `Work` of
        # two models with equal fields is one type to it, and the kernel that comes second refuses its own.
        hint.__name__ = f"{hint.__module__}.{hint.__qualname__}"
        # Not types.NamedTuple(...): equal fields make Numba use another type, NamedUniTuple.
        return types.BaseTuple.from_types([numba_type(field) for field in fields.values()], hint)
    raise TypeError(f"a kernel takes U8 ... OutF64, int, float or a NamedTuple of these, not {hint!r}")


class _Helper(CPUDispatcher):  # type: ignore[misc]
    """A function without machine code of its own: called from Python it runs as Python."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.py_func(*args, **kwargs)


def helper(function: Callable[P, R]) -> Callable[P, R]:
    """Compile as part of the kernels that call it. What Python itself calls should be a kernel."""
    if not JIT:
        return function
    compiled = numba.njit(**OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    compiled.__class__ = _Helper
    return compiled  # type: ignore[no-any-return]


def standalone(function: Callable[P, R]) -> Callable[P, R]:
    """A helper that Python can call, for tests; it is compiled at its first call, for the types of the arguments."""
    return numba.njit(**OPTIONS)(function.py_func) if JIT else function  # type: ignore[attr-defined]


@helper
def wide(value: Any) -> int:
    """One array element as int64. NumPy (JIT off) keeps uint8 + uint8 at eight bits, Numba does not;
    widening every element before arithmetic makes the two modes one language."""
    return np.int64(value)  # type: ignore[return-value]


class kernel(Generic[P, R]):
    """One compiled entry point; see the module's docstring."""

    registry: ClassVar[list[kernel[Any, Any]]] = []

    def __init__(self, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)
        self.python = function
        self.cache_hit: bool | None = None  # None until the first call
        self._lock = threading.Lock()
        self._call: Callable[P, R] | None = None
        self._dispatcher: Any = None
        kernel.registry.append(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return (self._call or self.ready())(*args, **kwargs)

    def ready(self) -> Callable[P, R]:
        """Compile, or load from disk, once."""
        with self._lock:
            if self._call is None:
                self._call = self._compiled() if JIT else self.python
            return self._call

    def _compiled(self) -> Callable[P, R]:
        hints = get_type_hints(self.python, include_extras=True)
        hints.pop("return")
        dispatcher = numba.njit(**OPTIONS)(self.python)
        # the stamp reads this package's sources: a kernel defined elsewhere (a test, a notebook) is compiled each time
        if cache_dir() is not None and self.python.__module__.startswith("jittok."):
            dispatcher._cache = _Cache(self.python)
        with _helpers_stay_ir(self.python.__qualname__):
            dispatcher.compile(tuple(map(numba_type, hints.values())))
        dispatcher.disable_compile()
        self.cache_hit = bool(dispatcher.stats.cache_hits)
        self._dispatcher = dispatcher  # keeps the machine code alive
        if CHECKED:
            return dispatcher  # type: ignore[no-any-return]
        # The one overload's own entry: the dispatcher would look at the type of every array of every NamedTuple on each
        # call (5 us for a model, against 1 us). It checks dtypes and dimensions too; layout and read-only-ness are
        # checked in checked code alone.
        (overload,) = dispatcher.overloads.values()
        return overload.entry_point  # type: ignore[no-any-return]


_finalize, _set_env = CPUCodeLibrary.finalize, JITCPUCodegen.set_env


@contextlib.contextmanager
def _helpers_stay_ir(kernel_name: str) -> Iterator[None]:
    """While a kernel is compiled in this thread, what it calls is linked into it as it stands.

    Numba optimizes every function and makes machine code of it, then links it into its callers and optimizes it again
    there, level by level. Helpers are never called by themselves: one optimization of the whole kernel is enough.
    """
    thread = threading.get_ident()

    def finalize(library: Any) -> None:
        if threading.get_ident() != thread or library.name == kernel_name:
            _finalize(library)
            return
        library._raise_if_finalized()
        for part in dict.fromkeys(library._linking_libraries):
            library._reload_init.update(part._reload_init)
            library._final_module.link_in(part._get_module_for_linking(), preserve=True)
        library._finalize_dynamic_globals()
        library._finalized = True

    def set_env(codegen: Any, name: str, env: Any) -> None:
        if codegen._engine.get_global_value_address(name):  # a helper has no machine code, so no place for it either
            _set_env(codegen, name, env)

    with _COMPILING:
        CPUCodeLibrary.finalize, JITCPUCodegen.set_env = finalize, set_env
        try:
            yield
        finally:
            CPUCodeLibrary.finalize, JITCPUCodegen.set_env = _finalize, _set_env


_COMPILING = threading.RLock()


def warm() -> dict[str, bool | None]:
    """Make every kernel of the imported modules ready; name -> whether it came from the cache."""
    for entry in kernel.registry:
        entry.ready()
    return {f"{k.python.__module__}.{k.python.__name__}": k.cache_hit for k in kernel.registry}


@functools.cache
def cache_dir() -> Path | None:
    """Where machine code and compiled vocabularies are kept: $JITTOK_CACHE_DIR, $NUMBA_CACHE_DIR/jittok or the user's
    cache.

    None if it can neither be made nor read. Never a shared temporary folder: entries are pickles.
    """
    if chosen := os.environ.get("JITTOK_CACHE_DIR"):
        folder = Path(chosen)
    elif numba.config.CACHE_DIR:
        folder = Path(numba.config.CACHE_DIR, "jittok")
    else:
        folder = Path(AppDirs(appname="jittok", appauthor=False).user_cache_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return folder if os.access(folder, os.R_OK | os.X_OK) else None
    except OSError as error:
        log.warning("kernels are compiled anew in each process: no cache folder (%s)", error)
        return None


_ROOT = Path(__file__).parent
_IMPORT = re.compile(
    r"^\s*(?:from\s+jittok([\w.]*)\s+import\s+(\([^)]*\)|[^\n]*)|import\s+jittok([\w.]*))", re.MULTILINE
)


def _source(module: str) -> Path | None:
    """The file of a module named from the package's root, "" being the root itself."""
    place = _ROOT.joinpath(*module.split(".")) if module else _ROOT
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None


@functools.cache
def source_stamp(module: str) -> bytes:
    """SHA-256 over the sources that can reach a kernel of `module`: what it imports of this package, and so on.

    Imports are found by their text, wherever they stand in a file, so the stamp needs none of them to be imported.
    """
    seen: dict[str, bytes] = {}
    todo = [module.removeprefix("jittok").lstrip(".")]
    while todo:
        name = todo.pop()
        path = _source(name)
        if name in seen or path is None:
            continue
        seen[name] = path.read_bytes()
        for match in _IMPORT.finditer(seen[name].decode()):
            base = (match[1] or match[3] or "").lstrip(".")
            todo.append(base)
            todo += [f"{base}.{word}".lstrip(".") for word in re.findall(r"\w+", match[2] or "")]
    digest = hashlib.sha256()
    for name in sorted(seen):
        digest.update(name.encode() + b"\0" + seen[name] + b"\0")
    return digest.digest()


class _Locator(_CacheLocator):  # type: ignore[misc]
    """One flat folder, readable is enough (Numba's locators insist on writable)."""

    def __init__(self, function: Any, _file: str) -> None:
        self._module = function.__module__
        self._py_file = _file  # Numba names it in warnings

    def get_cache_path(self) -> str:
        return f"{cache_dir()}/numba-{numba.__version__}"

    def get_source_stamp(self) -> bytes:
        return source_stamp(self._module)

    def get_disambiguator(self) -> str:
        return f"{self._module}-{'checked' if CHECKED else 'plain' if PLAIN else 'fast'}"

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator:
        return cls(py_func, py_file)


class _CacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes: ClassVar[list[Any]] = [_Locator]


class _Cache(FunctionCache):  # type: ignore[misc]
    """A cache that can fail without failing the call: a bad entry is a miss, a full disk is no entry."""

    _impl_class = _CacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # Numba would first import every typing and lowering module it has, which only compiling needs
        # (and compiling does by itself). Its reference counting is what loaded code calls into.
        try:
            rtsys.initialize(target_context)
            return self._load_overload(sig, target_context)
        except Exception as error:
            log.warning("cached kernel ignored: %s: %s", self.cache_path, error)
            with contextlib.suppress(OSError):
                self.flush()  # Numba reads the index before it saves: a broken one would stay for ever
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:
            log.warning("kernel not cached: %s: %s", self.cache_path, error)
