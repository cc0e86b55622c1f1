"""The pairs that make tokens are all that there are, and are found in time by the tokens' bytes."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.kernels.jit import JIT, frozen
from jittok.kernels.models.spm import pairs
from jittok.kernels.models.spm.compile import other_characters_entered
from jittok.kernels.models.spm.pairs import all_pairs
from jittok.kernels.structures.bytes_table import ABSENT, slot_count

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
@example([b"a", b"b", b"c", b"bc", b"abc"])  # the longest text that is shorter is no prefix, but a shorter one is
@example([b"a", b"b", b"c", b"ab", b"abc"])  # the same of suffixes
@example([b"\xc3", b"\xa9", "é".encode()])  # no pair inside a character
@example([b"a", b"bcd", b"abcd"])  # nothing makes the part on the right
@example([b"d", b"abc", b"abcd"])  # nor that on the left
def test_the_pairs_are_those_of_the_definition(tokens):
    table = table_of(tokens)
    reachable, left, right, merged = all_pairs(table, len(tokens))
    found, made = plainly(table, len(tokens))
    assert list(zip(left.tolist(), right.tolist(), merged.tolist(), strict=True)) == found
    assert set(np.flatnonzero(reachable).tolist()) == made


def test_more_room_is_made_for_pairs_until_there_is_enough(monkeypatch):
    table = table_of([b"a" * n for n in range(1, 12)])
    whole = [array.tolist() for array in all_pairs(table, 11)]
    monkeypatch.setattr(pairs, "FIRST_CAPACITY", 1)
    assert [array.tolist() for array in all_pairs(table, 11)] == whole
    assert len(whole[1]) > 1


def linked(table):
    """What `link_texts` fills."""
    work = pairs.PairWork(*(np.zeros(size, dtype) for size, dtype in work_sizes(table)))
    work.powers[:] = 1
    work.prefix[:], work.suffix[:] = ABSENT, ABSENT
    lengths = np.diff(table.offsets)
    longest = int(lengths.max())
    sizes = np.zeros(longest + 2, np.int64)
    sizes[1:] = np.maximum.accumulate(np.where(np.isin(np.arange(longest + 1), lengths), np.arange(longest + 1), 0))
    pairs.link_texts(table, frozen(np.argsort(lengths, kind="stable"), np.int64), frozen(sizes, np.int64), work)
    return work


def thue_morse():
    """A word of 1,024 letters and the word of the other letters: they have the same hash modulo 2^64 by any base."""
    word, other = b"a", b"b"
    for _ in range(10):
        word, other = word + other, other + word
    return word, other


def test_texts_of_one_hash_are_told_apart_by_their_bytes():
    """By the base 0, the last byte is the hash."""
    word, other = b"a" * 40 + b"c", b"b" * 40 + b"c"
    table = table_of([word, other, word + other])
    work = linked(table._replace(keys=frozen([0, 0], np.uint64)))
    assert (work.prefix[2], work.suffix[2]) == (0, 1)
    assert len(set(work.known[work.slots > 0].tolist())) < np.count_nonzero(work.slots)


@given(st.integers(0, (1 << 61) - 2), st.integers(0, (1 << 61) - 2))
@example((1 << 61) - 2, (1 << 61) - 2)
def test_products_are_those_modulo_the_prime(a, b):
    assert int(pairs.times(np.uint64(a), np.uint64(b))) == a * b % int(pairs.PRIME)


def in_one_slot(count):
    """Tokens of eight letters that all began in one slot of so many when the base was known."""
    base, mix, mask = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93), np.uint64(slot_count(count) - 1)
    draw, found = np.random.default_rng(1), []
    while len(found) < count:
        letters = draw.integers(97, 123, (1 << 16, 8), np.uint8)
        hashes = np.zeros(1 << 16, np.uint64)
        for column in letters.T:
            hashes = hashes * base + column + np.uint64(1)
        found += {bytes(row) for row in letters[hashes * mix >> np.uint64(20) & mask == 0]}
    return found[:count]


def test_chosen_tokens_have_slots_and_hashes_of_their_own():
    words, blocks = in_one_slot(1000 if JIT else 60), thue_morse()
    levels = range(6 if JIT else 2)
    long = [b"".join(blocks[number >> k & 1] for k in levels) for number in range(1 << len(levels))]
    work = linked(table_of(words + long))
    rows = np.count_nonzero(work.slots)
    assert rows >= len(words) + len(long)
    assert len(set(work.known[work.slots > 0].tolist())) == rows
    assert np.diff(np.append(-1, np.flatnonzero(work.slots == 0))).max() < 60


def work_sizes(table):
    longest, rows = int(np.diff(table.offsets).max()), table.offsets.size - 1
    slots = slot_count(rows)
    return [
        (longest + 1, np.uint64), (longest + 1, np.uint64), (longest + 1, np.uint8), (longest + 1, np.int32),
        (slots, np.uint64), (slots, np.int32), (rows, np.int32), (rows, np.int32),
    ]  # fmt: skip


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
