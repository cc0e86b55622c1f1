"""sentencepiece's BPE training, step by step, with the true maximum. Source: `bpe_model_trainer.cc`.

>>> learn({"▁low": 5, "▁lower": 2, "▁newest": 6}, 4, lambda text: "▁" not in text[1:])
['we', 'lo', '▁lo', 'ne']
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise


def learn(words: Mapping[str, int], number: int, valid: Callable[[str], bool]) -> list[str]:
    """Up to `number` pieces in their order. words: U+2585 for characters that no piece has."""
    lines = [(list(word), count) for word, count in words.items()]
    pieces: list[str] = []
    dropped: set[tuple[str, str]] = set()
    while len(pieces) < number:
        pairs: Counter[tuple[str, str]] = Counter()
        for line, count in lines:
            for pair in pairwise(line):
                if pair not in dropped and valid("".join(pair)):
                    pairs[pair] += count
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], len(pair[0] + pair[1]), (pair[0] + pair[1]).encode(), pair))
        text = "".join(best)
        if text in pieces:
            dropped.add(best)
            continue
        pieces.append(text)
        for line, _ in lines:
            at = 0
            while at < len(line) - 1:
                if (line[at], line[at + 1]) == best:
                    line[at : at + 2] = [text]
                at += 1
    return pieces
