"""Pieces that an independent model found, which was compared with trying every boundary."""

import json
import lzma
from pathlib import Path

import pytest
from recorded_files import SHARED

import jittok

HERE = Path(__file__).with_name("recorded.jsonl.xz")
WHOLE = SHARED / "golden-people" / "chunks.jsonl.xz"
NAMES = {"gpt-2": "gpt-2", "t5": "t5", "bert-bge": "bert"}


def rows_of(path):
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def check(tok, row):
    text, n = row["text"], row["n"]
    for side in ("right", "left"):
        start, stop = row[side]
        assert tok.truncate(text, n, side=side) == text[start:stop], row
    if "error" in row:
        with pytest.raises(ValueError, match=f"^{n and 'n: found '}") as raised:
            tok.chunks(text, n, overlap=row["overlap"], by=row["by"])
        assert str(raised.value) == row["error"]
    else:
        pieces = tok.chunks(text, n, overlap=row["overlap"], by=row["by"])
        assert [[piece.start, piece.stop] for piece in pieces] == row["chunks"], row


@pytest.mark.parametrize("name", NAMES)
def test_recorded_pieces_of_bundled_vocabularies(name):
    rows = [row for row in rows_of(HERE) if row["vocab"] == name]
    assert len(rows) == 40
    for row in rows:
        check(jittok.bundled(NAMES[name]), row)


@pytest.mark.slow
@pytest.mark.recorded_elsewhere
@pytest.mark.skipif(not WHOLE.is_file(), reason="no larger set here")
def test_all_recorded_pieces(any_tokenizer):
    rows = rows_of(WHOLE)
    assert len(rows) == 720
    for row in rows:
        check(any_tokenizer(row["vocab"].removeprefix("hf:")), row)
