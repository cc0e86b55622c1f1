"""Draws patterns that look around, use anchors, read on from every place, match the empty text; and texts for them."""

import random

ATOMS = (
    "a", "b", "c", " ", r"\d", r"\s", r"\S", r"\w", r"\W", ".", r"\p{L}", r"\p{Lu}", r"[ab]", r"[^a]", r"[^\s\d]", "é",
    "中", r"\n", "1", r"[\r\n]",
)  # fmt: skip
ANCHORS = ("^", "$", r"\b", r"\B", r"\A", r"\z", r"\Z")
LOOKS = ("(?=", "(?!", "(?<=", "(?<!")
PARTS = (
    "a",
    "a",
    "b",
    "c",
    "ab",
    " ",
    "  ",
    "1",
    "12",
    "\n",
    "\r\n",
    "é",
    "中",
    "A",
    "-",
    "aaa",
    "\u0301",
    "\U0001f600",
)


def drawn_look(draw: random.Random) -> str:
    """A pattern, which its engine may refuse."""
    return _either(draw, 0)


def _either(draw: random.Random, depth: int) -> str:
    return "|".join(_row(draw, depth) for _ in range(draw.choice([1, 1, 2, 3] if depth == 0 else [1, 1, 2])))


def _row(draw: random.Random, depth: int) -> str:
    return "".join(_part(draw, depth) for _ in range(draw.choice([1, 2, 2, 3, 4] if depth == 0 else [1, 1, 2])))


def _part(draw: random.Random, depth: int) -> str:
    kind = draw.random()
    if depth < 3 and kind < 0.18:
        return f"{draw.choice(LOOKS)}{_either(draw, depth + 1)})"
    if kind < 0.25:
        return draw.choice(ANCHORS)
    body = f"(?:{_either(draw, depth + 1)})" if depth < 2 and kind < 0.35 else draw.choice(ATOMS)
    return body + draw.choice(["", "", "", "", "+", "*", "?", "{2}", "{1,3}", "+?", "*?"])


def drawn_looked_at(draw: random.Random) -> str:
    """A text of few different parts."""
    parts = draw.sample(PARTS, draw.choice([2, 3, 4, len(PARTS)]))
    size = draw.choice([1, 3, 8, 8, 30, 90])
    return "".join(draw.choice(parts) * draw.choice([1, 1, 1, 2, 5, 30]) for _ in range(draw.randrange(size + 1)))[:400]
