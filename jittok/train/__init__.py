"""Training: vocabularies learned from texts, exactly, the same for any threads, memory and order of files.

`counting` turns documents into distinct words with counts; `learner` merges pairs of symbols in them, for byte-level
BPE (`bpe`), sentencepiece's BPE (`spm`) and WordPiece; `unigram` prunes pieces instead.

The module can be called: `jittok.train(texts, size=32000)` is `jittok.train.train(texts, size=32000)`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from jittok.errors import CorpusError, refuse_keywords
from jittok.train.bpe import ROLES, Options, Trained, check_name, train_counts
from jittok.train.counting.count import How, count
from jittok.train.counting.counts import Counts
from jittok.train.counting.splitters import FILE, REGEX, named_pre, special_texts
from jittok.vocab.keys import pre_names

if TYPE_CHECKING:
    from typing import Unpack  # of Python 3.11

    from jittok.common.display.progress import Show
    from jittok.kernels.inputs import Texts

__all__ = ["Counts", "How", "Options", "Trained", "count", "count_files", "train"]


class TrainOptions(TypedDict, total=False):
    """Options of `train`."""

    pre: str | os.PathLike[str]
    pre_regex: str | None
    like: Literal["jittok", "hf"]
    special: Sequence[str]
    bos: str | None
    eos: str | None
    pad: str | None
    unk: str | None
    min_frequency: int
    alphabet: Literal["bytes", "seen"]
    max_token_length: int | None
    limit_alphabet: int | None
    by: Literal["occurrences", "documents"]
    sample: float
    seed: int
    threads: int | None
    memory: int | None


def train(
    texts: Texts | None = None,
    size: int = 32000,
    *,
    words: Counts | str | os.PathLike[str] | None = None,
    weights: Sequence[float] | None = None,
    name: str = "",
    progress: Show = "auto",
    **options: Unpack[TrainOptions],
) -> Trained:
    """A vocabulary of byte-level BPE, learned from texts (any that `encode_batch` takes) or from counted words.

    pre: how words are cut, any `tokenizer.ggml.pre`; default qwen2, which llama.cpp decodes byte for byte. Or the path
    of a tokenizer.json, whose pre-tokenizer then cuts (not possible for a GGUF)
    pre_regex: a custom pattern instead (not possible for a GGUF)
    like: "jittok", or "hf" for the merges of Hugging Face's BpeTrainer
    special: texts of special tokens, first ids; bos, eos, pad, unk: which of them are these
    min_frequency, alphabet ("bytes" or "seen"), max_token_length, limit_alphabet: see `Options`
    by: "documents" counts a word once in each document; weights: what each document counts
    sample, seed: count only a part of the documents, chosen by their content and the seed
    threads, memory: never change the result
    progress: "auto" shows how far it is when it lasts (a line of a terminal, a bar of a notebook, a line a minute of a
    log); True also in worker processes; False; or a function, called with each `Progress`

    Raises CorpusError and UnsupportedVocab for options that cannot be, EncodingFailed for texts that are none.
    """
    check_name(name)
    given: dict[str, Any] = dict(options)
    fields_too = {field.name for kind in (Options, How) for field in fields(kind)}
    unknown = {key: given[key] for key in given if key not in TrainOptions.__annotations__ and key not in fields_too}
    if unknown:
        refuse_keywords(train, unknown, TrainOptions.__annotations__)
    if "pre" in given:
        given["pre"] = named_pre(given["pre"])
    if "special" in given:
        given["special"] = special_texts(given["special"])
    roles = {role: given.pop(role, None) for role in ROLES}
    chosen = Options(size=size, **_taken(given, Options))
    if isinstance(words, str | os.PathLike):
        words = Counts.load(words)
    if words is not None and not isinstance(words, Counts):
        raise TypeError(f"words: found {type(words).__name__}, expected Counts or the path of a file that it has saved")
    if words is None:
        how = _taken(given, How)
        if chosen.like == "hf":
            how["special"] = ()  # Hugging Face's trainer learns their texts
        words = count(texts, weights, How(**how), progress)
    elif texts is not None:
        raise TypeError("found texts and words, expected one of them")
    pre = words.pre or chosen.pre
    if not pre.startswith((REGEX, FILE)) and pre not in pre_names():
        raise CorpusError("words", pre, "words that a pre-tokenizer of byte-level BPE has cut, such as qwen2 or gpt-2")
    return Trained(train_counts(words, chosen, progress=progress), pre, roles, name)


def _taken(options: dict[str, Any], kind: Any) -> dict[str, Any]:
    """Those of the options that `kind` knows."""
    return {field.name: options[field.name] for field in fields(kind) if field.name in options}


def __getattr__(name: str) -> Any:
    if name == "count_files":  # readers of files are only imported for files
        from jittok.train.counting.files import count_files

        return count_files
    raise AttributeError(f"module 'jittok.train' has no attribute {name!r}")


class _Callable(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Trained:
        """See `jittok.train.train`."""
        return train(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
