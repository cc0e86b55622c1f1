"""Cuts texts: encodes what the kernel of `search` asks for, many texts at a time, on several threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.chunks.texts.adjacent import Adjacent
from jittok.chunks.texts.clusters import cluster_table, mark_clusters
from jittok.chunks.texts.search.chains import Answers, CutOptions, Questions
from jittok.chunks.texts.search.kernel import advance
from jittok.chunks.texts.search.sections import (
    AFTER_SPACE,
    BY_ASKING,
    LONGEST_SECTION,
    NO_COUNT,
    NOWHERE,
    Sections,
    cut_sections,
)
from jittok.chunks.texts.search.state import (
    AT_ONCE,
    BEGIN,
    FIELDS,
    FIRST_BYTES,
    FIRST_IDS,
    KEPT_END,
    LAST,
    LAST_SECTION,
    LIKED_FIRST,
    LIKED_LAST,
    PHASE,
    PIECE,
    PURPOSE,
    SECTION,
    START,
    STUCK,
    TEXT_START,
    TEXT_STOP,
)  # fmt: skip
from jittok.encode.plan import FragmentTexts
from jittok.errors import EncodingFailed
from jittok.kernels.fragments import TEXT, TEXT_PREFIXED
from jittok.kernels.inputs import PADDING, Documents
from jittok.kernels.jit import I64, U8, Call, frozen

if TYPE_CHECKING:
    from jittok.encode.buffers import Workspace
    from jittok.encode.cutters import EncodeOptions
    from jittok.encode.encoder import Encoder

NO_PLACES = np.zeros(0, np.int64)
FEWEST_IDS, SECTION_BYTES = 16, 96
"""Sections are of use for pieces of so many ids; about the least bytes of one."""


class Cut(NamedTuple):
    """Pieces of some texts: int64[n] each, in order; and where a text could not be cut, or -1."""

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    counts: NDArray[np.int64]
    stuck: int  # the first text with a character that has too many ids, or -1
    stuck_at: int  # where that is in the data


class Likes(NamedTuple):
    """Where pieces like to end: places[offsets[k]:offsets[k + 1]], bytes of the data, are those of text k."""

    places: NDArray[np.int64]
    offsets: NDArray[np.int64]


class TokenSizes(NamedTuple):
    """How many bytes of a text tokens cover."""

    least: NDArray[np.uint16]  # [tokens + 1] token k - 1 covers as many or more; a guess if not `exact`
    prefix: int  # bytes that the first token covers beside those of the text
    exact: int  # 1: sizes that add up to a text are exact
    begins: NDArray[np.uint8]  # [tokens + 1] 1: token k - 1 begins a word, ANYWHERE: it may begin inside of one
    way: int  # what tells where words begin in a section: see `sections`
    rounds: int = 0  # 1: which tokens a text has may depend on how sums of scores from its start are rounded


class Joins(NamedTuple):
    """Whether ids of sections are those of the text that they are of."""

    where: int  # NOWHERE: they are not; BEFORE_SPACE ..: if they end there
    alone: int  # 1: so are those of a text that begins where a section does


NO_JOINS = Joins(NOWHERE, 0)
_NONE: I64 = frozen([], np.int64)
_NO_BYTES: U8 = frozen([], np.uint8)
NO_SECTIONS = Sections(
    _NONE, _NONE, frozen([0], np.int64), frozen([], np.int32), _NONE, _NO_BYTES, BY_ASKING, NOWHERE, 0
)


class Cutter:
    """Cuts texts for one encoder and one rule."""

    def __init__(
        self, encoder: Encoder, rule: EncodeOptions, adjacent: Adjacent, sizes: TokenSizes, joins: Joins = NO_JOINS
    ) -> None:  # fmt: skip
        self.encoder, self.rule, self.adjacent, self.sizes, self.joins = encoder, rule, adjacent, sizes, joins
        self.around = (*rule.around, sizes.prefix, sizes.exact, sizes.rounds)
        """The last five of CutOptions."""
        self._may_be_whole = not encoder.in_python and encoder.reads_whole(rule)

    def cut(self, docs: Documents, options: CutOptions, likes: Likes | None = None, from_end: bool = False) -> Cut:
        """The pieces of documents, valid UTF-8 in memory of their own with PAD bytes after it. from_end: of each only
        what `truncate` keeps of its end."""
        if docs.starts.size == 0:
            return Cut(NO_PLACES, NO_PLACES, NO_PLACES, NO_PLACES, -1, -1)
        state = _chains(docs, likes, from_end)
        bits = boundaries(docs)
        made, liked = np.array([0, FIRST_BYTES, FIRST_IDS, 0]), NO_PLACES if likes is None else likes.places
        pieces = np.empty(PIECE * 4 * docs.starts.size, np.int64)
        asked = _Questions(docs)
        joins = NO_JOINS if options.once or options.most < FEWEST_IDS else self.joins
        with self.encoder.workspace() as workspace:
            whole = self.is_whole(workspace, docs)
            sections, firsts = self.sections(workspace, docs, bits, joins, min(options.most, SECTION_BYTES), whole)
            chains = state.reshape(-1, FIELDS)
            chains[:, SECTION], chains[:, LAST_SECTION] = firsts[:-1], firsts[1:]
            fixed = self.adjacent, options, docs.data, frozen(bits, np.uint64), frozen(liked, np.int64), sections, state
            call, ids = None, workspace.ids
            while True:
                full = pieces.size < PIECE * (int(made[0]) + docs.starts.size) or made[3]
                if full:
                    pieces = np.concatenate([pieces, np.empty(2 * pieces.size, np.int64)])
                if call is None or full or workspace.ids is not ids:
                    ids = workspace.ids
                    answers = Answers(frozen(ids, np.int32), asked.read_ends, self.sizes.least)
                    given = *fixed, answers, Questions(asked.starts, asked.stops, asked.kinds), pieces, made
                    call = Call(advance, given)
                questions = int(call())
                if questions:
                    self._answer(workspace, asked, questions, whole)
                elif not made[3]:
                    break
        return _laid_out(pieces[: PIECE * int(made[0])], state)

    def is_whole(self, workspace: Workspace, docs: Documents) -> bool:
        """Whether any part of the documents is one fragment."""
        return self._may_be_whole and self.encoder.finds_nothing(workspace, docs, self.rule)

    def sections(
        self, workspace: Workspace, docs: Documents, bits: NDArray[np.uint64], joins: Joins, least: int, whole: bool
    ) -> tuple[Sections, NDArray[np.int64]]:  # fmt: skip
        """The sections of documents, each of `least` bytes or more, and int64[documents + 1]: the first of each."""
        firsts = np.zeros(docs.starts.size + 1, np.int64)
        inside = whole or joins.alone  # else no text can be encoded as the inside of one
        if joins.where == NOWHERE or not inside or self.encoder.in_python:
            return NO_SECTIONS, firsts
        most = int((docs.stops - docs.starts).sum()) // least + docs.starts.size
        begins, ends = np.empty(most, np.int64), np.empty(most, np.int64)
        where = docs.starts, docs.stops
        count = cut_sections(
            self.adjacent, docs.data, frozen(bits, np.uint64), *where, joins.where, least, begins, ends, firsts
        )
        begins, ends = begins[:count], ends[:count]
        kinds = np.full(count, TEXT if joins.where < AFTER_SPACE else TEXT_PREFIXED, np.int32)
        kinds[firsts[:-1][docs.starts < docs.stops]] = TEXT_PREFIXED
        long = ends - begins > LONGEST_SECTION
        texts = FragmentTexts(
            docs.data, frozen(begins, np.int64), frozen(np.where(long, begins, ends), np.int64),
            frozen(kinds, np.int32)
        )  # fmt: skip
        of_ids = np.empty(count, np.int64)
        try:
            self._encode(workspace, texts, count, of_ids, whole)
        except EncodingFailed:  # with the offset in a section; the search finds the first in a text
            return NO_SECTIONS, np.zeros(docs.starts.size + 1, np.int64)
        counts = np.diff(of_ids, prepend=0) - sum(self.rule.around)
        counts[long] = NO_COUNT
        before = np.zeros(count + 1, np.int64)
        np.cumsum(counts, out=before[1:])
        ids = workspace.ids[: int(of_ids[-1]) if count else 0].copy()
        columns = texts.starts, frozen(ends, np.int64), frozen(before, np.int64)
        rest = frozen(of_ids, np.int64), frozen(self.sizes.begins, np.uint8)
        way = self.sizes.way
        return Sections(*columns, frozen(ids, np.int32), *rest, way, joins.where, joins.alone), firsts

    def _answer(self, workspace: Workspace, asked: _Questions, questions: int, whole: bool) -> None:
        """Encode what was asked for: ids are in the workspace, their ends in `asked`."""
        try:
            self._encode(workspace, asked.texts, questions, asked.ends, whole)
        except EncodingFailed as error:
            raise asked.failure(error) from None

    def _encode(
        self, workspace: Workspace, texts: FragmentTexts, number: int, ends: NDArray[np.int64], whole: bool
    ) -> None:  # fmt: skip
        """Encode the first `number` texts to the workspace; write the ends of their ids. whole: a text is a
        fragment."""
        encoder = self.encoder
        if whole and isinstance(encoder.encode_whole(workspace, texts, number, ends), int):
            return
        docs = Documents(texts.data, texts.starts[:number], texts.stops[:number])
        if encoder.in_python:
            places = zip(docs.starts.tolist(), docs.stops.tolist(), strict=True)
            rows = [encoder.one(docs.between(*place), self.rule) for place in places]
            workspace.ids = np.concatenate(rows)
            ends[:number] = np.cumsum([row.size for row in rows])
            return
        fragments = encoder.cut(workspace, docs, 0, number, self.rule)
        encoder.encode(workspace, docs, 0, number, fragments, self.rule, 0)
        of_documents = workspace.document_ends[:number]
        ends[:number] = np.where(of_documents == 0, 0, workspace.ends[of_documents - 1])


def one_document(raw: bytes) -> Documents:
    """A text in memory of its own."""
    data = frozen(np.frombuffer(raw + PADDING, np.uint8), np.uint8)
    return Documents(data, frozen([0], np.int64), frozen([len(raw)], np.int64))


def boundaries(docs: Documents) -> NDArray[np.uint64]:
    """The bitmap of `mark_clusters`."""
    bits = np.zeros(docs.data.size // 64 + 2, np.uint64)
    mark_clusters(cluster_table(), docs.data, docs.starts, docs.stops, bits)
    return bits


class _Questions:
    """The texts that chains ask for, in arrays that stay where they are."""

    def __init__(self, docs: Documents) -> None:
        most = AT_ONCE * docs.starts.size
        self.docs = docs
        self.starts, self.stops, self.ends = (np.zeros(most, np.int64) for _ in range(3))
        self.kinds = np.full(most, TEXT_PREFIXED, np.int32)
        self.read_starts, self.read_stops, self.read_ends = (
            frozen(array, np.int64) for array in (self.starts, self.stops, self.ends)
        )
        self.texts = FragmentTexts(docs.data, self.read_starts, self.read_stops, frozen(self.kinds, np.int32))

    def failure(self, error: EncodingFailed) -> EncodingFailed:
        """The error of a question as one of its document."""
        start = int(self.starts[error.document])
        document = int(np.searchsorted(self.docs.stops, start, side="right"))
        offset = start + error.offset - int(self.docs.starts[document])
        return EncodingFailed(document, offset, error.found, error.expected)


def _chains(docs: Documents, likes: Likes | None, from_end: bool) -> NDArray[np.int64]:
    """int64[FIELDS * texts]: chains that begin."""
    state = np.zeros((docs.starts.size, FIELDS), np.int64)
    state[:, PHASE] = BEGIN
    for field in (TEXT_START, START, LAST):
        state[:, field] = docs.starts
    state[:, TEXT_STOP] = docs.stops
    state[:, PURPOSE] = KEPT_END if from_end else 0
    if likes is not None:
        state[:, LIKED_FIRST], state[:, LIKED_LAST] = likes.offsets[:-1], likes.offsets[1:]
    return state.reshape(-1)


def _laid_out(pieces: NDArray[np.int64], state: NDArray[np.int64]) -> Cut:
    table, chains = pieces.reshape(-1, PIECE), state.reshape(-1, FIELDS)
    order = np.argsort(table[:, 0], kind="stable")
    stuck = np.flatnonzero(chains[:, PHASE] == STUCK)
    first = int(stuck[0]) if stuck.size else -1
    rows, starts, stops, counts = table[order].T
    return Cut(rows, starts, stops, counts, first, int(chains[first, START]) if stuck.size else -1)
