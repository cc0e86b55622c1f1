"""Merging adjacent symbols by priority: a linked list of symbols and a queue of pairs.

The lowest priority goes first, the leftmost of equals. An entry of the queue becomes stale when one of its sides is
merged into another pair first, which is detected when it is popped. While both sides exist, the left one keeps its
start and the right one its position, so the pair is unchanged if and only if it still makes the same symbol.

>>> ranks = {(b"l", b"o"): 0, (b"lo", b"w"): 1, (b"o", b"w"): 2}
>>> def join(left, right):
...     return (ranks[left, right], left + right) if (left, right) in ranks else None
>>> merge(characters(b"slow"), join, lambda what, pair, symbols: print(what, pair.made, symbols.values)).values
offered b'lo' [b's', b'l', b'o', b'w']
offered b'ow' [b's', b'l', b'o', b'w']
merged b'lo' [b's', b'lo', None, b'w']
offered b'low' [b's', b'lo', None, b'w']
merged b'low' [b's', b'low', None, None]
stale b'ow' [b's', b'low', None, None]
[b's', b'low', None, None]

A queue takes hundreds of bytes per symbol, so a long word is merged in windows. Merging two adjacent tokens depends on
them alone. So a sequence of tokens is that of the whole word if each two adjacent tokens also result from some part of
the word that contains both: the first merge across their border would happen in that part too.

>>> ranks = {(0, 0): (0, 1), (1, 1): (1, 2)}
>>> merged_ids(array("i", [0] * 9), lambda left, right: ranks.get((left, right)), out := array("i"))
>>> out.tolist()
[2, 2, 0]
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from jittok.common.unicode.tables import sequence_length

Join = Callable[[Any, Any], tuple[float, Any] | None]
"""(left, right) symbols to (priority, the symbol that they make), None if they are never merged."""
Made = tuple[int, int, int]
"""A token, the index of its first symbol, and the index after its last one."""
WINDOW_SYMBOLS = 1 << 12
"""Symbols of a window."""


class UndecidedError(Exception):
    """Windows of a word do not determine its tokens."""


class Pair(NamedTuple):
    """An entry of the queue. The lowest `priority` is popped first, the leftmost of equals."""

    priority: float  # BPE: the rank; SPM: minus the score
    left: int
    right: int
    made: Any  # the symbol that both sides made when the pair was offered


class Symbols:
    """Symbols (texts or ids) as a linked list; None: merged into another."""

    def __init__(self, values: Iterable[Any]) -> None:
        self.values: list[Any] = list(values)
        self.prev = list(range(-1, len(self.values) - 1))
        self.next = [*range(1, len(self.values)), -1] if self.values else []

    @property
    def n(self) -> list[int]:
        """The length of each symbol that is a text; 0: merged into another."""
        return [len(value or b"") for value in self.values]

    def piece(self, i: int) -> bytes:
        """The text of symbol i; empty if it was merged into another."""
        return self.values[i] or b""

    def merge(self, left: int, right: int, made: Any) -> None:
        """Symbol `left` becomes `made`. The links of `right` do not change: they are not read again."""
        self.values[left], self.values[right] = made, None
        self.next[left] = self.next[right]
        if self.next[right] >= 0:
            self.prev[self.next[right]] = left

    def indices(self) -> list[int]:
        """The indices of the remaining symbols, in order."""
        return [i for i, value in enumerate(self.values) if value is not None]

    def pieces(self) -> list[Any]:
        """The remaining symbols, in order."""
        return [value for value in self.values if value is not None]

    def made(self) -> list[Made]:
        """The remaining symbols, each with the index of its first symbol and the one after its last."""
        count = len(self.values)
        return [(self.values[i], i, count if self.next[i] < 0 else self.next[i]) for i in self.indices()]


OFFERED, STALE, MERGED = "offered", "stale", "merged"
"""Events of a pair."""
Observe = Callable[[str, Pair, Symbols], None]
"""Called with OFFERED, STALE or MERGED, the pair, and the current symbols (later steps change them)."""


def characters(text: bytes) -> list[bytes]:
    """The characters of a text by their first bytes, as llama.cpp reads them; the last one may be cut off."""
    found, at = [], 0
    while at < len(text):
        size = sequence_length(text[at])
        found.append(text[at : at + size])
        at += size
    return found


def merge(symbols: Iterable[Any], join: Join, observe: Observe | None = None, *, by_result: bool = False) -> Symbols:
    """Merge until no adjacent symbols can be merged; returns the symbols.

    by_result: a popped pair counts if the left symbol and whatever follows it now make the same symbol, as in
    tokenizers; otherwise, as in llama.cpp and sentencepiece, if both its sides are unchanged.
    Source: llama.cpp, `llm_tokenizer_spm_session::tokenize`, `llm_tokenizer_bpe_session::tokenize`.
    """
    found, queue = Symbols(symbols), list[Pair]()
    values = found.values

    def offer(left: int, right: int) -> None:
        if left < 0 or right < 0:
            return
        made = join(values[left], values[right])
        if made is not None:
            pair = Pair(made[0], left, right, made[1])
            heapq.heappush(queue, pair)
            if observe:
                observe(OFFERED, pair, found)

    for right in range(1, len(values)):
        offer(right - 1, right)
    while queue:
        pair = heapq.heappop(queue)
        left = pair.left
        if by_result:
            pair = pair._replace(right=found.next[left])
        right = pair.right
        made = None if right < 0 or values[left] is None or values[right] is None else join(values[left], values[right])
        if made is None or made[1] != pair.made:
            if observe:
                observe(STALE, pair, found)
            continue
        found.merge(left, right, pair.made)
        if observe:
            observe(MERGED, pair, found)
        offer(found.prev[left], left)
        offer(left, found.next[left])
    return found


def merged(symbols: Iterable[Any], join: Join, observe: Observe | None = None) -> list[Made]:
    """The tokens that tokenizers' merging leaves of symbols."""
    return merge(symbols, join, observe, by_result=True).made()


def merged_ids(symbols: array[int], join: Join, out: array[int]) -> None:
    """Add the tokens of `merged` to `out`; in windows if the word is long."""
    if len(symbols) <= 2 * WINDOW_SYMBOLS:
        out.extend(token for token, _, _ in merged(symbols, join))
        return
    known = len(out)
    try:
        out.extend(
            token for token, _, _ in by_windows(lambda i, j: merged(symbols[i:j], join), len(symbols), WINDOW_SYMBOLS)
        )
    except UndecidedError:
        del out[known:]
        out.extend(token for token, _, _ in merged(symbols, join))


def by_windows(tokens: Callable[[int, int], Sequence[Made]], size: int, window: int, after: int = 0) -> Iterator[Made]:
    """The tokens of a word of `size` symbols. tokens(i, j): the tokens of symbols[i:j], counted from i.

    after: how many symbols before j may differ because the word does not end there. Each window begins with the last
    token of the one before, and must find it again. UndecidedError if no window does.
    """
    last: Made | None = None
    width = window
    while True:
        start = 0 if last is None else last[1]
        stop = min(start + width, size)
        found = [(token, start + i, start + j) for token, i, j in tokens(start, stop)]
        kept = found if stop == size else [made for made in found if made[2] <= stop - max(width // 4, after)]
        known = last is None or found[:1] == [last]
        if known and (stop == size or len(kept) > 1):
            yield from kept[last is not None :]
            if stop == size:
                return
            last, width = kept[-1], window
        elif stop == size:
            raise UndecidedError
        else:
            width *= 2
