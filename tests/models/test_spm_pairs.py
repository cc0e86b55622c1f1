"""The pairs that make tokens are all that there are, and are found in time by the tokens' bytes."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jittok._jit import JIT, frozen
from jittok.models.spm import pairs
from jittok.models.spm.compile import other_characters_entered
from jittok.models.spm.pairs import all_pairs

SIZES = [1] * 12 + [2, 2, 3, 4]


def table_of(tokens):
    offsets = frozen(np.cumsum([0, *map(len, tokens)]), np.int64)
    return other_characters_entered(frozen(np.frombuffer(b"".join(tokens), np.uint8), np.uint8), offsets)


def rows_of(table):
    return [bytes(table.data[i:j]) for i, j in zip(table.offsets[:-1], table.offsets[1:], strict=True)]


def plainly(table, tokens):
    """The definition: of equal texts the first counts, and a part is one character or a token that can be made."""
    rows, made, found = rows_of(table), set(), []
    for token in sorted(range(tokens), key=lambda token: len(rows[token])):
        text, begins, i = rows[token], [], 0
        while i < len(text):
            i += SIZES[text[i] >> 4]
            begins.append(i)
        if len(begins) == 1:
            made.add(token)
        for i in begins[:-1]:
            a, b = (rows.index(part) if part in rows else None for part in (text[:i], text[i:]))
            first, last = i == begins[0], i == begins[-2]
            if None not in (a, b) and (first or a in made) and (last or b in made):
                made.add(token)
                found.append((a, b, token))
    return found, made


texts = st.text("abé中\u2581", min_size=1, max_size=8).map(str.encode)
odd = st.tuples(texts, st.binary(max_size=2), texts).map(b"".join)


@given(st.lists(texts | odd, min_size=1, max_size=30))
@example([b"a" * n for n in range(1, 12)])
@example([b"ab", b"a", b"ab", b"aba", b"ba"])
@example(["中中".encode(), "中".encode()[:2], "中".encode()])
def test_the_pairs_are_those_of_the_definition(tokens):
    table = table_of(tokens)
    reachable, left, right, merged = all_pairs(table, len(tokens))
    found, made = plainly(table, len(tokens))
    assert list(zip(left.tolist(), right.tolist(), merged.tolist(), strict=True)) == found
    assert set(np.flatnonzero(reachable).tolist()) == made


def drawn(size):
    return bytes(np.random.default_rng(size).integers(97, 123, size, np.uint8))


SHAPES = {
    "one letter": lambda n: b"a" * n,
    "two letters": lambda n: (b"ab" * n)[:n],
    "of every size": drawn,
    "behind a space": lambda n: "\u2581".encode() + b"a" * n,
}


@pytest.mark.skipif(JIT, reason="steps are counted without the compiler")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_steps_grow_with_the_bytes_and_not_faster(monkeypatch, shape):
    steps = 0

    def counted(function):
        def call(*args):
            nonlocal steps
            steps += 1
            return function(*args)

        return call

    for name in ("get_u8", "get_i32", "get_u64", "_find"):
        monkeypatch.setattr(pairs, name, counted(getattr(pairs, name)))
    taken = []
    for longest in (20, 40, 80):
        steps, table = 0, table_of([shape(n) for n in range(1, longest)])
        all_pairs(table, longest - 1)
        taken.append(steps / table.data.size)
    assert taken[2] <= 1.3 * taken[0]
