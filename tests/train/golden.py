"""The recorded merges of Hugging Face's BpeTrainer after one function: what a trainer makes of a set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jittok.kernels.inputs import documents
from jittok.train.bpe import Options, train_counts
from jittok.train.counting.counter import Counter
from jittok.train.counting.counts import of_table
from jittok.train.counting.splitters import cutter_of


def train_golden(
    texts: Sequence[str],
    size: int,
    pre: str = "gpt-2",
    min_frequency: int = 0,
    special: Sequence[str] = (),
    alphabet: str = "bytes",
    max_token_length: int | None = None,
    threshold: int | None = None,
) -> tuple[list[str], Any]:
    """(texts of all ids in the alphabet of bytes, merges as pairs of ids)."""
    counter = Counter(cutter_of(pre))
    for docs in documents(texts):
        counter.add(docs)
    options = Options(
        size=size, pre=pre, like="hf", min_frequency=min_frequency, special=tuple(special), alphabet=alphabet,
        max_token_length=max_token_length,
    )  # fmt: skip
    made = train_counts(of_table(counter.table), options, threshold=threshold)
    return made.texts, made.merges.pairs
