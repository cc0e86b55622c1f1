"""What Unigram's training begins with: distinct words in sentencepiece's order, and their parts.

Words begin with U+2581. Characters below the coverage are U+2585, which is in no piece, as are texts of symbols.

Parts are what no piece reaches across, each once. Which pieces begin at a character is kept for the characters of
these parts alone: a corpus has far fewer of them than its words have characters. Words know which character of which
part each of theirs is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.characters import SPACE_MARK_BYTES
from jittok.common.unicode.tables import UNICODE_SIZE
from jittok.errors import CorpusError, InWords
from jittok.kernels.jit import I32, I64, U8, U64, OutI32, OutI64, as_int64, helper, kernel
from jittok.kernels.structures.bytes_table import KEYS
from jittok.train.counting.characters import BLOCK, CharacterWords, all_text, blocks, characters_of, texts_of
from jittok.train.counting.counter import flat_words
from jittok.train.counting.counts import Counts, made_counts
from jittok.train.pairs import ABSENT, ANY, BYTE, SAME, mixed
from jittok.train.spm import BOUNDARY, UNKNOWN_MARK, SpmOptions, WordSymbols, marked, required_characters

NO_PIECE = 1 << 18
"""In the kind of a character that is in no piece."""
NOTHING, SEVERAL = -1, -2
"""First bytes after a text: none is known yet, more than one."""
END_BYTE, SPACE_BYTE = 0x00, 0xE2
ALONE = 254
"""The class of a character that is a part of its own; others have that of their script."""
STEP = 1 << 14
"""Words of one call of a kernel."""
FIRST_SLOTS = 1 << 16
NEED_SLOTS = -1
MOST_CHARACTERS = 1 << 30
"""Of parts. Their offsets have 32 bits, and some STEP words are taken between two checks."""
EXPECTED = f"up to {MOST_CHARACTERS:,}: fewer texts, or --sample"
FOLLOWED = r"[^ \n]+ ?"
"""A run and the space after it: whether a text goes on in more than one way depends on that."""
LINE_ENDS, SPACE_FOLLOWS = 1, 2
"""After a word, as flags."""
FULL = np.uint64(0xFFFFFFFFFFFFFFFF)


class Sentences(NamedTuple):
    """Distinct words as ranks of characters, the most frequent first, equally frequent ones by their text."""

    text: NDArray[np.int32]
    ends: NDArray[np.int64]  # [words + 1]
    counts: NDArray[np.int64]  # [words]
    lines: NDArray[np.int64]  # [words] how often each ends a line
    characters: NDArray[np.int64]  # the code point of each rank
    required: list[int]  # code points that must be pieces, the most frequent first
    last: NDArray[np.int32]  # the word at the end of the last line; empty if unknown

    @property
    def longest(self) -> int:
        """Characters of the longest word."""
        return int(np.diff(self.ends).max(initial=0))

    @property
    def flags(self) -> NDArray[np.uint8]:
        """uint8[words]: what is after each."""
        return (LINE_ENDS * (self.lines > 0) + SPACE_FOLLOWS * (self.counts > self.lines)).astype(np.uint8)


def sentences_of(counts: Counts, options: SpmOptions) -> Sentences:
    """The words of counted runs (see FOLLOWED)."""
    symbols = WordSymbols(options)
    words = _marked(counts, symbols)
    found = characters_of(made_counts(words.data, words.starts, words.sums.sum(1)))
    required = required_characters(found, options)
    known = np.zeros(UNICODE_SIZE, np.bool_)
    known[[*required, UNKNOWN_MARK]] = True
    rare = np.flatnonzero(~known[found.points])
    last = _parts(SPACE_MARK_BYTES + counts.last, symbols)[-1] if counts.last else b""
    kept = {chr(c) for c in required}
    if rare.size:
        rows = np.unique(np.searchsorted(found.starts, rare, "right") - 1)
        words = words.with_others(rows, [_common(words.text(k), kept) for k in rows.tolist()])
    last = _common(last, kept)
    del found, rare
    words = words.sorted()
    texts = characters_of(made_counts(words.data, words.starts, words.sums.sum(1)))
    characters = np.array(sorted({UNKNOWN_MARK, *required}), np.int64)
    own = CharacterWords(np.array([ord(c) for c in last.decode()], np.int32), texts.starts[:1], texts.counts[:0])
    return Sentences(
        texts.rows(characters), texts.starts, texts.counts, words.sums[:, 0].copy(), characters, required,
        own.rows(characters),
    )  # fmt: skip


class _Words(NamedTuple):
    """Words one after the other."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]  # [words + 1]
    sums: NDArray[np.int64]  # [words, 2] how often each ends a line, how often a space or a further mark is after it

    def text(self, k: int) -> bytes:
        """A word."""
        return self.data[self.starts[k] : self.starts[k + 1]].tobytes()

    def detach(self, rows: NDArray[np.int64]) -> _Words:
        """Some of the words, in this order."""
        sizes = np.diff(self.starts)[rows]
        starts = np.append(0, np.cumsum(sizes))
        data = np.empty(int(starts[-1]), np.uint8)
        for first, last in blocks(starts, BLOCK):  # offsets of all bytes would take eight times as much
            positions = np.repeat(self.starts[rows[first:last]] - starts[first:last], sizes[first:last])
            data[starts[first] : starts[last]] = self.data[positions + np.arange(starts[first], starts[last])]
        return _Words(data, starts, self.sums[rows])

    def with_others(self, rows: NDArray[np.int64], texts: list[bytes]) -> _Words:
        """The words with others in place of some, which are after all now."""
        left = np.ones(self.starts.size - 1, np.bool_)
        left[rows] = False
        return _joined([self.detach(np.flatnonzero(left)), _Words(*flat_words(texts), self.sums[rows])])

    def sorted(self) -> _Words:
        """Each word once, the most frequent first, equally frequent ones by their text."""
        order, new = text_order(self.data, self.starts)
        firsts = np.flatnonzero(new)
        sums = np.add.reduceat(self.sums[order], firsts) if firsts.size else self.sums
        by_count = np.argsort(-sums.sum(1), kind="stable")
        return self.detach(order[firsts][by_count])._replace(sums=sums[by_count])


def _joined(parts: list[_Words]) -> _Words:
    ends = np.cumsum([0, *(int(part.starts[-1]) for part in parts)])
    starts = [part.starts[:-1] + end for part, end in zip(parts, ends, strict=False)]
    data, sums = np.concatenate([part.data for part in parts]), np.concatenate([part.sums for part in parts])
    return _Words(data, np.append(np.concatenate(starts), ends[-1]), sums)


def text_order(data: NDArray[np.uint8], starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(words by their bytes, bool[words] whether each of these is another one than that before it).

    All words by their first eight bytes, then those that are equal so far by the next eight, and so on.
    """
    padded = np.append(data, np.zeros(8, np.uint8))
    eight = np.ndarray((data.size + 1,), ">u8", padded, strides=(1,))  # at each offset, eight bytes as a number
    sizes, zeros = np.diff(starts), bool((data == 0).any())
    order, new, at = np.arange(sizes.size), np.zeros(sizes.size, np.bool_), 0
    new[:1] = True
    where, group = order.copy(), np.zeros(sizes.size, np.int64)  # indices of `order` of words that are equal so far
    while where.size:
        rows = order[where]
        rest = np.minimum(sizes[rows] - at, 8)
        keys = eight[np.minimum(starts[:-1][rows] + at, data.size)].astype(np.uint64)
        keys &= ~(FULL >> (8 * np.maximum(rest, 0)).astype(np.uint64)) | np.where(rest >= 8, FULL, np.uint64(0))
        turn = np.argsort(keys, kind="stable") if at == 0 else np.lexsort((keys, group))
        if zeros:  # a byte of 0 and none at all are not the same
            turn = np.lexsort((rest, keys, group))
        rows, keys, rest, group = rows[turn], keys[turn], rest[turn], group[turn]
        order[where] = rows
        other = np.ones(rows.size, np.bool_)
        other[1:] = (keys[1:] != keys[:-1]) | (rest[1:] != rest[:-1]) | (group[1:] != group[:-1])
        new[where] |= other
        group = np.cumsum(other)
        again = (rest == 8) & (np.bincount(group)[group] > 1)
        where, group, at = where[again], group[again], at + 8
    return order, new


def _marked(counts: Counts, symbols: WordSymbols) -> _Words:
    """Words with U+2581 before, some of them twice."""
    parts = [_Words(np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros((0, 2), np.int64))]
    for first, last in blocks(counts.starts, BLOCK):
        ends = counts.starts[first : last + 1] - counts.starts[first]
        runs, numbers = counts.words[counts.starts[first] : counts.starts[last]], counts.counts[first:last]
        words, ends, numbers = marked(runs, ends, numbers)
        if counts.unit > 1:
            numbers = np.maximum((numbers + counts.unit // 2) // counts.unit, 1)
        spaced = words[ends[1:] - 1] == ord(" ")
        left = np.ones(words.size, np.bool_)
        left[ends[1:][spaced] - 1] = False
        sums = np.stack([np.where(spaced, 0, numbers), np.where(spaced, numbers, 0)], axis=1)
        own = _Words(words[left], ends - np.append(0, np.cumsum(spaced)), sums)
        parts += _with_parts(own, symbols)
    return _joined(parts)


def _with_parts(words: _Words, symbols: WordSymbols) -> list[_Words]:
    """The words; those with symbols or U+2581 of their own are cut, and are after the others."""
    if not all_text(words.data, words.starts):
        texts = [text.encode() for text in texts_of(words.data, words.starts)]
        words = _Words(*flat_words(texts), words.sums)
    data, mark = np.append(words.data, np.zeros(2, np.uint8)), SPACE_MARK_BYTES
    marks = (data[:-2] == mark[0]) & (data[1:-1] == mark[1]) & (data[2:] == mark[2])
    marks[words.starts[:-1]] = False  # that before
    odd = np.flatnonzero(marks | (words.data == BOUNDARY[0]))
    odd = np.union1d(np.searchsorted(words.starts, odd, "right") - 1, symbols.held(words.data, words.starts))
    if not odd.size:
        return [words]
    texts, sums = [], []
    for k in odd.tolist():
        *inner, final = _parts(words.text(k), symbols)
        texts += [*inner, final]
        sums += [(0, int(words.sums[k].sum()))] * len(inner) + [tuple(words.sums[k].tolist())]
    left = np.ones(words.starts.size - 1, np.bool_)
    left[odd] = False
    return [words.detach(np.flatnonzero(left)), _Words(*flat_words(texts), np.array(sums, np.int64).reshape(-1, 2))]


def _parts(word: bytes, symbols: WordSymbols) -> list[bytes]:
    """A word cut before each U+2581 of its own, with BOUNDARY in place of symbols."""
    plain = symbols.pattern.sub(BOUNDARY, word)
    head, *parts = plain.split(SPACE_MARK_BYTES)
    return [head] * (head != b"") + [SPACE_MARK_BYTES + part for part in parts]


def _common(word: bytes, kept: set[str]) -> bytes:
    """The word with U+2585 for other characters than those that are kept."""
    text = word.decode("utf-8", "replace")
    return "".join(c if c in kept else chr(UNKNOWN_MARK) for c in text).encode()


# ---- parts


@helper
def merged_after(after: int, byte: int) -> int:
    """What is after a text of which one is after some, the other after others."""
    return byte if after in (NOTHING, byte) else SEVERAL


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


class WordRows(NamedTuple):
    """Words as ranks of characters, and what a kernel needs of words and characters."""

    text: I32
    ends: I64  # [words + 1]
    counts: I64  # [words]
    flags: U8  # [words] LINE_ENDS, SPACE_FOLLOWS
    classes: I32  # [characters]
    leads: I32  # [characters] the first byte of each


class PartTable(NamedTuple):
    """The parts so far. Slots of the table are a power of two, at most half of them full."""

    table: OutI32  # [slots] number of a part, or ABSENT
    text: OutI32  # [characters of the words]
    ends: OutI64  # [characters of the words + 1]
    sums: OutI64  # [characters of the words]
    after: OutI32  # [characters of the words]
    secret: U64  # [2] see `bytes_table.KEYS`


@helper
def _find_part(parts: PartTable, number: int, text: I32, first: int, size: int, h: np.uint64) -> int:
    """The part whose characters are text[first:first + size], of which h is the hash; it is entered as `number` if it
    is none of the parts so far."""
    mask = parts.table.size - 1
    slot = np.int64(h & np.uint64(mask))
    while True:
        k = as_int64(parts.table[slot])
        if k == ABSENT:
            parts.table[slot], parts.sums[number], parts.after[number] = number, 0, NOTHING
            begin = parts.ends[number]
            for n in range(size):
                parts.text[begin + n] = text[first + n]
            parts.ends[number + 1] = begin + size
            return number
        begin, n = parts.ends[k], 0
        if parts.ends[k + 1] - begin == size:
            while n < size and parts.text[begin + n] == text[first + n]:
                n += 1
            if n == size:
                return k
        slot = slot + 1 & mask


@kernel
def share_parts(words: WordRows, parts: PartTable, where: OutI32, state: OutI64) -> int:
    """Parts of words from state[0] on, some STEP of them: 0, or NEED_SLOTS. Linear in their characters.

    where: int32[characters of the words] the character of a part that each is
    state: int64[2] the next word, parts so far
    """
    text, seed, factor, number = words.text, parts.secret[0], parts.secret[1], state[1]
    for w in range(state[0], min(state[0] + STEP, words.counts.size)):
        i, stop = words.ends[w], words.ends[w + 1]
        if 2 * (number + stop - i) > parts.table.size:
            return NEED_SLOTS
        while i < stop:
            j, h = i + 1, mixed(seed, as_int64(text[i]), factor)
            while j < stop and not _apart(words.classes, text[j - 1], text[j]):
                h = mixed(h, as_int64(text[j]), factor)
                j += 1
            k = _find_part(parts, number, text, i, j - i, h)
            number = max(number, k + 1)
            parts.sums[k] += words.counts[w]
            after = as_int64(parts.after[k])
            if j < stop:
                after = merged_after(after, as_int64(words.leads[text[j]]))
            else:
                if words.flags[w] & LINE_ENDS:
                    after = merged_after(after, END_BYTE)
                if words.flags[w] & SPACE_FOLLOWS:
                    after = merged_after(after, SPACE_BYTE)
            parts.after[k] = after
            for n in range(j - i):
                where[i + n] = parts.ends[k] + n
            i = j
        state[0], state[1] = w + 1, number
    return 0


@kernel
def enter_parts(parts: PartTable, number: int) -> int:
    """Enters parts 0 .. number - 1, which are all different, into an empty table."""
    mask = parts.table.size - 1
    for k in range(number):
        h = parts.secret[0]
        for i in range(parts.ends[k], parts.ends[k + 1]):
            h = mixed(h, as_int64(parts.text[i]), parts.secret[1])
        slot = np.int64(h & np.uint64(mask))
        while parts.table[slot] != ABSENT:
            slot = slot + 1 & mask
        parts.table[slot] = k
    return number


def shared_parts(words: Sentences, kinds: NDArray[np.int32], leads: NDArray[np.int32]) -> Shared:
    """The parts of all words. kinds: of each character, as in `pairs.SymbolTexts`, or NO_PIECE; leads: its first
    byte."""
    alone = (kinds >> 17 & 1 == 1) | (kinds & NO_PIECE != 0)
    classes = np.where(alone, ALONE, kinds >> 1 & BYTE).astype(np.int32)
    rows = WordRows(words.text, words.ends, words.counts, words.flags, classes, leads)
    size, state = words.text.size, np.zeros(2, np.int64)
    where, text, after = (np.empty(size, np.int32) for _ in range(3))  # pages that nothing is written to are no memory
    ends, sums = np.empty(size + 1, np.int64), np.empty(size, np.int64)
    ends[0] = 0
    parts = PartTable(np.full(FIRST_SLOTS, ABSENT, np.int32), text, ends, sums, after, KEYS)
    while state[0] < words.counts.size:
        if int(ends[state[1]]) > MOST_CHARACTERS:
            raise CorpusError("texts", InWords(f"parts of words of {int(ends[state[1]]):,} characters"), EXPECTED)
        if share_parts(rows, parts, where, state) == NEED_SLOTS:
            longest = int(words.ends[state[0] + 1] - words.ends[state[0]])
            slots = max(2 * parts.table.size, 1 << (2 * (int(state[1]) + longest)).bit_length())
            parts = parts._replace(table=np.full(slots, ABSENT, np.int32))
            enter_parts(parts, int(state[1]))
    number = int(state[1])
    ends = ends[: number + 1].copy()
    return Shared(text[: int(ends[-1])].copy(), ends, sums[:number].copy(), after[:number].copy(), where)
