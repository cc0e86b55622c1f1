"""The model of a file other than GGUF: ids of one pre-token, with a cache.

>>> import json
>>> from jittok.files import read_pipeline
>>> model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
>>> word = word_model(read_pipeline(json.dumps({"model": model}).encode()))
>>> word("abab")  # (id, first byte, end)
[(2, 0, 2), (2, 2, 4)]
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

from jittok.common.pipeline import models
from jittok.common.pipeline.pipeline import Pipeline
from jittok.reference.models import bpe, rwkv, ugm, wpm
from jittok.reference.models.watch import Model, Part, Watch

CACHED_WORDS = 1 << 16
"""Limit of words whose ids are cached."""
LONG_WORD = 1 << 13
"""Characters of a word from which on its ids are computed without structures of hundreds of bytes per character."""


class Word:
    """An encoder of words with a cache. Starts and ends of spans are ascending."""

    def __init__(self, model: Model) -> None:
        self._model, self._known = model, dict[str, list[Part]]()

    def __call__(self, word: str, watch: Watch | None = None) -> list[Part]:
        """The ids, each with its bytes of the word. `watch` sees how they are found."""
        if watch is not None:
            return self._model.encode(word, watch)
        found = self._known.get(word)
        if found is None:
            found = self._model.encode(word)
            if len(word) < 64 and len(self._known) < CACHED_WORDS:
                self._known[word] = found
        return found

    def ids(self, word: str, out: array[int]) -> None:
        """Add the ids to `out`."""
        if len(word) >= LONG_WORD and self._model.long is not None:
            self._model.long(word, out)
        else:
            out.extend(token for token, _, _ in self(word))


def word_model(pipeline: Pipeline) -> Word:
    """What makes ids of a word."""
    makers: dict[type, Callable[[Pipeline, Any], Model]] = {
        models.Merges: bpe.merges_model,
        models.Ranks: bpe.ranks_model,
        models.Unigram: ugm.unigram_model,
        models.WordPiece: wpm.wordpiece_model,
        models.Words: wpm.words_model,
        models.Longest: rwkv.longest_model,
    }
    return Word(makers[type(pipeline.model)](pipeline, pipeline.model))
