"""What Unigram's training begins with: distinct words in sentencepiece's order, and what is behind each of them.

Words begin with U+2581. Characters below the coverage are U+2585, which is in no piece, as are texts of symbols.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.train.characters import CharacterWords, characters_of
from jittok.train.counts import Counts
from jittok.train.seeding import LINE_ENDS, SPACE_FOLLOWS
from jittok.train.spm import UNKNOWN_MARK, SpmOptions, first_pieces, required_characters
from jittok.unicode.characters import SPACE_MARK_BYTES

FOLLOWED = r"[^ \n]+ ?"
"""A run and the space behind it: whether a text goes on in more than one way depends on that."""
_UNKNOWN = chr(UNKNOWN_MARK).encode()
_BOUNDARY = b"\x1f"
"""What sentencepiece puts in place of symbols; no piece has it."""


class Sentences(NamedTuple):
    """Distinct words as ranks of characters, the most frequent first, equally frequent ones by their text."""

    text: NDArray[np.int32]
    ends: NDArray[np.int64]  # [words + 1]
    counts: NDArray[np.int64]  # [words]
    lines: NDArray[np.int64]  # [words] how often each ends a line
    characters: NDArray[np.int64]  # the code point of each rank
    required: list[int]  # code points that must be pieces, the most frequent first
    last: NDArray[np.int32]  # the word at the end of the last line; empty if nobody knows

    @property
    def longest(self) -> int:
        """Characters of the longest word."""
        return int(np.diff(self.ends).max(initial=0))

    @property
    def flags(self) -> NDArray[np.uint8]:
        """uint8[words]: what is behind each."""
        return (LINE_ENDS * (self.lines > 0) + SPACE_FOLLOWS * (self.counts > self.lines)).astype(np.uint8)


def sentences_of(counts: Counts, options: SpmOptions) -> Sentences:
    """The words of counted runs (see FOLLOWED)."""
    sums = _marked(counts, options)
    texts = list(sums)
    both = np.array(list(sums.values()), np.int64).reshape(-1, 2)
    found = characters_of(_as_counts(texts, both.sum(1)))
    required = required_characters(found, options)
    known = np.zeros(0x110000, np.bool_)
    known[[*required, UNKNOWN_MARK]] = True
    rare = ~known[found.points]
    last = _parts(SPACE_MARK_BYTES + counts.last, _pattern(options))[-1] if counts.last else b""
    if rare.any():
        rows = np.unique(np.repeat(np.arange(len(texts)), np.diff(found.starts))[rare])
        kept = {chr(c) for c in required}
        for k in rows.tolist():
            ends, others = sums.pop(texts[k])
            word = _common(texts[k], kept)
            had = sums.get(word, (0, 0))
            sums[word] = (had[0] + ends, had[1] + others)
        last = _common(last, kept)
    texts = sorted(sums)
    both = np.array([sums[text] for text in texts], np.int64).reshape(-1, 2)
    order = np.argsort(-both.sum(1), kind="stable")
    texts, both = [texts[k] for k in order.tolist()], both[order]
    words = characters_of(_as_counts(texts, both.sum(1)))
    characters = np.array(sorted({UNKNOWN_MARK, *required}), np.int64)
    own = CharacterWords(np.array([ord(c) for c in last.decode()], np.int64), words.starts[:1], words.counts[:0])
    return Sentences(
        words.rows(characters), words.starts, words.counts, both[:, 0].copy(), characters, required,
        own.rows(characters),
    )  # fmt: skip


def _marked(counts: Counts, options: SpmOptions) -> dict[bytes, tuple[int, int]]:
    """Words with U+2581 in front: how often each ends a line, how often a space or a further mark is behind it."""
    raw = counts.words[: counts.starts[-1]].tobytes()
    kept = np.flatnonzero(counts.lengths)
    heads = counts.words[counts.starts[kept]]
    kept = kept[(heads != ord(" ")) & (heads != ord("\n"))]
    spaced = counts.words[counts.starts[kept + 1] - 1] == ord(" ")
    numbers = counts.counts[kept]
    if counts.unit > 1:
        numbers = np.maximum((numbers + counts.unit // 2) // counts.unit, 1)

    def some(rows: NDArray[np.bool_], less: int) -> dict[bytes, int]:
        begin, end = counts.starts[kept[rows]].tolist(), (counts.starts[kept[rows] + 1] - less).tolist()
        return dict(
            zip(
                [SPACE_MARK_BYTES + raw[i:j] for i, j in zip(begin, end, strict=True)],
                numbers[rows].tolist(),
                strict=True,
            )
        )

    ends, others = some(~spaced, 0), some(spaced, 1)
    sums = {word: (number, others.pop(word, 0)) for word, number in ends.items()}
    sums.update((word, (0, number)) for word, number in others.items())
    pattern = _pattern(options)
    if SPACE_MARK_BYTES in raw or _BOUNDARY in raw or pattern.search(raw):
        parts: dict[bytes, tuple[int, int]] = {}
        for word, (number, more) in sums.items():
            *inner, final = _parts(word, pattern)
            for part in inner:
                had = parts.get(part, (0, 0))
                parts[part] = (had[0], had[1] + number + more)
            had = parts.get(final, (0, 0))
            parts[final] = (had[0] + number, had[1] + more)
        return parts
    return sums


def _pattern(options: SpmOptions) -> re.Pattern[bytes]:
    """Texts of symbols, longer ones first."""
    symbols = sorted((text.encode() for text in first_pieces(options)[0] if text), key=len, reverse=True)
    return re.compile(b"|".join(map(re.escape, symbols)))


def _parts(word: bytes, pattern: re.Pattern[bytes]) -> list[bytes]:
    """A word cut in front of each U+2581 of its own, without symbols."""
    plain = pattern.sub(_UNKNOWN, word).replace(_BOUNDARY, _UNKNOWN)
    return [SPACE_MARK_BYTES + part for part in plain.split(SPACE_MARK_BYTES)[1:]]


def _common(word: bytes, kept: set[str]) -> bytes:
    """The word with U+2585 for other characters than those that are kept."""
    text = word.decode("utf-8", "replace")
    return "".join(c if c in kept else chr(UNKNOWN_MARK) for c in text).encode()


def _as_counts(texts: list[bytes], numbers: NDArray[np.int64]) -> Counts:
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=starts[1:])
    return Counts(np.frombuffer(b"".join(texts), np.uint8), starts, numbers)
