"""LLVM code that is no kernel: which x86-64 level a processor has, and what code for Windows expects of a C library.

The masks are sums of the bits that the x86-64 psABI names for its levels.
"""

from __future__ import annotations


def _bits(*places: int) -> int:
    mask = sum(1 << place for place in places)
    return mask - (1 << 32) if mask >> 31 else mask  # as i32


LEAF_1_C_V2 = _bits(0, 9, 13, 19, 20, 23)  # sse3, ssse3, cx16, sse4.1, sse4.2, popcnt
LEAF_1_C_V3 = _bits(12, 22, 27, 28, 29)  # fma, movbe, osxsave, avx, f16c
LEAF_7_B_V3 = _bits(3, 5, 8)  # bmi1, avx2, bmi2
EXTENDED_C_V3 = _bits(5)  # lzcnt
LEAF_7_B_V4 = _bits(16, 17, 28, 30, 31)  # avx512 f, dq, cd, bw, vl
LEAF_7_C_V4 = _bits(1, 6, 8, 12, 14)  # vbmi, vbmi2, gfni, bitalg, vpopcntdq
KEPT_V3 = _bits(1, 2)  # registers that the system keeps: xmm, ymm
KEPT_V4 = _bits(1, 2, 5, 6, 7)  # and those of AVX-512


def _cpuid(name: str, leaf: int, register: int) -> str:
    clobbered = "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"
    four = "{i32,i32,i32,i32}"
    return (
        f'  %all_{name} = call {four} asm "cpuid", "{clobbered}"(i32 {leaf}, i32 0)\n'
        f"  %{name} = extractvalue {four} %all_{name}, {register}\n"
    )


def _has(name: str, value: str, mask: int) -> str:
    return f"  %some_{name} = and i32 %{value}, {mask}\n  %{name} = icmp eq i32 %some_{name}, {mask}\n"


_BODY = (
    "entry:\n"
    + _cpuid("c1", 1, 2)
    + _cpuid("b7", 7, 1)
    + _cpuid("c7", 7, 2)
    + _cpuid("ce", -2147483647, 2)
    + _has("v2", "c1", LEAF_1_C_V2)
    + _has("v3a", "c1", LEAF_1_C_V3)
    + _has("v3b", "b7", LEAF_7_B_V3)
    + _has("v3c", "ce", EXTENDED_C_V3)
    + """
  %two = and i1 %v2, %v3a
  %three = and i1 %two, %v3b
  %four = and i1 %three, %v3c
  br i1 %four, label %system, label %low
low:
  %lower = select i1 %v2, i32 2, i32 1
  ret i32 %lower
system: ; xgetbv is there, as osxsave is
  %both = call {i32,i32} asm "xgetbv", "={ax},={dx},{cx}"(i32 0)
  %kept = extractvalue {i32,i32} %both, 0
"""
    + _has("kept3", "kept", KEPT_V3)
    + "  br i1 %kept3, label %high, label %low\nhigh:\n"
    + _has("v4a", "b7", LEAF_7_B_V4)
    + _has("v4b", "c7", LEAF_7_C_V4)
    + _has("kept4", "kept", KEPT_V4)
    + """
  %five = and i1 %v4a, %v4b
  %six = and i1 %five, %kept4
  %highest = select i1 %six, i32 4, i32 3
  ret i32 %highest
"""
)
LEVEL = {
    **dict.fromkeys(("linux", "macos"), "define i32 @jittok_cpu_level() {\n" + _BODY + "}\n"),
    "windows": "@_fltused = global i32 0\ndefine dllexport i32 @jittok_cpu_level() {\n" + _BODY + "}\n",
}
"""int jittok_cpu_level(void): 1 to 4; 4 only with what the level adds to x86-64-v4."""

WINDOWS = """
@_fltused = global i32 0
define ptr @memset(ptr %start, i32 %value, i64 %size) "no-builtins" {
  %byte = trunc i32 %value to i8
  call {ptr, i64} asm sideeffect "rep stosb", "={di},={cx},{al},0,1,~{memory},~{dirflag},~{fpsr},~{flags}"(i8 %byte, ptr %start, i64 %size)
  ret ptr %start
}
"""
"""What code for Windows asks its compiler's library for, which is not there."""

MATH = """
define double @exp(double %x) { ret double %x }
define double @log(double %x) { ret double %x }
"""
"""Stands for the system's library while one is linked that asks it for these."""
