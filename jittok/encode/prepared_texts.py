"""Fragments that the steps of a plan prepare for the model: all at once, and long ones in parts.

What a step writes may be many times as long as the text.

Long texts that have grown are divided at safe cuts of their splitter (`SplitPoints`): pairs of characters between which
it cuts whatever the rest of the text. Such a pair is one where the first stage, in every state that it may be in, ends
a match with the first character and starts another with the second, just as if the text ended between them. Later
stages see only what the first has cut, so none of their matches crosses the cut. Stages that write a prefix write it
before each pre-token; a first stage that does so has no safe cuts.

Long texts of sentencepiece's BPE, which nothing cuts, are encoded in windows (`WindowedMerger`). The normalizer resumes
after a part as if the text had not been split (`normalize_part`). The model's windows overlap: each begins with a token
of the one before. If that token is the first one again, every pair of adjacent tokens is in one of the two windows, so
all tokens are those of the whole text (`merging.left_to_right` has the reason). If another token is first, the text
starts over with longer parts. Nothing merges across a user-defined piece, so a new window begins after the last one
that is certain. A piece is certain if the longest one would end in the window, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import once
from jittok.common.pipeline.patterns import PatternError
from jittok.common.pipeline.steps import Cut, CutClass, Splitter
from jittok.common.unicode.characters import SPACE_BYTE
from jittok.encode import limits
from jittok.encode.buffers import Workspace
from jittok.encode.cutters import EncodeOptions
from jittok.encode.plan import FragmentTexts, Plan, Step
from jittok.encode.steps import KernelStep, cut_again
from jittok.kernels.fragments import PAD, TEXT, Failure
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import I32, I64, U8, frozen
from jittok.kernels.models.spm.kernel import SpmArrays
from jittok.kernels.models.spm.unknown_runs import join_unknown
from jittok.kernels.models.spm.unused_pieces import UnusedSplits as Unused
from jittok.kernels.models.spm.unused_pieces import count_parts, write_parts
from jittok.kernels.normalize.sentencepiece import SentencePieceTables, normalize_part, write_normalized
from jittok.kernels.pretokenize.automaton import DEAD, START, Automaton
from jittok.kernels.pretokenize.compile import compile_stage
from jittok.kernels.pretokenize.splitters.word_bitmap import INVERTS, ISOLATES, REMOVES
from jittok.kernels.special.tables import SpecialTokens
from jittok.kernels.structures.long_keys import make_ahead

if TYPE_CHECKING:
    from jittok.encode.encoder import Encoder

OVERLAP_TOKENS = 64
"""Tokens at the end of a window that the next one begins with."""
EXTRA_TOKENS = 1 << 12
"""Tokens that are tried beyond those: one of them begins where a character does."""
SEARCH_BYTES = 1 << 12
"""Bytes that are searched for a safe cut at a time."""


class PreparedTexts:
    """Encodes fragments by all steps of an encoder's plan."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self._plan = encoder, encoder.plan
        self._windows = None
        if self._plan.family == "spm" and len(self._plan.normalize) == 1 and not self._plan.front:
            (step,) = self._plan.normalize
            if isinstance(step, KernelStep) and step.kernel is write_normalized:
                self._windows = WindowedMerger(step.tables[0], encoder.arrays, self._plan)

    @once
    def points(self) -> SplitPoints | None:
        """The safe cuts of normalized text."""
        return split_points(self._plan.vocab.split) if self._plan.marks else None

    def run(
        self, workspace: Workspace, texts: FragmentTexts, count: int, ends: NDArray[np.int64], rule: EncodeOptions
    ) -> int | Failure:
        """Write the ids of fragments, which are valid UTF-8, after the first `count`. Returns the number of ids now.

        ends: int64[fragments] receives the ends of their ids. Long fragments go in windows. Where user-defined pieces
        cut texts, the other fragments are done in groups of a bounded size.
        """
        later, sizes, at = rule.later, texts.stops - texts.starts, 0
        assert later is not None  # files have both searches
        least = limits.WINDOWED_TEXT if later.ids.size == 0 else limits.WINDOWED_CUT_TEXT
        if self._windows is None or sizes.sum() < least:
            return self._by_steps(workspace, texts, count, ends, rule)
        long = (texts.tokens < 0) & (sizes >= least)
        plain = later.ids.size == 0 or bool((later.ids >= 0).all() and not later.strips[: later.ids.size].any())
        for k in [*(np.flatnonzero(long).tolist() if plain else ()), texts.number]:
            for first, last in (*_groups(sizes, at, k, later.ids.size > 0), (k, min(k + 1, texts.number))):
                if first == last:
                    continue
                done: int | Failure | None = None
                if first == k:
                    run = partial(self._run_window, workspace)
                    where = int(texts.starts[k]), int(texts.stops[k])
                    done = self._windows.encode(workspace, texts.data, *where, count, run, later)
                    ends[k] = done or 0
                if done is None:
                    its = slice(first, last)
                    done = self._by_steps(workspace, texts.some(its), count, ends[its], rule)
                if not isinstance(done, int):
                    return done._replace(fragment=done.fragment + first)
                count = done
            at = k + 1
        return count

    def _run_window(self, workspace: Workspace, texts: FragmentTexts, count: int) -> int | Failure:
        return self._encoder.run(workspace, texts, texts.number, count, np.empty(texts.number, np.int64), False)

    def _by_steps(
        self, workspace: Workspace, texts: FragmentTexts, count: int, ends: NDArray[np.int64], rule: EncodeOptions
    ) -> int | Failure:
        """`run` by the steps of the plan, one after the other."""
        plan, number = self._plan, texts.number
        much, workspace.passed, last = limits.MOST_GROWTH * texts.size, min(workspace.passed, count), None
        for step in plan.normalize:
            texts = _done(step, workspace, texts)
        if plan.normalize and rule.later is not None and rule.later.ids.size:
            texts, last = cut_again(rule.later, workspace, texts)
        own = ends if last is None else np.empty(texts.number, np.int64)
        end = count
        for part, first, stop in self._separated(texts, much):
            done = self._by_front(workspace, part, end, own[first:stop], rule.replace)
            if not isinstance(done, int):
                return done._replace(fragment=done.fragment + first)
            end = done
            workspace.discard_prefix(end - 1)
        if last is not None:
            ends[:number] = np.where(last > 0, np.append(own, count)[last - 1], count)
        return end

    def _separated(self, texts: FragmentTexts, much: int) -> Iterator[tuple[FragmentTexts, int, int]]:
        """Yields (some texts, first, last of them among all): all at once, or, if they have more than `much` bytes,
        each long text alone and in parts that its splitter always separates (`split_at_points`)."""
        sizes = np.where(texts.tokens < 0, texts.stops - texts.starts, 0)
        if sizes.max(initial=0) < limits.GROWN_TEXT or sizes.sum() <= much or self.points is None:
            yield texts, 0, texts.number
            return
        docs, at = Documents(texts.data, texts.starts, texts.stops, texts.kept), 0
        for k in [*np.flatnonzero(sizes >= limits.GROWN_TEXT).tolist(), texts.number]:
            if at < k:
                yield texts.some(slice(at, k)), at, k
            if k < texts.number:
                where = int(texts.starts[k]), int(texts.stops[k])
                for start, stop in split_at_points(self.points, docs, *where):
                    its = frozen([start], np.int64), frozen([stop], np.int64), frozen(texts.tokens[k : k + 1], np.int32)
                    yield FragmentTexts(texts.data, *its, texts.kept), k, k + 1
            at = k + 1

    def _by_front(
        self, workspace: Workspace, texts: FragmentTexts, count: int, ends: NDArray[np.int64], replace: bool
    ) -> int | Failure:
        """The same for normalized texts."""
        plan = self._plan
        for step in plan.front:
            texts = _done(step, workspace, texts)
        done = self._encoder.run(workspace, texts, texts.number, count, ends, replace)
        if isinstance(done, int) and plan.unused is not None:
            done = split_unused(plan.unused, workspace, ends, texts.number, count, done)
        if isinstance(done, int) and plan.join is not None:
            kernel, unknown = plan.join
            done = int(workspace.run(kernel, workspace.ids, ends, texts.number, count, unknown))
        return done


def _groups(sizes: NDArray[np.int64], first: int, last: int, few: bool) -> list[tuple[int, int]]:
    """(first, last) of groups of fragments first .. last - 1: one group, or with `few` groups that have hardly more
    bytes than a long fragment."""
    if first == last or not few:
        return [(first, last)]
    groups = np.cumsum(sizes[first:last]) // limits.WINDOWED_CUT_TEXT
    edges = (np.flatnonzero(np.diff(groups)) + first + 1).tolist()
    return [*pairwise([first, *edges, last])]


def _done(step: Step, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
    """The result of a step. For long texts nothing else is kept: neither scratch nor the texts before the step."""
    made = step.run(workspace, texts)
    workspace.grown(made)
    if made.data.size > limits.MUCH_TEXT:
        workspace.forget()
    return made


# ---- texts that have grown, at safe cuts of their splitter


class SplitPoints(NamedTuple):
    """The pairs of character classes between which a splitter always cuts."""

    starts: NDArray[np.integer]  # [runs] first code point of each run of characters
    classes: NDArray[np.integer]  # [runs] the class of each run
    between: NDArray[np.bool_]  # [classes, classes] whether there is a cut between the two


def split_points(split: tuple[Splitter, ...]) -> SplitPoints | None:
    """The safe cuts of a splitter; None if it has none, or none that are known."""
    if not split or not isinstance(split[0], Cut | CutClass):
        return None
    try:
        found = compile_stage(split[0], True)
    except (ValueError, PatternError):
        return None
    if found is None or found.behaves not in (ISOLATES, REMOVES, REMOVES + INVERTS):
        return None
    if not isinstance(found.machine, Automaton):
        return None  # text far away may decide
    automaton = found.machine
    rows = automaton.transitions.reshape(-1, automaton.width).astype(np.int64)
    ends = rows == DEAD << 1 | 1
    count, states = automaton.width - 1, np.delete(rows, DEAD, 0)
    between = np.zeros((count, count), np.bool_)
    for c in range(count):
        after = np.unique(states[:, c] >> 1)
        after = after[after != DEAD]
        if rows[START, c] >> 1 != DEAD and ends[after, -1].all():
            between[c] = ends[after, :-1].all(0)
    return SplitPoints(automaton.starts, automaton.classes, between) if between.any() else None


def split_at_points(table: SplitPoints, docs: Documents, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """(start, stop) of the parts of the text from `start` to `stop`, which is UTF-8, in order."""
    at = start + limits.GROWN_PART
    while at + limits.GROWN_PART < stop:
        raw = docs.between(at, min(at + SEARCH_BYTES, stop))
        text = raw.decode("utf-8", "ignore")  # characters that are cut in two are ignored
        codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        kinds = table.classes[np.searchsorted(table.starts, codes, "right") - 1]
        cuts = np.flatnonzero(table.between[kinds[:-1], kinds[1:]])
        if cuts.size == 0:
            at += SEARCH_BYTES
            continue
        inside = next(k for k, byte in enumerate(raw) if byte & 0xC0 != 0x80)
        at += inside + len(text[: int(cuts[0]) + 1].encode())
        yield start, at
        start, at = at, at + limits.GROWN_PART
    yield start, stop


# ---- sentencepiece's BPE, in windows


Run = Callable[[FragmentTexts, int], Any]
"""run(a window, cut at pieces, count) -> the new count: its ids to the workspace, after the first `count`."""


class WindowedMerger:
    """Encodes long texts of one encoder in windows."""

    def __init__(self, table: SentencePieceTables, arrays: SpmArrays, plan: Plan) -> None:
        """plan: whose `unused` and `join` repair the ids."""
        self.table, self.unused = table, plan.unused
        self.unknown = None if plan.join is None else plan.join[1]
        lengths = np.diff(arrays.texts.offsets[: arrays.tokens + 1])
        for bytes_ in (arrays.byte_ids, arrays.span_byte_ids):
            lengths[bytes_[bytes_ >= 0]] = 1
        self._lengths = lengths

    def encode(
        self, workspace: Workspace, data: U8, start: int, stop: int, count: int, run: Run, pieces: SpecialTokens,
        part: int = 0,
    ) -> int | None:  # fmt: skip
        """Write the ids of data[start:stop] after the first `count`. Returns the number of ids now, or None if the text
        has to be encoded as a whole. pieces: user-defined pieces, searched for in normalized text."""
        longest = int(pieces.lengths.max(initial=1))
        part = part or (limits.WINDOW if pieces.ids.size == 0 else limits.CUT_WINDOW)
        out, done = np.empty(self.table.growth * (stop - start) + 1, np.uint8), np.zeros(3, np.int64)  # most untouched
        at, origin, first, window, held = start, count, -1, np.empty(0, np.uint8), 0
        ahead = make_ahead(self.table.long)
        workspace.passed = min(workspace.passed, count)
        while True:
            size = workspace.run(
                normalize_part, self.table, data, at, stop, at + part, int(done[2]), held, ahead, out, done
            )
            at, sure, held = int(done[0]), int(done[1]), size - int(done[1])
            window = np.concatenate([window, out[:sure]])
            out[:held] = out[sure:size].copy()
            ends, known, after = at >= stop, _one(window), 0
            if pieces.ids.size:
                known, after = _cut(pieces, workspace, known, longest, ends)
                if not ends and not after and window.size < part + longest:
                    continue
            end = run(known, count) if window.size else count
            if not isinstance(end, int):
                return None
            ids = workspace.ids[count:end]
            if first >= 0 and (ids.size == 0 or ids[0] != first):
                return self.encode(workspace, data, start, stop, origin, run, pieces, 2 * part)
            if ends:
                return self._joined(workspace, origin, count, end)
            workspace.discard_prefix(count - 1)
            if after:
                count, first, window = self._joined(workspace, origin, count, end), -1, window[after:]
                continue
            text = window[: known.size]
            spelled = int(self._lengths[ids].sum())
            if spelled != text.size + 2 * int(np.count_nonzero(text == SPACE_BYTE)):
                return None
            last, position = self._last(ids, text)
            if last:
                first, window = int(ids[-last]), window[position:]
                count = self._joined(workspace, origin, count, end - last)

    def _last(self, ids: NDArray[np.int32], window: NDArray[np.uint8]) -> tuple[int, int]:
        """(the number of last tokens to repeat in the next window, the offset where they begin, which is the start of a
        character); (0, 0) if there are none."""
        tail = self._lengths[
            ids[: -OVERLAP_TOKENS - EXTRA_TOKENS : -1]
        ].cumsum()  # bytes of the last token, of the last two, ...
        if tail.size <= OVERLAP_TOKENS:
            return 0, 0
        near = window[max(0, window.size - int(tail[-1])) :][::-1]
        bytes_ = np.where(near == SPACE_BYTE, 3, 1).cumsum()
        for number in range(OVERLAP_TOKENS, min(tail.size, ids.size - 1)):
            k = int(np.searchsorted(bytes_, tail[number - 1]))
            if k < bytes_.size and bytes_[k] == tail[number - 1] and near[k] & 0xC0 != 0x80:
                return number, window.size - k - 1
        return 0, 0

    def _joined(self, workspace: Workspace, origin: int, first: int, last: int) -> int:
        """Fix the ids from `first` on: unused pieces are split, and repeats of the unknown token become one. Returns
        their new end."""
        if self.unused is not None:
            last = split_unused(self.unused, workspace, np.array([last]), 1, first, last)
        if self.unknown is None:
            return last
        return int(
            workspace.run(join_unknown, workspace.ids, np.array([last]), 1, max(origin, first - 1), self.unknown)
        )


def split_unused(
    table: Unused, workspace: Workspace, ends: NDArray[np.int64], fragments: int, first: int, last: int
) -> int:
    """Replace unused pieces among ids first .. last - 1 of a workspace by their parts. Returns the new end of the ids.
    ends: int64[fragments] the ends of the fragments' ids, which are updated."""
    count = int(workspace.run(count_parts, table, workspace.ids, first, last))
    if count < 0:
        return last
    if workspace.ids.size < first + count:
        workspace.grow_ids(first + count + (first + count) // 8, last)
    return int(workspace.run(write_parts, table, workspace.ids, ends, fragments, first, count))


def one_text(size: int) -> tuple[I64, I64, I32]:
    """Starts, stops and tokens of one fragment of `size` bytes."""
    return frozen([0], np.int64), frozen([size], np.int64), frozen([TEXT], np.int32)


def _one(window: NDArray[np.uint8]) -> FragmentTexts:
    data = np.append(window, np.zeros(PAD, np.uint8))
    return FragmentTexts(frozen(data, np.uint8), *one_text(window.size))


def _cut(
    pieces: SpecialTokens, workspace: Workspace, window: FragmentTexts, longest: int, ends: bool
) -> tuple[FragmentTexts, int]:
    """(a window cut at pieces, the end of the last one): up to that piece, if it is certain, else all of the text in
    which no piece can begin. ends: whether nothing follows, so that all pieces are certain."""
    texts, last = cut_again(pieces, workspace, window, window.size // 2)[0], window.size - longest
    kinds = frozen(np.where(texts.tokens < 0, TEXT, texts.tokens), np.int32)
    texts = texts._replace(tokens=kinds)
    if ends:
        return texts, 0
    sure = np.flatnonzero((kinds >= 0) & (texts.starts <= last))
    if sure.size:
        number = int(sure[-1]) + 1
        return texts.some(slice(0, number)), int(texts.stops[number - 1])
    stop = max(last + 1, 0)
    while stop > 0 and window.data[stop] & 0xC0 == 0x80:
        stop -= 1
    return FragmentTexts(window.data, *one_text(stop)), 0
