"""Cuts texts: encodes what the kernel of `search` asks for, many texts at a time, on several threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.chunks.texts.adjacent import Adjacent
from jittok.chunks.texts.chain import (
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
from jittok.chunks.texts.chains import Answers, CutOptions
from jittok.chunks.texts.clusters import cluster_table, mark_clusters
from jittok.chunks.texts.search import advance
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import frozen

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

    least: NDArray[np.uint16]  # [tokens + 1] token k - 1 covers as many or more; none: not known
    prefix: int  # bytes that the first token covers beside those of the text


class Cutter:
    """Cuts texts for one encoder and one rule."""

    def __init__(self, encoder: Encoder, rule: EncodeOptions, adjacent: Adjacent, sizes: TokenSizes) -> None:
        self.encoder, self.rule, self.adjacent, self.sizes = encoder, rule, adjacent, sizes.least
        self.around = (*rule.around, sizes.prefix)
        """The ids before and after a text, and the bytes of the first token that the text does not have."""

    def cut(self, docs: Documents, options: CutOptions, likes: Likes | None = None, from_end: bool = False) -> Cut:
        """The pieces of documents, valid UTF-8 in memory of their own with PAD bytes after it. from_end: of each only
        what `truncate` keeps of its end."""
        state = _chains(docs, likes, from_end)
        bits = np.zeros(docs.data.size // 64 + 2, np.uint64)
        mark_clusters(cluster_table(), docs.data, docs.starts, docs.stops, bits)
        bits.flags.writeable = False
        chains, made = docs.starts.size, np.array([0, FIRST_BYTES, FIRST_IDS])
        starts, stops = np.empty(AT_ONCE * chains, np.int64), np.empty(AT_ONCE * chains, np.int64)
        asked = frozen(starts, np.int64), frozen(stops, np.int64)
        pieces = np.empty(PIECE * 4 * chains, np.int64)
        answers = Answers(frozen([], np.int32), frozen([], np.int64), self.sizes)
        liked = frozen(NO_PLACES if likes is None else likes.places, np.int64)
        with self.encoder.workspace() as workspace:
            while True:
                if pieces.size < PIECE * (int(made[0]) + chains):
                    pieces = np.concatenate([pieces, np.empty(pieces.size, np.int64)])
                questions = advance(
                    self.adjacent, options, docs.data, bits, liked, state, answers, starts, stops, pieces, made
                )
                if questions == 0:
                    break
                answers = self._answers(workspace, docs, asked, questions)
        return _laid_out(pieces[: PIECE * int(made[0])], state)

    def _answers(self, workspace: Any, docs: Documents, asked: tuple[Any, Any], questions: int) -> Answers:
        """The ids of what was asked for, which stay in the workspace."""
        starts, stops = asked[0][:questions], asked[1][:questions]
        if self.encoder.in_python:
            texts = zip(starts.tolist(), stops.tolist(), strict=True)
            rows = [self.encoder.one(docs.between(start, stop), self.rule) for start, stop in texts]
            return Answers(
                frozen(np.concatenate(rows), np.int32),
                frozen(np.cumsum([row.size for row in rows]), np.int64),
                self.sizes,
            )
        some = Documents(docs.data, starts, stops)
        fragments = self.encoder.cut(workspace, some, 0, questions, self.rule)
        self.encoder.encode(workspace, some, 0, questions, fragments, self.rule, 0)
        ends = workspace.document_ends[:questions]
        row_ends = np.where(ends == 0, 0, workspace.ends[ends - 1])
        return Answers(frozen(workspace.ids, np.int32), frozen(row_ends, np.int64), self.sizes)


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
