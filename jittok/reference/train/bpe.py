"""Training of byte-level BPE, step by step: count words, then count pairs and merge the best, repeatedly.

Source: Hugging Face tokenizers, `BpeTrainer` (counts in Python's integers); words are llama.cpp's.

>>> texts, merges = learn(Counter({"low": 5, "lower": 2, "newest": 6}), 12, alphabet="words")
>>> texts
['e', 'l', 'n', 'o', 'r', 's', 't', 'w', 'we', 'lo', 'ewe', 'newe']
>>> merges[0]  # w and e: twice in "lower", six times in "newest"
MergeStep(left=7, right=0, id=8, times=8, done=8)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.kernels.pretokenize.definition import pre_type, split
from jittok.vocab.keys import pre_names


class MergeStep(NamedTuple):
    """One merge."""

    left: int
    right: int
    id: int
    times: int
    done: int


def count_words(texts: Iterable[bytes], pre: str) -> Counter[str]:
    """Byte-level words with their counts."""
    kind = pre_type(pre_names()[pre]["pre_type"])
    return Counter(word.decode() for text in texts for word in split(text, kind))


def learn(
    words: Counter[str],
    size: int,
    special: Sequence[str] = (),
    min_frequency: int = 0,
    alphabet: str = "bytes",
    longest: int | None = None,
) -> tuple[list[str], list[MergeStep]]:
    """(texts of all ids, merges). longest: limit of symbols of a merged pair (two single symbols are always
    allowed)."""
    texts = list(dict.fromkeys(special))
    seen = {chr(c) for c in CHARACTER_OF_BYTE} if alphabet == "bytes" else {c for word in words for c in word}
    texts += sorted(seen - set(texts))
    ids = {text: number for number, text in enumerate(texts)}
    lines = Counter({tuple(ids[c] for c in word): count for word, count in words.items()})
    return merge_lines(lines, texts, size, min_frequency, longest, True)


def merge_lines(
    counted: Counter[tuple[int, ...]],
    texts: list[str],
    size: int,
    min_frequency: int = 0,
    longest: int | None = None,
    shared: bool = False,
) -> tuple[list[str], list[MergeStep]]:
    """The same of lines of ids. shared: a text that exists is merged to its id; else such a pair is passed over."""
    ids = {text: number for number, text in enumerate(texts)}
    lengths = dict.fromkeys(range(len(texts)), 1)
    lines = [(list(line), count) for line, count in counted.items()]
    steps: list[MergeStep] = []
    while len(texts) < size:
        pairs: Counter[tuple[int, int]] = Counter()
        for line, count in lines:
            for a, b in pairwise(line):
                length = lengths[a] + lengths[b]
                if not shared and texts[a] + texts[b] in ids:
                    continue
                if longest is None or length < longest or length == 2:
                    pairs[a, b] += count
        if not pairs:
            break
        (a, b), best = min(pairs.items(), key=lambda item: (-item[1], item[0]))
        if best < max(1, min_frequency):
            break
        text = texts[a] + texts[b]
        if text not in ids:
            ids[text] = len(texts)
            texts.append(text)
        c, done = ids[text], 0
        lengths[c] = lengths[a] + lengths[b]
        for line, count in lines:
            at = 0
            while at < len(line) - 1:
                if line[at] == a and line[at + 1] == b:
                    line[at : at + 2] = [c]
                    done += count
                at += 1
        steps.append(MergeStep(a, b, c, best, done))
    return texts, steps
