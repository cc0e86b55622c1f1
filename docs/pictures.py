"""Draws DESIGN.md's pictures of the tables from a real vocabulary: `python docs/pictures.py` writes them anew.

What stands between the two markers in DESIGN.md is what `pictures` returns; a test compares the two. So the pictures
show bytes that are really there, and a layout that changes changes them.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

import jittok
from jittok.structures.double_array import PARENT, ROOT, UNIT, VALUE, child

TEXT = " LoRA"
DESIGN = Path(__file__).parents[1] / "DESIGN.md"
BEGIN, END = "<!-- pictures: docs/pictures.py writes what follows -->\n", "<!-- end of pictures -->\n"
_CELL = 11
SEEDS = (
    "3. Cache, then seeds (`jittok/models/bpe/seeds.py`). Neither has the word: it is new to the cache, and it is "
    "no token. A word that is a token has a seed, as ' Lo' does:"
)
MERGES = "4. Merge, lowest rank first (`jittok/merging/queue.py`). The pair table is asked for each pair of neighbours:"
TRIE = (
    "The trie (`jittok/structures/double_array.py`) of special tokens, walked along `<|endoftext|>`. A value of -1: no "
    "token ends here."
)


def _row(label: str, cells: list[str]) -> str:
    return f"{label:>9} " + "|" + "|".join(f"{cell:^{_CELL}}" for cell in cells) + "|"


def _words(data: bytes, width: int = 4) -> list[str]:
    """Bytes in hexadecimal, `width` of them a cell."""
    return [data[k : k + width].hex(" ") for k in range(0, len(data), width)]


def _drawn(title: str, data: bytes, meanings: list[str]) -> str:
    """One slot of a table: its bytes, four a cell, and what each cell means."""
    cells = _words(data)
    lines = [title]
    for first in range(0, len(cells), 4):
        lines += [_row(f"byte {4 * first}", cells[first : first + 4]), _row("", meanings[first : first + 4])]
    return "\n".join(lines)


def _pair_slot(arrays: Any, left: int, right: int) -> bytes:
    slots = arrays.pairs.slots.reshape(-1, 2)
    return bytes(slots[slots[:, 0] == np.uint64(left + 1 << 32 | right + 1)][0])


def _seed_slot(arrays: Any, text: bytes) -> bytes:
    slots = arrays.seeds.slots.reshape(-1, 4)
    key = np.frombuffer(text.ljust(15, b"\0") + bytes([len(text)]), np.uint64)
    return bytes(slots[(slots[:, :2] == key).all(axis=1)][0])


def _cache_slot(tok: jittok.Tokenizer, text: bytes) -> bytes:
    encoder = tok._encoder
    workspace = encoder.acquire()
    try:
        slots = workspace.scratch.cache.short
        slots = slots[: slots.size // 4 * 4].reshape(-1, 4)
        key = np.frombuffer(text.ljust(15, b"\0") + bytes([len(text)]), np.uint64)
        return bytes(slots[(slots[:, :2] == key).all(axis=1)][0])
    finally:
        encoder.release(workspace)


def _trie(tok: jittok.Tokenizer) -> str:
    """The walk through the trie of special tokens: the units of the first characters of <|endoftext|>."""
    trie = tok._encoder.rule(add_special=False, parse_special=True, replace=False).special.trie
    units, node = trie.units.reshape(-1, UNIT), ROOT
    lines = [f"{'node':>6} {'base':>6} {'parent':>7} {'value':>6}   one unit: four int32"]
    for letter in ["", *"<|e"]:
        node = child(trie, node, ord(letter)) if letter else ROOT
        base, parent, value = (int(units[node, k]) for k in (0, PARENT, VALUE))
        step = (
            f"child of {parent} under {letter!r}: base {int(units[parent, 0])} ^ {ord(letter)}"
            if letter
            else "the root"
        )
        lines.append(f"{node:>6} {base:>6} {parent:>7} {value:>6}   {step}")
    return "\n".join(lines)


def _steps(tok: jittok.Tokenizer) -> str:
    trace = tok.trace(TEXT)
    lines = []
    for merge in trace.merges:
        symbols = "  ".join(s["text"] for s in merge["symbols"] if s["n"])
        what = "stale: one of the two is gone" if merge["stale"] else symbols
        lines.append(f"rank {merge['rank']:>6}  {merge['text']:<4} {what}")
    return "\n".join(lines)


def _wrapped(head: str) -> str:
    """A heading in lines as DESIGN.md has them."""
    return textwrap.fill(head, 120, subsequent_indent="   " if head[0].isdigit() else "")


def pictures() -> str:
    """The Markdown between the two markers."""
    tok = jittok.bundled("gpt-2")
    ids = tok.encode(TEXT).tolist()
    arrays, raw = tok.arrays, TEXT.encode()
    space, letter = tok.token_to_id("Ġ"), tok.token_to_id("L")
    trace = tok.trace(TEXT)
    word = trace.words[0]
    regex = trace.regexes[word["regex"]]
    key = _drawn(
        "key of a piece of up to 15 bytes: the text, zeros, the length",
        raw.ljust(15, b"\0") + bytes([len(raw)]),
        ["text", "text", "zeros", "length 5"],
    )
    seed = _drawn(
        "slot of the seeds: 32 bytes",
        _seed_slot(arrays, b" Lo"),
        ["text", "zeros", "zeros", "length 3", f"id {tok.token_to_id('ĠLo')}", "", "", ""],
    )
    pair = _drawn(
        f"slot of the pair ({space}, {letter}), Ġ and L: 16 bytes",
        _pair_slot(arrays, space, letter),
        ["right + 1", "left + 1", "merged id", "rank"],
    )
    kept = _drawn(
        "slot of a short piece, ids of 16 bits: 32 bytes",
        _cache_slot(tok, raw),
        ["text", "text", "zeros", "length 5", "two ids", "ids 3, 4", "ids 5, 6", "id 7, n + 1"],
    )
    cut = f"{regex}\n\n{TEXT!r}  ->  {[word['text']]}   5 bytes at {word['offset']}"
    blocks = [
        ("1. Splitter (`jittok/pretokenize/`). The text is one word. The pattern of `gpt-2` cuts it out:", cut),
        (
            "2. Record (`jittok/piece_cache/records.py`). The loop over pieces gets a key and a place in the cache:",
            key,
        ),
        (SEEDS, seed),
        (MERGES, f"{pair}\n\n{_steps(tok)}"),
        (f"5. Ids {ids}. The cache (`jittok/piece_cache/tables.py`) keeps them for the next time:", kept),
        (TRIE, _trie(tok)),
    ]
    parts = [f"{_wrapped(head)}\n\n```\n{body}\n```\n" for head, body in blocks]
    return "\n".join(parts)


def drawn(text: str) -> str:
    """DESIGN.md with today's pictures."""
    head, rest = text.split(BEGIN)
    return head + BEGIN + "\n" + pictures() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    if "--print" in sys.argv:
        print(pictures())
    else:
        DESIGN.write_text(drawn(DESIGN.read_text("utf-8")), "utf-8")
