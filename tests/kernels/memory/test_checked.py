"""Checked twins of raw operations report what is outside; which twins run is a setting."""

import os
import subprocess
import sys

import numpy as np
import pytest

from jittok.kernels import memory
from jittok.kernels.jit import U8, frozen, helper, kernel
from jittok.kernels.memory import (
    FAST,
    blocks,
    byte_maps,
    byte_masks,
    elements,
    key_masks,
    keys,
    pair_places,
    window,
    word_stores,
)


@pytest.mark.skipif(FAST, reason="fast code checks nothing: that is what it is")
@pytest.mark.parametrize("at", [-1, 1])
def test_an_index_outside_is_reported(at):
    with pytest.raises(IndexError, match="raw access outside its array"):
        read_one(frozen([5], np.uint8), at)
    assert read_one(frozen([5], np.uint8), 0) == 5


@kernel
def read_one(data: U8, at: int) -> int:
    return _through_a_helper(window(data), at)


@helper
def _through_a_helper(data, at):
    return memory.get_u8(data, at)


OPERATIONS = {
    "get_u8": ("memory.get_u8(w8, i)", 8), "get_word": ("memory.get_word(w8, i)", 1),
    "get_u16": ("memory.get_u16(w16, i)", 8), "get_u32": ("memory.get_u32(w32, i)", 8),
    "get_i32": ("memory.get_i32(wi, i)", 8), "get_i64": ("memory.get_i64(wq, i)", 8),
    "get_u64": ("memory.get_u64(w64, i)", 8), "put_u8": ("memory.put_u8(w8, i, 0)", 8),
    "put_i32": ("memory.put_i32(wi, i, 0)", 8), "put_i64": ("memory.put_i64(wq, i, 0)", 8),
    "put_word": ("words.put_word(w8, i, np.uint64(0))", 1), "class_masks": ("blocks.class_masks(big, i)", 65),
    "utf8_masks": ("blocks.utf8_masks(big, i)", 65),
    "contraction": ("blocks.contraction_masks(big, i, np.uint64(0))", 63),
    "span_masks": ("sets.span_masks(big, i)", 65), "equal_mask": ("sets.equal_mask(big, i, 0)", 65),
    "one_mask": ("sets.one_mask(big, i, big, 0)", 65), "one_mask wanted": ("sets.one_mask(big, 0, big, i)", 65),
    "two_mask": ("sets.two_mask(big, i, big, 0)", 64), "two_mask wanted": ("sets.two_mask(big, 0, big, i)", 1),
    "three_mask": ("sets.three_mask(wider, i, wider, 0)", 135),
    "three_mask wanted": ("sets.three_mask(wider, 0, wider, i)", 9),
    "map_block table": ("maps.map_block(big, i, big, 0, 0, big, 0)", 1),
    "map_block from": ("maps.map_block(big, 0, big, i, 0, big, 0)", 65),
    "map_block to": ("maps.map_block(big, 0, big, 0, 0, big, i)", 65),
    "pair_block table": ("maps.pair_block(big, i, big, 0, 1, pairs_out, 0)", 1),
    "pair_block from": ("maps.pair_block(big, 0, big, i, 1, pairs_out, 0)", 65),
    "pair_block to": ("maps.pair_block(big, 0, big, 0, 1, pairs_out, i)", 5),
    "put_two": ("words.put_two(w8, i, 0)", 7),
    "copy_block from": ("maps.copy_block(big, i, big, 0)", 65),
    "copy_block to": ("maps.copy_block(big, 0, big, i)", 65),
    "string_masks": ("sets.string_masks(big, i)", 65),
    "mark_block": ("maps.mark_block(big, i, np.uint64(0))", 65),
    "lowest_16": ("blocks.lowest_16(many, i)", 19), "lowest_32": ("blocks.lowest_32(many, i)", 3),
    "set_three 16": ("blocks.set_three_lowest_16(many, i, 0, 0, 0, 0, 0, 0)", 19),
    "set_three 32": ("blocks.set_three_lowest_32(many, i, 0, 0, 0, 0, 0, 0)", 3),
    "copy_ids to": ("keys.copy_ids(wi, i, w64, 0)", 5), "copy_ids from": ("keys.copy_ids(wi, 0, w64, i)", 7),
    "copy_four to": ("keys.copy_four(wi, i, wi, 0)", 5), "copy_four from": ("keys.copy_four(wi, 0, wi, i)", 5),
    "copy_narrow to": ("keys.copy_narrow(wi, i, w64, 0)", 1),
    "copy_narrow from": ("keys.copy_narrow(wi, 0, w64, i)", 7),
    "match_pair": ("keys.match_pair(w64, i, w64, 0, pairs)", 1),
    "match_pair key": ("keys.match_pair(w64, 0, w64, i, pairs)", 7),
    "put_key to": ("keys.put_key(w64, i, big, 0, masks, 0)", 7),
    "put_key from": ("keys.put_key(w64, 0, big, i, masks, 0)", 113),
    "put_key masks": ("keys.put_key(w64, 0, big, 0, masks, i)", 32),
}  # fmt: skip
"""Each operation over arrays of 8 elements (128 in `big`, 34 in `many`), and how many first places are inside."""


@pytest.mark.skipif(FAST, reason="fast code checks nothing")
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_checked_operation_takes_the_places_inside_and_no_other(name):
    source, count = OPERATIONS[name]
    w8, w16, w32, w64 = (np.zeros(8, dtype) for dtype in (np.uint8, np.uint16, np.uint32, np.uint64))
    known = {"w8": w8, "w16": w16, "w32": w32, "w64": w64, "wi": np.zeros(8, np.int32), "wq": np.zeros(8, np.int64)}
    known |= {"big": np.zeros(128, np.uint8), "many": np.zeros(34, np.uint32), "np": np}
    known |= {"memory": elements, "blocks": blocks, "maps": byte_maps, "sets": byte_masks, "words": word_stores}
    known |= {"pairs_out": np.zeros(36, np.uint16), "wider": np.zeros(200, np.uint8)}
    known |= {"keys": keys, "masks": key_masks(), "pairs": pair_places()}
    for i in range(count):
        eval(source, {**known, "i": i})
    for i in (-1, count, count + 100):
        with pytest.raises(IndexError, match="raw access outside its array"):
            eval(source, {**known, "i": i})


SCRIPT = """
import numpy as np
from jittok.kernels import memory
from jittok.kernels.jit import CHECKED, JIT, U8, frozen, kernel

@kernel
def read(data: U8, at: int) -> int:
    return memory.get_u8(memory.window(data), at)

print(CHECKED, JIT, memory.FAST, read(frozen([5, 6], np.uint8), 1))
if not memory.FAST:
    read(frozen([5, 6], np.uint8), 2)
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({}, "False True True 6"), ({"JITTOK_CHECKED": "0"}, "False True True 6"),
        ({"JITTOK_CHECKED": "1"}, "True True False 6"), ({"NUMBA_BOUNDSCHECK": "1"}, "True True False 6"),
        ({"NUMBA_DISABLE_JIT": "1"}, "False False False 6"),
    ],
    ids=str,
)  # fmt: skip
def test_either_setting_checks_every_index_and_reports_one_outside(setting, told):
    chosen = ("JITTOK_CHECKED", "NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT")
    environment = {name: value for name, value in os.environ.items() if name not in chosen} | setting
    run = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout.strip() == told
    if told.endswith("False 6"):
        assert run.returncode == 1
        assert "IndexError: raw access outside its array" in run.stderr
    else:
        assert run.returncode == 0
