"""The encoder of a Pipeline whose texts are prepared before the kernels see them (see `steps`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import once
from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import Merges, Pieces, Words
from jittok.encode import split_points, windowed_merging
from jittok.encode.call_sequence import CallSequence, chain_of, layers_of
from jittok.encode.encoder import MUCH_TEXT
from jittok.encode.pipeline_encoder import PipelineEncoder
from jittok.encode.plan import WordPlan, first_only, step_plan, steps_after
from jittok.encode.precheck import PreCheckTables
from jittok.encode.reference_encoder import begins_at_start
from jittok.encode.short_text import try_short_text
from jittok.encode.steps import FragmentTexts, Step, cut_again, no_tokens, sentencepiece_normalized
from jittok.encode.workspace import Workspace
from jittok.kernels.fragments import TEXT, Failure
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import frozen
from jittok.kernels.merging.left_to_right import IMPOSSIBLE
from jittok.kernels.models.spm.unknown_runs import join_unknown
from jittok.kernels.models.spm.unused_pieces import parts_of
from jittok.kernels.pretokenize.splitters.word_bitmap import MARKS, WordBitmap
from jittok.kernels.special.tables import SpecialTokens


class NormalizingEncoder(PipelineEncoder):
    """A compiled Pipeline that encodes prepared texts. `prepared`: see `step_plan`."""

    def __init__(
        self, pipeline: Pipeline, cache_bytes: int, arrays: Any, prepared: WordBitmap | WordPlan | int, **named: Any
    ) -> None:
        super().__init__(pipeline, cache_bytes, arrays, prepared=prepared, **named)
        found = step_plan(pipeline, prepared, self.family == "spm")
        assert found is not None  # checked when the pipeline was compiled
        self.steps = found
        self._first_only = first_only(pipeline)
        if type(prepared) is int:
            self.plain = steps_after(pipeline, prepared)
        model = pipeline.model
        fuses = isinstance(model, Pieces) or (isinstance(model, Merges) and self.family == "spm")
        self._unknown = model.unknown if fuses and not model.byte_fallback else None  # type: ignore[union-attr]
        self._unused = parts_of(pipeline) if self.family == "spm" else None
        squeezes = [
            step for step in (*found.normalize, *found.front) if getattr(step, "func", None) is sentencepiece_normalized
        ]
        self._parts: windowed_merging.WindowedMerger | None = None
        if self.family == "spm" and len(found.normalize) == 1 and not found.front and squeezes:
            self._parts = windowed_merging.WindowedMerger(squeezes[0].args[0], self.arrays, self._unknown, self._unused)  # type: ignore[attr-defined]
        plain = not self._first_only and self._unused is None
        self._layers = layers_of((*found.normalize, *found.front)) if plain else None
        self.look = PreCheckTables(None, strict=True)
        self.rewrite = _run_nothing  # so that no text is encoded as it is
        if isinstance(pipeline.model, Words):
            self.arrays = self.arrays._replace(chain=self.arrays.chain._replace(state=IMPOSSIBLE))

    def cut(self, workspace: Workspace, docs: Documents, first: int, last: int, rule: Any) -> int:
        """Write the fragments of documents first .. last - 1 to the workspace. Returns their number. Where there is a
        normalizer, tokens that are searched for in normalized text are cut out after it."""
        if self.steps.normalize:
            rule = rule._replace(later=no_tokens())
        count = super().cut(workspace, docs, first, last, rule)
        if self._first_only:
            self._tell_first(workspace, docs, docs.starts[first:last], count)
        return count

    def _tell_first(self, workspace: Workspace, docs: Documents, starts: NDArray[np.int64], count: int) -> None:
        """Mark texts that are not at the start of their document as TEXT; this holds for the normalized text, too."""
        of = np.repeat(starts, np.diff(workspace.document_ends[: starts.size], prepend=0))
        inner = (workspace.tokens[:count] < 0) & (workspace.starts[:count] != of)
        workspace.tokens[:count][inner] = TEXT
        for k in np.flatnonzero((workspace.tokens[:count] < 0) & ~inner).tolist() if self.steps.normalize else ():
            raw = docs.between(int(workspace.starts[k]), int(workspace.stops[k]))
            if not begins_at_start(self.pipeline, raw.decode("utf-8", "replace")):
                workspace.tokens[k] = TEXT

    def try_short_text(self, text: object, rule: Any) -> NDArray[np.int32] | None:
        """As in `Encoder`, if kernels do all steps and no token is searched for in normalized text; else None."""
        if self._layers is None or (self.steps.normalize and rule.later.ids.size):
            return None
        return try_short_text(self, text, rule)

    def chain(self, workspace: Workspace) -> CallSequence | None:
        """The steps that prepare a short text; None while a kernel is not compiled."""
        found = None if self._layers is None else chain_of(self._layers, workspace, self._unknown)
        if found is not None:
            found.arrays = self._marked(self.arrays, found.marks // 8)
        return found

    def _marked(self, arrays: Any, marks: int) -> Any:
        """The arrays for a bitmap of word starts that begins after 8 * `marks` bytes of text."""
        if not isinstance(self.prepared, WordBitmap | WordPlan):
            return arrays
        return arrays._replace(**{"group" if self.family == "bpe" else "marks": 8 * marks})

    def can_split_at_spaces(self, _size: int) -> bool:
        """Whether safe cuts are allowed: not where the steps may depend on where a text begins."""
        return False

    def _runner(self, rule: Any) -> Callable[..., int | Failure]:
        return partial(self._run_long if self._parts else self._run_prepared, rule.later)

    def _run_long(
        self, later: SpecialTokens, workspace: Workspace, docs: Documents, starts: NDArray[np.int64],
        stops: NDArray[np.int64], tokens: NDArray[np.int32], fragments: int, count: int, ends: NDArray[np.int64],
        replace: bool,
    ) -> int | Failure:  # fmt: skip
        """`_run_prepared`, with long fragments in windows. Where user-defined pieces cut texts, the other fragments are
        done in groups of a bounded size."""
        assert self._parts is not None  # checked by `_runner`
        sizes, at = stops[:fragments] - starts[:fragments], 0
        least = windowed_merging.LONG_TEXT if later.ids.size == 0 else windowed_merging.LONG_CUT_TEXT
        if sizes.sum() < least:
            return self._run_prepared(
                later, workspace, docs, starts, stops, tokens, fragments, count, ends, replace
            )  # fmt: skip
        long = (tokens[:fragments] < 0) & (sizes >= least)
        plain = later.ids.size == 0 or bool((later.ids >= 0).all() and not later.strips[: later.ids.size].any())
        for k in [*(np.flatnonzero(long).tolist() if plain else ()), fragments]:
            for first, last in (*_groups(sizes, at, k, later.ids.size > 0), (k, min(k + 1, fragments))):
                if first == last:
                    continue
                done: int | Failure | None = None
                if first == k:
                    run = partial(self._run_window, workspace)
                    done = self._parts.encode(workspace, docs.data, int(starts[k]), int(stops[k]), count, run, later)
                    ends[k] = done or 0
                if done is None:
                    its = slice(first, last)
                    done = self._run_prepared(
                        later, workspace, docs, starts[its], stops[its], tokens[its], last - first, count, ends[its],
                        replace,
                    )  # fmt: skip
                if not isinstance(done, int):
                    return done._replace(fragment=done.fragment + first)
                count = done
            at = k + 1
        return count

    def _run_window(self, workspace: Workspace, texts: FragmentTexts, count: int) -> int | Failure:
        docs, number = Documents(texts.data, texts.starts, texts.stops), texts.number
        cut = texts.starts, texts.stops, texts.tokens
        return super()._run(workspace, docs, *cut, number, count, np.empty(number, np.int64), False)

    def _run_prepared(
        self, later: SpecialTokens, workspace: Workspace, docs: Documents, starts: NDArray[np.int64],
        stops: NDArray[np.int64], tokens: NDArray[np.int32], fragments: int, count: int, ends: NDArray[np.int64],
        replace: bool,
    ) -> int | Failure:  # fmt: skip
        """`_run` on the prepared fragments, which must be valid UTF-8."""
        steps = self.steps
        texts, last = (
            FragmentTexts(docs.data, starts[:fragments], stops[:fragments], tokens[:fragments], docs.kept),
            None,
        )
        much, workspace.passed = split_points.MOST_GROWTH * texts.size, min(workspace.passed, count)
        for step in steps.normalize:
            texts = _done(step, workspace, texts)
        if steps.normalize and later.ids.size:
            texts, last = cut_again(later, workspace, texts)
        own = ends if last is None else np.empty(texts.number, np.int64)
        end = count
        for part, first, stop in self._separated(texts, much):
            done = self._run_front(part, workspace, end, own[first:stop], replace)
            if not isinstance(done, int):
                return done._replace(fragment=done.fragment + first)
            end = done
            workspace.discard_prefix(end - 1)
        if last is not None:
            ends[:fragments] = np.where(last > 0, np.append(own, count)[last - 1], count)
        return end

    def _separated(self, texts: FragmentTexts, much: int) -> Iterator[tuple[FragmentTexts, int, int]]:
        """Yields (some texts, first, last of them among all): all at once, or, if they have more than `much` bytes,
        each long text alone and in parts that its splitter always separates (`split_points`)."""
        sizes = np.where(texts.tokens < 0, texts.stops - texts.starts, 0)
        if sizes.max(initial=0) < split_points.LONG_TEXT or sizes.sum() <= much or self._separators is None:
            yield texts, 0, texts.number
            return
        docs, at = Documents(texts.data, texts.starts, texts.stops, texts.kept), 0
        for k in [*np.flatnonzero(sizes >= split_points.LONG_TEXT).tolist(), texts.number]:
            if at < k:
                yield texts.some(slice(at, k)), at, k
            if k < texts.number:
                for start, stop in split_points.split_at_points(
                    self._separators, docs, int(texts.starts[k]), int(texts.stops[k])
                ):
                    its = frozen([start], np.int64), frozen([stop], np.int64), frozen(texts.tokens[k : k + 1], np.int32)
                    yield FragmentTexts(texts.data, *its, texts.kept), k, k + 1
            at = k + 1

    def _run_front(
        self, texts: FragmentTexts, workspace: Workspace, count: int, ends: NDArray[np.int64], replace: bool
    ) -> int | Failure:
        """Write the ids of normalized texts after the first `count`. Returns the number of ids now."""
        for step in self.steps.front:
            texts = _done(step, workspace, texts)
        made, number = Documents(texts.data, texts.starts, texts.stops, texts.kept), texts.number
        done = super()._run(
            workspace, made, texts.starts, texts.stops, texts.tokens, number, count, ends, replace
        )  # fmt: skip
        if isinstance(done, int) and self._unused is not None:
            done = windowed_merging.unused_taken_apart(self._unused, workspace, ends, number, count, done)
        if isinstance(done, int) and self._unknown is not None:
            done = int(workspace.run(join_unknown, workspace.ids, ends, number, count, self._unknown))
        return done

    @once
    def _separators(self) -> split_points.SplitPoints | None:
        """The safe cuts of normalized text."""
        return (
            split_points.split_points(self.pipeline.split) if isinstance(self.prepared, WordBitmap | WordPlan) else None
        )

    def _kernel(self, workspace: Workspace, *args: Any) -> int:
        args = self._marked(args[0], args[2].size // MARKS), *args[1:]
        return super()._kernel(workspace, *args)


def _groups(sizes: NDArray[np.int64], first: int, last: int, few: bool) -> list[tuple[int, int]]:
    """(first, last) of groups of fragments first .. last - 1: one group, or with `few` groups that have hardly more
    bytes than a long fragment."""
    if first == last or not few:
        return [(first, last)]
    groups = np.cumsum(sizes[first:last]) // windowed_merging.LONG_CUT_TEXT
    edges = (np.flatnonzero(np.diff(groups)) + first + 1).tolist()
    return [*pairwise([first, *edges, last])]


def _done(step: Step, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
    """The result of a step. For long texts nothing else is kept: neither scratch nor the texts before the step."""
    made = step(workspace, texts)
    workspace.grown(made)
    if made.data.size > MUCH_TEXT:
        workspace.forget()
    return made


def _run_nothing(*_: Any) -> None:
    """A placeholder for `rewrite`, which is never called: fragments are prepared instead (see `_run_prepared`)."""
