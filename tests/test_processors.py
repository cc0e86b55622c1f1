"""Kernels as other processors run them: vectors and all, compiled for the least one of this architecture."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_shipped import LINKS

pytestmark = pytest.mark.process
ROOT = Path(__file__).parents[1]
LEAST = {"JITTOK_PLAIN": "1", "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
"""On x86 that is SSE2: no AVX, no counting of bits; and operations that only some processors have are left out."""
SETS = ("gpt-2", "syn-sarvam", "syn-gemma4", "bert-bge", "t5", "mistral-v1", "syn-rwkv", "syn-plamo2")


def python(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=os.environ | LEAST, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_code_for_the_least_processor_asks_for_nothing_that_only_some_have():
    shown = """
from jittok.kernels.jit import MODE
from jittok.kernels.memory.blocks import HAS_COMPRESS
from jittok.kernels.memory.byte_maps import HAS_PERMUTE
from numba.core.registry import cpu_target
made = cpu_target.target_context.codegen()
print(MODE, HAS_COMPRESS, HAS_PERMUTE, repr(made._tm_features))
"""
    assert python("-c", shown) == "plain False False ''\n"


@pytest.mark.skipif(LINKS, reason="test_shipped_answers.py asks it of shipped code for the least level")
def test_ids_of_every_type_are_those_of_llama_cpp():
    """The recorded answers again, in a process of its own."""
    chosen = f"(ids_are or any_number) and ({' or '.join(SETS)})"
    told = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_golden.py", "-k", chosen)
    passed = re.search(r"(\d+) passed", told)
    assert passed
    assert int(passed[1]) >= 2 * len(SETS)
