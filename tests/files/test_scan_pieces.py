"""Pieces of a sentencepiece model read at once: those that are read field by field, and the same errors."""

import random
import struct
import sys
from pathlib import Path

import pytest

import jittok.files
from jittok.errors import JittokError
from jittok.files import scan_pieces
from jittok.kernels.jit import JIT

sys.path.append(str(Path(__file__).parents[1] / "fuzz"))
import small_files
from mutated_files import mutations

MODEL = small_files.sentencepiece(1)
HEADS = 600
"""Bytes of a model in which a piece of every kind is."""


def said(content: bytes) -> str:
    try:
        found = jittok.files.read_pipeline(content)
    except JittokError as error:
        return str(error)
    return found.fingerprint + " ".join(map(str, found.model.scores[:30].tolist()))


def both_ways(content: bytes, monkeypatch) -> str:
    monkeypatch.setattr(scan_pieces, "LEAST_BYTES", 1 << 40)
    alone = said(content)
    monkeypatch.setattr(scan_pieces, "LEAST_BYTES", 0)
    monkeypatch.setattr(scan_pieces, "JIT", True)
    assert said(content) == alone
    return alone


def test_all_pieces_of_a_model_are_read_at_once(monkeypatch):
    monkeypatch.setattr(scan_pieces, "LEAST_BYTES", 0)
    monkeypatch.setattr(scan_pieces, "JIT", True)
    found = scan_pieces.first_pieces(MODEL)
    assert MODEL[found.stop] >> 3 == 2  # the trainer's field comes after all pieces
    assert found.texts[3:5] == [b"<x>", b"<0x00>"]
    assert found.types[3:5] == [4, 6]
    assert found.scores[3] == struct.unpack("<f", struct.pack("<f", -0.3))[0]
    assert both_ways(MODEL, monkeypatch).startswith(jittok.files.read_pipeline(MODEL).fingerprint)


def test_changed_pieces_are_read_and_refused_alike(monkeypatch):
    draw, count = random.Random(7), 400 if JIT else 12
    outcomes = set()
    for head in mutations(MODEL[:HEADS], count, draw.randrange(1 << 30)):
        outcomes.add(both_ways(head + MODEL[HEADS:], monkeypatch)[:60])
    assert len(outcomes) > 4


@pytest.mark.parametrize(
    "piece",
    [
        b"\x0a\x01a\x15\0\0\x80\x7f",
        b"\x0a\x01a\x15\0\0\xc0\xff",
        b"\x0a\x01a\x18\0",
        b"\x0a\x01a\x18\7",
        b"\x0a\x01a\x18\x81\0",
        b"\x0a\0",
        b"\x0a\x01a\x0a\0",
        b"\x0a\x01a\x0a\x02zz",
        b"\x0a\x02\xe2\x96",
        b"\x0a\x05a",
        b"\x15\0\0\0\x40\x0a\x03zzz",
        b"\x0a\x03zzz\x22\x01x",
        b"\x0a\x03zzz\x15\0\0",
        b"",
        b"\x0a" + bytes([110]) + 110 * b"z",
        b"\x0a\x83\x01" + 131 * b"z",
    ],
)
def test_a_piece_that_is_not_written_as_usual(piece, monkeypatch):
    both_ways(small_files._field(1, piece) + MODEL, monkeypatch)
    both_ways(MODEL + small_files._field(1, piece), monkeypatch)


def test_a_character_that_two_pieces_share_is_no_text(monkeypatch):
    parts = b"".join(small_files._field(1, small_files._field(1, part)) for part in (b"a\xe2", b"\x96\x81"))
    assert "UTF-8" in both_ways(MODEL + parts, monkeypatch)
    assert "UTF-8" in both_ways(parts + MODEL, monkeypatch)
