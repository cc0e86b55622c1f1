"""The fallback: a `Pipeline` that no kernel covers is run by the Python reference, exactly and slowly.

`ReferenceEncoder` has the protocol of `Encoder`, so that batches, corpora and threads need no special case. A document
is one fragment.

`OddTexts` encodes fragments that a file's kernel leaves to Python (its code ODD_TEXT): characters that it does not
normalize. The reference encodes the pre-tokens around them, the kernel all others. Where the rest of the file's
normalizer is nothing but Python's own functions, these normalize the fragment, and a kernel for normalized text encodes
it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import once
from jittok.common.pipeline.models import Pieces, Unigram
from jittok.common.pipeline.pipeline import FIRST_TEXT, Pipeline
from jittok.common.pipeline.steps import Compose, Map, Normalizer, Pattern, Replace, Splitter
from jittok.common.unicode.libraries import mapping, normal_form
from jittok.common.unicode.tables import UNICODE_SIZE
from jittok.encode import limits
from jittok.encode.buffers import Workspace
from jittok.encode.plan import CUT, MODEL, NORMALIZE, SPLIT, FragmentTexts, PlanRow, place_of, special_tokens
from jittok.errors import EncodingFailed
from jittok.kernels.fragments import TEXT_PREFIXED
from jittok.kernels.inputs import PADDING, Documents
from jittok.kernels.jit import frozen

if TYPE_CHECKING:
    from jittok.encode.encoder import Encoder
    from jittok.reference.pipeline import Runner
    from jittok.reference.text import Piece
    from jittok.vocab import Vocab

ODD_CACHE = 8 << 20
"""Bytes of the cache for words beside odd marks."""
BETWEEN_WORDS = re.compile(rb"(?<=[!-~])(?= [!-~])")
"""Where a text may be cut whatever its normalizer: words are apart there, and nothing joins these characters."""
GENERAL_ARRAYS = ("general path",)
"""The cached value in place of arrays."""
PREFIX_CHARACTERS = 64
"""Characters of a text that tell how it begins when it is normalized, where no pattern needs more."""
_LOCAL_PATTERNS = (Pattern(" {2,}"), Pattern(r"\s+"), Pattern(r"\s{2,}"))
"""Patterns whose matches at the start of a text begin as those of a part of it."""
PARTS = ("arrays", "raw", "later", "raw_parsed", "later_parsed", "family", "prepared")
"""What is kept of an encoder: arguments of `file_plan.plan_of`."""


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

    def rows(self) -> list[PlanRow]:
        """The steps, for `Tokenizer.explain`."""
        from jittok.reference.models.word_model import word_model
        from jittok.reference.normalize import normalizer
        from jittok.reference.pipeline import Runner
        from jittok.reference.split import splitter

        def row(part: str, does: Any, function: Any) -> PlanRow:
            return PlanRow(part, (does,), "plain Python", place_of(function))

        return [
            row(CUT, f"cut around {special_tokens(self.vocab.added_ids.size)}", Runner.words),
            *(row(NORMALIZE, record, normalizer) for record in self.vocab.normalize),
            *(row(SPLIT, record, splitter) for record in self.vocab.split),
            row(MODEL, self.vocab.model, word_model),
        ]

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
        from jittok.reference.normalize import normalizer  # few texts need it

        return normalizer(step)

    def run(text: str) -> str:
        from jittok.reference.text import Piece

        return reference()(Piece(text, None)).text

    return run


def begins_at_start(pipeline: Pipeline, text: str) -> bool:
    """Whether the first character of a normalized text originates from the first one of the text, as tokenizers counts
    origins."""
    from jittok.reference.normalize import normalizer  # few texts need it
    from jittok.reference.text import Piece

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
    from jittok.reference.split import splitter
    from jittok.reference.text import Piece  # few texts need it

    words: Iterable[Piece] = [Piece(text, None)]
    for run in map(splitter, stages):
        words = chain.from_iterable(map(run, words))
    return (word.text for word in words)


def fragment_ids(pipeline: Pipeline, text: bytes) -> list[int]:
    """The ids of a text in which no added token is searched for, by the reference."""
    return _runner(pipeline).fragment(text.decode())


# ---- fragments that a kernel leaves to Python


def fragment_of_gguf(vocab: Vocab, text: bytes) -> list[int]:
    """The ids of a GGUF's fragment. Raises EncodingFailed, with the offset in it."""
    from jittok.reference.text import mapped
    from jittok.reference.tokenize import session

    return [token.id for token in session(vocab, mapped(text, 0, len(text)), True)]


class OddTexts:
    """Encodes such fragments of one encoder."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self._pipeline, self._family = encoder, encoder.plan.vocab, encoder.plan.family

    def ids(self, text: bytes) -> list[int] | NDArray[np.int32] | None:
        """The ids of a fragment, by the reference for pre-tokens with something odd in them, else by the kernel. None
        if the fragment is invalid UTF-8, which the kernel has not checked to the end."""
        try:
            text.decode()
        except UnicodeDecodeError:
            return None
        if self._family == "wpm":
            return self._words(text)
        parts = BETWEEN_WORDS.split(text)
        if len(parts) == 1:
            if len(text) < limits.VALIDATED_AT_ONCE or self._for_normalized is None:
                return fragment_ids(self._encoder.plan.rest, text)
            return self.ids_of_normalized(normalized(self._pipeline, text))
        return _run(self._encoder, parts)

    @once
    def _odd(self) -> NDArray[np.bool_]:
        """bool[0x110000]: WordPiece's odd characters."""
        from jittok.kernels.models.wpm.bert import bert_flags, characters

        flags, odd = bert_flags(self._pipeline), np.zeros(UNICODE_SIZE, np.bool_)
        assert flags is not None  # checked when the pipeline was compiled
        odd[characters(flags).odd] = True
        return odd

    def _words(self, text: bytes) -> NDArray[np.int32]:
        """The ids of a WordPiece fragment: Python normalizes it, and an encoder without odd characters encodes it."""
        from jittok.kernels.models.wpm.bert import rewritten

        new = rewritten(self._odd, partial(normalized, self._pipeline), text.decode()).encode()
        return self.ids_of_normalized(new)

    @once
    def _for_normalized(self) -> Encoder | None:
        """The encoder of text that is normalized already; None if no kernel covers it."""
        from jittok.encode.encoder import Encoder
        from jittok.encode.file_plan import plan_of

        if self._family == "wpm":
            from jittok.kernels.models.wpm import files

            arrays: Any = files.compile_pipeline(self._pipeline, odd=False)
            return Encoder(plan_of(self._pipeline, arrays, family="wpm"), cache_bytes=ODD_CACHE)
        from jittok.kernels.models.ugm.file_compile import compile_pipeline
        from jittok.kernels.models.ugm.normalizer_tables import RUNS

        steps = self._pipeline.normalize
        runs = [step for step in steps[-1:] if isinstance(step, Replace) and step.pattern == RUNS]  # none is left
        rest = self._pipeline._replace(normalize=tuple(runs))
        known = isinstance(rest.model, Unigram) and len(steps) > len(runs)
        arrays = compile_pipeline(rest) if known else None
        return None if arrays is None else Encoder(plan_of(rest, arrays, family="unigram"), cache_bytes=ODD_CACHE)

    def ids_of_normalized(self, text: bytes) -> NDArray[np.int32]:
        """The ids of a fragment that is normalized already."""
        encoder = self._for_normalized
        assert encoder is not None  # checked by the caller
        return _run(encoder, [text])


def _run(encoder: Encoder, parts: list[bytes]) -> NDArray[np.int32]:
    """The ids of texts, valid UTF-8, one after the other."""
    stops = np.cumsum([len(part) for part in parts], dtype=np.int64)
    starts = stops - [len(part) for part in parts]
    texts = FragmentTexts(
        np.frombuffer(b"".join(parts) + PADDING, np.uint8), frozen(starts, np.int64), frozen(stops, np.int64),
        frozen(np.full(len(parts), TEXT_PREFIXED), np.int32),
    )  # fmt: skip
    with encoder.workspace() as workspace:
        done = encoder.run(workspace, texts, len(parts), 0, np.empty(len(parts), np.int64), False)
        if not isinstance(done, int):
            raise AssertionError(f"text that is valid UTF-8 gave {done}")
        return workspace.ids[:done].copy()
