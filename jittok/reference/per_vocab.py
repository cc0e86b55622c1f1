"""What a reference computes once for a vocabulary and forgets together with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from jittok.vocab import Vocab

T = TypeVar("T")


def per_vocab(compute: Callable[[Vocab], T]) -> Callable[[Vocab], T]:
    """Decorator: remember the value for each vocabulary while that lives (the value must not hold the vocabulary)."""
    known: WeakKeyDictionary[Vocab, T] = WeakKeyDictionary()

    @wraps(compute)
    def remembered(vocab: Vocab) -> T:
        if vocab not in known:
            known[vocab] = compute(vocab)
        return known[vocab]

    return remembered


@per_vocab
def scores(vocab: Vocab) -> list[float]:
    """The scores as Python's floats, which hold every float32 exactly."""
    return vocab.scores.tolist()


@per_vocab
def attributes(vocab: Vocab) -> list[int]:
    """The final attributes as Python's integers."""
    return vocab.attributes.tolist()


@per_vocab
def file_attributes(vocab: Vocab) -> list[int]:
    """The attributes as the file gives them."""
    return vocab.file_attributes.tolist()
