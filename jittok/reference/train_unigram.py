"""The parts of Unigram's training that have one right answer, literally: seeds, expected counts, best segmentations.

Source: sentencepiece, `unigram_model_trainer.cc` and `unigram_model.cc`, in 64 bits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence


def seeds(sentences: Sequence[str], valid: Callable[[str], bool], longest: int = 16) -> dict[str, int]:
    """Texts of two characters or more that go on in more than one way, with frequency times length."""
    text = "\0".join([*sentences, ""])
    following: dict[str, Counter[str]] = {}
    for start in range(len(text)):
        for size in range(2, longest + 1):
            piece = text[start : start + size]
            if start + size >= len(text) or "\0" in piece:
                break
            following.setdefault(piece, Counter())[text[start + size]] += 1
    return {
        piece: sum(behind.values()) * len(piece)
        for piece, behind in following.items()
        if len(behind) > 1 and valid(piece)
    }


def segmentations(word: str, scores: Mapping[str, float], unknown: float) -> Iterator[tuple[list[str], float]]:
    """All ways to cut a word into pieces, with their scores; a character without a piece of its own is one."""
    if not word:
        yield [], 0.0
        return
    for size in range(1, len(word) + 1):
        piece = word[:size]
        if piece not in scores and size > 1:
            continue
        score = scores.get(piece, unknown)
        for rest, sum_ in segmentations(word[size:], scores, unknown):
            yield [piece, *rest], score + sum_


def expected(words: Mapping[str, int], scores: Mapping[str, float], unknown: float) -> dict[str, float]:
    """How often each piece is expected over all segmentations of all words."""
    sums: dict[str, float] = dict.fromkeys(scores, 0.0)
    first = next(iter(scores))
    for word, count in words.items():
        ways = list(segmentations(word, scores, unknown))
        total = sum(math.exp(score) for _, score in ways)
        for pieces, score in ways:
            for piece in pieces:
                sums[piece if piece in scores else first] += count * math.exp(score) / total
    return sums
