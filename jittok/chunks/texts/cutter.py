"""Cuts texts: encodes what the kernel of `search` asks for, many texts at a time, on several threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.chunks.texts.adjacent import Adjacent
from jittok.chunks.texts.clusters import cluster_table, mark_clusters
from jittok.chunks.texts.search.chains import Answers, CutOptions
from jittok.chunks.texts.search.kernel import advance
from jittok.chunks.texts.search.state import (
    AT_ONCE,
    BEGIN,
    FIELDS,
    FIRST_BYTES,
    FIRST_IDS,
    KEPT_END,
    LAST,
    LIKED_FIRST,
    LIKED_LAST,
    PHASE,
    PIECE,
    PURPOSE,
    START,
    STUCK,
    TEXT_START,
    TEXT_STOP,
)  # fmt: skip
from jittok.encode.plan import FragmentTexts
from jittok.errors import EncodingFailed
from jittok.kernels.fragments import TEXT_PREFIXED
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import Call, frozen

if TYPE_CHECKING:
    from jittok.encode.cutters import EncodeOptions
    from jittok.encode.encoder import Encoder

NO_PLACES = np.zeros(0, np.int64)


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


class Cutter:
    """Cuts texts for one encoder and one rule."""

    def __init__(self, encoder: Encoder, rule: EncodeOptions, adjacent: Adjacent, sizes: TokenSizes) -> None:
        self.encoder, self.rule, self.adjacent, self.sizes = encoder, rule, adjacent, sizes.least
        self.around = (*rule.around, sizes.prefix, sizes.exact)
        """The last four of CutOptions."""
        self._may_be_whole = not encoder.in_python and encoder.reads_whole(rule)

    def cut(self, docs: Documents, options: CutOptions, likes: Likes | None = None, from_end: bool = False) -> Cut:
        """The pieces of documents, valid UTF-8 in memory of their own with PAD bytes after it. from_end: of each only
        what `truncate` keeps of its end."""
        if docs.starts.size == 0:
            return Cut(NO_PLACES, NO_PLACES, NO_PLACES, NO_PLACES, -1, -1)
        state = _chains(docs, likes, from_end)
        bits = np.zeros(docs.data.size // 64 + 2, np.uint64)
        mark_clusters(cluster_table(), docs.data, docs.starts, docs.stops, bits)
        made, liked = np.array([0, FIRST_BYTES, FIRST_IDS]), NO_PLACES if likes is None else likes.places
        pieces = np.empty(PIECE * 4 * docs.starts.size, np.int64)
        asked = _Questions(docs)
        fixed = self.adjacent, options, docs.data, frozen(bits, np.uint64), frozen(liked, np.int64), state
        with self.encoder.workspace() as workspace:
            whole = self._may_be_whole and self.encoder.finds_nothing(workspace, docs, self.rule)
            call, ids = None, workspace.ids
            while True:
                full = pieces.size < PIECE * (int(made[0]) + docs.starts.size)
                if full:
                    pieces = np.concatenate([pieces, np.empty(pieces.size, np.int64)])
                if call is None or full or workspace.ids is not ids:
                    ids = workspace.ids
                    answers = Answers(frozen(ids, np.int32), asked.read_ends, self.sizes)
                    given = *fixed, answers, asked.starts, asked.stops, pieces, made
                    call = Call(advance, given)
                questions = int(call())
                if questions == 0:
                    break
                self._answer(workspace, asked, questions, whole)
        return _laid_out(pieces[: PIECE * int(made[0])], state)

    def _answer(self, workspace: Any, asked: _Questions, questions: int, whole: bool) -> None:
        """Encode what was asked for: ids are in the workspace, their ends in `asked`. whole: a text is a fragment."""
        if whole and isinstance(self.encoder.encode_whole(workspace, asked.texts, questions, asked.ends), int):
            return
        docs, encoder = asked.some(questions), self.encoder
        if encoder.in_python:
            places = zip(docs.starts.tolist(), docs.stops.tolist(), strict=True)
            rows = [encoder.one(docs.between(*place), self.rule) for place in places]
            workspace.ids = np.concatenate(rows)
            asked.ends[:questions] = np.cumsum([row.size for row in rows])
            return
        try:
            fragments = encoder.cut(workspace, docs, 0, questions, self.rule)
            encoder.encode(workspace, docs, 0, questions, fragments, self.rule, 0)
        except EncodingFailed as error:
            raise asked.failure(error) from None
        ends = workspace.document_ends[:questions]
        asked.ends[:questions] = np.where(ends == 0, 0, workspace.ends[ends - 1])


class _Questions:
    """The texts that chains ask for, in arrays that stay where they are."""

    def __init__(self, docs: Documents) -> None:
        most = AT_ONCE * docs.starts.size
        self.docs = docs
        self.starts, self.stops, self.ends = (np.zeros(most, np.int64) for _ in range(3))
        self.read_starts, self.read_stops, self.read_ends = (
            frozen(array, np.int64) for array in (self.starts, self.stops, self.ends)
        )
        tokens = frozen(np.full(most, TEXT_PREFIXED, np.int32), np.int32)
        self.texts = FragmentTexts(docs.data, self.read_starts, self.read_stops, tokens)

    def some(self, questions: int) -> Documents:
        """The texts of the first so many."""
        return Documents(self.docs.data, self.read_starts[:questions], self.read_stops[:questions])

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
