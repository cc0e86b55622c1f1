"""Whether compiling may be cut short (`numba_shortcuts`), which leans on private names of Numba.

For the versions of Numba that the tests have run with, it may. With another one it is tried first: the names must be
there, and a small kernel with a helper inside must give the right answer. Else Numba compiles as it always does, which
takes two to three times as long.
"""

from __future__ import annotations

import functools
import os
from array import array

import numba

from jittok.kernels.jit import OutI64, helper
from jittok.kernels.jit.object_code import load
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
