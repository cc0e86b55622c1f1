"""Ends of lines and sentences, as bytes, are those that the reference's patterns find in characters."""

import random

import pytest

from jittok.chunks.texts.preferred import ends
from jittok.reference.chunks.texts import LINES, SENTENCES

CHARACTERS = "ab.!?\u2026\u3002\uff01\uff1f\u0964\u061f\"')]\u300d\u300f\u201d \n\n\r\t\v\x85\u2028\u3000\xa0"


@pytest.mark.parametrize(("by", "pattern"), [("line", LINES), ("sentence", SENTENCES)])
def test_ends_in_bytes_are_those_in_characters(by, pattern):
    rng = random.Random(3)
    for _ in range(4000):
        text = "".join(rng.choice(CHARACTERS) for _ in range(rng.randrange(14)))
        found = {len(text[: match.end()].encode()) for match in pattern.finditer(text)}
        assert ends(text, by) == sorted(found | {len(text.encode())})


def test_lines_end_where_splitlines_ends_them():
    text = "a\nb\r\nc\rd\x0be\x0cf\x1cg\x1dh\x1ei\x85j\u2028k\u2029l"
    lengths = [len(line.encode()) for line in text.splitlines(keepends=True)]
    assert ends(text, "line") == [sum(lengths[: k + 1]) for k in range(len(lengths))]
