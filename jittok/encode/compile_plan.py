"""The choice of kernels for the prepared texts of a tokenizer file."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import Merges, Pieces, Unigram, WordPiece
from jittok.common.pipeline.steps import (
    FIRST,
    MERGED_WITH_NEXT,
    Cut,
    Metaspace,
    Normalizer,
    Pattern,
    PrefixSpace,
    Replace,
    SpellBytes,
    Splitter,
)
from jittok.common.unicode.characters import SPACE_MARK, SPACE_MARK_BYTES
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.encode.plan import WordPlan, raw_marking, segments_of, step_plan, steps_after
from jittok.encode.steps import normalizer
from jittok.kernels.models.bpe.bitmap_words import compile_pipeline as compile_marked
from jittok.kernels.models.bpe.files import IN_NO_TEXT
from jittok.kernels.models.bpe.files import compile_pipeline as compile_bytes
from jittok.kernels.models.spm.files import ESCAPE, NO_WORDS, compile_normalized
from jittok.kernels.pretokenize.splitters.word_bitmap import WordBitmap


class CompiledPlan(NamedTuple):
    """The compiled arrays of a model, and how texts are prepared for it."""

    family: str
    arrays: Any
    marking: WordBitmap | WordPlan | int | None  # see `step_plan`


def compile_plan(pipeline: Pipeline) -> CompiledPlan | None:
    """The plan for texts that are prepared first; None for a pipeline that no kernel covers."""
    if step_plan(pipeline, True) is None:
        return None
    if isinstance(pipeline.model, Pieces):
        found = compile_normalized(pipeline)
        return None if found is None else CompiledPlan("spm", found, None)
    if isinstance(pipeline.model, Unigram):
        return _unigram(pipeline) or _planned(pipeline)
    if isinstance(pipeline.model, WordPiece):
        return _planned(pipeline)
    prefix, stages = _apart(pipeline.split)
    bare = pipeline._replace(normalize=(), split=stages, added_bytes=pipeline.added_bytes[:0],
                               added_offsets=pipeline.added_offsets[:1], added_ids=pipeline.added_ids[:0],
                               added_flags=pipeline.added_flags[:0])  # fmt: skip
    arrays: Any = compile_bytes(bare)
    if arrays is not None:
        return CompiledPlan("bpe", arrays, None)
    written = _written_in_front(prefix)
    if _no_spaces(pipeline.normalize, prefix) and all(
        _never_cuts(stage, pipeline.normalize, written) or _cuts_between(stage, pipeline) for stage in stages
    ):
        arrays = compile_normalized(bare._replace(normalize=(ESCAPE,), split=()))
        if arrays is not None:
            return CompiledPlan("spm", arrays, None)
    marked = compile_marked(bare, stages)
    return _planned(pipeline) if marked is None else CompiledPlan("bpe", *marked)


def _planned(pipeline: Pipeline) -> CompiledPlan | None:
    """The plan of a model over pre-tokens, however these are cut."""
    if any(isinstance(stage, Metaspace) and stage.scheme == FIRST for stage in pipeline.split[1:]):
        return None  # after other stages it is not known whether a pre-token is at the start of its document
    segments = segments_of(pipeline.split)
    markings = [raw_marking(segment.stages) for segment in segments]
    family, arrays = "", cast(Any, None)
    if isinstance(pipeline.model, WordPiece):
        from jittok.kernels.models.wpm.words import compile_pipeline as compile_words  # few files need it

        family, arrays = "wpm words", compile_words(pipeline)
    elif isinstance(pipeline.model, Unigram):
        from jittok.kernels.models.ugm.words import compile_pipeline as compile_unigram  # few files need it

        family, arrays = "unigram words", compile_unigram(pipeline, _characters(pipeline.split))
    else:
        last = compile_marked(pipeline, segments[-1].stages)
        if last is not None:
            markings.pop()
        else:
            last = compile_marked(pipeline, ())
        if last is not None:
            family, arrays = "bpe", last.arrays
            markings.append(last.marking)
    return None if arrays is None else CompiledPlan(family, arrays, WordPlan(tuple(markings)))


def _unigram(pipeline: Pipeline) -> CompiledPlan | None:
    """The plan of a Unigram model whose kernel does as many of the last steps of the normalizer as it can."""
    from jittok.kernels.models.ugm.files.compile import compile_pipeline  # only Unigram needs it

    for k in range(1, len(pipeline.normalize) + 1):
        if normalizer(pipeline.normalize[k - 1]) is None:
            return None
        arrays = compile_pipeline(steps_after(pipeline, k))
        if arrays is not None:
            return CompiledPlan("unigram", arrays, k)
    return None


def _characters(split: tuple[Splitter, ...]) -> tuple[str, ...]:
    """The 256 characters of the byte alphabet, where pre-tokens are written in it."""
    spelled = [k for k, stage in enumerate(split) if isinstance(stage, SpellBytes)]
    if not spelled or any(isinstance(stage, Metaspace | PrefixSpace) for stage in split[spelled[-1] :]):
        return ()
    return tuple(chr(c) for byte, c in enumerate(CHARACTER_OF_BYTE) if byte not in IN_NO_TEXT)


def _apart(split: tuple[Splitter, ...]) -> tuple[Splitter | None, tuple[Splitter, ...]]:
    """(the first stage if it only writes a prefix, the stages after it)."""
    if split and isinstance(split[0], PrefixSpace):
        return split[0], split[1:]
    if split and isinstance(split[0], Metaspace):
        cut = Cut(Pattern(split[0].mark, literal=True), MERGED_WITH_NEXT)
        return split[0], (cut, *split[1:]) if split[0].split else split[1:]
    return None, split


def _written_in_front(prefix: Splitter | None) -> str:
    """Characters that the first stage writes into texts, after all normalizers."""
    if isinstance(prefix, Metaspace):
        return prefix.mark
    return "" if prefix is None else " "


def _no_spaces(normalize: tuple[Normalizer, ...], prefix: Splitter | None) -> bool:
    """Whether every space has become U+2581, and no prefix is a space."""
    if isinstance(prefix, Metaspace) and prefix.mark == SPACE_MARK:
        return True
    last = normalize[-1] if normalize else None
    return isinstance(last, Replace) and last == ESCAPE and _written_in_front(prefix) != " "


def _cuts_between(stage: Splitter, pipeline: Pipeline) -> bool:
    """Whether a stage cuts before each U+2581, and no merge joins one to what is before it. U+2581 is a token, so no
    run of unknown characters crosses it."""
    model = pipeline.model
    if stage != Cut(Pattern(SPACE_MARK, literal=True), MERGED_WITH_NEXT) or not isinstance(model, Merges):
        return False
    tokens = pipeline.model_tokens
    known = SPACE_MARK_BYTES in tokens
    return known and all(SPACE_MARK_BYTES not in (tokens[merged] or b"")[1:] for merged in model.merged.tolist())


def _never_cuts(stage: Splitter, normalize: tuple[Normalizer, ...], written: str) -> bool:
    """Whether a stage's pattern is in no text: normalizers replace it, and neither they nor the prefix stage write
    any part of it."""
    if stage == NO_WORDS:
        return True  # there are no spaces
    if not isinstance(stage, Cut) or not stage.pattern.literal or not set(written).isdisjoint(stage.pattern.text):
        return False
    gone = False
    for step in normalize:
        if not isinstance(step, Replace) or not step.content or not set(step.content).isdisjoint(stage.pattern.text):
            return False
        gone = gone or step.pattern == stage.pattern
    return gone
