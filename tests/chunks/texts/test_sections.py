"""Sections: what is known of them beforehand changes no piece, and kernels cut them where the rule says."""

import random
import zlib

import numpy as np
import pytest
from texts_to_cut import ALL, PARTS

import jittok
from jittok.chunks.texts.chunker import Chunker, Request
from jittok.chunks.texts.cutter import NO_JOINS, Cutter, Joins, boundaries, one_document
from jittok.chunks.texts.search.sections import (
    AFTER_SPACE,
    AFTER_WHITE,
    BEFORE_SPACE,
    BEFORE_WHITE,
    BY_SIZES,
    BY_SPACES,
    BY_WORDS,
    NOWHERE,
)

WORDS = [
    "The", "cat", "sat", "on", "compatibility", "x", "=", "f(x)", "{", "}", "return", "don't", "3.14", "na\xefve",
    "\u0440\u0443\u0441\u0441\u043a\u0438\u0439", "\u6771\u4eac", "Stra\xdfe", "_name", "antidisestablishmentarianism",
    "</s>", "e\u0301", "\u200b", "(ok)", "#1", "U.S.A.", "\uff46ull",
]  # fmt: skip


def words_text(rng, words):
    """Words with white space between them, and now and then what cuts nothing."""
    between = [" "] * 12 + ["\n", "\n    ", "  ", "\t", " \n", "", "-", "\r\n", "\xa0"]
    text = "".join(rng.choice(WORDS) + rng.choice(between) for _ in range(words))
    return text + "".join(rng.choice(PARTS) for _ in range(rng.randrange(8)))


def without_sections(tok, add_special=False):
    encoder, rule = tok._rule(add_special, False, "strict")
    adjacent, sizes, _ = tok._chunk_tables
    return Chunker(Cutter(encoder, rule, adjacent, sizes, NO_JOINS))


def check(tok, name, texts):
    rng = random.Random(zlib.crc32(name.encode()))
    for _ in range(texts):
        some = [words_text(rng, rng.randrange(1, 160)) for _ in range(rng.randrange(1, 5))]
        n, overlap, special = rng.choice([16, 20, 40, 100, 512]), rng.choice([0, 0, 0, 7]), rng.random() < 0.2
        request = Request(n, overlap, rng.choice(["token", "token", "sentence"]))
        try:
            want = without_sections(tok, special).batch(some, request, 1, False)
        except (jittok.JittokError, ValueError) as error:
            with pytest.raises(type(error)):
                tok.chunks_batch(some, n, overlap=overlap, by=request.by, add_special=special)
            continue
        found = tok.chunks_batch(some, n, overlap=overlap, by=request.by, add_special=special, threads=1)
        assert found.columns.tolist() == want.columns.tolist(), (name, some, request, special)


@pytest.mark.parametrize("name", ALL)
def test_pieces_are_the_same_without_sections(any_tokenizer, name):
    check(any_tokenizer(name), name, 6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_the_same_of_many_texts(any_tokenizer, name):
    check(any_tokenizer(name), name + "more", 150)


@pytest.mark.parametrize(
    ("name", "joins", "way"),
    [
        ("gpt-2", Joins(BEFORE_WHITE, 1), BY_SIZES), ("mistral", Joins(BEFORE_WHITE, 0), BY_SIZES),
        ("bert", Joins(AFTER_WHITE, 1), BY_WORDS), ("t5", Joins(AFTER_WHITE, 1), BY_SPACES),
    ],
)  # fmt: skip
def test_where_ids_are_cut_for_certain(name, joins, way):
    _, sizes, found = jittok.bundled(name)._chunk_tables
    assert (found, sizes.way) == (joins, way)


def sections(tok, text, where, least=1):
    encoder, rule = tok._rule(False, False, "strict")
    cutter = Cutter(encoder, rule, *tok._chunk_tables[:2])
    docs = one_document(text.encode())
    with encoder.workspace() as workspace:
        whole = cutter.is_whole(workspace, docs)
        found, firsts = cutter.sections(workspace, docs, boundaries(docs), Joins(where, 1), least, whole)
    assert firsts.tolist() == [0, found.starts.size]
    assert np.array_equal(found.starts[1:], found.stops[:-1])
    return [
        text.encode()[a:b].decode() for a, b in zip(found.starts.tolist(), found.stops.tolist(), strict=True)
    ], found


@pytest.mark.parametrize(
    ("where", "text", "parts"),
    [
        (BEFORE_SPACE, "a b  c 1 d\ne f", ["a", " b  c 1 d\ne", " f"]),
        (BEFORE_WHITE, "ab cd\n  ef; g;\n\nh", ["ab", " cd", "\n  ef;", " g;\n\nh"]),
        (AFTER_SPACE, "ab cd\nef  g h", ["ab ", "cd\nef  g ", "h"]),
        (AFTER_WHITE, "ab cd\n  ef g", ["ab ", "cd\n  ", "ef ", "g"]),
        (BEFORE_SPACE, "a \u0301b c\u0301 d", ["a \u0301b", " c\u0301", " d"]),
        (NOWHERE, "a b", []),
        (BEFORE_SPACE, "", []),
    ],
)
def test_sections_end_at_white_space_between_words(where, text, parts):
    assert sections(jittok.bundled("gpt-2"), text, where)[0] == parts


def test_sections_have_the_counts_of_their_texts():
    tok = jittok.bundled("gpt-2")
    text = "one two three " * 40 + "x" * 1500 + " four five"
    parts, found = sections(tok, text, BEFORE_SPACE, 24)
    assert "".join(parts) == text
    assert all(len(part) >= 24 for part in parts[:-1])
    counts = np.diff(found.before)
    for part, count in zip(parts, counts.tolist(), strict=True):
        assert count == (tok.count(part) if len(part) <= 1024 else 1 << 40)
    assert sum(len(part) > 1024 for part in parts) == 1


def test_many_pieces_of_many_texts_find_room():
    tok = jittok.bundled("gpt-2")
    texts = ["one two three four five six seven eight " * 400, "a b c", ""] * 3
    rows = tok.chunks_batch(texts, 16, threads=1)
    assert rows.lengths.tolist() == [201, 1, 0] * 3
    assert "".join(rows.texts()) == "".join(texts)
