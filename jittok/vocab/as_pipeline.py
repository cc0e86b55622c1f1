"""A GGUF vocabulary as a `Pipeline`: llama.cpp's steps in the same form as those of other files.

The arrays of steps and models are those of the vocabulary, not copies. The reference runs these steps with their
settings (`jittok.reference`). Kernels are selected and compiled from them (`compile_pipeline` in
`jittok.kernels.models`). `info` and `compare` describe them in words.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline, models, steps
from jittok.common.pipeline.pipeline import FIRST_TEXT, LSTRIP, RSTRIP, SPECIAL, read_only_array
from jittok.common.unicode.characters import KMER, SPACE_MARK
from jittok.kernels.pretokenize.records import PreType, pre_type
from jittok.vocab.vocab import NO_TOKEN, Vocab

T = TypeVar("T")

UNKNOWN_BIT, CONTROL_BIT, USER_BIT, LSTRIP_BIT, RSTRIP_BIT = 1, 8, 16, 128, 256
CHUNK = 5
"""Bytes per token of llama.cpp's type for tests."""
DNA = b"<dna>", b"</dna>", b"<oov>"
_SAID_BY_THE_VOCABULARY = (
    "add_bos", "add_eos", "add_sep", "add_space_prefix", "attributes", "eog_ids", "eom_id", "eot_id", "fim_middle_id",
    "fim_pad_id", "fim_prefix_id", "fim_rep_id", "fim_sep_id", "fim_suffix_id", "fingerprint", "ids", "mask_id", "nfc",
    "pre", "scores", "sep_id", "special_tokens", "token_bytes", "token_offsets", "tokens", "type",
)  # fmt: skip


class GgufPipeline(Pipeline, eq=False):
    """The steps of a GGUF. vocab: the vocabulary itself, with all other facts of the file."""

    vocab: Vocab | None = None

    @property
    def merges(self) -> int:
        """The number of merges."""
        return self.model.offsets.size - 1 if isinstance(self.model, models.PairMerges) else 0

    def merge_rank(self, token: int) -> int | None:
        """The lowest rank of a merge that results in a token, None if there is none."""
        from jittok.vocab.describe import merge_rank

        assert self.vocab is not None
        return merge_rank(self.vocab, token)


def _of_the_vocabulary(name: str) -> property:
    return property(lambda self: getattr(self.vocab, name), doc="What the vocabulary says.")


for _name in _SAID_BY_THE_VOCABULARY:
    setattr(GgufPipeline, _name, _of_the_vocabulary(_name))


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
    special = vocab.special_tokens
    sizes = np.diff(vocab.token_offsets)[special]
    return GgufPipeline(
        vocab=vocab,
        source=vocab.source,
        format="gguf",
        library="llama.cpp",
        model_bytes=vocab.key_bytes,
        model_offsets=vocab.key_offsets,
        holes=read_only_array([], np.int32),
        model=_model(vocab),
        normalize=_normalize(vocab),
        split=_split(vocab),
        decode=(steps.JoinLlama(_prints(vocab), vocab.add_space_prefix, vocab.clean_spaces),),
        added_bytes=_texts_of(vocab, special),
        added_offsets=read_only_array(np.concatenate(([0], np.cumsum(sizes))), np.int64),
        added_ids=special,
        added_flags=_flags(vocab),
        single=_single(vocab),
        bos_id=vocab.bos_id,
        eos_id=vocab.eos_id,
        unk_id=vocab.unk_id,
        pad_id=vocab.pad_id,
        name=vocab.name,
    )


def _pre(vocab: Vocab) -> PreType | None:
    """The pre-tokenizer; None for a type without merges of pairs."""
    return pre_type(vocab.pre_type) if vocab.type == "bpe" else None


def _escape() -> steps.Replace:
    return steps.Replace(steps.Pattern(" ", literal=True), SPACE_MARK)


def _normalize(vocab: Vocab) -> tuple[steps.Normalizer, ...]:
    pre = _pre(vocab)
    if vocab.type == "spm":
        front = (steps.PrependBehindSpecial(SPACE_MARK),) if vocab.add_space_prefix else ()
        return (*front, _escape())
    if vocab.type == "ugm":
        squeeze = steps.SqueezeLlama(
            vocab.charsmap,
            prefix=vocab.add_space_prefix,
            squeeze=vocab.remove_extra_whitespaces,
            escape=vocab.escape_whitespaces,
            suffix=vocab.treat_whitespace_as_suffix,
            shortest=vocab.shortest_utf8,
        )
        return (steps.ComposeAll(), squeeze) if vocab.nfc else (squeeze,)
    if pre is None:
        return ()
    escape: tuple[steps.Normalizer, ...] = (_escape(),) if vocab.escape_whitespaces else ()
    if vocab.model == "whitespace":
        lower: tuple[steps.Normalizer, ...] = (steps.Lowercase(),) if vocab.lowercase else ()
        return (*escape, steps.ReadUtf8(vocab.shortest_utf8), *lower)
    return escape if vocab.model == "hybriddna" else (*escape, *_read(vocab, pre))


def _read(vocab: Vocab, pre: PreType) -> tuple[steps.BeginLines | steps.ReadUtf8, ...]:
    begin = (steps.BeginLines(SPACE_MARK),) if pre.begin_lines else ()
    return (*begin, steps.ReadUtf8(vocab.shortest_utf8))


def _split(vocab: Vocab) -> tuple[steps.Splitter, ...]:
    pre = _pre(vocab)
    if vocab.type == "wpm":
        return (steps.BertWords(vocab.lowercase, vocab.strip_accents, vocab.shortest_utf8),)
    if vocab.type in ("plamo2", "plamo3"):
        return (steps.PlamoSegments(vocab.type == "plamo3", vocab.shortest_utf8),)
    if pre is None:
        return ()
    first: tuple[steps.Splitter, ...] = ()
    if vocab.model == "whitespace":
        first = (steps.CutWhite(), *_read(vocab, pre))
    elif vocab.model == "hybriddna":
        begin, end, unknown = (vocab.ids.get(text, NO_TOKEN) for text in DNA)
        known = NO_TOKEN not in (begin, end, unknown)
        first = (*((steps.Kmers(begin, end, unknown, KMER),) if known else ()), *_read(vocab, pre))
    cuts = (steps.Cut(steps.Pattern(regex, engine=engine), steps.ISOLATED) for regex, engine in pre.patterns)
    return (*first, *cuts, *((steps.SpellBytes(),) if pre.byte_encode else ()))


def _model(vocab: Vocab) -> models.Model:
    pre = _pre(vocab)
    if pre is not None:
        return models.PairMerges(
            vocab.merge_bytes, vocab.merge_offsets, vocab.ignore_merges, pre.newlines_whole, pre.byte_encode
        )
    made: dict[str, models.Model] = {
        "spm": models.ScoredMerges(vocab.scores),
        "ugm": models.Lattice(
            vocab.scores,
            vocab.file_attributes,
            read_only_array(vocab.attributes & USER_BIT != 0, np.bool_),
            vocab.unk_id,
        ),
        "wpm": models.LongestText(vocab.unk_id, vocab.max_token_length),
        "rwkv": models.LongestEscaped(vocab.unk_id),
        "plamo2": models.Suffixes(vocab.scores, vocab.file_attributes),
        "plamo3": models.Suffixes(vocab.scores, vocab.file_attributes),
        "test": models.Hashed(CHUNK),
    }
    return made.get(vocab.type, models.NoModel())


def _prints(vocab: Vocab) -> str:
    if vocab.type == "bpe":
        return steps.SPACES if vocab.escape_whitespaces else steps.BYTE_ALPHABET
    other = {"rwkv": steps.ESCAPES, "test": steps.ID, "plamo2": steps.TEXT, "plamo3": steps.TEXT}
    return other.get(vocab.type, steps.SPACES)


def _single(vocab: Vocab) -> tuple[int, ...]:
    """The ids that `add_special` adds around a text. A token that the vocabulary lacks is left out (using it is an
    error)."""
    obeys = vocab.type in ("spm", "bpe", "ugm", "plamo2", "plamo3") and vocab.adds_around
    before = vocab.type == "wpm" or (obeys and vocab.add_bos)
    after = vocab.type == "wpm" or (obeys and vocab.add_eos)
    last = vocab.sep_id if vocab.type == "wpm" else vocab.eos_id
    front = (vocab.bos_id,) if before and vocab.bos_id != NO_TOKEN else ()
    return (*front, FIRST_TEXT, *((last,) if after and last != NO_TOKEN else ()))


def _flags(vocab: Vocab) -> NDArray[np.uint8]:
    bits = vocab.attributes[vocab.special_tokens]
    flags = np.where(bits & (UNKNOWN_BIT | CONTROL_BIT), SPECIAL, 0)
    flags |= np.where(bits & LSTRIP_BIT, LSTRIP, 0) | np.where(bits & RSTRIP_BIT, RSTRIP, 0)
    return read_only_array(flags, np.uint8)


def _texts_of(vocab: Vocab, tokens: NDArray[np.int32]) -> NDArray[np.uint8]:
    starts, stops = vocab.token_offsets[tokens].tolist(), vocab.token_offsets[tokens + 1].tolist()
    parts = [vocab.token_bytes[start:stop] for start, stop in zip(starts, stops, strict=True)]
    return read_only_array(np.concatenate([np.zeros(0, np.uint8), *parts]), np.uint8)
