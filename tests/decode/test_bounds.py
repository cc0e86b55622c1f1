"""What decoding reads, and what it keeps, ends where it should."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jittok.decode.pieces import build_pieces, byte_piece
from jittok.decode.rows import BAD_ID, DecodeFrame, join_rows
from jittok.kernels.inputs import to_ids
from jittok.tokenizer import Tokenizer

BYTE = 32


@pytest.mark.parametrize("room", [0, 1, 100])
def test_an_id_outside_is_found_whether_there_is_room_or_not(spm: Tokenizer, room: int) -> None:
    size = spm.vocab_size
    made, report = build_pieces(spm.vocab), np.zeros(1, np.int64)
    offsets = np.array([0, 2])
    offsets.flags.writeable = False
    ids, out = to_ids([5, size], size + 1), np.empty(room, np.uint8)
    assert join_rows(made, DecodeFrame(0, -1, -1, 0, 0), ids, offsets, out, np.zeros(1, np.int64), report) == BAD_ID
    assert report[0] == 1


def test_two_characters_of_a_byte_token_are_read(vocab_of: Callable[..., Any]) -> None:
    assert byte_piece(b"<0x41f>", strict=False) == b"A"
    made = build_pieces(vocab_of([b"<0x41f>"], [BYTE]))
    assert made.blob[made.offsets[0] : made.offsets[1]].tobytes() == b"A"


def test_ids_are_not_kept_when_they_are_decoded(spm: Tokenizer) -> None:
    ids = np.array([5, 6], np.int32)
    ids.flags.writeable = False
    before = spm.decode_bytes([5, 6])
    assert spm.decode_bytes(ids) == before
    kept = weakref.ref(ids)
    del ids
    gc.collect()
    assert kept() is None
