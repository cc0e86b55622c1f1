"""Tables that a reference computes once per vocabulary, cached while the vocabulary exists.

>>> import jittok
>>> vocab = jittok.bundled("t5").vocab
>>> sizes = []
>>> count = per_vocab(lambda vocab: sizes.append(len(vocab)) or len(vocab))
>>> count(vocab), count(vocab), sizes  # computed once
(32128, 32128, [32128])
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from jittok.vocab import Vocab

T = TypeVar("T")


def per_vocab(compute: Callable[[Vocab], T]) -> Callable[[Vocab], T]:
    """Decorator: cache the value per vocabulary while that exists (the value must not reference the vocabulary)."""
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
    values: list[float] = vocab.scores.tolist()
    return values


def _integers(array: Any) -> list[int]:
    values: list[int] = array.tolist()
    return values


@per_vocab
def attributes(vocab: Vocab) -> list[int]:
    """The final attributes as Python's integers."""
    return _integers(vocab.attributes)


@per_vocab
def file_attributes(vocab: Vocab) -> list[int]:
    """The attributes as in the file."""
    return _integers(vocab.file_attributes)


@per_vocab
def piece_attributes(vocab: Vocab) -> list[int]:
    """The attributes when llama.cpp makes the pieces."""
    return _integers(vocab.piece_attributes)
