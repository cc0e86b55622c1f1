"""Training sequences of documents, in plain Python: how documents are packed, and in which order sequences come.

A *piece* is (document, first token, count). Documents of 5, 2 and 4 tokens in sequences of 4:

>>> split([5, 2, 4], 4)
[[(0, 0, 4)], [(0, 4, 1), (1, 0, 2), (2, 0, 1)]]
>>> split([5, 2, 4], 4, pad=True)[-1]
[(2, 1, 3)]
>>> whole([5, 2, 4], 4)
[[(0, 0, 4)], [(0, 4, 1), (1, 0, 2)], [(2, 0, 4)]]
>>> whole([3, 3, 1, 1], 4), best([3, 3, 1, 1], 4)
([[(0, 0, 3)], [(1, 0, 3), (2, 0, 1)], [(3, 0, 1)]], [[(0, 0, 3), (3, 0, 1)], [(1, 0, 3), (2, 0, 1)]])

An order is a cipher of the numbers below a count: each number occurs once, and any of them is found without the others.

>>> [permuted(k, 10, keys("7/sequences/0")) for k in range(10)]
[7, 8, 2, 0, 3, 1, 6, 4, 5, 9]
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

Piece = tuple[int, int, int]
"""A document, its first token and how many."""
WINDOW = 1 << 14
"""Pieces that best fit packs together."""
SPREAD = 16
"""Runs of sequences that are shuffled with each other, where not all are."""
ROUNDS = 6
MASK = (1 << 64) - 1


def keys(name: str) -> list[int]:
    """The keys of the rounds: the first eight bytes of BLAKE2b of the name and the number of the round."""
    return [
        int.from_bytes(hashlib.blake2b(f"{name}/{k}".encode(), digest_size=8).digest(), "little") for k in range(ROUNDS)
    ]


def permuted(number: int, count: int, rounds: Sequence[int]) -> int:
    """Where the cipher sends a number below `count`: a Feistel network over an even number of bits, walked until the
    result is below `count` again (Black and Rogaway 2002)."""
    half = (max((count - 1).bit_length(), 2) + 1) // 2
    mask = (1 << half) - 1
    while True:
        left, right = number >> half, number & mask
        for key in rounds:
            left, right = right, left ^ (mixed(right ^ key) & mask)
        number = left << half | right
        if number < count:
            return number


def mixed(word: int) -> int:
    """A word of 64 bits, each of whose bits depends on all."""
    word = word * 0x9E3779B97F4A7C15 & MASK
    word ^= word >> 29
    word = word * 0xBF58476D1CE4E5B9 & MASK
    return word ^ word >> 32


def order(count: int, seed: int, what: str, epoch: int = 0) -> list[int]:
    """The order in which `count` documents or sequences come."""
    rounds = keys(f"{seed}/{what}/{epoch}")
    return [permuted(k, count, rounds) for k in range(count)]


def near(number: int, count: int, within: int, name: str) -> int:
    """An order in which runs of within / 16 numbers are drawn, and 16 runs at a time are shuffled; what fills no run
    comes last.

    >>> [near(k, 70, 32, "7/sequences/0") for k in range(70)][:8]
    [44, 3, 12, 28, 41, 47, 64, 27]
    """
    run = within // SPREAD
    runs = count // run
    group, place = divmod(number, SPREAD * run)
    if number >= runs * run:
        group, first = -(-runs // SPREAD), runs * run
        return first + permuted(number - first, count - first, keys(f"{name}/{group}"))
    size = min(SPREAD, runs - group * SPREAD) * run
    which, rest = divmod(permuted(place, size, keys(f"{name}/{group}")), run)
    return permuted(group * SPREAD + which, runs, keys(f"{name}/runs")) * run + rest


def split(
    lengths: Sequence[int], length: int, overlap: int = 0, pad: bool = False, documents: Sequence[int] | None = None
) -> list[list[Piece]]:
    """Sequence k is tokens k * (length - overlap) ... of the documents one after the other (in the order `documents`);
    the end, where it does not fill a sequence, only with `pad`."""
    rows = range(len(lengths)) if documents is None else documents
    tokens = [(row, k) for row in rows for k in range(lengths[row])]
    found, first = [], 0
    while first + length <= len(tokens) or (pad and first + overlap < len(tokens)):
        found.append(joined(tokens[first : first + length]))
        first += length - overlap
    return found


def joined(tokens: Sequence[tuple[int, int]]) -> list[Piece]:
    """Tokens (document, number) as pieces."""
    pieces: list[Piece] = []
    for row, k in tokens:
        if pieces and pieces[-1][0] == row:
            pieces[-1] = (row, pieces[-1][1], pieces[-1][2] + 1)
        else:
            pieces.append((row, k, 1))
    return pieces


def cut(lengths: Sequence[int], length: int, documents: Sequence[int] | None = None) -> Iterator[Piece]:
    """Documents, cut where they are longer than a sequence; empty ones give no piece."""
    for row in range(len(lengths)) if documents is None else documents:
        for first in range(0, lengths[row], length):
            yield row, first, min(length, lengths[row] - first)


def whole(lengths: Sequence[int], length: int, documents: Sequence[int] | None = None) -> list[list[Piece]]:
    """Next fit: a piece goes to the last sequence, or begins one."""
    found: list[list[Piece]] = []
    room = 0
    for piece in cut(lengths, length, documents):
        if piece[2] > room:
            found.append([])
            room = length
        found[-1].append(piece)
        room -= piece[2]
    return found


def best(
    lengths: Sequence[int], length: int, documents: Sequence[int] | None = None, window: int = WINDOW
) -> list[list[Piece]]:
    """Best fit, `window` pieces at a time: a long piece before a short one, an earlier before a later, each to the
    sequence with the least room that is enough (of equals, to the one that a piece went to last), or to a new one.

    Pieces of a sequence are in the order of the documents, and so are sequences by their first pieces.
    """
    pieces = list(cut(lengths, length, documents))
    found: list[list[Piece]] = []
    for first in range(0, len(pieces), window):
        some = pieces[first : first + window]
        rooms: list[int] = []  # of sequences that are not full, in order
        having: dict[int, list[list[int]]] = {}  # room -> sequences, as numbers of pieces
        sequences: list[list[int]] = []
        for k in sorted(range(len(some)), key=lambda k: -some[k][2]):
            size = some[k][2]
            at = bisect_left(rooms, size)
            if at == len(rooms):
                room, sequence = length, list[int]()
                sequences.append(sequence)
            else:
                room = rooms.pop(at)
                sequence = having[room].pop()
            sequence.append(k)
            if room > size:
                insort(rooms, room - size)
                having.setdefault(room - size, []).append(sequence)
        found += [[some[k] for k in sequence] for sequence in sorted(map(sorted, sequences))]
    return found
