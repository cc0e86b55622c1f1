"""Object code to a function that Python can call: llvmlite alone, without Numba."""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding as llvm

from jittok.common.locks import Lock
from jittok.kernels.jit.frame import PROTOTYPE

ENTRY = "jittok_entry"
"""The symbol of a kernel in its object code: int64 (int64 *frame)."""
LOCK = Lock()
"""LLVM is used by one thread at a time."""


@functools.cache
def host(level: str = "") -> str:
    """This processor, or what a level has, and llvmlite's version: for stamps."""
    if level:
        return f"{llvm.get_process_triple()} level {level} {llvm.llvm_version_info}"
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:
        features = ""
    return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features} {llvm.llvm_version_info}"


@functools.cache
def _start() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def load(code: bytes) -> tuple[Any, Any]:
    """(function of a frame's address, what keeps it alive) of one kernel's object code. It runs without the GIL."""
    with LOCK:
        _start()
        target = llvm.Target.from_triple(llvm.get_process_triple())
        module = llvm.parse_assembly("")
        engine = llvm.create_mcjit_compiler(module, target.create_target_machine(opt=0, jit=True))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        address = engine.get_function_address(ENTRY)
    if not address:
        raise ValueError(f"object code without {ENTRY}")
    return PROTOTYPE(address), engine


def compiled(text: str, name: str) -> tuple[int, Any]:
    """(address, what keeps it alive) of a function written in LLVM's language."""
    with LOCK:
        _start()
        target = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(opt=2, jit=True)
        module = llvm.parse_assembly(text)
        module.verify()
        engine = llvm.create_mcjit_compiler(module, target)
        engine.finalize_object()
        return engine.get_function_address(name), engine
