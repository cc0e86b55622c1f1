"""Tables of the special tokens that `partition` cuts out of a text, for one setting of `parse_special`."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.libraries import ranges
from jittok.common.unicode.tables import UNICODE_SIZE
from jittok.kernels.jit import I32, U8, frozen
from jittok.kernels.structures.double_array import NO_VALUE, DoubleArray, build_double_array
from jittok.kernels.structures.long_keys import LongKeys, long_keys
from jittok.kernels.structures.sequences import Sequences, make_sequences
from jittok.vocab import Vocab

UNKNOWN, CONTROL, LSTRIP, RSTRIP = 1, 8, 128, 256
"""llama.cpp's attribute bits that matter here."""
STRIPS_LEFT, STRIPS_RIGHT, ONLY_WORD = 1, 2, 4
UNLIKE_TEXT = STRIPS_LEFT | STRIPS_RIGHT | ONLY_WORD
GUARDED = 8
"""Literal text cannot become this token, see `search.judged`."""
MOST_BEGINNINGS = 12
"""Up to so many beginnings of tokens are searched for in 64 bytes at once."""
ANY = 256
"""In place of a second byte: tokens with this first byte end there, or go on in more than one way."""


class SpecialTokens(NamedTuple):
    """The tokens that one setting of `parse_special` admits, by rank: longest first, ties in llama.cpp's order.

    Invariant: lengths never rise with the rank. So of two overlapping occurrences the earlier one is at least as long,
    and an occurrence is free if and only if its first and its last byte are. Ranks in the trie are below ids.size.
    """

    first: U8  # [256] 1 where an admitted token begins with this byte
    few: Sequences  # the first one to three bytes of the tokens; empty for too many first bytes
    runs: I32  # [256] bytes of the longest token with this first byte, if all such tokens are runs of that byte, and
    # none strips or is guarded; else 0
    run_ranks: I32  # the rank of the longest of these that fits 0, 1 .. `runs` bytes, or NO_VALUE
    run_at: I32  # [256] the index in run_ranks where those of this byte begin
    trie: DoubleArray  # text -> rank
    ids: I32  # [ranks]
    lengths: I32  # [ranks] bytes
    strips: (
        U8  # [ranks] STRIPS_LEFT | STRIPS_RIGHT | ONLY_WORD | GUARDED; followed by `word_bits` if a token is ONLY_WORD
    )
    any_strips: int  # whether one of them strips, or matches words only
    long: LongKeys  # the long tokens, which are in the trie, too


def compile_special(vocab: Vocab, parse_special: bool) -> SpecialTokens:
    """The tokens that are cut out of a text: user-defined ones always, control and unknown ones with
    `parse_special`."""
    admitted = vocab.special_tokens
    if not parse_special:
        admitted = admitted[vocab.attributes[admitted] & (CONTROL | UNKNOWN) == 0]
    return build_special(vocab, admitted)


def build_special(vocab: Vocab, admitted: NDArray[np.int32], guarded: frozenset[int] = frozenset()) -> SpecialTokens:
    """Tables of the tokens `admitted`, int32[ranks], which are in llama.cpp's order. guarded: those that literal text
    cannot become."""
    texts = [
        vocab.token_bytes[vocab.token_offsets[i] : vocab.token_offsets[i + 1]].tobytes() for i in admitted.tolist()
    ]
    attributes = vocab.attributes[admitted]
    strips = np.where(attributes & LSTRIP, STRIPS_LEFT, 0) | np.where(attributes & RSTRIP, STRIPS_RIGHT, 0)
    strips |= np.where(np.isin(admitted, sorted(guarded)), GUARDED, 0)
    return tables_of(texts, admitted, strips)


def tables_of(texts: list[bytes], ids: NDArray[Any], strips: NDArray[Any]) -> SpecialTokens:
    """Tables of tokens, longest first: their texts, ids, and the flags of `SpecialTokens.strips`."""
    lengths = np.fromiter(map(len, texts), np.int32, len(texts))
    if np.any(lengths[1:] > lengths[:-1]):
        raise AssertionError("special tokens do not come longest first")
    seconds: dict[int, set[int]] = {}
    for text in filter(None, texts):
        seconds.setdefault(text[0], set()).add(text[1] if len(text) > 1 else ANY)
    first = np.zeros(256, np.uint8)
    first[list(seconds)] = 1
    few = _beginnings(texts, seconds)
    runs = _runs(texts, strips)
    data, offsets = np.frombuffer(b"".join(texts), np.uint8), np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return SpecialTokens(
        frozen(first, np.uint8),
        make_sequences(few if len(few) <= MOST_BEGINNINGS else ()),
        *runs,
        build_double_array(data, offsets, np.arange(len(texts), dtype=np.int32)),
        frozen(ids, np.int32),
        frozen(lengths, np.int32),
        frozen(np.append(strips, word_bits()) if (strips & ONLY_WORD).any() else strips, np.uint8),
        int((strips & UNLIKE_TEXT).any()),
        long_keys({text: rank for rank, text in enumerate(texts)}),
    )


@cache
def word_bits() -> NDArray[np.uint8]:
    """uint8[0x110000 / 8]: a bit for each code point that the regex crate's `\\w` matches, lowest first."""
    members = np.zeros(UNICODE_SIZE, np.uint8)
    for first, last in ranges("word_crate"):
        members[first : last + 1] = 1
    return np.packbits(members, bitorder="little")


def _beginnings(texts: list[bytes], seconds: dict[int, set[int]]) -> list[bytes]:
    """The beginnings of all tokens, one to three bytes each. If there are more than MOST_BEGINNINGS of two bytes, the
    first bytes with the most second bytes are left at one byte. Two letters, which are frequent in texts, are extended
    by a third byte if it is the same in all tokens."""
    kept = {byte: {ANY} if ANY in then else then for byte, then in seconds.items()}
    for byte in sorted(kept, key=lambda byte: -len(kept[byte])):
        if sum(map(len, kept.values())) <= MOST_BEGINNINGS:
            break
        kept[byte] = {ANY}
    found = [bytes([byte] if then == ANY else [byte, then]) for byte in sorted(kept) for then in sorted(kept[byte])]
    for k, text in enumerate(found):
        longer = {each[:3] for each in texts if each.startswith(text)}
        if len(text) == 2 and text.isalpha() and len(longer) == 1:
            found[k] = longer.pop()
    return found


def _runs(texts: list[bytes], strips: NDArray[Any]) -> tuple[I32, I32, I32]:
    """`SpecialTokens.runs`, .run_ranks and .run_at."""
    runs, run_at = np.zeros(256, np.int32), np.zeros(256, np.int32)
    ranks: list[int] = []
    others = {text[0] for text in texts if text and text.count(text[0]) < len(text)}
    others |= {texts[k][0] for k in np.flatnonzero(strips[: len(texts)] & GUARDED).tolist() if texts[k]}
    for byte in sorted({text[0] for text in texts if text} - others) if not (strips & UNLIKE_TEXT).any() else []:
        by_length = {len(text): rank for rank, text in reversed(list(enumerate(texts))) if text and text[0] == byte}
        runs[byte], run_at[byte] = max(by_length), len(ranks)
        ranks.append(NO_VALUE)
        for length in range(1, max(by_length) + 1):
            ranks.append(by_length.get(length, ranks[-1]))
    return frozen(runs, np.int32), frozen([*ranks, NO_VALUE], np.int32), frozen(run_at, np.int32)
