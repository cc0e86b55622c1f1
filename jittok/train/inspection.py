"""Seeing a vocabulary learn: how a token came to be, and what each size is worth on other texts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from jittok.common.unicode.tables import BYTE_OF_CHARACTER
from jittok.errors import CorpusError, InWords
from jittok.train.bpe import Learned, Trained, is_in_alphabet
from jittok.train.counting.count import How, count
from jittok.train.counting.counts import Counts, to_bytes, to_text
from jittok.train.counting.splitters import REGEX
from jittok.train.learner import MergeRules, WordCounts, learn

SHOWN = 10
MOST_WORDS = 2000
"""Words that hold a token's bytes, the most frequent first, that are looked at for whether they made it."""


def byte_ids(made: Learned) -> Any:
    """int32[256]: the id of each byte, -1 without one."""
    ids = np.full(256, -1, np.int32)
    for token, text in enumerate(made.texts[: made.first]):
        if len(text) == 1 and ord(text) in BYTE_OF_CHARACTER:
            ids[BYTE_OF_CHARACTER[ord(text)]] = token
    return ids


def curve(trained: Trained, texts: Any, sizes: list[int] | None = None) -> dict[int, float]:
    """Bytes a token of texts under each size of the vocabulary: one run over all merges gives all sizes, exactly as
    encoding with each would."""
    made = trained.learned
    pattern = trained.pre.startswith(REGEX)
    how = How(pre_regex=trained.pre.removeprefix(REGEX)) if pattern else How(pre=trained.pre)
    counts = count(texts, how=how, like=how.like if made.options is None else made.options.like)
    if not len(counts):
        raise CorpusError("--held-out", InWords("no text"), "texts that can be encoded")
    known = {to_bytes(text): token for token, text in enumerate(made.special) if is_in_alphabet(text)}
    forced = learn(
        WordCounts(counts.starts, counts.counts, counts.words, byte_ids(made)), made.first, made.size,
        MergeRules(
            known=known, forced=made.merges.pairs,
            first_texts=[to_bytes(text) if is_in_alphabet(text) else b"" for text in made.texts[: made.first]],
        ),
    )  # fmt: skip
    total = int((counts.lengths * counts.counts).sum())
    left = total - np.concatenate([[0], np.cumsum(forced.done)])
    if sizes is None:
        sizes = [size for size in (300 * 2**k for k in range(20)) if made.first <= size < made.size] + [made.size]
    made_at = (
        np.concatenate([[made.first], np.maximum.accumulate(made.merges.ids) + 1]) if made.merges.ids.size else [0]
    )
    rows = np.searchsorted(made_at, sizes, "right") - 1
    return {size: total / max(int(left[max(row, 0)]), 1) for size, row in zip(sizes, rows.tolist(), strict=True)}


def find_token(trained: Trained, token: str | int) -> int:
    """The id of a token, given by its id or its text, as it is or in the alphabet of bytes. CorpusError without one."""
    texts = trained.learned.texts
    if isinstance(token, int):
        if 0 <= token < len(texts):
            return token
        raise CorpusError("--explain", token, f"an id below {len(texts)}")
    for text in (token, to_text(token.encode())):
        if text in texts:
            return texts.index(text)
    raise CorpusError("--explain", token, "a token of the vocabulary")


def explain(trained: Trained, words: Counts, token: str | int) -> dict[str, Any]:
    """How a token came to be: the merges that lead to it, its count then, and the most frequent words that made it.

    `text` is all of it in words.
    """
    made, number = trained.learned, find_token(trained, token)
    merges = {made_id: k for k, made_id in enumerate(made.merges.ids.tolist())}
    steps: list[int] = []
    todo = [number]
    while todo:
        each = merges.get(todo.pop())
        if each is not None:
            steps.append(each)
            todo += made.merges.pairs[each].tolist()
    steps = sorted(set(steps))
    found: dict[str, Any] = {"token": made.texts[number], "id": number, "steps": [], "words": []}
    rows = [f"{made.texts[number]!r} is id {number}"]
    if number not in merges:
        rows[0] += ", a special token" if number < len(made.special) else ", a byte"
    for k in steps:
        a, b = made.merges.pairs[k].tolist()
        step = {
            "merge": k,
            "left": made.texts[a],
            "right": made.texts[b],
            "count": int(made.merges.counts[k]) // made.unit,
        }
        found["steps"].append(step)
        rows.append(f"  merge {k}: {step['left']} {step['right']}, which were adjacent {step['count']:,} times")
    if number in merges:
        found["words"] = [[to_text(word), n] for word, n in _makers(made, words, merges[number])]
        rows.append("  in words such as " + ", ".join(f"{word} ({n:,})" for word, n in found["words"]))
        after = merges[number] + 1
        into = [
            made.texts[c]
            for (a, b), c in zip(made.merges.pairs[after:].tolist(), made.merges.ids[after:].tolist(), strict=True)
            if number in (a, b)
        ]
        found["part_of"] = into[:SHOWN]
        if into:
            rows.append(f"  later a part of {len(into):,} tokens: {' '.join(into[:SHOWN])}")
    found["text"] = "\n".join(rows)
    return found


def _makers(made: Learned, words: Counts, merge: int) -> list[tuple[bytes, int]]:
    """The most frequent words in which this merge was done."""
    text = made.raw(int(made.merges.ids[merge]))
    holding = sorted(((n, word) for word, n in words.items() if text in word), key=lambda row: (-row[0], row[1]))
    ranks = {tuple(pair): k for k, pair in enumerate(made.merges.pairs[: merge + 1].tolist())}
    ids, made_ids = byte_ids(made).tolist(), made.merges.ids.tolist()
    found = []
    for n, word in holding[:MOST_WORDS]:
        line = [ids[byte] for byte in word]
        done = False
        while not done:
            best = min((ranks.get(pair, merge + 1) for pair in pairwise(line)), default=merge + 1)
            if best >= merge:
                break
            a, b = made.merges.pairs[best].tolist()
            at = 0
            while at < len(line) - 1:
                if (line[at], line[at + 1]) == (a, b):
                    line[at : at + 2] = [made_ids[best]]
                at += 1
        if tuple(made.merges.pairs[merge].tolist()) in pairwise(line):
            found.append((word, n // words.unit))
            if len(found) == SHOWN:
                break
    return found
