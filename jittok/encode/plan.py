"""The steps from a file's text to its model: normalizers, the search for tokens in normalized text, the splitter.

A chain of splitter stages becomes one WordBitmap. A stage that writes into pre-tokens (a space or U+2581 before them,
or each byte as a character) ends a chain, and so does one that cuts by scripts, which has many classes of characters.
The pre-tokens so far are then texts of their own for the next stages, and one text again at the end. A stage that no
automaton can run is run by the reference, pre-token by pre-token. So any splitter can be combined with any model: a
model sees text and a bitmap of word starts.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import BPE, Pieces
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
    SpellBytes,
    Splitter,
)
from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.encode.reference_encoder import cut_words
from jittok.encode.steps import (
    NOTHING,
    SPARE_BYTES,
    FragmentTexts,
    Step,
    combined,
    normalizer,
    read_only_view,
    texts_of,
    with_bitmap,
    with_prefix,
    with_replacements,
)
from jittok.encode.workspace import Workspace
from jittok.kernels.fragments import TEXT, TEXT_PREFIXED
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import frozen
from jittok.kernels.normalize.char_replacements import char_replacements
from jittok.kernels.normalize.sentencepiece import known_characters
from jittok.kernels.pretokenize.compile import chain_of, halves
from jittok.kernels.pretokenize.splitters.word_bitmap import KEEPS, MARKS, NO_LIMIT, SPELLS, WordBitmap
from jittok.kernels.special.user_defined_pieces import user_defined


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
        return (partial(with_prefix, space, space, NOTHING, TEXT),)
    if isinstance(stage, Metaspace):
        mark = frozen(np.frombuffer(stage.mark.encode(), np.uint8), np.uint8)
        escape: tuple[Step, ...] = (partial(with_replacements, char_replacements({SPACE_BYTE: stage.mark})),)
        space = NOTHING
        if spaces and stage.mark == SPACE_MARK:
            escape, space = (), frozen([SPACE_BYTE], np.uint8)
        if stage.scheme == NEVER:
            return escape
        least = TEXT if stage.scheme == ALWAYS else TEXT_PREFIXED
        return *escape, partial(with_prefix, mark, mark, space, least)
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
    prefix = (prefixes_of(pipeline.split[0], spaces) if pipeline.split else None) or ()
    if isinstance(marking, WordBitmap):
        prefix = (*prefix, partial(with_bitmap, marking))
    return StepPlan(known, prefix)


# ---- pre-tokens as texts


def _planned(segments: list[Segment], markings: tuple[WordBitmap | None, ...]) -> tuple[Step, ...]:
    """The steps of segments. There may be one more marking than segments, for pre-tokens as they are."""
    if not segments:
        segments = [Segment(None, ())]
    segment, marking = segments[0], markings[0]
    prefix = (prefixes_of(segment.front) if segment.front is not None else None) or ()
    cut: Step = partial(_cut_by_reference, segment.stages) if marking is None else partial(with_bitmap, marking)
    if len(markings) == 1:
        return *prefix, cut
    return *prefix, partial(_word_by_word, cut, _planned(segments[1:], markings[1:]))


def _word_by_word(cut: Step, steps: tuple[Step, ...], workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
    """Run steps on each pre-token of a step as if it were a text. The pre-tokens of a text are one text in the end."""
    words, ends = _apart(cut(workspace, texts), texts.tokens)
    for step in steps:
        words = step(workspace, words)
    begins = np.concatenate([[0], ends[:-1]])
    stops = np.append(0, words.stops)[ends]  # those of a text without words are those before it
    starts = np.where(ends > begins, np.append(words.starts, 0)[begins], stops)
    return FragmentTexts(words.data, frozen(starts, np.int64), frozen(stops, np.int64), texts.tokens, words.kept)


def _apart(texts: FragmentTexts, tokens: NDArray[np.int32]) -> tuple[FragmentTexts, NDArray[np.int64]]:
    """(marked words as texts, int64[count]: their number up to the end of each text). A fragment with an id counts as
    one word."""
    size, used = texts.data.size // MARKS * 8, int(texts.stops.max(initial=0))
    bits = np.unpackbits(texts.data[size : size + used // 8 + 1], bitorder="little")[:used]
    positions = np.flatnonzero(bits)
    own = tokens >= 0
    behind_words = np.searchsorted(positions, texts.stops) + np.cumsum(own)
    count = positions.size + int(np.count_nonzero(own))
    rows = np.ones(count, np.bool_)
    rows[behind_words[own] - 1] = False
    starts, stops, kinds = np.zeros(count, np.int64), np.zeros(count, np.int64), np.empty(count, np.int32)
    starts[rows], stops[rows] = positions, np.append(positions[1:], used)
    starts[~rows] = stops[~rows] = texts.stops[own]
    kinds[rows], kinds[~rows] = TEXT, tokens[own]
    return FragmentTexts(
        texts.data, read_only_view(starts), read_only_view(stops), read_only_view(kinds), texts.kept
    ), behind_words


def _cut_by_reference(stages: tuple[Splitter, ...], _workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
    """`with_bitmap` by the reference."""
    docs, words = Documents(texts.data, texts.starts, texts.stops, texts.kept), bytearray()
    stops, marks = np.zeros(texts.number, np.int64), array("q")
    for k in range(texts.number):
        if texts.tokens[k] < 0:
            for word in cut_words(stages, docs.between(int(texts.starts[k]), int(texts.stops[k])).decode()):
                marks.append(len(words))
                words += word.encode()
        stops[k] = len(words)
    n = (len(words) + SPARE_BYTES) // 64 * 8 + 8
    out = np.zeros(MARKS * n, np.uint8)
    out[: len(words)] = np.frombuffer(words, np.uint8)
    bits = np.zeros(8 * n, np.uint8)
    bits[marks] = 1
    out[8 * n :] = np.packbits(bits, bitorder="little")
    return texts_of(out, (np.append(0, stops[:-1]), stops), texts.tokens)
