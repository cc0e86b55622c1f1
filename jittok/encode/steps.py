"""The steps that prepare texts of a file's Pipeline for kernels: they normalize, cut at added tokens, write prefixes.

Each step copies the fragments of a stretch, one after another, into a new array. What no kernel does (such as patterns
that are replaced) is done by Python's own functions, for the fragments that it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache, partial
from typing import Any, NamedTuple

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
    Squeeze,
    Strip,
)
from jittok.common.unicode.characters import SPACE_BYTE
from jittok.common.unicode.libraries import mapping, normal_form
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.encode.reference_encoder import by_reference
from jittok.encode.workspace import Workspace
from jittok.kernels.fragments import NEED, OUT_OF_CAPACITY, OUT_OF_WORK, PAD, TEXT
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import I32, I64, U8, frozen
from jittok.kernels.models.ugm.files.cluster_map import Clustered, clustered_of, write_clusters
from jittok.kernels.models.ugm.files.normalizer import STEP
from jittok.kernels.models.ugm.files.normalizer_tables import RUNS
from jittok.kernels.normalize.char_replacements import CharReplacements, char_replacements, write_replacements
from jittok.kernels.normalize.decomposition import Decomposition, decomposition, find_disorder
from jittok.kernels.normalize.nfc_fragments import changed_fragments, nfc_tables
from jittok.kernels.normalize.prefixes import gather, strip_white, write_prefixes, write_runs
from jittok.kernels.normalize.sentencepiece import SentencePieceTables, sentencepiece_tables, write_normalized
from jittok.kernels.pretokenize.compile import one_set
from jittok.kernels.pretokenize.splitters.borrowed_scratch import borrowed_from
from jittok.kernels.pretokenize.splitters.general import make_split_work
from jittok.kernels.pretokenize.splitters.word_bitmap import MARKS, SPELLS, WordBitmap, mark_words
from jittok.kernels.special.leftmost import cut_leftmost
from jittok.kernels.special.tables import SpecialTokens, tables_of
from jittok.kernels.structures.long_keys import make_ahead

SPARE_BYTES = 1024
"""Bytes after marked words, so that kernels may read and write in blocks."""
LONGEST_IMAGE = 64
"""Bytes of what a character may become in a kernel, which keeps capacity for that many wherever one is."""
NOTHING: U8 = frozen([], np.uint8)
NO_IDS: I32 = frozen([], np.int32)
_NFC = Compose("NFC")
_ALPHABET = dict(enumerate(map(chr, CHARACTER_OF_BYTE)))


class FragmentTexts(NamedTuple):
    """The fragments of texts, see `jittok.kernels.fragments`."""

    data: U8
    starts: I64
    stops: I64
    tokens: I32
    kept: tuple[Any, ...] | None = None  # as in Documents: then only kernels may read at these offsets

    @property
    def number(self) -> int:
        """Number of fragments."""
        return int(self.tokens.size)

    @property
    def size(self) -> int:
        """Bytes of all texts."""
        return int(np.where(self.tokens < 0, self.stops - self.starts, 0).sum())

    def some(self, its: slice) -> FragmentTexts:
        """A slice of them."""
        return self._replace(starts=self.starts[its], stops=self.stops[its], tokens=self.tokens[its])


Step = Callable[[Workspace, FragmentTexts], FragmentTexts]


def empty_offsets(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two arrays for the starts and stops of texts."""
    return np.empty(count, np.int64), np.empty(count, np.int64)


def read_only_view(array: NDArray[Any]) -> Any:
    """The same array, read-only: it is not written any more."""
    array.flags.writeable = False
    return array


def texts_of(
    data: NDArray[np.uint8], positions: tuple[NDArray[np.int64], NDArray[np.int64]], tokens: I32
) -> FragmentTexts:
    """Texts from what a kernel has written."""
    return FragmentTexts(read_only_view(data), read_only_view(positions[0]), read_only_view(positions[1]), tokens)


def with_replacements(table: CharReplacements, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
    """Replace every character by its entry in a table."""
    out, positions = np.empty(table.growth * texts.size + PAD, np.uint8), empty_offsets(texts.number)
    workspace.run(
        write_replacements, table, texts.data, texts.starts, texts.stops, texts.tokens, texts.number, out, *positions
    )
    return texts_of(out, positions, texts.tokens)


def sentencepiece_normalized(table: SentencePieceTables, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
    """Normalize each text as sentencepiece does."""
    out, positions = np.empty(table.growth * texts.size + texts.number + PAD, np.uint8), empty_offsets(texts.number)
    workspace.run(
        write_normalized, table, texts.data, texts.starts, texts.stops, texts.tokens, texts.number,
        make_ahead(table.long), out, *positions,
    )  # fmt: skip
    return texts_of(out, positions, texts.tokens)


def _clustered(
    table: Clustered, plain: Callable[[str], str], workspace: Workspace, texts: FragmentTexts
) -> FragmentTexts:
    out, positions = np.empty(table.growth * texts.size + 2 * STEP, np.uint8), empty_offsets(texts.number)
    odd = np.empty(texts.number, np.int64)
    done = workspace.run(
        write_clusters, table, texts.data, texts.starts, texts.stops, texts.tokens, texts.number, out, *positions, odd
    )
    if done < 0:
        raise AssertionError(f"the map makes more of a text than {table.growth} times its bytes: code {done}")
    made = texts_of(out, positions, texts.tokens)
    return by_python(plain, workspace, texts, odd, made) if odd.any() else made


def without_runs(content: U8, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
    """Replace each run of spaces by `content`."""
    out, positions = np.empty((1 + content.size) * texts.size + PAD, np.uint8), empty_offsets(texts.number)
    workspace.run(
        write_runs, texts.data, texts.starts, texts.stops, texts.tokens, texts.number, SPACE_BYTE, 2, content, out,
        *positions,
    )  # fmt: skip
    return texts_of(out, positions, texts.tokens)


def with_prefix(
    prefix: U8, unless: U8, other: U8, least: int, workspace: Workspace, texts: FragmentTexts
) -> FragmentTexts:
    """Write a prefix before each text, see `write_prefixes`."""
    out, positions = np.empty(texts.size + texts.number * prefix.size + PAD, np.uint8), empty_offsets(texts.number)
    workspace.run(
        write_prefixes, texts.data, texts.starts, texts.stops, texts.tokens, texts.number, prefix, unless, other, least,
        out,
        *positions,
    )  # fmt: skip
    return texts_of(out, positions, texts.tokens)


def stripped(step: Strip, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
    """Strip white space at the ends."""
    positions = empty_offsets(texts.number)
    workspace.run(
        strip_white, texts.data, texts.starts, texts.stops, texts.tokens, texts.number, int(step.left),
        int(step.right), *positions,
    )  # fmt: skip
    return FragmentTexts(
        texts.data, read_only_view(positions[0]), read_only_view(positions[1]), texts.tokens, texts.kept
    )


def composed(workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
    """NFC, with the Unicode version of tokenizers."""
    found = changed_fragments(
        nfc_tables(old=True), texts.data, texts.starts, texts.stops, texts.tokens, texts.number, strict=True
    )
    if found is None:
        return texts
    return _exchanged(workspace, texts, found.data, found.starts, found.stops, found.changes)


def _exchanged(
    workspace: Workspace, texts: FragmentTexts, data: U8, starts: I64, stops: I64, changes: NDArray[np.int64]
) -> FragmentTexts:
    """The texts, with text changes[k] of `data` in place of text k where changes[k] >= 0."""
    size = texts.size + int(np.where(changes >= 0, stops - starts, 0).sum())
    out, positions = np.empty(size + PAD, np.uint8), empty_offsets(texts.number)
    workspace.run(
        gather, texts.data, texts.starts, texts.stops, data, starts, stops, frozen(changes, np.int64), texts.tokens,
        texts.number, out, *positions,
    )  # fmt: skip
    return texts_of(out, positions, texts.tokens)


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
    return _exchanged(workspace, others or texts, data, read_only_view(starts), read_only_view(stops), changes)


def _padded(workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
    """The same with PAD bytes after the last text."""
    if texts.kept is None and int(texts.stops.max(initial=0)) + PAD <= texts.data.size:
        return texts
    nothing = np.full(texts.number, -1, np.int64)
    return _exchanged(workspace, texts, NOTHING, texts.starts, texts.stops, nothing)


def with_bitmap(marking: WordBitmap, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
    """The pre-tokens of texts, concatenated, and the bitmap of word starts after all of them."""
    texts = _padded(workspace, texts)
    longest = int((texts.stops - texts.starts).max(initial=0))
    grows = 2 if marking.spelled == SPELLS else 1 + marking.goes_on + marking.ends
    n = (grows * texts.size + SPARE_BYTES) // 64 * 8 + 8
    out, positions = np.empty(MARKS * n, np.uint8), empty_offsets(texts.number)
    out[8 * n :] = 0
    work = make_split_work(longest, marking.splitter)
    if np.count_nonzero((texts.tokens < 0) & (texts.stops > texts.starts)) == 1:
        work = borrowed_from(out[: 8 * n], work, marking.splitter)
    dropped = np.empty(longest // 64 + 1 if marking.behaves.size else 0, np.uint64)
    workspace.run(
        mark_words, marking, work, dropped, texts.data, texts.starts, texts.stops, texts.tokens,
        texts.number, out, *positions,
    )  # fmt: skip
    return texts_of(out, positions, texts.tokens)


@cache
def no_tokens() -> SpecialTokens:
    """Tables of a search that finds nothing."""
    return tables_of([], NO_IDS, np.zeros(0, np.uint8))


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
            capacity = int(workspace.report[NEED])
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
    return FragmentTexts(
        texts.data, read_only_view(columns[0]), read_only_view(columns[1]), read_only_view(columns[2]), texts.kept
    ), ends


# ---- steps of a file


def combined(steps: tuple[Map | Compose, ...]) -> Step:
    """One step for several maps and at most one normal form other than NFC; NFKC only as the last."""
    table, forms = decomposition(steps), [step.form for step in steps if isinstance(step, Compose)]
    if not forms:
        return partial(with_replacements, table.images)
    return partial(decomposed, table, forms == ["NFKC"], partial(_changed, steps))


def _changed(steps: tuple[Map | Compose, ...], text: str) -> str:
    for step in steps:
        text = text.translate(mapping(step.name)) if isinstance(step, Map) else normal_form(step.form, text)
    return text


def decomposed(
    table: Decomposition, composes: bool, change: Callable[[str], str], workspace: Workspace, texts: FragmentTexts
) -> FragmentTexts:
    """Maps and a normal form by tables; `change`, in Python, for texts whose combining marks are reordered."""
    made = with_replacements(table.images, workspace, texts)
    if composes:
        return composed(workspace, made)
    odd = np.empty(texts.number, np.int64)
    found = workspace.run(find_disorder, table, texts.data, texts.starts, texts.stops, texts.tokens, texts.number, odd)
    return by_python(change, workspace, texts, odd, made) if found else made


def normalizer(step: Normalizer, user: Collection[bytes] = (), known: NDArray[np.bool_] | None = None) -> Step | None:
    """The step of one normalizer; None if it is not covered. user: texts that sentencepiece leaves as they are; known:
    see `sentencepiece_tables`."""
    if isinstance(step, Map | Compose):
        return composed if step == _NFC else combined((step,))
    if isinstance(step, Prepend):
        return partial(
            with_prefix, frozen(np.frombuffer(step.text.encode(), np.uint8), np.uint8), NOTHING, NOTHING, TEXT
        )
    if isinstance(step, Strip):
        return partial(stripped, step)
    if isinstance(step, Squeeze):
        table = sentencepiece_tables(step, user, known)
        return None if table is None else partial(sentencepiece_normalized, table)
    if isinstance(step, Clusters):
        clusters = clustered_of(step)
        return None if clusters is None else partial(_clustered, clusters, by_reference(step))
    if isinstance(step, SpellBytes):
        return partial(by_python, _spelled)
    return _replacing(step) if isinstance(step, Replace) else None


def _spelled(text: str) -> str:
    """Each byte as its character of GPT-2's byte alphabet."""
    return text.encode().decode("latin-1").translate(_ALPHABET)


def _replacing(step: Replace) -> Step:
    pattern, content = step.pattern, step.content
    if pattern == RUNS:
        return partial(without_runs, frozen(np.frombuffer(content.encode(), np.uint8), np.uint8))
    members, run = one_set(pattern)
    if members is not None and len(content.encode()) <= LONGEST_IMAGE:
        return partial(with_replacements, char_replacements({}, members, content, run))
    if pattern.literal:
        return partial(by_python, partial(_replaced, pattern, content))
    try:
        explicit(pattern.text, pattern.engine)
    except PatternError:
        return partial(by_python, by_reference(step))
    return partial(by_python, partial(_replaced, pattern, content))


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
