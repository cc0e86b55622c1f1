"""The fallback: a `Pipeline` that no kernel covers is run by the Python reference, exactly and slowly.

`ReferenceEncoder` has the protocol of `Encoder`, so that batches, corpora and threads need no special case. A document
is one fragment.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.models import Pieces
from jittok.common.pipeline.pipeline import FIRST_TEXT, Pipeline
from jittok.common.pipeline.steps import Compose, Map, Normalizer, Pattern, Replace, Splitter
from jittok.common.unicode.libraries import mapping, normal_form
from jittok.encode.workspace import Workspace
from jittok.errors import EncodingFailed
from jittok.kernels.inputs import Documents

if TYPE_CHECKING:
    from jittok.reference.pipeline import Runner
    from jittok.reference.pipeline.normalize import Piece

GENERAL_ARRAYS = ("general path",)
"""The cached value in place of arrays."""
PREFIX_CHARACTERS = 64
"""Characters of a text that tell how it begins when it is normalized, where no pattern needs more."""
_LOCAL_PATTERNS = (Pattern(" {2,}"), Pattern(r"\s+"), Pattern(r"\s{2,}"))
"""Patterns whose matches at the start of a text begin as those of a part of it."""
PARTS = ("arrays", "raw", "later", "raw_parsed", "later_parsed", "family", "prepared")
"""What is kept of an encoder: arguments of `PipelineEncoder`."""


class ReferenceEncodeOptions(NamedTuple):
    """How documents are encoded."""

    add_special: bool
    parse_special: bool
    replace: bool
    around: tuple[int, int]  # number of ids before each document, and after it


class ReferenceEncoder:
    """A Pipeline that encodes without kernels. Safe to share between threads."""

    arrays = None
    ids_per_byte = 0.4
    in_python = True

    def __init__(self, pipeline: Pipeline) -> None:
        self.vocab = pipeline

    def rule(self, add_special: bool, parse_special: bool, replace: bool) -> ReferenceEncodeOptions:
        """The options of one call."""
        single = self.vocab.single if add_special else (FIRST_TEXT,)
        at = single.index(FIRST_TEXT)
        around = at, len(single) - at - 1
        return ReferenceEncodeOptions(bool(add_special), bool(parse_special), bool(replace), around)

    def compiled(self) -> dict[str, Any]:
        """Empty: nothing is compiled. The cache records that, too."""
        return dict.fromkeys(PARTS, GENERAL_ARRAYS)

    def can_split_at_spaces(self, _size: int) -> bool:
        """Never: no safe cuts are known."""
        return False

    def try_short_text(self, _text: object, _rule: ReferenceEncodeOptions) -> None:
        """Never: `one` encodes every text."""

    def one(self, text: bytes, rule: ReferenceEncodeOptions) -> NDArray[np.int32]:
        """int32[n]: the ids of one text. Raises EncodingFailed."""
        return self._ids(text, rule, 0)

    def pair(self, first: bytes, second: bytes, rule: ReferenceEncodeOptions) -> NDArray[np.int32]:
        """int32[n]: the ids of two texts as the file's template joins them."""
        parts = [self._bare_ids(text, rule, k).tolist() for k, text in enumerate((first, second))]
        return np.array(_runner(self.vocab).around(parts[0], parts[1], rule.add_special), np.int32)

    def _bare_ids(self, text: bytes, rule: ReferenceEncodeOptions, document: int) -> array[int]:
        try:
            return _runner(self.vocab).ids(as_text(text, rule.replace, document), rule.parse_special)
        except EncodingFailed as error:
            raise EncodingFailed(document, error.offset, error.found, error.expected) from None

    def _ids(self, text: bytes, rule: ReferenceEncodeOptions, document: int) -> NDArray[np.int32]:
        ids = self._bare_ids(text, rule, document)
        found = np.frombuffer(ids, np.int32) if ids else np.empty(0, np.int32)
        if not any(rule.around):
            return found
        single, before = self.vocab.single, rule.around[0]
        return np.concatenate([single[:before], found, single[before + 1 :]], dtype=np.int32, casting="unsafe")

    def acquire(self) -> Workspace:
        """A new workspace."""
        return Workspace()

    def release(self, workspace: Workspace) -> None:
        """Nothing is kept."""

    def workspace(self) -> AbstractContextManager[Workspace]:
        """Context manager: a new workspace."""
        return nullcontext(Workspace())

    def tidy(self, workspace: Workspace, longest: int) -> None:
        """There is no scratch."""

    def cut(self, workspace: Workspace, docs: Documents, first: int, last: int, _rule: ReferenceEncodeOptions) -> int:
        """Write one fragment for each document. Returns their number."""
        count = last - first
        if workspace.document_ends.size < count:
            workspace.grow_ends(count)
        if workspace.starts.size < count:
            workspace.grow_fragments(count)
        workspace.document_ends[:count] = np.arange(1, count + 1)
        workspace.starts[:count], workspace.stops[:count] = docs.starts[first:last], docs.stops[first:last]
        return count

    def encode(
        self, workspace: Workspace, docs: Documents, first: int, last: int, _fragments: int,
        rule: ReferenceEncodeOptions, base: int, at: int = 0,
    ) -> int:  # fmt: skip
        """Write the ids of documents first .. last - 1 to the workspace after its first `at`. Returns the number of its
        ids now."""
        for k in range(first, last):
            text = docs.between(int(docs.starts[k]), int(docs.stops[k]))
            ids = self._ids(text, rule, base + k)
            if workspace.ids.size < at + len(ids):
                workspace.grow_ids(2 * (at + len(ids)), at)
            workspace.ids[at : at + len(ids)] = ids
            at += len(ids)
            workspace.ends[k - first] = at
        return at


def _runner(pipeline: Pipeline) -> Runner:
    """The Python reference of a Pipeline."""
    from jittok.reference.pipeline import runner  # few texts need it

    return runner(pipeline)


def as_text(raw: bytes, replace: bool, document: int = 0) -> str:
    """The text of bytes. Invalid UTF-8 becomes U+FFFD with `replace`, and raises EncodingFailed without."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        if replace:
            return raw.decode("utf-8", "replace")
        expected = "UTF-8 (errors='replace' makes it U+FFFD)"
        raise EncodingFailed(document, error.start, raw[error.start : error.start + 4], expected) from None


def steps_of(pipeline: Pipeline) -> tuple[str, ...]:
    """Names of the steps of a Pipeline; on the fallback path none of them has a kernel."""
    names = [type(step).__name__ for step in (*pipeline.normalize, *pipeline.split)]
    model = pipeline.model
    own = f"{type(model).__name__}({model.kind})" if isinstance(model, Pieces) else type(model).__name__
    return (*dict.fromkeys(names), own)


def normalized(pipeline: Pipeline, text: bytes) -> bytes:
    """A text after all normalizers: maps and normal forms by `str` and `unicodedata`, others by the reference."""
    whole = text.decode()
    if all(isinstance(step, Map | Compose) for step in pipeline.normalize):
        for step in pipeline.normalize:
            whole = whole.translate(mapping(step.name)) if isinstance(step, Map) else whole
            whole = normal_form(step.form, whole) if isinstance(step, Compose) else whole
        return whole.encode()
    return _runner(pipeline).normalized(whole).encode()


def by_reference(step: Normalizer) -> Callable[[str], str]:
    """The function of one normalizer, by the reference. The reference is created once, at the first text: that of a
    character map has large tables."""

    @cache
    def reference() -> Callable[[Piece], Piece]:
        from jittok.reference.pipeline.normalize import normalizer  # few texts need it

        return normalizer(step)

    def run(text: str) -> str:
        from jittok.reference.pipeline.normalize import Piece

        return reference()(Piece(text, None)).text

    return run


def begins_at_start(pipeline: Pipeline, text: str) -> bool:
    """Whether the first character of a normalized text originates from the first one of the text, as tokenizers counts
    origins."""
    from jittok.reference.pipeline.normalize import Piece, normalizer  # few texts need it

    patterns = [step.pattern for step in pipeline.normalize if isinstance(step, Replace)]
    known = all(
        (pattern.literal and len(pattern.text) < PREFIX_CHARACTERS) or pattern in _LOCAL_PATTERNS
        for pattern in patterns
    )
    size = PREFIX_CHARACTERS if known else len(text)
    while True:
        piece = Piece(text[:size], [*range(min(size, len(text)))])
        for step in pipeline.normalize:
            piece = normalizer(step)(piece)
        if piece.text or size >= len(text):
            return bool(piece.positions) and (piece.positions or [])[0] == 0
        size *= 8


def cut_words(stages: tuple[Splitter, ...], text: str) -> Iterator[str]:
    """The pre-tokens of a text by stages of a splitter that do not need origins, by the reference, one at a time."""
    from jittok.reference.pipeline.normalize import Piece  # few texts need it
    from jittok.reference.pipeline.split import splitter

    words: Iterable[Piece] = [Piece(text, None)]
    for run in map(splitter, stages):
        words = chain.from_iterable(map(run, words))
    return (word.text for word in words)


def fragment_ids(pipeline: Pipeline, text: bytes) -> list[int]:
    """The ids of a text in which no added token is searched for, by the reference."""
    return _runner(pipeline).fragment(text.decode())
