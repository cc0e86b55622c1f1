"""Draws the pictures of the documents from a real vocabulary: `python docs/pictures.py` writes them again.

- docs/internals/bpe.md: bytes of the tables, between two markers. A test compares them with `pictures()`, so a layout
  that changes must be drawn again.
- docs/trace-light.svg, docs/trace-dark.svg: README's picture, the merges of one word as a tree.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import jittok
from jittok.kernels.structures.double_array import PARENT, ROOT, UNIT, VALUE, child

TEXT = " LoRA"
WORD = " tokenizers"
DOCS = Path(__file__).parent
TABLES = DOCS / "internals" / "bpe.md"
BEGIN, END = "<!-- pictures: docs/pictures.py writes what follows -->\n", "<!-- end of pictures -->\n"
_CELL = 11
SEEDS = (
    "3. Cache, then seeds (`jittok/kernels/models/bpe/words/single_token_words.py`). Neither has the word: it is new "
    "to the cache, and it is no token. A word that is a token has a seed, as ' Lo' does:"
)
MERGES = (
    "4. Merge, lowest rank first (`jittok/kernels/merging/queue.py`). The pair table is asked for each pair of "
    "neighbours:"
)
TRIE = (
    "The trie (`jittok/kernels/structures/double_array.py`) of special tokens, walked along `<|endoftext|>`. A value "
    "of -1: no token ends here."
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
    (special,) = tok._encoder.rule(add_special=False, parse_special=True, replace=False).tables
    trie = special.trie
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
    """A heading in lines as the page has them."""
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
        ("1. Splitter (`jittok/kernels/pretokenize/`). The text is one word. The pattern of `gpt-2` cuts it out:", cut),
        (
            "2. Record (`jittok/kernels/pretoken_cache/records.py`). The loop gets a key and a slot of the cache:",
            key,
        ),
        (SEEDS, seed),
        (MERGES, f"{pair}\n\n{_steps(tok)}"),
        (f"5. Ids {ids}. The cache (`jittok/kernels/pretoken_cache/tables.py`) keeps them for the next time:", kept),
        (TRIE, _trie(tok)),
    ]
    parts = [f"{_wrapped(head)}\n\n```text\n{body}\n```\n" for head, body in blocks]
    return "\n".join(parts)


COLORS = {"light": ("#1f2328", "#59636e", "#8c959f"), "dark": ("#f0f6fc", "#9198a1", "#656c76")}
"""Of text, of ranks and of lines, on GitHub's two backgrounds; boxes of tokens are readable on both."""
TOKENS = ("#1f6feb", "#bf4b8a")
LEAF, LEVEL, CHAR = 62, 44, 9.6
"""Pixels: between two leaves, between two levels of the tree, of one monospaced character."""


class Node(NamedTuple):
    """A symbol of the tree: its text, the middle of its box in pixels, how many merges are below it at most."""

    text: str
    x: float
    level: int


def _merged(tok: jittok.Tokenizer) -> tuple[list[Node], list[tuple[Node, Node, Node, int]]]:
    """The final symbols of WORD, and all merges: left, right, result, rank."""
    trace = tok.trace(WORD)
    live = {k: Node(text, LEAF * (k + 0.5), 0) for k, text in enumerate(WORD.replace(" ", "Ġ"))}
    merges = []
    for merge in trace.merges:
        if merge["stale"]:
            continue
        left, right = live[merge["left"]], live.pop(merge["right"])
        node = Node(merge["text"], (left.x + right.x) / 2, max(left.level, right.level) + 1)
        live[merge["left"]] = node
        merges.append((left, right, node, merge["rank"]))
    return list(live.values()), merges


def tree(theme: str) -> str:
    """README's picture as SVG: characters at the bottom, merges with their ranks, tokens with their ids at the top."""
    tok = jittok.bundled("gpt-2")
    (ink, faint, line), ids = COLORS[theme], tok.encode(WORD).tolist()
    final, merges = _merged(tok)
    top = max(node.level for node in final)
    width, height = LEAF * len(WORD), LEVEL * (top + 1) + 34
    parts = []

    def y(node: Node) -> float:
        return height - 22 - LEVEL * node.level

    for left, right, node, _ in merges:
        for part in (left, right):
            ends = f'x1="{part.x:.1f}" y1="{y(part) - 12:.1f}" x2="{node.x:.1f}" y2="{y(node) + 12:.1f}"'
            parts.append(f'<line {ends} stroke="{line}"/>')
    leaves = [Node(text, LEAF * (k + 0.5), 0) for k, text in enumerate(WORD.replace(" ", "Ġ"))]
    ranks = {(node.text, node.x): rank for _, _, node, rank in merges}
    for node in [*leaves, *(merge[2] for merge in merges)]:
        wide, color, rank = CHAR * len(node.text) + 12, ink, ranks.get((node.text, node.x))
        if node in final:
            box = f'x="{node.x - wide / 2:.1f}" y="{y(node) - 13:.1f}" width="{wide:.1f}" height="26" rx="5"'
            parts.append(f'<rect {box} fill="{TOKENS[final.index(node) % 2]}"/>')
            parts.append(_label(node.x, y(node) - 22, f"id {ids[final.index(node)]}", ink, 13))
            color = "#ffffff"
        parts.append(_label(node.x, y(node) + 5, node.text, color, 16))
        if rank is not None:
            parts.append(_label(node.x + wide / 2 + 3, y(node) + 4, f"{rank:,}", faint, 11, "start"))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
    title = f"<title>gpt-2 merges {WORD!r}, lowest rank first</title>"
    return "\n".join(
        [head, title, '<g font-family="ui-monospace, Menlo, Consolas, monospace">', *parts, "</g></svg>\n"]
    )


def _label(x: float, y: float, text: str, color: str, size: int, anchor: str = "middle") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{color}"'
    return f"<text {place}>{text}</text>"


def drawn(text: str) -> str:
    """The page of the tables with today's bytes."""
    head, rest = text.split(BEGIN)
    return head + BEGIN + "\n" + pictures() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    if "--print" in sys.argv:
        print(pictures())
    else:
        TABLES.write_text(drawn(TABLES.read_text("utf-8")), "utf-8")
        for theme in COLORS:
            (DOCS / f"trace-{theme}.svg").write_text(tree(theme), "utf-8")
