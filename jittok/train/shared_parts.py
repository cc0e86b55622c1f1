"""The parts of Unigram's words that no piece reaches across, each once.

Which pieces begin at a character is kept for the characters of these parts alone: a corpus has far fewer of them than
its words have characters. Words know which character of which part each of theirs is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import I32, I64, U8, OutI32, OutI64, as_int64, helper, kernel
from jittok.errors import CorpusError, InWords
from jittok.train.pairs import ABSENT, ANY, BYTE, SAME, mixed
from jittok.train.seed_kernels import END_BYTE, LINE_ENDS, NO_PIECE, NOTHING, SPACE_BYTE, SPACE_FOLLOWS, merged_after
from jittok.train.sentences import Sentences

ALONE = 254
"""The class of a character that is a part of its own; others have that of their script."""
STEP = 1 << 14
"""Words that a kernel looks at before it answers."""
FIRST_SLOTS = 1 << 16
NEED_SLOTS = -1
MOST_CHARACTERS = 1 << 30
"""Of parts. Their places have 32 bits, and some STEP words are taken between two looks."""
EXPECTED = f"up to {MOST_CHARACTERS:,}: fewer texts, or --sample"
SEED = np.uint64(0)


class Shared(NamedTuple):
    """Distinct parts of words, as ranks of characters."""

    text: NDArray[np.int32]
    ends: NDArray[np.int64]  # [parts + 1]
    counts: NDArray[np.int64]  # [parts]
    after: NDArray[np.int32]  # [parts] the first byte of what is after each: END_BYTE, SEVERAL ...
    where: NDArray[np.int32]  # [characters of the words] which character of `text` each is


@helper
def _apart(classes: I32, a: int, b: int) -> bool:
    """Whether no piece has these two neighbors."""
    x, y = as_int64(classes[a]), as_int64(classes[b])
    if x == ALONE or y == ALONE:  # noqa: PLR1714  kernels have no tuples of these
        return True
    return x != y and x != ANY and y != ANY and x != SAME and y != SAME  # noqa: PLR1714


@helper
def _slot(h: np.uint64, mask: int) -> int:
    return np.int64(h & np.uint64(mask))


@kernel
def share_parts(
    text: I32, ends: I64, counts: I64, flags: U8, classes: I32, leads: I32, table: OutI32, where: OutI32, out: OutI32,
    out_ends: OutI64, sums: OutI64, after: OutI32, state: OutI64,
) -> int:  # fmt: skip
    """Parts of words from state[0] on, some STEP of them: 0, or NEED_SLOTS.

    classes, leads: of each character, its class and first byte; table: int32[a power of two] parts by their hash
    state: int64[2] the next word, parts so far; out, where: [characters of the words], others one more
    """
    first, parts, mask = state[0], state[1], table.size - 1
    for w in range(first, min(first + STEP, counts.size)):
        i, stop = ends[w], ends[w + 1]
        if 2 * (parts + stop - i) > table.size:
            return NEED_SLOTS
        while i < stop:
            j, h = i + 1, mixed(SEED, as_int64(text[i]))
            while j < stop and not _apart(classes, text[j - 1], text[j]):
                h = mixed(h, as_int64(text[j]))
                j += 1
            slot, size = _slot(h, mask), j - i
            while True:
                k = as_int64(table[slot])
                if k == ABSENT:
                    k = parts
                    parts += 1
                    table[slot], sums[k], after[k] = k, 0, NOTHING
                    for n in range(size):
                        out[out_ends[k] + n] = text[i + n]
                    out_ends[k + 1] = out_ends[k] + size
                    break
                same = out_ends[k + 1] - out_ends[k] == size
                n = 0
                while same and n < size:
                    same = out[out_ends[k] + n] == text[i + n]
                    n += 1
                if same:
                    break
                slot = slot + 1 & mask
            sums[k] += counts[w]
            if j < stop:
                after[k] = merged_after(as_int64(after[k]), as_int64(leads[text[j]]))
            else:
                if flags[w] & LINE_ENDS:
                    after[k] = merged_after(as_int64(after[k]), END_BYTE)
                if flags[w] & SPACE_FOLLOWS:
                    after[k] = merged_after(as_int64(after[k]), SPACE_BYTE)
            for n in range(size):
                where[i + n] = out_ends[k] + n
            i = j
        state[0], state[1] = w + 1, parts
    return 0


@kernel
def enter_parts(text: I32, ends: I64, number: int, table: OutI32) -> int:
    """Enters so many parts, which are all different, into an empty table."""
    mask = table.size - 1
    for k in range(number):
        h = SEED
        for i in range(ends[k], ends[k + 1]):
            h = mixed(h, as_int64(text[i]))
        slot = _slot(h, mask)
        while table[slot] != ABSENT:
            slot = slot + 1 & mask
        table[slot] = k
    return number


def shared_parts(words: Sentences, kinds: NDArray[np.int32], leads: NDArray[np.int32]) -> Shared:
    """The parts of all words. kinds: of each character, as in `pairs.SymbolTexts`, or NO_PIECE; leads: its first
    byte."""
    alone = (kinds >> 17 & 1 == 1) | (kinds & NO_PIECE != 0)
    classes = np.where(alone, ALONE, kinds >> 1 & BYTE).astype(np.int32)
    size, flags = words.text.size, words.flags
    table, state = np.full(FIRST_SLOTS, ABSENT, np.int32), np.zeros(2, np.int64)
    text, where, after = (np.empty(size, np.int32) for _ in range(3))  # pages that nothing is written to are no memory
    ends, sums = np.empty(size + 1, np.int64), np.empty(size, np.int64)
    ends[0] = 0
    while state[0] < words.counts.size:
        if int(ends[state[1]]) > MOST_CHARACTERS:
            raise CorpusError("texts", InWords(f"parts of words of {int(ends[state[1]]):,} characters"), EXPECTED)
        code = share_parts(
            words.text, words.ends, words.counts, flags, classes, leads, table, where, text, ends, sums, after, state
        )
        if code == NEED_SLOTS:
            longest = int(words.ends[state[0] + 1] - words.ends[state[0]])
            table = np.full(max(2 * table.size, 1 << (2 * (int(state[1]) + longest)).bit_length()), ABSENT, np.int32)
            enter_parts(text, ends, int(state[1]), table)
    number = int(state[1])
    ends = ends[: number + 1].copy()
    return Shared(text[: int(ends[-1])].copy(), ends, sums[:number].copy(), after[:number].copy(), where)
