"""The numbers of the plots, computed with NumPy only."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

SPECIAL, BYTE = 1 | 8 | 16, 32
"""Attribute bits of tokens that are not text."""
LETTERS = ("LETTER", "SYLLABLE", "IDEOGRAPH")
"""Words of a character's Unicode name that follow its script."""
KNUTH, IN_LINE = 0x9E3779B97F4A7C15, 4
"""The multiplier of the pair table's hash; slots of a cache line."""


class Table(NamedTuple):
    """One compiled structure: a trie, a character map, a hash table, a bit array."""

    name: str  # its path in the compiled vocabulary, "texts.slots"
    kind: str
    used: NDArray[np.bool_]  # of each slot
    slot_bytes: float

    @property
    def share(self) -> float:
        """The share of slots in use."""
        return float(self.used.mean()) if self.used.size else 0.0

    @property
    def size(self) -> int:
        """Bytes of all slots."""
        return int(self.used.size * self.slot_bytes)


def token_bytes(tok: Tokenizer) -> NDArray[np.int64]:
    """int64[tokens]: bytes that each token prints, special tokens their text."""
    return np.array([len(tok.token_to_piece(token, special=True)) for token in range(tok.vocab_size)], np.int64)


def script_counts(tok: Tokenizer) -> dict[str, int]:
    """Tokens by the script of their first letter, most first; without letters: digits, signs, spaces, part of a
    character, byte, special."""
    counts: Counter[str] = Counter()
    for token, bits in enumerate(tok.attributes.tolist()):
        if bits & SPECIAL:
            counts["special"] += 1
        elif bits & BYTE:
            counts["byte"] += 1
        else:
            counts[_script_of(tok.token_to_piece(token))] += 1
    return dict(counts.most_common())


def _script_of(piece: bytes) -> str:
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        text = piece.decode("utf-8", "ignore")
        if not any(c.isalpha() for c in text):
            return "part of a character"
    for c in text:
        if c.isalpha():
            return _script(c)
    if any(c.isdigit() for c in text):
        return "digits"
    return "signs" if text.strip() else "spaces"


@lru_cache(maxsize=1 << 16)
def _script(c: str) -> str:
    name = unicodedata.name(c, "")
    first = name.split(" ")[0].split("-")[0]
    if first == "MODIFIER" or not any(word in name for word in LETTERS):
        return "other letters"
    return "Han" if first == "CJK" else first.capitalize()


def tables(tok: Tokenizer) -> list[Table]:
    """The structures of the compiled vocabulary that may have free slots, largest first."""
    found = [table for table in _walk(tok.arrays, "") if np.count_nonzero(table.used) > 1]  # a root alone is none
    return sorted(found, key=lambda table: -table.size)


def _walk(arrays: Any, path: str) -> Iterator[Table]:
    kind = _kind(arrays)
    if kind in _READERS:
        for name, what, used, slot_bytes in _READERS[kind](arrays):
            yield Table(f"{path}.{name}".strip("."), what, used, slot_bytes)
    for name in getattr(arrays, "_fields", ()):
        part = getattr(arrays, name)
        if hasattr(part, "_fields"):
            yield from _walk(part, f"{path}.{name}".strip("."))


def _kind(arrays: Any) -> str:
    """The name of a structure's class; classes that come from cached machine code are named with their module."""
    return type(arrays).__name__.rpartition(".")[2]


Read = list[tuple[str, str, NDArray[np.bool_], float]]


def _double_array(arrays: Any) -> Read:
    return [("units", "double array", arrays.units[1::4] != -1, 16)]


def _charsmap(arrays: Any) -> Read:
    return [("units", "character map (XCDA)", _reached(arrays.units), 4)]


def _reached(units: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Which units of a character map a walk can reach; the content of a free unit does not show that it is free."""
    used = np.zeros(units.size, np.bool_)
    if not units.size:
        return used
    label = units & np.uint32(0x800000FF)
    base = (units >> 10).astype(np.int64) << np.where(units & np.uint32(0x200), 8, 0)
    used[0], ends = True, base[:1]  # where the next byte is applied
    while ends.size:
        children = ends[:, None] ^ np.arange(1, 256)
        there = children < units.size
        there &= label[np.where(there, children, 0)] == np.arange(1, 256)
        nodes = np.unique(children[there])
        nodes = nodes[~used[nodes]]
        used[nodes] = True
        ends = nodes ^ base[nodes]
        values = ends[(units[nodes] & np.uint32(0x100)) != 0]
        used[values[values < units.size]] = True
    return used


def _pair_table(arrays: Any) -> Read:
    bits = np.unpackbits(arrays.filter.view(np.uint8)).astype(np.bool_)
    return [("slots", "pairs", arrays.slots[::2] != 0, 16), ("filter", "filter of pairs", bits, 1 / 8)]


def _bytes_table(arrays: Any) -> Read:
    return [("slots", "texts", arrays.slots != 0, 4)]


def _char_table(arrays: Any) -> Read:
    return [("slots", "characters", arrays.slots != 0, 8)]


def _seeds(arrays: Any) -> Read:
    return [("slots", "whole words", arrays.slots.reshape(-1, 4)[:, 1] != 0, 32)]


_READERS: dict[str, Callable[[Any], Read]] = {
    "BytesTable": _bytes_table,
    "CharTable": _char_table,
    "Charsmap": _charsmap,
    "DoubleArray": _double_array,
    "PairTable": _pair_table,
    "SingleTokenWords": _seeds,
}


def depths(tok: Tokenizer, name: str) -> NDArray[np.int64]:
    """int64[slots]: the depth of each node of a double array in bytes; -1: a free slot."""
    units = tok.arrays
    for part in name.split("."):
        units = getattr(units, part)
    parent = units[1::4].astype(np.int64)
    depth = np.full(parent.size, -1, np.int64)
    depth[0] = level = 0
    there = np.flatnonzero(parent >= 0)
    while there.size:
        below = depth[parent[there]] == level
        level += 1
        depth[there[below]] = level
        if not below.any():
            break
        there = there[~below]
    return depth


def pair_probes(tok: Tokenizer) -> NDArray[np.int64]:
    """int64[pairs]: cache lines that a look-up of each pair reads; empty without a pair table."""
    table = next((part for part in _parts(tok.arrays) if _kind(part) == "PairTable"), None)
    if table is None:
        return np.zeros(0, np.int64)
    keys = table.slots[::2]
    positions = np.flatnonzero(keys)
    homes = (keys[positions] * np.uint64(KNUTH) >> np.uint64(66 - table.slot_bits)).astype(np.int64)
    read: NDArray[np.int64] = (positions // IN_LINE - homes) % (1 << table.slot_bits - 2) + 1
    return read


def _parts(arrays: Any) -> Iterator[Any]:
    yield arrays
    for name in getattr(arrays, "_fields", ()):
        part = getattr(arrays, name)
        if hasattr(part, "_fields"):
            yield from _parts(part)


def bytes_per_token(
    toks: Mapping[str, Tokenizer], texts: Mapping[str, Sequence[str | bytes]]
) -> tuple[list[str], list[str], NDArray[np.float64]]:
    """(languages, vocabularies, float64[languages, vocabularies]): bytes of text for one token; more is better."""
    rates = np.empty((len(texts), len(toks)))
    for i, documents in enumerate(texts.values()):
        size = sum(len(text.encode() if isinstance(text, str) else text) for text in documents)
        for j, tok in enumerate(toks.values()):
            count = int(tok.count_batch(list(documents)).sum())
            rates[i, j] = size / count if count else np.nan
    return list(texts), list(toks), rates
