"""The law of pieces: each alone has at most n ids, is as long as can be, ends at a boundary; joined they are the text.

Short texts are compared with the reference, which tries every boundary. Of long ones the ends are tried.
"""

import json
import random
import zlib
from pathlib import Path

import pytest
import regex
from texts_to_cut import ALL, LARGE, random_text

import jittok
from jittok.reference.chunks.texts import Cuts, TooManyIds, clusters

BEYOND = 40
"""Boundaries after the end of a piece that are tried."""


def wanted(tok, text, n, overlap, by):
    try:
        return Cuts(tok.count).pieces(text, n, overlap, by)
    except TooManyIds as stuck:
        return stuck.at
    except jittok.JittokError as error:
        return type(error)


def given(tok, text, n, overlap, by):
    try:
        pieces = tok.chunks(text, n, overlap=overlap, by=by)
    except jittok.JittokError as error:
        return type(error)
    except ValueError as error:
        return int(regex.search(r" at (\d+) alone has", str(error))[1])
    assert [piece.text for piece in pieces] == [text[piece.start : piece.stop] for piece in pieces]
    raw = text.encode()
    assert [piece.text.encode() for piece in pieces] == [raw[piece.byte_start : piece.byte_stop] for piece in pieces]
    assert [piece.count for piece in pieces] == [tok.count(piece.text) for piece in pieces]
    return [(piece.start, piece.stop) for piece in pieces]


def check_short(tok, name, texts, seed=0):
    rng = random.Random(seed + zlib.crc32(name.encode()))
    for _ in range(texts):
        text, n = random_text(rng), rng.choice([1, 2, 3, 4, 5, 7, 10, 20])
        overlap, by = rng.choice([0, 0, 0, 1, 2, n // 2]), rng.choice(["token", "token", "line", "sentence"])
        overlap = overlap if overlap < n else 0
        right = wanted(tok, text, n, overlap, by)
        assert given(tok, text, n, overlap, by) == right, (name, text, n, overlap, by)
        for side in ("right", "left") if not isinstance(right, type) else ():
            start, stop = Cuts(tok.count).truncated(text, n, side)
            assert tok.truncate(text, n, side=side) == text[start:stop], (name, text, n, side)


def check_long(tok, name, texts, seed=0):
    """Pieces longer than an anchor needs."""
    rng = random.Random(seed + zlib.crc32(name.encode()))
    for _ in range(texts):
        text, n = "".join(random_text(rng, 120) for _ in range(rng.randrange(2, 12))), rng.choice([40, 60, 100])
        try:
            pieces = tok.chunks(text, n)
        except jittok.JittokError:
            continue
        assert "".join(piece.text for piece in pieces) == text
        ends = clusters(text)
        for piece in pieces:
            assert tok.count(piece.text) == piece.count <= n, (name, text, n, piece)
            after = [end for end in ends if end > piece.stop][:BEYOND]
            over = [tok.count(text[piece.start : end]) > n for end in after]
            assert all(over), (name, text, n, piece, after[over.index(False)])


@pytest.mark.parametrize("name", ALL)
def test_pieces_are_those_that_trying_every_boundary_finds(any_tokenizer, name):
    check_short(any_tokenizer(name), name, 12)


@pytest.mark.parametrize("name", ALL)
def test_long_pieces_are_as_long_as_can_be(any_tokenizer, name):
    check_long(any_tokenizer(name), name, 3)


def test_counts_are_true_where_ties_of_scores_are_rounded(tmp_path: Path) -> None:
    """Sums of these scores are rounded otherwise where more is before, so ties are broken otherwise."""
    scores = {"<unk>": 0.0, "\u2581": -3.1, "a": -0.1, "b": -0.2, "ab": -0.3, "c": -0.7, "bc": -0.9, "abc": -1.0}
    model = {"type": "Unigram", "unk_id": 0, "vocab": list(scores.items()), "byte_fallback": False}
    splitter = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": False}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"version": "1.0", "added_tokens": [], "pre_tokenizer": splitter, "model": model}))
    tok, rng = jittok.load(path), random.Random(1)
    for _ in range(40):
        text = " ".join("".join(rng.choices("abc", k=rng.randint(1, 6))) for _ in range(300))
        for n, by in ((64, "token"), (150, "sentence")):
            for piece in tok.chunks(text, n, by=by):
                assert tok.count(piece.text) == piece.count <= n, (text, n, piece)


@pytest.mark.slow
@pytest.mark.recorded_elsewhere
@pytest.mark.parametrize("name", LARGE or [pytest.param("", marks=pytest.mark.skip(reason="no larger sets here"))])
def test_the_same_of_the_large_sets(any_tokenizer, name):
    tok = any_tokenizer(name)
    check_short(tok, name, 60)
    check_long(tok, name, 10)
