"""Sequences of bytes that are searched for at 64 places at once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jittok.kernels.jit import U8, OutU64, frozen, kernel
from jittok.kernels.memory import window
from jittok.kernels.structures.sequences import (
    BLOCK,
    Sequences,
    make_sequences,
    ones_begin,
    open_sequences,
    threes_begin,
    twos_begin,
)


@kernel
def find(table: Sequences, text: U8, i: int, out: OutU64) -> int:
    own, data = open_sequences(table), window(text)
    out[0] = ones_begin(own, data, i)
    out[1] = twos_begin(own, data, i)
    out[2] = threes_begin(own, data, i)
    return 0


few = st.sampled_from([*b"ab ", 0, 0xFF])


@given(
    st.lists(st.lists(few, min_size=1, max_size=3).map(bytes), max_size=9),
    st.lists(few, min_size=BLOCK, max_size=BLOCK + 9).map(bytes),
)
def test_each_place_where_a_sequence_begins_is_found(texts, data):
    out = np.zeros(3, np.uint64)
    for i in range(len(data) - BLOCK + 1):
        find(make_sequences(texts), frozen([*data], np.uint8), i, out)
        for size, mask in enumerate(out.tolist(), 1):
            wanted = tuple(text for text in texts if len(text) == size)
            assert mask == sum(1 << k for k in range(64) if wanted and data.startswith(wanted, i + k))
