"""Nothing that a subclass of bytes or str says of itself leads a kernel outside its text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jittok


class LongBytes(bytes):
    """Says that it is longer than it is, as does what it gives."""

    def __len__(self) -> int:
        return 1 << 20

    def __bytes__(self) -> bytes:
        return self


class LongArray(bytearray):
    def __len__(self) -> int:
        return 1 << 20

    def __bytes__(self) -> bytes:
        return LongBytes(self)


class LongText(str):
    __slots__ = ()

    def __len__(self) -> int:
        return 1 << 20

    def encode(self, *_: Any) -> bytes:
        return LongBytes(str.encode(self))

    def isascii(self) -> bool:
        return False


@pytest.mark.parametrize("kind", [LongBytes, LongArray, LongText])
@pytest.mark.parametrize("text", ["some words", "é", "x" * (1 << 17)], ids=["ascii", "wide", "long"])
def test_of_a_subclass_counts_what_it_holds(kind: Any, text: str) -> None:
    tok = jittok.bundled("gpt-2")
    lying = kind(text) if kind is LongText else kind(text.encode())
    ids = tok.encode(text).tolist()
    assert tok.encode(lying).tolist() == ids
    assert tok.count(lying) == len(ids)
    assert tok.align(lying).ids.tolist() == ids
    for block in ([lying], [lying] * 3, ["a", lying, b"b"], [b"b", lying]):
        expected = [ids if each is lying else tok.encode(each).tolist() for each in block]
        for threads in (1, 2):
            assert tok.encode_batch(block, threads=threads).to_list() == expected
    assert tok.encode_batch(iter([lying, lying])).to_list() == [ids, ids]
    assert tok.encode_batch(np.array([lying, None], object)).to_list() == [ids, []]
