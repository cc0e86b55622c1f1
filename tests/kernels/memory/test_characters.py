"""Characters as Python keeps them to UTF-8: fast and checked twins give what `str.encode` gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.kernels import memory
from jittok.kernels.jit import U8, U16, U32, OutI64, OutU8, OutU64, kernel
from jittok.kernels.memory import window

EDGES = [0, 0x7F, 0x80, 0xFF, 0x100, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]
TYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32}
LAST = {1: 0xFF, 2: 0xFFFF, 4: 0x10FFFF}


class Spelled:
    """A kernel a width: 32 characters narrowed and 16 spelled, each from the second on, to out[1:] and out[50:]."""

    @staticmethod
    @kernel
    def one(source: U8, out: OutU8, high: OutU64, behind: OutI64) -> int:
        high[0] = memory.narrow_8(window(source), 1, window(out), 1)
        behind[0] = memory.spell_8(window(source), 1, window(out), 50)
        return 0

    @staticmethod
    @kernel
    def two(source: U16, out: OutU8, high: OutU64, behind: OutI64) -> int:
        high[0] = memory.narrow_16(window(source), 1, window(out), 1)
        behind[0] = memory.spell_16(window(source), 1, window(out), 50)
        return 0

    @staticmethod
    @kernel
    def four(source: U32, out: OutU8, high: OutU64, behind: OutI64) -> int:
        high[0] = memory.narrow_32(window(source), 1, window(out), 1)
        behind[0] = memory.spell_32(window(source), 1, window(out), 50)
        return 0


KERNELS = {1: Spelled.one, 2: Spelled.two, 4: Spelled.four}


@pytest.mark.parametrize("width", [1, 2, 4])
@given(st.data())
@example(None)
def test_characters_become_bytes(width, data):
    characters = [k % 256 for k in range(33)] if data is None else data.draw(
        st.lists(
            st.sampled_from([c for c in EDGES if c <= LAST[width]]) | st.integers(0, LAST[width]),
            min_size=33,
            max_size=33,
        )
    )  # fmt: skip
    out, high, behind = np.full(50 + 64 + 1, 7, np.uint8), np.zeros(1, np.uint64), np.zeros(1, np.int64)
    source = np.array(characters, TYPES[width])
    source.flags.writeable = False
    KERNELS[width](source, out, high, behind)
    assert int(high[0]) == sum(1 << k for k, c in enumerate(characters[1:]) if c >= 0x80)
    assert out[1:33].tolist() == [c & 0xFF for c in characters[1:]]
    text = "".join(map(chr, characters[1:17]))
    if any("\ud800" <= c <= "\udfff" for c in text):
        assert behind[0] == -1
    else:
        assert out[50 : behind[0]].tobytes() == text.encode()
    assert (out[0], out[33], out[-1]) == (7, 7, 7)
