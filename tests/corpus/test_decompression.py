"""Packed inputs: several parts one after the other are one input, a part that is cut off is an error."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random

import pytest

from jittok.corpus.inputs.decompression import open_unpacked
from jittok.errors import CorpusError

zstandard = pytest.importorskip("zstandard")

PACK = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: zstandard.ZstdCompressor(write_content_size=False).compress(data),
}
TEXT = b"".join(b"line %d of a text that is packed\n" % (i * 7919 % 5000) for i in range(20_000))


def unpacked(data, packing, size=70_000):
    read = open_unpacked(io.BytesIO(data), packing, "x")
    return b"".join(iter(lambda: read(size), b""))


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize("text", [b"", b"x", TEXT])
def test_what_was_packed_comes_back(packing, text):
    assert unpacked(PACK[packing](text), packing) == text


@pytest.mark.parametrize("packing", PACK)
def test_parts_behind_each_other_are_one_text(packing):
    packed = PACK[packing](TEXT[:1000]) + PACK[packing](b"") + PACK[packing](TEXT[1000:])
    assert unpacked(packed, packing) == TEXT


@pytest.mark.parametrize("packing", PACK)
def test_data_that_is_cut_off_is_an_error(packing):
    packed = PACK[packing](TEXT)
    rng = random.Random(1)
    for cut in [len(packed) - 1, len(packed) - 5, *rng.sample(range(20, len(packed)), 8)]:
        with pytest.raises(CorpusError, match=f"whole .{packing} data"):
            unpacked(packed[:cut], packing)


@pytest.mark.parametrize("packing", PACK)
def test_damaged_data_is_an_error_or_gives_other_text_only_without_a_checksum(packing):
    packed = bytearray(PACK[packing](TEXT))
    packed[len(packed) // 2] ^= 0xFF
    try:
        found = unpacked(bytes(packed), packing)
    except CorpusError:
        return
    assert packing == "zst"  # frames may come without a checksum
    assert len(found) > 0


def test_zeros_unpack_piece_by_piece():
    read = open_unpacked(io.BytesIO(PACK["zst"](bytes(40 << 20))), "zst", "x")
    assert sum(map(len, iter(lambda: read(1 << 20), b""))) == 40 << 20


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize("more", [b"junk", b"B", b"\xfd7zXZ", b"a" * 100_000])
def test_what_follows_and_is_no_part_is_an_error(packing, more):
    """Damage at the head of a part is not the end of the text."""
    with pytest.raises(CorpusError, match=f"whole .{packing} data"):
        unpacked(PACK[packing](TEXT) + more, packing)


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize("kept", [1, 3, 5])
def test_a_second_part_that_is_cut_near_its_start_is_an_error(packing, kept):
    with pytest.raises(CorpusError, match=f"whole .{packing} data"):
        unpacked(PACK[packing](TEXT) + PACK[packing](TEXT)[:kept], packing)


@pytest.mark.parametrize("size", [1, 1000, 1 << 20])
def test_zeros_may_stand_between_parts_of_xz(size):
    packed = lzma.compress(b"one") + bytes(8) + lzma.compress(b"two") + bytes(4)
    assert unpacked(packed, "xz", size) == b"onetwo"
    assert unpacked(lzma.compress(b"one") + bytes(200_000) + lzma.compress(b"two"), "xz", size) == b"onetwo"
