"""A GGUF vocabulary as a `Pipeline`: llama.cpp's steps in the same form as those of other files.

The arrays of steps and models are those of the vocabulary, not copies. The reference runs these steps with their
settings (`jittok.reference`). Kernels are selected and compiled from them (`compile_pipeline` in
`jittok.kernels.models`). `info` and `compare` describe them in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline, models, steps
from jittok.common.pipeline.pipeline import FIRST_TEXT, LSTRIP, RSTRIP, SECOND_TEXT, SPECIAL, read_only_array
from jittok.vocab.types import type_of
from jittok.vocab.vocab import NO_TOKEN, Vocab

T = TypeVar("T")

UNKNOWN_BIT, CONTROL_BIT, LSTRIP_BIT, RSTRIP_BIT = 1, 8, 128, 256


class VocabFact:
    """A fact of the vocabulary, under the same name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, holder: GgufPipeline | None, owner: Any = None) -> Any:
        return self if holder is None else getattr(holder.vocab, self._name)


def _facts(count: int) -> Iterator[Any]:
    return (VocabFact() for _ in range(count))


class GgufPipeline(Pipeline, eq=False):
    """The steps of a GGUF. vocab: the vocabulary itself, with all other facts of the file."""

    vocab: Vocab | None = None
    (
        add_bos, add_eos, add_sep, add_space_prefix, attributes, eog_ids, eom_id, eot_id, fim_middle_id, fim_pad_id,
        fim_prefix_id, fim_rep_id, fim_sep_id, fim_suffix_id, fingerprint, ids, mask_id, nfc, pre, scores, sep_id,
        special_tokens, token_bytes, token_offsets, tokens, type,
    ) = _facts(26)  # fmt: skip

    @property
    def merges(self) -> int:
        """The number of merges."""
        return self.model.offsets.size - 1 if isinstance(self.model, models.PairMerges) else 0

    def merge_rank(self, token: int) -> int | None:
        """The lowest rank of a merge that results in a token, None if there is none."""
        from jittok.vocab.describe import merge_rank

        assert self.vocab is not None
        return merge_rank(self.vocab, token)


def step_of(vocab: Vocab, kind: type[T]) -> T:
    """The first step of this kind; the vocabulary must have one."""
    found = vocab.pipeline.step(kind)
    assert found is not None
    return found


def model_of(vocab: Vocab, kind: type[T]) -> T:
    """The model, which is of this kind."""
    made = vocab.pipeline.model
    assert isinstance(made, kind)
    return made


def make_pipeline(vocab: Vocab) -> GgufPipeline:
    """The steps of a vocabulary, cached by `Vocab.pipeline`."""
    kind, special = type_of(vocab), vocab.special_tokens
    sizes, pair = np.diff(vocab.token_offsets)[special], _pair(vocab)
    return GgufPipeline(
        vocab=vocab,
        source=vocab.source,
        format="gguf",
        library="llama.cpp",
        model_bytes=vocab.key_bytes,
        model_offsets=vocab.key_offsets,
        holes=read_only_array([], np.int32),
        model=kind.model(vocab),
        normalize=kind.normalize(vocab),
        split=kind.split(vocab),
        decode=(steps.JoinLlama(kind.prints(vocab), vocab.add_space_prefix, vocab.clean_spaces),),
        added_bytes=_texts_of(vocab, special),
        added_offsets=read_only_array(np.concatenate(([0], np.cumsum(sizes))), np.int64),
        added_ids=special,
        added_flags=_flags(vocab),
        single=_single(vocab),
        pair=pair,
        pair_types=() if kind.has_segments or kind.between(vocab) is None else (0,) * len(pair),
        bos_id=vocab.bos_id,
        eos_id=vocab.eos_id,
        unk_id=vocab.unk_id,
        pad_id=vocab.pad_id,
        name=vocab.name,
    )


def _single(vocab: Vocab) -> tuple[int, ...]:
    """The ids that `add_special` adds around a text. A token that the vocabulary lacks is left out (using it is an
    error)."""
    (begins, _, first), (ends, _, last) = type_of(vocab).around(vocab)
    before = (first,) if begins and first != NO_TOKEN else ()
    return (*before, FIRST_TEXT, *((last,) if ends and last != NO_TOKEN else ()))


def _pair(vocab: Vocab) -> tuple[int, ...]:
    """The template of a pair; without a separator two texts alone."""
    between = type_of(vocab).between(vocab)
    if between is None:
        return FIRST_TEXT, SECOND_TEXT
    single = _single(vocab)
    at = single.index(FIRST_TEXT) + 1
    return (*single[:at], *between, SECOND_TEXT, *single[at:])


def _flags(vocab: Vocab) -> NDArray[np.uint8]:
    bits = vocab.attributes[vocab.special_tokens]
    flags = np.where(bits & (UNKNOWN_BIT | CONTROL_BIT), SPECIAL, 0)
    flags |= np.where(bits & LSTRIP_BIT, LSTRIP, 0) | np.where(bits & RSTRIP_BIT, RSTRIP, 0)
    return read_only_array(flags, np.uint8)


def _texts_of(vocab: Vocab, tokens: NDArray[np.int32]) -> NDArray[np.uint8]:
    starts, stops = vocab.token_offsets[tokens].tolist(), vocab.token_offsets[tokens + 1].tolist()
    parts = [vocab.token_bytes[start:stop] for start, stop in zip(starts, stops, strict=True)]
    return read_only_array(np.concatenate([np.zeros(0, np.uint8), *parts]), np.uint8)
