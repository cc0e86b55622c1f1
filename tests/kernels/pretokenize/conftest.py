"""Texts drawn to trip splitters: runs of few classes that cross blocks of 64 bytes."""
# ruff: noqa: E501, RUF001  lists of characters

import numpy as np
import pytest

MEMBERS = [
    "a", "B", "é", "Å", "1", "٣", "Ⅷ", " ", "\n", "\r\n", "\r", "\t", "\u3000", "\u00a0", "\u0085", "'", "'s", "'LL", "'re", "'VE", "ſ", "/", "!",
    "-", "$", "漢", "あ", "\u0301", "😀", "𝐀", "𝟘", "<", "  ", "\n\n", " \n", "_", ".", "ABc", "don't", "\u0378", "ǅ", "\u2581", "\0", "한", "ʰ",
]  # fmt: skip
RUNS = [1, 1, 1, 1, 2, 3, 7, 21, 60, 64, 65]


def random_soup(random: np.random.Generator) -> str:
    """Some members of a few classes, each in a short or a long run."""
    members = random.choice(MEMBERS, random.choice([2, 3, 5, 12, len(MEMBERS)]))
    parts = []
    for _ in range(random.integers(1, 50)):
        member = random.choice(members if random.random() < 0.9 else MEMBERS)
        parts.append(str(member) * int(random.choice(RUNS)))
    return "".join(parts)


@pytest.fixture(scope="session")
def soup():
    """soup(random): a str."""
    return random_soup
