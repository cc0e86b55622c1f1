"""The steps of a plan between the search for special tokens and the model: each rewrites fragments.

A `Step` is what a tokenizer file says (`does`), and how it is done. Most are a `KernelStep`: a kernel, its tables, and
the rule for the capacity of its output, which is written nowhere else. Two drivers run the same steps: `run` for the
fragments of a stretch, which allocates what these need; `bind` for a short text (`short_text`), whose buffers are laid
out once for the most text that there may be. What no kernel does (such as patterns that are replaced) is done by
Python's own functions, for the fragments that it changes; such a step cannot be bound.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.patterns import PatternError, compiled, explicit
from jittok.common.pipeline.steps import (
    Clusters,
    Compose,
    Map,
    Normalizer,
    Pattern,
    Prepend,
    Replace,
    SpellBytes,
    Splitter,
    Squeeze,
    Strip,
)
from jittok.common.unicode.characters import SPACE_BYTE
from jittok.common.unicode.libraries import mapping, normal_form
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.encode.buffers import Workspace
from jittok.encode.cutters import no_tokens
from jittok.encode.fallback.reference_encoder import by_reference, cut_words
from jittok.encode.plan import BoundKernel, Extent, FragmentTexts, Step, exchanged, written
from jittok.kernels.fragments import NEED, OUT_OF_CAPACITY, OUT_OF_WORK, PAD, TEXT
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import I32, U8, frozen
from jittok.kernels.models.ugm.normalizer import STEP
from jittok.kernels.models.ugm.normalizer_tables import RUNS, clustered_of, write_clusters
from jittok.kernels.normalize.char_replacements import CharReplacements, char_replacements, write_replacements
from jittok.kernels.normalize.decomposition import Decomposition, decomposition, find_disorder
from jittok.kernels.normalize.nfc.fragments import changed_fragments, nfc_tables
from jittok.kernels.normalize.nfc.normalizer import find_changed
from jittok.kernels.normalize.prefixes import strip_white, write_prefixes, write_runs
from jittok.kernels.normalize.sentencepiece import SentencePieceTables, sentencepiece_tables, write_normalized
from jittok.kernels.pretokenize.compile import one_set
from jittok.kernels.pretokenize.splitters.general import borrowed_from, make_split_work
from jittok.kernels.pretokenize.splitters.word_bitmap import MARKS, SPELLS, WordBitmap, mark_words
from jittok.kernels.special.leftmost import cut_leftmost
from jittok.kernels.special.tables import SpecialTokens
from jittok.kernels.structures.long_keys import make_ahead

SPARE_BYTES = 1024
"""Bytes after marked words, so that kernels may read and write in blocks."""
LONGEST_IMAGE = 64
"""Bytes of what a character may become in a kernel, which keeps capacity for that many wherever one is."""
NOTHING: U8 = frozen([], np.uint8)
NO_IDS: I32 = frozen([], np.int32)
_NFC = Compose("NFC")
_ALPHABET = dict(enumerate(map(chr, CHARACTER_OF_BYTE)))


def read_only_view(array: NDArray[Any]) -> Any:
    """The same array, read-only: it is not written any more."""
    array.flags.writeable = False
    return array


class KernelStep(Step):
    """A kernel that writes all fragments anew, one after the other:

        kernel(*tables, data, starts, stops, tokens, count, *settings, out, out_starts, out_stops)

    capacity: `out` has grows * bytes + per_fragment * fragments + PAD bytes
    """

    binds = True

    def __init__(
        self, kernel: Any, tables: tuple[Any, ...], settings: tuple[Any, ...] = (), grows: int = 1,
        per_fragment: int = 0, scratch: Callable[[], Any] | None = None,
    ) -> None:  # fmt: skip
        """scratch: makes one more argument after the settings."""
        self.kernel, self.tables, self.settings, self.kernels = kernel, tables, settings, (kernel,)
        self.grows, self.per_fragment, self.scratch = grows, per_fragment, scratch

    def run(self, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
        """The fragments after this step."""
        (call,) = self.bind(texts, texts.extent)
        workspace.run(call.kernel, *call.args)
        return call.made

    def bind(self, texts: FragmentTexts, extent: Extent) -> list[BoundKernel]:
        """The kernel with new arrays for what it writes."""
        size = self.grows * extent.size + self.per_fragment * extent.number
        scratch = () if self.scratch is None else (self.scratch(),)
        given = (*self.tables, *texts.columns, extent.number, *self.settings, *scratch)
        return [written(self.kernel, given, size + PAD, texts.tokens, Extent(extent.number, size, size))]


def replacements(table: CharReplacements) -> KernelStep:
    """Every character becomes its entry in a table."""
    return KernelStep(write_replacements, (table,), grows=table.growth)


def sentencepiece(table: SentencePieceTables) -> KernelStep:
    """Each text is normalized as sentencepiece does."""
    ahead = partial(make_ahead, table.long)
    return KernelStep(write_normalized, (table,), grows=table.growth, per_fragment=1, scratch=ahead)


def prefix(text: U8, unless: U8, other: U8, least: int) -> KernelStep:
    """A prefix before each text, see `write_prefixes`."""
    return KernelStep(write_prefixes, (), (text, unless, other, least), per_fragment=text.size)


def without_runs(content: U8) -> KernelStep:
    """Each run of spaces becomes `content`."""
    return KernelStep(write_runs, (), (SPACE_BYTE, 2, content), grows=1 + content.size)


class StripEnds(Step):
    """White space at the ends goes: nothing is copied."""

    binds, kernels = True, (strip_white,)

    def __init__(self, left: bool, right: bool) -> None:
        self._ends = int(left), int(right)

    def run(self, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
        """The fragments after this step."""
        (call,) = self.bind(texts, texts.extent)
        workspace.run(call.kernel, *call.args)
        return call.made

    def bind(self, texts: FragmentTexts, extent: Extent) -> list[BoundKernel]:
        """The kernel with new arrays for offsets."""
        starts, stops = np.empty(texts.number, np.int64), np.empty(texts.number, np.int64)
        made = texts._replace(starts=frozen(starts, np.int64), stops=frozen(stops, np.int64))
        return [BoundKernel(strip_white, (*texts.columns, extent.number, *self._ends, starts, stops), made, extent)]


class ComposeNfc(Step):
    """NFC, with the Unicode version of tokenizers. Bound for texts that it does not change."""

    binds, kernels = True, (find_changed,)

    def run(self, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
        """The fragments after this step."""
        found = changed_fragments(nfc_tables(old=True), *texts.columns, texts.number, strict=True)
        if found is None:
            return texts
        return exchanged(workspace, texts, found.data, found.starts, found.stops, found.changes)

    def bind(self, texts: FragmentTexts, extent: Extent) -> list[BoundKernel]:
        """The kernel that finds what changes."""
        given = nfc_tables(old=True), *texts.columns, extent.number, 1, np.empty(texts.number, np.int64)
        return [BoundKernel(find_changed, given, texts, extent, 0, 0)]


class Decompose(Step):
    """Maps, and a normal form that takes characters apart, by one table. NFKC composes after it. `change`, in Python,
    does it for texts whose combining marks have to be put in order; bound for all others."""

    binds = True

    def __init__(self, table: Decomposition, composes: bool, change: Callable[[str], str]) -> None:
        self._table, self._change = table, change
        self._images, self._composes = replacements(table.images), ComposeNfc() if composes else None
        self.kernels = (write_replacements, find_changed if composes else find_disorder)

    def run(self, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
        """The fragments after this step."""
        made = self._images.run(workspace, texts)
        if self._composes is not None:
            return self._composes.run(workspace, made)
        odd = np.empty(texts.number, np.int64)
        found = workspace.run(find_disorder, self._table, *texts.columns, texts.number, odd)
        return by_python(self._change, workspace, texts, odd, made) if found else made

    def bind(self, texts: FragmentTexts, extent: Extent) -> list[BoundKernel]:
        """The table, and the kernel that finds what it does not do."""
        (images,) = self._images.bind(texts, extent)
        if self._composes is not None:
            return [images, *self._composes.bind(images.made, images.extent)]
        given = self._table, *texts.columns, extent.number, np.empty(texts.number, np.int64)
        return [BoundKernel(find_disorder, given, texts, extent, 0, 0), images]


class MarkWords(Step):
    """Pre-tokens, one after the other, and the bitmap of their starts after all of them."""

    binds, kernels = True, (mark_words,)

    def __init__(self, marking: WordBitmap) -> None:
        self._marking = marking

    def run(self, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
        """The fragments after this step."""
        texts = _padded(workspace, texts)
        (call,) = self.bind(texts, texts.extent)
        marking, work, *others = call.args
        out = call.args[-3]
        half = out.size // MARKS * 8
        out[half:] = 0
        if np.count_nonzero((texts.tokens < 0) & (texts.stops > texts.starts)) == 1:
            work = borrowed_from(out[:half], work, marking.splitter)
        workspace.run(mark_words, marking, work, *others)
        return call.made

    def bind(self, texts: FragmentTexts, extent: Extent) -> list[BoundKernel]:
        """The kernel with new arrays; PAD bytes are after the last of the texts. The bitmap must be zeroed before a
        call: it begins after `extent.size` bytes of `made`."""
        marking = self._marking
        grows = 2 if marking.spelled == SPELLS else 1 + marking.goes_on + marking.ends
        n = marked_capacity(grows * extent.size)
        dropped = np.empty(extent.longest // 64 + 1 if marking.behaves.size else 0, np.uint64)
        given = marking, make_split_work(extent.longest, marking.splitter), dropped, *texts.columns, extent.number
        return [written(mark_words, given, MARKS * n, texts.tokens, Extent(extent.number, 8 * n, 8 * n))]


def marked_capacity(size: int) -> int:
    """Bytes of the bitmap of pre-tokens of `size` bytes. They have 8 times as many themselves, before it."""
    return (size + SPARE_BYTES) // 64 * 8 + 8


class GraphemeClusters(Step):
    """sentencepiece's character map as tokenizers applies it; `plain`, in Python, for texts that the kernel leaves."""

    kernels = (write_clusters,)

    def __init__(self, table: Any, plain: Callable[[str], str]) -> None:
        self._table, self._plain = table, plain

    def run(self, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
        """The fragments after this step."""
        capacity, odd = self._table.growth * texts.size + 2 * STEP, np.empty(texts.number, np.int64)
        call = written(
            write_clusters, (self._table, *texts.columns, texts.number), capacity, texts.tokens, texts.extent
        )
        done = workspace.run(call.kernel, *call.args, odd)
        if done < 0:
            raise AssertionError(f"the map makes more of a text than {self._table.growth} times its bytes: code {done}")
        return by_python(self._plain, workspace, texts, odd, call.made) if odd.any() else call.made


class PythonStep(Step):
    """A function of Python, for the texts that it changes."""

    in_python = True

    def __init__(self, change: Callable[[str], str]) -> None:
        self._change = change

    def run(self, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
        """The fragments after this step."""
        return by_python(self._change, workspace, texts)


class ReferenceWords(Step):
    """`MarkWords` by the reference, for stages of a splitter that no automaton runs."""

    in_python = True

    def __init__(self, stages: tuple[Splitter, ...]) -> None:
        self._stages = stages

    def run(self, _workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
        """The fragments after this step."""
        docs, words = Documents(texts.data, texts.starts, texts.stops, texts.kept), bytearray()
        stops, marks = np.zeros(texts.number, np.int64), array("q")
        for k in range(texts.number):
            if texts.tokens[k] < 0:
                text = docs.between(int(texts.starts[k]), int(texts.stops[k])).decode()
                for word in cut_words(self._stages, text):
                    marks.append(len(words))
                    words += word.encode()
            stops[k] = len(words)
        n = marked_capacity(len(words))
        out, bits = np.zeros(MARKS * n, np.uint8), np.zeros(8 * n, np.uint8)
        out[: len(words)] = np.frombuffer(words, np.uint8)
        bits[marks] = 1
        out[8 * n :] = np.packbits(bits, bitorder="little")
        starts = np.append(0, stops[:-1])
        return FragmentTexts(read_only_view(out), read_only_view(starts), read_only_view(stops), texts.tokens)


class WordByWord(Step):
    """Steps on each pre-token of a step as if it were a text. The pre-tokens of a text are one text in the end."""

    def __init__(self, cut: Step, steps: tuple[Step, ...]) -> None:
        self._cut, self._steps = cut, steps
        self.in_python = any(step.in_python for step in (cut, *steps))
        self.kernels = tuple(kernel for step in (cut, *steps) for kernel in step.kernels)

    def run(self, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
        """The fragments after this step."""
        words, ends = _marked_words(self._cut.run(workspace, texts), texts.tokens)
        for step in self._steps:
            words = step.run(workspace, words)
        begins = np.concatenate([[0], ends[:-1]])
        stops = np.append(0, words.stops)[ends]  # those of a text without words are those before it
        starts = np.where(ends > begins, np.append(words.starts, 0)[begins], stops)
        return FragmentTexts(words.data, frozen(starts, np.int64), frozen(stops, np.int64), texts.tokens, words.kept)


def _marked_words(texts: FragmentTexts, tokens: NDArray[np.int32]) -> tuple[FragmentTexts, NDArray[np.int64]]:
    """(marked words as texts, int64[count]: their number up to the end of each text). A fragment with an id counts as
    one word."""
    size, used = texts.data.size // MARKS * 8, int(texts.stops.max(initial=0))
    bits = np.unpackbits(texts.data[size : size + used // 8 + 1], bitorder="little")[:used]
    positions = np.flatnonzero(bits)
    own = tokens >= 0
    ends = np.searchsorted(positions, texts.stops) + np.cumsum(own)
    count = positions.size + int(np.count_nonzero(own))
    rows = np.ones(count, np.bool_)
    rows[ends[own] - 1] = False
    starts, stops, kinds = np.zeros(count, np.int64), np.zeros(count, np.int64), np.empty(count, np.int32)
    starts[rows], stops[rows] = positions, np.append(positions[1:], used)
    starts[~rows] = stops[~rows] = texts.stops[own]
    kinds[rows], kinds[~rows] = TEXT, tokens[own]
    columns = read_only_view(starts), read_only_view(stops), read_only_view(kinds)
    return FragmentTexts(texts.data, *columns, texts.kept), ends


# ---- parts of steps


def by_python(
    change: Callable[[str], str], workspace: Workspace, texts: FragmentTexts, wanted: NDArray[np.int64] | None = None,
    others: FragmentTexts | None = None,
) -> FragmentTexts:  # fmt: skip
    """Apply a Python function to each text, or to those `wanted`; the rest are taken from `others`."""
    docs, changes = Documents(texts.data, texts.starts, texts.stops, texts.kept), np.full(texts.number, -1, np.int64)
    parts, starts, stops, at = [b""], np.zeros(texts.number, np.int64), np.zeros(texts.number, np.int64), 0
    rows = texts.tokens < 0 if wanted is None else (texts.tokens < 0) & (wanted != 0)
    for k in np.flatnonzero(rows).tolist():
        text = docs.between(int(texts.starts[k]), int(texts.stops[k])).decode()
        new = change(text)
        if new != text or wanted is not None:
            raw = new.encode()
            parts.append(raw)
            changes[k], starts[k], stops[k] = 0, at, at + len(raw)
            at += len(raw)
    if len(parts) == 1:
        return texts
    data = frozen(np.frombuffer(b"".join(parts), np.uint8), np.uint8)
    return exchanged(workspace, others or texts, data, read_only_view(starts), read_only_view(stops), changes)


def _padded(workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
    """The same with PAD bytes after the last text."""
    if texts.kept is None and int(texts.stops.max(initial=0)) + PAD <= texts.data.size:
        return texts
    nothing = np.full(texts.number, -1, np.int64)
    return exchanged(workspace, texts, NOTHING, texts.starts, texts.stops, nothing)


def cut_again(
    tokens: SpecialTokens, workspace: Workspace, texts: FragmentTexts, capacity: int = 16
) -> tuple[FragmentTexts, NDArray[np.int64]]:
    """(fragments cut at the tokens that are searched for in normalized text, int64[count]: their number up to the end
    of each text). capacity: at first, for so many more fragments than texts; if there are more, the search starts over
    with twice as much."""
    known = texts.tokens >= 0
    starts, stops = (frozen(np.where(known, 0, each), np.int64) for each in (texts.starts, texts.stops))
    capacity, ends = texts.number + capacity, np.empty(texts.number, np.int64)
    while True:
        found: list[NDArray[Any]] = [np.empty(capacity, kind) for kind in (np.int64, np.int64, np.int32)]
        code = workspace.run(
            cut_leftmost, tokens, no_tokens(), workspace.special_work, texts.data, starts, stops, 0, texts.number,
            NO_IDS, NO_IDS, *found, ends, workspace.report,
        )  # fmt: skip
        if code == OUT_OF_WORK:
            workspace.give_long(int(workspace.report[NEED]))
        elif code == OUT_OF_CAPACITY:
            capacity = max(int(workspace.report[NEED]), 2 * capacity)  # doubled, so that a text is searched a few times
        else:
            break
    ends += np.cumsum(known)
    count = int(ends[-1]) if ends.size else 0
    own = np.zeros(count, np.bool_)
    own[ends[known] - 1] = True
    given_of: list[NDArray[Any]] = [texts.starts, texts.stops, texts.tokens]
    columns: list[NDArray[Any]] = [np.empty(count, given.dtype) for given in given_of]
    for column, given, cut in zip(columns, given_of, found, strict=True):
        column[own] = given[known]
        column[~own] = cut[:code]
    own_starts, own_stops, own_tokens = map(read_only_view, columns)
    return FragmentTexts(texts.data, own_starts, own_stops, own_tokens, texts.kept), ends


# ---- steps of a file


def combined(steps: tuple[Map | Compose, ...]) -> Step:
    """One step for several maps and at most one normal form other than NFC; NFKC only as the last."""
    table, forms = decomposition(steps), [step.form for step in steps if isinstance(step, Compose)]
    made = Decompose(table, forms == ["NFKC"], partial(_changed, steps)) if forms else replacements(table.images)
    return done_by(made, *steps)


def done_by(made: Step, *does: Any) -> Step:
    """The step, with the records that say what it does."""
    made.does = does
    return made


def _changed(steps: tuple[Map | Compose, ...], text: str) -> str:
    for step in steps:
        text = text.translate(mapping(step.name)) if isinstance(step, Map) else normal_form(step.form, text)
    return text


def normalizer(step: Normalizer, user: Collection[bytes] = (), known: NDArray[np.bool_] | None = None) -> Step | None:
    """The step of one normalizer; None if it is not covered. user: texts that sentencepiece leaves as they are; known:
    see `sentencepiece_tables`."""
    made = _normalizer(step, user, known)
    return None if made is None else done_by(made, step)


def _normalizer(step: Normalizer, user: Collection[bytes], known: NDArray[np.bool_] | None) -> Step | None:
    if isinstance(step, Map | Compose):
        return ComposeNfc() if step == _NFC else combined((step,))
    if isinstance(step, Prepend):
        return prefix(_bytes_of(step.text), NOTHING, NOTHING, TEXT)
    if isinstance(step, Strip):
        return StripEnds(step.left, step.right)
    if isinstance(step, Squeeze):
        table = sentencepiece_tables(step, user, known)
        return None if table is None else sentencepiece(table)
    if isinstance(step, Clusters):
        clusters = clustered_of(step)
        return None if clusters is None else GraphemeClusters(clusters, by_reference(step))
    if isinstance(step, SpellBytes):
        return PythonStep(_spelled)
    return _replacing(step) if isinstance(step, Replace) else None


def _bytes_of(text: str) -> U8:
    return frozen(np.frombuffer(text.encode(), np.uint8), np.uint8)


def _spelled(text: str) -> str:
    """Each byte as its character of GPT-2's byte alphabet."""
    return text.encode().decode("latin-1").translate(_ALPHABET)


def _replacing(step: Replace) -> Step:
    pattern, content = step.pattern, step.content
    if pattern == RUNS:
        return without_runs(_bytes_of(content))
    members, run = one_set(pattern)
    if members is not None and len(content.encode()) <= LONGEST_IMAGE:
        return replacements(char_replacements({}, members, content, run))
    if pattern.literal:
        return PythonStep(partial(_replaced, pattern, content))
    try:
        explicit(pattern.text, pattern.engine)
    except PatternError:
        return PythonStep(by_reference(step))
    return PythonStep(partial(_replaced, pattern, content))


def _replaced(pattern: Pattern, content: str, text: str) -> str:
    if not text:
        return text
    if pattern.literal:
        return text.replace(pattern.text, content)
    parts, done = [], 0
    for match in compiled(pattern).finditer(text):
        start, stop = match.span()
        parts += [text[done:start], content]
        done = stop
    return "".join([*parts, text[done:]]) if parts else text
