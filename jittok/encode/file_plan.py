"""The plan of a file other than GGUF: the choice of kernels, and the steps before them.

A kernel that reads the text in place is chosen first. If there is none, steps prepare texts: normalizers, the search
for tokens in normalized text, the splitter. A chain of splitter stages becomes one WordBitmap. A stage that writes into
pre-tokens (a space or U+2581 before them, or each byte as a character) ends a chain, and so does one that cuts by
scripts, which has many classes of characters. The pre-tokens so far are then texts of their own for the next stages,
and one text again at the end. A stage that no automaton can run is run by the reference, pre-token by pre-token. So any
splitter can be combined with any model: a model sees text and a bitmap of word starts. What no kernel covers is encoded
by the reference (`reference_encoder`).
"""

from __future__ import annotations

import importlib
from collections.abc import Collection
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.growth import needs_measuring
from jittok.common.pipeline.models import BPE, Longest, Merges, Pieces, Ranks, Unigram, WordPiece, Words
from jittok.common.pipeline.pipeline import LSTRIP, NORMALIZED, RSTRIP, SINGLE_WORD, SPECIAL, UNSEARCHED
from jittok.common.pipeline.steps import (
    ALWAYS,
    FIRST,
    MERGED_WITH_NEXT,
    NEVER,
    Compose,
    Cut,
    CutScripts,
    CutSomeScripts,
    Map,
    Metaspace,
    Normalizer,
    Pattern,
    PrefixSpace,
    Replace,
    SpellBytes,
    Splitter,
)
from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK, SPACE_MARK_BYTES
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.encode.cutters import FileCutter, always
from jittok.encode.encoder import Encoder
from jittok.encode.fallback.reference_encoder import (
    GENERAL_ARRAYS,
    PARTS,
    ReferenceEncoder,
    begins_at_start,
    normalized,
)
from jittok.encode.plan import BEFORE, BY_KERNEL, ComposeInPlace, Plan, Step
from jittok.encode.steps import (
    NOTHING,
    MarkWords,
    ReferenceWords,
    WordByWord,
    combined,
    done_by,
    normalizer,
    prefix,
    replacements,
)
from jittok.errors import EncodingFailed, UnsupportedVocab
from jittok.kernels.fragments import TEXT, TEXT_PREFIXED
from jittok.kernels.jit import frozen
from jittok.kernels.merging.left_to_right import BUILD_ON_DEMAND, IMPOSSIBLE
from jittok.kernels.models.bpe.files import IN_NO_TEXT
from jittok.kernels.models.spm.files import ESCAPE, NO_WORDS, compile_normalized
from jittok.kernels.models.spm.unknown_runs import join_unknown
from jittok.kernels.models.spm.unused_pieces import parts_of
from jittok.kernels.normalize.char_replacements import char_replacements
from jittok.kernels.normalize.nfc.fragments import nfc_tables
from jittok.kernels.normalize.sentencepiece import known_characters
from jittok.kernels.pretokenize.compile import chain_of, halves
from jittok.kernels.pretokenize.splitters import GENERAL
from jittok.kernels.pretokenize.splitters.word_bitmap import KEEPS, NO_LIMIT, SPELLS, WordBitmap
from jittok.kernels.special.tables import GUARDED, ONLY_WORD, STRIPS_LEFT, STRIPS_RIGHT, SpecialTokens, tables_of
from jittok.kernels.special.user_defined_pieces import user_defined, user_defined_normalized
from jittok.kernels.vocab_cache import CachedArrays

COMPILERS: dict[str, tuple[str, tuple[type, ...]]] = {
    "bpe": ("jittok.kernels.models.bpe.files", (Ranks, Merges)),
    "spm": ("jittok.kernels.models.spm.files", (Merges, Pieces)),
    "wpm": ("jittok.kernels.models.wpm.files", (WordPiece,)),
    "rwkv": ("jittok.kernels.models.rwkv", (Longest,)),
    "unigram": ("jittok.kernels.models.ugm.file_compile", (Unigram, Pieces)),
}
"""Family -> the compiler of its arrays, and the models that it is for; these read text in place."""


def make_encoder(pipeline: Pipeline, cache_bytes: int, kept: CachedArrays | None) -> Encoder | ReferenceEncoder:
    """The encoder of a Pipeline, from the cached arrays if there are any."""
    measured = needs_measuring(pipeline.normalize) or needs_measuring(pipeline.split)
    if measured and not isinstance(pipeline.model, Pieces):
        refuse_empty_tokens(pipeline)
        return ReferenceEncoder(pipeline)  # it checks the size of a text after each step
    known = kept.part(*PARTS) if kept else None
    if known is not None:
        general = known["arrays"] == GENERAL_ARRAYS
        return ReferenceEncoder(pipeline) if general else Encoder(plan_of(pipeline, **known), cache_bytes=cache_bytes)
    refuse_empty_tokens(pipeline)
    plan = None if pipeline.twins else file_plan(pipeline)  # kernels have one text per id
    return ReferenceEncoder(pipeline) if plan is None else Encoder(plan, cache_bytes=cache_bytes)


def file_plan(pipeline: Pipeline) -> Plan | None:
    """The plan of a Pipeline; None if no kernel covers it."""
    for family, (module, models) in COMPILERS.items():
        if isinstance(pipeline.model, models):
            arrays = importlib.import_module(module).compile_pipeline(pipeline)
            if arrays is not None:
                return plan_of(pipeline, arrays, family=family)
    found = compile_plan(pipeline)
    if found is None:
        return None
    return plan_of(pipeline, found.arrays, family=found.family, prepared=found.marking or True)


def plan_of(
    pipeline: Pipeline, arrays: Any, raw: SpecialTokens | None = None, later: SpecialTokens | None = None,
    raw_parsed: SpecialTokens | None = None, later_parsed: SpecialTokens | None = None, family: str = "bpe",
    prepared: WordBitmap | WordPlan | int = False,
) -> Plan:  # fmt: skip
    """The plan of compiled arrays. raw ... later_parsed: tables of the cutter, if they are compiled already; prepared:
    False for a kernel that reads text in place, else see `step_plan`."""
    steps = step_plan(pipeline, prepared, family == "spm") if prepared else StepPlan((), ())
    assert steps is not None  # checked when the pipeline was compiled
    pieces = arrays if family == "spm" and not prepared and user_defined(pipeline) else None
    search, known = partial(search_tables, pipeline, prepared=bool(prepared)), (raw, later, raw_parsed, later_parsed)
    cutter = FileCutter(pipeline, search, pieces, bool(steps.normalize), known)
    plan = Plan(pipeline, family, arrays, cutter, BEFORE, rest=pipeline)
    if not prepared:
        composes = pipeline.composes_alone
        by_kernel = composes or family in ("unigram", "wpm") or (family == "bpe" and arrays.family != GENERAL)
        compose = ComposeInPlace(nfc_tables(old=True), strict=True) if composes else None
        return plan._replace(utf8=BY_KERNEL if by_kernel else BEFORE, compose=compose)
    model, marked = pipeline.model, isinstance(prepared, WordBitmap | WordPlan)
    fuses = isinstance(model, Pieces) or (isinstance(model, Merges) and family == "spm")
    begins = partial(begins_at_start, pipeline) if steps.normalize else always
    return plan._replace(
        normalize=steps.normalize,
        front=steps.front,
        prepared=prepared,
        marks=("group" if family == "bpe" else "marks") if marked else "",
        first_only=begins if first_only(pipeline) else None,
        rest=steps_after(pipeline, prepared) if type(prepared) is int else pipeline,
        unused=parts_of(pipeline) if family == "spm" else None,
        join=(join_unknown, model.unknown) if fuses and not model.byte_fallback else None,  # type: ignore[union-attr]
        chain=IMPOSSIBLE if isinstance(model, Words) else BUILD_ON_DEMAND,
    )


def refuse_empty_tokens(pipeline: Pipeline) -> None:
    """UnsupportedVocab if a token that is searched for in normalized text is empty once it is normalized: tokenizers
    then cuts ASCII text at every character, and panics at any other character."""
    for token, flags in zip(pipeline.added, pipeline.added_flags.tolist(), strict=True):
        searched = pipeline.normalize and flags & NORMALIZED and not flags & UNSEARCHED
        if not searched:
            continue
        try:
            text = normalized(pipeline, token.content.encode())
        except EncodingFailed as error:
            raise UnsupportedVocab(pipeline.source, "added_tokens", error.found, error.expected) from None
        if not text:
            raise UnsupportedVocab(
                pipeline.source, "added_tokens", token.content,
                'a text that the normalizer does not remove, or "normalized": false',
            )  # fmt: skip


def search_tables(
    pipeline: Pipeline, later: bool, parse_special: bool, prepared: bool = False, guarded: frozenset[int] = frozenset()
) -> SpecialTokens:
    """The tokens of one search. prepared: user-defined pieces are searched for in normalized texts. Without
    `parse_special`, tokens flagged special are found but left as text (id -1). guarded: those that literal text cannot
    become."""
    found, change = (
        dict[bytes, tuple[int, int]](),
        partial(normalized, pipeline) if later and pipeline.normalize else bytes,
    )
    if later == prepared:
        own = user_defined_normalized(pipeline) if prepared else user_defined(pipeline)
        found |= {text: (token, 0) for text, token in own.items()}
    for token, flags in zip(pipeline.added, pipeline.added_flags.tolist(), strict=True):
        if bool(flags & NORMALIZED) == later and not flags & UNSEARCHED:
            hidden = bool(flags & SPECIAL) and not parse_special
            strips = (STRIPS_LEFT if flags & LSTRIP else 0) | (STRIPS_RIGHT if flags & RSTRIP else 0)
            strips |= ONLY_WORD if flags & SINGLE_WORD else 0
            found[change(token.content.encode())] = -1 if hidden else token.id, strips  # of equal texts the last
    rows = [
        (text, token, strips | (GUARDED if token in guarded else 0)) for text, (token, strips) in found.items() if text
    ]
    if all(token < 0 for _, token, _ in rows):
        rows = []
    rows.sort(key=lambda row: -len(row[0]))
    ids = np.array([token for _, token, _ in rows], np.int32)
    return tables_of([text for text, _, _ in rows], ids, np.array([strips for _, _, strips in rows], np.uint8))


# ---- the choice of kernels for prepared texts


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
        return _unigram(pipeline) or _planned_words(pipeline)
    if isinstance(pipeline.model, WordPiece):
        return _planned_words(pipeline)
    front, stages = _without_prefix(pipeline.split)
    bare = pipeline._replace(normalize=(), split=stages, added_bytes=pipeline.added_bytes[:0],
                               added_offsets=pipeline.added_offsets[:1], added_ids=pipeline.added_ids[:0],
                               added_flags=pipeline.added_flags[:0])  # fmt: skip
    from jittok.kernels.models.bpe.bitmap_words import compile_pipeline as compile_marked  # few files need it
    from jittok.kernels.models.bpe.files import compile_pipeline as compile_bytes

    arrays: Any = compile_bytes(bare)
    if arrays is not None:
        return CompiledPlan("bpe", arrays, None)
    written = _written_in_front(front)
    if _no_spaces(pipeline.normalize, front) and all(
        _never_cuts(stage, pipeline.normalize, written) or _cuts_between(stage, pipeline) for stage in stages
    ):
        arrays = compile_normalized(bare._replace(normalize=(ESCAPE,), split=()))
        if arrays is not None:
            return CompiledPlan("spm", arrays, None)
    marked = compile_marked(bare, stages)
    return _planned_words(pipeline) if marked is None else CompiledPlan("bpe", *marked)


def _planned_words(pipeline: Pipeline) -> CompiledPlan | None:
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
        from jittok.kernels.models.bpe.bitmap_words import compile_pipeline as compile_marked  # few files need it

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
    from jittok.kernels.models.ugm.file_compile import compile_pipeline  # only Unigram needs it

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


def _without_prefix(split: tuple[Splitter, ...]) -> tuple[Splitter | None, tuple[Splitter, ...]]:
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


# ---- steps


class StepPlan(NamedTuple):
    """The steps that fragments go through before the model."""

    normalize: tuple[Step, ...]
    front: tuple[Step, ...]  # after the search for tokens in normalized text


class Segment(NamedTuple):
    """Consecutive stages of a splitter that run as one chain."""

    front: Splitter | None  # the stage that writes into each pre-token before these cut it
    stages: tuple[Splitter, ...]


class WordPlan(NamedTuple):
    """How the segments of a splitter are run, in order; the last one in the form that the model reads."""

    markings: tuple[WordBitmap | None, ...]  # None: the reference cuts


def prefixes_of(stage: Splitter, spaces: bool = False) -> tuple[Step, ...] | None:
    """The steps for what the first stage writes before pre-tokens and into them; None for a stage that writes nothing.
    spaces: the model's kernel reads spaces as U+2581."""
    if isinstance(stage, PrefixSpace):
        space = frozen([0x20], np.uint8)
        return (done_by(prefix(space, space, NOTHING, TEXT), stage),)
    if isinstance(stage, Metaspace):
        mark = frozen(np.frombuffer(stage.mark.encode(), np.uint8), np.uint8)
        escape: tuple[Step, ...] = (done_by(replacements(char_replacements({SPACE_BYTE: stage.mark})), stage),)
        space = NOTHING
        if spaces and stage.mark == SPACE_MARK:
            escape, space = (), frozen([SPACE_BYTE], np.uint8)
        if stage.scheme == NEVER:
            return escape
        least = TEXT if stage.scheme == ALWAYS else TEXT_PREFIXED
        return *escape, done_by(prefix(mark, mark, space, least), stage)
    return None


def segments_of(split: tuple[Splitter, ...]) -> list[Segment]:
    """The chains of a splitter."""
    found = [Segment(None, ())]
    for stage in split:
        last = found[-1]
        if isinstance(stage, Metaspace):
            cut = Cut(Pattern(stage.mark, literal=True), MERGED_WITH_NEXT)
            found.append(Segment(stage, (cut,) if stage.split else ()))
        elif isinstance(stage, PrefixSpace):
            found.append(Segment(stage, ()))
        elif isinstance(stage, CutScripts):
            found += [Segment(None, (half,)) for half in halves()]
        elif last.stages and isinstance(last.stages[-1], SpellBytes | CutSomeScripts):
            found.append(Segment(None, (stage,)))
        else:
            found[-1] = last._replace(stages=(*last.stages, stage))
    return found if len(found) == 1 or found[0].stages else found[1:]


def raw_marking(stages: tuple[Splitter, ...]) -> WordBitmap | None:
    """The bitmap kernel of a chain that leaves pre-tokens as they are; None if no kernel can run the chain."""
    chain = chain_of(stages)
    if chain is None:
        return None
    no_table = frozen([0], np.uint16), frozen([0], np.uint8)
    return WordBitmap(
        chain.splitter, chain.drops, chain.byte_at, chain.byte_rows, chain.byte_widths, chain.byte_classes,
        chain.behaves, chain.sizes, SPELLS * chain.spelled, frozen(CHARACTER_OF_BYTE, np.uint16), 1, KEEPS, 0, 0,
        NO_LIMIT, frozen([0], np.uint8), *no_table,
    )  # fmt: skip


def first_only(pipeline: Pipeline) -> bool:
    """Whether only the text at the start of a document gets a prefix."""
    return any(isinstance(stage, Metaspace) and stage.scheme == FIRST for stage in pipeline.split[:1])


def steps_after(pipeline: Pipeline, steps: int) -> Pipeline:
    """The pipeline without the first `steps` steps of the normalizer."""
    return pipeline._replace(normalize=pipeline.normalize[steps:])


def normalizers(
    steps: tuple[Normalizer, ...], user: Collection[bytes], known: NDArray[np.bool_] | None
) -> list[Step | None]:
    """The kernels for the steps, as many in one table as possible. user, known: see `normalizer`."""
    found, waiting = list[Step | None](), list[Map | Compose]()
    for step in steps:
        one = isinstance(step, Map) or (isinstance(step, Compose) and step.form != "NFC")
        if waiting and not (one and _go_together(*waiting, step)):
            found.append(combined(tuple(waiting)))
            waiting.clear()
        if one:
            waiting.append(step)  # type: ignore[arg-type]
        else:
            found.append(normalizer(step, user, known))
    return [*found, combined(tuple(waiting))] if waiting else found


def _known(pipeline: Pipeline) -> NDArray[np.bool_] | None:
    """The characters of all tokens, where sentencepiece makes one token of a run of other characters."""
    model = pipeline.model
    if not isinstance(model, Pieces) or model.kind != BPE or model.byte_fallback or pipeline.added_ids.size:
        return None
    return known_characters(pipeline.model_bytes.tobytes())


def _go_together(*steps: Normalizer) -> bool:
    """Whether these steps can be one table: at most one normal form, and nothing after NFKC."""
    forms = [k for k, step in enumerate(steps) if isinstance(step, Compose)]
    return len(forms) <= 1 and steps[:-1].count(Compose("NFKC")) == 0


def step_plan(pipeline: Pipeline, marking: WordBitmap | WordPlan | int, spaces: bool = False) -> StepPlan | None:
    """The steps for the texts of a file; None if a step has no kernel. marking: how word starts are marked; True if
    they are not; or a number of steps of the normalizer, if the model's kernel does the rest. spaces: see
    `prefixes_of`."""
    if type(marking) is int:
        first = [normalizer(step) for step in pipeline.normalize[:marking]]
        return None if None in first else StepPlan(tuple(step for step in first if step is not None), ())
    normalize = normalizers(pipeline.normalize, user_defined(pipeline), _known(pipeline))
    later = any(token.normalized and not token.unsearched for token in pipeline.added)
    if any(step is None for step in normalize) or (first_only(pipeline) and normalize and later):
        return None  # after a token in normalized text, the origin of a character is not known
    known = tuple(step for step in normalize if step is not None)
    if isinstance(marking, WordPlan):
        return StepPlan(known, _planned(segments_of(pipeline.split), marking.markings))
    front = (prefixes_of(pipeline.split[0], spaces) if pipeline.split else None) or ()
    if isinstance(marking, WordBitmap):
        front = (*front, done_by(MarkWords(marking), *(pipeline.split[1 if front else 0 :] or pipeline.split)))
    return StepPlan(known, front)


# ---- pre-tokens as texts


def _planned(segments: list[Segment], markings: tuple[WordBitmap | None, ...]) -> tuple[Step, ...]:
    """The steps of segments. There may be one more marking than segments, for pre-tokens as they are."""
    if not segments:
        segments = [Segment(None, ())]
    segment, marking = segments[0], markings[0]
    front = (prefixes_of(segment.front) if segment.front is not None else None) or ()
    cut: Step = ReferenceWords(segment.stages) if marking is None else MarkWords(marking)
    cut = done_by(cut, *segment.stages)
    if len(markings) == 1:
        return *front, cut
    rest = _planned(segments[1:], markings[1:])
    return *front, done_by(WordByWord(cut, rest), *cut.does, *(record for step in rest for record in step.does))
