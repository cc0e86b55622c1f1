"""Where no merge joins two bytes a piece is cut in two, and the ids stay the reference's."""

import functools
import itertools

import numpy as np
import pytest
from amounts import amount
from write_gguf import vocab_file

from jittok.common.unicode.tables import ENCODED_BYTE
from jittok.encode.encoder import Encoder
from jittok.kernels.jit import U8, OutU64, frozen, kernel, standalone
from jittok.kernels.memory import window
from jittok.kernels.models import bpe
from jittok.kernels.models.bpe.words import merge_boundaries as made
from jittok.kernels.models.bpe.words.merge_boundaries import (
    PAIRED,
    MergeBoundaries,
    cut_merge_boundaries,
    open_merge_boundaries,
)
from jittok.reference.tokenize import tokenize
from jittok.vocab import read_vocab

odd_ends, in_long = standalone(made._odd_ends), standalone(made._in_long)
LETTERS = [ENCODED_BYTE[b] for b in b" abB\n(."]
SPACE, ALL = LETTERS[0], (1 << 64) - 1
VOCABULARIES = amount(20, 8, 1)


def vocab_of(merges, pre="superbpe"):
    """superbpe cuts numbers alone, so all other cuts are joints."""
    joined = dict.fromkeys(merge.replace(b" ", b"") for merge in merges)
    return read_vocab(vocab_file("gpt2", [*ENCODED_BYTE, *joined], pre=pre, merges=merges))


def drawn_merges(random, spaces_at):
    """Merges of what was merged before; two spaces first, last, somewhere, or never."""
    symbols, merges = list(LETTERS), []
    while len(merges) < random.integers(4, 40):
        left, right = (symbols[random.integers(len(symbols))] for _ in range(2))
        if len(left + right) < 14 and left + b" " + right not in [*merges, SPACE + b" " + SPACE]:
            merges.append(left + b" " + right)
            symbols += [left + right, SPACE * 2]
    if spaces_at is not None:
        merges.insert(round(spaces_at * len(merges)), SPACE + b" " + SPACE)
    return merges


def drawn_text(random):
    """Runs of spaces of all sizes between short runs of anything else, across blocks of 64 bytes."""
    parts = []
    for _ in range(random.integers(1, 12)):
        parts.append(b" " * random.integers(0, random.choice([3, 9, 140])))
        parts.append(bytes(random.choice(list(b"abB\n(. 1"), random.integers(1, random.choice([3, 20])))))
    return b"".join(parts)


@pytest.mark.parametrize("spaces_at", [0, 0.2, 1, None])
def test_drawn_merges_give_the_ids_of_the_reference(spaces_at):
    random = np.random.default_rng(7)
    for _ in range(VOCABULARIES):
        vocab = vocab_of(drawn_merges(random, spaces_at))
        encoder = Encoder(vocab)
        for _ in range(6):
            text = drawn_text(random)
            assert encoder.one(text, encoder.bare_rule()).tolist() == tokenize(vocab, text), (vocab.merges, text)


@kernel
def cut(joints: MergeBoundaries, text: U8, size: int, cuts: OutU64) -> int:
    cut_merge_boundaries(open_merge_boundaries(joints), False, window(text), 0, size, window(cuts))
    return size


@functools.cache
def joints_of(*merges):
    return bpe.compile_pipeline(vocab_of(merges).pipeline).joints


def pieces_of(merges, text):
    """What the joints alone make of a text."""
    joints = joints_of(*merges)
    cuts = np.zeros(len(text) // 64 + 2, np.uint64)
    cuts[0] |= 1
    cuts[len(text) // 64] |= np.uint64(1) << np.uint64(len(text) % 64)
    cut(joints, frozen(np.frombuffer(text + bytes(128), np.uint8), np.uint8), len(text), cuts)
    places = np.flatnonzero(np.unpackbits(cuts.view(np.uint8), bitorder="little")).tolist()
    return [text[i:j] for i, j in itertools.pairwise(places)]


SPACES_FIRST = ["Ġ Ġ", "ĠĠ ĠĠ", "Ġ a", "a b", "Ġ ab", "ĠĠ ."]


def encoded(merges):
    return [merge.encode() for merge in merges]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (b"ab    ab", [b"ab", b"    ", b"ab"]),
        (b"ab   ab", [b"ab", b"   ab"]),  # the third space goes with the word
        (b"ab    .", [b"ab", b"    ."]),  # two spaces are joined to a full stop
        (b"." * 3 + b" " * 64 + b"ab", [b".", b".", b".", b" " * 64, b"ab"]),
        (b"." * 3 + b" " * 65 + b"ab", [b".", b".", b".", b" " * 65 + b"ab"]),
        (b" " * 62 + b"ab", [b" " * 62, b"ab"]),
    ],
)
def test_behind_an_even_run_of_spaces_only_pairs_of_them_matter(text, pieces):
    assert pieces_of(encoded(SPACES_FIRST), text) == pieces


@pytest.mark.parametrize("merges", [[*SPACES_FIRST[1:], SPACES_FIRST[0]], SPACES_FIRST[2:], []])
def test_nothing_is_known_of_runs_where_two_spaces_are_not_joined_first(merges):
    pairs = joints_of(*encoded(merges)).pairs.reshape(-1, 256 // 32)
    assert pairs[PAIRED].tolist() == pairs[ord(" ")].tolist()


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (b"((ab.((ab.((ab.((", [b"(", b"(ab.", b"(", b"(ab.", b"(", b"(ab.", b"(", b"("]),
        (b"bb.bb.bb.bb.bb.bb.", [b"bb", b"."] * 6),  # b and the stop are joined after an a only
        (b"(b" * 9, [b"(", *[b"b("] * 8, b"b"]),
    ],
)
def test_bytes_that_only_longer_symbols_are_joined_by(text, pieces):
    assert pieces_of(encoded(["a b", "a B", "ab .", "( ab", "b aB", "ab a", "b ("]), text) == pieces


def in_blocks(bits):
    return np.packbits(np.array(bits, np.uint8), bitorder="little").view(np.uint64)


def test_ends_of_odd_runs_are_found_across_blocks():
    random = np.random.default_rng(3)
    for density in (0.5, 0.9, 0.99, 1):
        bits = random.random(64 * 40) < density
        bits[-1] = False
        expected, count = np.zeros(bits.size, bool), 0
        for i, bit in enumerate(bits):
            expected[i] = not bit and count % 2
            count = count + 1 if bit else 0
        found, before, odd = [], np.uint64(0), np.uint64(0)
        for some in in_blocks(bits):
            ends, odd = odd_ends(some, before, np.uint64(odd))
            before = some >> np.uint64(63)
            found.append(ends & ALL)
        assert np.array_equal(np.array(found, np.uint64), in_blocks(expected))


def test_long_pieces_are_found_from_their_first_byte_on():
    random = np.random.default_rng(4)
    for share in (0.01, 0.1, 0.3):
        cuts = np.append(np.flatnonzero(random.random(64 * 30) < share), 64 * 30)
        far, expected = np.zeros((2, 64 * 30), bool)
        for begin, end in zip([0, *cuts], cuts, strict=False):
            far[begin + 16 : end] = True
            if end - begin > 16:
                expected[begin + 1 : end] = True
        blocks = in_blocks(far)
        found = [in_long(a, b) & ALL for a, b in zip(blocks, [*blocks[1:], np.uint64(0)], strict=True)]
        got = np.unpackbits(np.array(found, np.uint64).view(np.uint8), bitorder="little").astype(bool)
        assert np.array_equal(got, expected)
