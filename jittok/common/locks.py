"""Locks that threads share and that work after a fork: every lock of the package that outlives a call is made here.

Nothing is done before a fork: waiting for a lock there, or holding one until the fork, would stop the forks, imports
and locks of every other library in the process. The child has a single thread and repairs what the fork cut short:

- A lock that another thread held would stay locked forever: the child gets a new one (`_renew`). What a lock guards is
  either complete or absent: it is assigned as the last step.
- A module that another thread was importing is imported again when it is needed (`_forget_half_imports`). Python does
  not do this, and a child that imported the module would wait forever. An extension module that cannot be initialized
  twice (NumPy's) raises ImportError.
- If another thread was in Numba or LLVM, the child no longer uses this Numba and compiles in a new process
  (`compiler_is_lost`). It still loads machine code with LLVM.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")

OURS = frozenset(
    ("IPython", "anywidget", "boto3", "filelock", "fsspec", "gguf", "huggingface_hub", "isal", "jinja2", "jittok",
     "llvmlite", "markupsafe", "matplotlib", "numba", "numpy", "obstore", "orjson", "pandas", "polars", "pyarrow",
     "ray", "regex", "rich", "starlette", "traitlets", "uvicorn", "zstandard")
)  # fmt: skip
"""Packages that are imported lazily, like parts of the standard library."""

_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


class Lock:
    """A reentrant lock for `with`. In the child of a fork no other thread holds it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.lost = False  # whether the process was forked while another thread held it
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()

    def renew(self) -> bool:
        """In the child of a fork: replace it if its holder is gone. Returns whether it was."""
        new = _renewed(self._lock)
        gone = new is not self._lock
        self._lock = new
        return gone


class once(functools.cached_property[T]):  # noqa: N801  as the one it is like
    """`functools.cached_property` with a lock (it has one up to Python 3.11) that works after a fork."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(function)
        if hasattr(self, "lock"):
            self.lock = Lock()


COMPILER = Lock()
"""Held while Numba is imported and compiles."""


def compiler_is_lost() -> bool:
    """Whether this process was forked while another thread compiled, which leaves Numba's state inconsistent."""
    return COMPILER.lost


def _renewed(lock: Any) -> Any:
    """In the child of a fork: the lock if it is free or held by this thread, else a new one."""
    if lock.acquire(blocking=False):
        lock.release()
        return lock
    return threading.RLock()


def _foreign() -> Iterator[tuple[Any, str]]:
    """(owner, attribute) of the locks of Numba and llvmlite, as far as they are imported."""
    compiler = getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)
    if compiler is not None:
        yield compiler, "_lock"
    library = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
    llvm = getattr(library, "_lock", None)  # held while a function of LLVM runs
    if llvm is not None:
        yield llvm, "_lock"


def is_needed(module: str) -> bool:
    """Whether a call of this package may import the module, so that a child must be able to. Modules of users are left
    to Python: a thread may be importing one for as long as the program runs."""
    package = module.partition(".")[0]
    return package in OURS or package in sys.stdlib_module_names


def _forget_half_imports() -> None:
    """In the child of a fork: forget modules whose import another thread had begun, so that they are imported again."""
    bootstrap: Any = importlib._bootstrap  # the only place that has the import locks
    locks: dict[Any, Any] = getattr(bootstrap, "_module_locks", {})
    for name, reference in list(locks.items()):
        owner = getattr(reference(), "owner", None)
        if not isinstance(name, str) or not is_needed(name) or owner == threading.get_ident():
            continue
        locks.pop(name, None)  # also one that was being acquired or released: no other thread exists
        half = sys.modules.get(name)
        if owner is not None and getattr(getattr(half, "__spec__", None), "_initializing", False):
            del sys.modules[name]
            if hasattr(half, "__path__"):
                _Again.of(name)


class _Again:
    """A finder for one package that is imported a second time. Its fully imported submodules are kept and become
    attributes of the new module."""

    def __init__(self, name: str) -> None:
        self._name = name

    @classmethod
    def of(cls, name: str) -> None:
        """Install the finder for this package."""
        sys.meta_path.insert(0, cls(name))

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec that the other finders return; its module has the submodules as attributes."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec: Any = next(filter(None, (each.find_spec(name, path, target) for each in sys.meta_path)), None)
        if spec is not None:
            spec.loader.create_module = self._created
        return spec

    def _created(self, spec: Any) -> ModuleType:
        del spec.loader.create_module
        made, ahead = ModuleType(self._name), f"{self._name}."
        for name, module in list(sys.modules.items()):
            if name.startswith(ahead) and "." not in name[len(ahead) :]:
                setattr(made, name[len(ahead) :], module)
        return made


def _renew() -> None:
    _forget_half_imports()
    for lock in list(_locks):
        lock.lost |= lock.renew()
    for owner, name in _foreign():
        old = getattr(owner, name)
        new = _renewed(old)
        if new is not old:
            setattr(owner, name, new)
            COMPILER.lost = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
