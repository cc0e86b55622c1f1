"""Kernels compiled the short way have all their helpers inside."""

import contextlib
import gc
import os

import numba
import numpy as np
import pytest
from numba.core import entrypoints
from numba.core.errors import NumbaError
from small_package import python

from jittok.kernels.jit import I64, JIT, OutI64, compiler, helper, kernel, numba_shortcuts, object_code
from jittok.kernels.jit.compiling import gc_paused

LIMIT = 15


@helper
def deepest(x: int) -> int:
    return x * 3 + 1 if x & 1 else x >> 1


@helper
def never(x: int) -> int:
    """Names `deepest` where no x gets to, which LLVM sees before anything is linked."""
    if x > LIMIT:
        return x
    return x + 1 if x <= LIMIT else deepest(x)


@helper
def deep(x: int) -> int:
    steps = 0
    while x != 1:
        x = deepest(x)
        steps += 1
    return steps


@helper
def middle(x: int) -> int:
    return deep(x) + 1


@kernel
def steps_of(values: I64, out: OutI64) -> int:
    for k in range(values.size):
        out[k] = never(values[k]) + middle(values[k])
    return values.size


def test_a_helper_that_one_caller_names_in_vain_is_there_for_another():
    values, out = np.array([1, 6, 27]), np.zeros(3, np.int64)
    values.flags.writeable = False
    assert steps_of(values, out) == 3
    assert out.tolist() == [2 + 1, 7 + 9, 27 + 112]


@kernel
def twice(values: I64, out: OutI64) -> int:
    for k in range(values.size):
        out[k] = 2 * deepest(values[k])
    return values.size


@pytest.mark.skipif(not JIT, reason="nothing is linked without the compiler")
def test_a_helper_that_was_not_linked_is_an_error_and_other_kernels_go_on(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(numba_shortcuts, "_all_parts", lambda _library: [])
        with pytest.raises(RuntimeError, match=r"kernel twice: its helper .*deepest.* is missing"):
            compiler.compile_kernel(twice.python)
    compiler.compile_kernel(twice.python)  # finishes whatever LLVM has been given so far


compiled = pytest.mark.skipif(not JIT, reason="nothing is compiled without the compiler")


@helper
def wrong(x: int) -> int:
    return x.no_such_field


@kernel
def calls_wrong(values: I64) -> int:
    return wrong(values[0])


@compiled
def test_what_numba_refuses_it_says_where():
    said = []
    for short in (True, False):
        with pytest.raises(NumbaError) as error:
            compiler.compile_kernel(calls_wrong.python, lean=short)
        said.append(str(error.value))
    assert "During: typing of get attribute" in said[0]
    assert "no_such_field" in said[0]
    assert said[0] == said[1]


@compiled
def test_packages_that_extend_numba_are_left_to_what_else_is_compiled(monkeypatch):
    said = []
    monkeypatch.setattr(entrypoints, "init_all", lambda: said.append("extensions"))
    for short in (True, False):
        compiler.compile_kernel(twice.python, lean=short)
    assert said == []
    assert numba.njit(lambda x: x + 1)(1) == 2
    assert "extensions" in said


@compiled
@pytest.mark.parametrize("around", [contextlib.nullcontext, gc_paused])
def test_the_collector_rests_while_a_kernel_is_compiled(monkeypatch, around):
    on, real = [], compiler._frame_wrapper
    monkeypatch.setattr(compiler, "_frame_wrapper", lambda *args: on.append(gc.isenabled()) or real(*args))
    with around():
        compiler.compile_kernel(twice.python)
        on.append(gc.isenabled())
    assert on == [False, around is contextlib.nullcontext]
    assert gc.isenabled()


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_the_collector_works_in_the_child_of_a_fork():
    with gc_paused():
        child = os.fork()
        if not child:
            os._exit(not gc.isenabled())
        assert os.waitpid(child, 0)[1] == 0
        assert not gc.isenabled()


@compiled
def test_a_numba_that_nobody_has_tried_is_tried_first(monkeypatch, caplog):
    assert numba_shortcuts._why_not() == ""
    real = numba_shortcuts.replacements
    with monkeypatch.context() as patch:
        patch.setattr(
            numba_shortcuts, "replacements", lambda *both: [*real(*both), (object_code, "no_such_name", None)]
        )
        assert numba_shortcuts._why_not() == "it has no no_such_name"
    with monkeypatch.context() as patch:
        patch.setattr(numba_shortcuts, "_all_parts", lambda _library: [])
        assert "is missing" in numba_shortcuts._why_not()
        patch.setattr(numba_shortcuts, "TESTED_VERSIONS", ("0.1",))
        numba_shortcuts.shortcuts_work.cache_clear()
        assert not numba_shortcuts.shortcuts_work()
        numba_shortcuts.shortcuts_work.cache_clear()
    assert caplog.text.count("compiling takes longer with Numba") == 1


@compiled
@pytest.mark.process
def test_numba_alone_compiles_the_same(home):
    code = """
import numpy as np
from jittok.kernels.jit.numba_shortcuts import shortcuts_work
from jittok.climb import climb
out = np.zeros(3, np.int64)
climb(out)
print(out.tolist(), climb.origin, shortcuts_work())
"""
    assert python(home, code, JITTOK_LEAN="0") == "[1, 2, 3] compiled False"
    assert python(home, code) == "[1, 2, 3] cache True"
