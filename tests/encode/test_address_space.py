"""One long word needs address space in proportion to its bytes, of which a process may have a limit."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import jittok
from jittok.kernels.jit import JIT
from jittok.kernels.merging.left_to_right import IMPOSSIBLE, LONG_WORD_SYMBOLS

PER_BYTE = 80
"""Bytes of address space that a byte of a long word may take, that of its ids among it."""
SIZE = 12 << 20
ONE_WORD = """
import resource, sys, numpy as np, jittok
name, action, size, per_byte = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
tokenizer = jittok.bundled(name)
def act(text):
    ids = tokenizer.encode(text[:1000]) if action == "decode" else None
    given = np.resize(np.asarray(ids, np.int32), len(text) // 3) if action == "decode" else text
    return lambda: getattr(tokenizer, action)(given)
act("abc" * 10_000)()  # threads, machine code and, for long words, what is made once
size_now = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) << 10
much = act("abc" * (size // 3))
resource.setrlimit(resource.RLIMIT_AS, (size_now + per_byte * size,) * 2)
much()
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not JIT, reason="limits of address space are Linux's; needs the compiler"
)
@pytest.mark.parametrize("action", ["encode", "count", "align", "decode"])
@pytest.mark.parametrize("name", ["gpt-2", "mistral", "t5", "bert"])
def test_a_word_of_megabytes_fits_a_limit_of_address_space(name: str, action: str) -> None:
    args = [sys.executable, "-c", ONE_WORD, name, action, str(SIZE), str(PER_BYTE)]
    done = subprocess.run(args, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-1500:]


@pytest.mark.parametrize("name", ["gpt-2", "mistral"])
@pytest.mark.parametrize(
    "text", [b"abc" * 3000, b"a" * (LONG_WORD_SYMBOLS + 1), b"\xff" * 3000, b" " * 9000, b"\xff" * 9000]
)
def test_a_long_word_has_the_same_ids_without_a_chain(name: str, text: bytes) -> None:
    by_chain, by_queue = (jittok.Tokenizer(jittok.bundled(name)._encoder.vocab) for _ in range(2))
    encoder = by_queue._encoder
    encoder.arrays = encoder.arrays._replace(chain=encoder.arrays.chain._replace(state=IMPOSSIBLE))
    for whole in (text, b"x " + text + b" y", text):
        expected = by_chain.encode(whole, errors="replace")
        assert np.array_equal(by_queue.encode(whole, errors="replace"), expected)
