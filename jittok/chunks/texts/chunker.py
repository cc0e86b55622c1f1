"""Cuts one text or many for a tokenizer: checks what was asked, shares texts among threads, lays pieces out."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from jittok.align.conversions import character_spans
from jittok.chunks.texts.cutter import Cut, Cutter, Likes, one_document
from jittok.chunks.texts.pieces import Piece, PieceRows
from jittok.chunks.texts.preferred import WAYS, ends
from jittok.chunks.texts.search.chains import CutOptions
from jittok.common.rows.ragged import whole_number
from jittok.encode.limits import LEAST_WIDE_BYTES
from jittok.encode.threads.batch import own
from jittok.encode.threads.stretches import Stretch, progress_bar, stretches_of, thread_count
from jittok.errors import EncodingFailed
from jittok.kernels.inputs import Documents
from jittok.kernels.inputs.containers import reads_wide
from jittok.kernels.jit import frozen
from jittok.kernels.structures.utf8_check import VALID, first_malformed

if TYPE_CHECKING:
    from jittok.common.display.progress import Show
    from jittok.kernels.inputs import Texts

MOST_IDS = 1 << 40
"""More than any text has."""
STRETCH_BYTES = 4 << 20
"""Texts that one thread cuts at a time have about this many bytes together."""


class Request(NamedTuple):
    """What pieces were asked for."""

    n: int
    overlap: int = 0
    by: str = "token"

    def checked(self) -> Request:
        """The same with Python's integers. TypeError and ValueError for what no piece can have."""
        n, overlap = min(whole_number(self.n, "n"), MOST_IDS), whole_number(self.overlap, "overlap")
        if n < 1:
            raise ValueError(f"n: found {n}, expected 1 or more ids a piece")
        if not 0 <= overlap < n:
            raise ValueError(f"overlap: found {overlap}, expected 0 to {n - 1}, as pieces have at most {n} ids")
        if self.by not in WAYS:
            raise ValueError(f"by: found {self.by!r}, expected 'token', 'sentence' or 'line'")
        return Request(n, overlap, self.by)


class TooManyIds(ValueError):
    """A character of a text, of number `document`, alone has more ids than a piece may have."""

    def __init__(self, message: str, document: int, said: str) -> None:
        super().__init__(message)
        self.document, self.said = document, said


class Chunker:
    """Cuts texts with one `Cutter`. Immutable, and safe to share between threads."""

    def __init__(self, cutter: Cutter) -> None:
        self.cutter = cutter

    def count(self, text: str) -> int:
        """The ids of a text by the rule of the cutter."""
        return self.cutter.encoder.one(text.encode(), self.cutter.rule).size

    def truncated(self, raw: bytes, n: int, side: str) -> str:
        """The longest beginning, or end, of a text that has at most n ids; empty where not one character fits."""
        if side not in ("left", "right"):
            raise ValueError(f"side: found {side!r}, expected 'left' or 'right'")
        n = min(whole_number(n, "n"), MOST_IDS)
        if n < 0:
            raise ValueError(f"n: found {n}, expected 0 or more")
        docs = one_document(raw)
        self._check(docs, 0)
        if n == 0 or not raw or self.count("") > n:
            return ""
        options = CutOptions(n, 0, 1, *self.cutter.around)
        cut = self.cutter.cut(docs, options, None, side == "left")
        return raw[int(cut.starts[0]) : int(cut.stops[0])].decode() if cut.starts.size else ""

    def pieces(self, raw: bytes, request: Request) -> list[Piece]:
        """The pieces of one text."""
        return self._rows(one_document(raw), request, 0, False)[0]

    def batch(self, texts: Texts, request: Request, threads: int | None, progress: Show) -> PieceRows:
        """The pieces of many texts, on several threads. EncodingFailed and ValueError for the first text that cannot be
        cut."""
        from jittok.kernels.jit.pool import Pool

        threads = 1 if self.cutter.encoder.in_python else thread_count(threads)
        bar = progress_bar("chunks", texts, progress)
        parts, pending, pool = list[PieceRows](), deque[Any](), Pool(threads) if threads > 1 else None
        try:
            wide = LEAST_WIDE_BYTES if reads_wide() else 0
            for stretch in stretches_of(texts, False, threads, threads == 1, True, STRETCH_BYTES, wide):
                if isinstance(stretch.docs, BaseException):
                    parts += [each.result() for each in pending]  # texts before it may have failed earlier
                    raise stretch.docs
                if pool is None:
                    parts.append(self._stretch(stretch, request))
                else:
                    pending.append(pool.submit(self._stretch, stretch, request))
                while len(pending) > 4 * threads:
                    parts.append(pending.popleft().result())
                bar.update(stretch.last - stretch.first)
            parts += [each.result() for each in pending]
        finally:
            if pool is not None:
                pool.shutdown(False, cancel_futures=True)
            bar.close()
        return joined(parts)

    def _stretch(self, stretch: Stretch, request: Request) -> PieceRows:
        docs, base, *_ = own(stretch)
        return self._rows(docs, request, base, True)

    def _rows(self, docs: Documents, request: Request, base: int, several: bool) -> PieceRows:
        """The pieces of documents in memory of their own. base: the number of document 0, for errors."""
        self._check(docs, base)
        likes = None if request.by == "token" else likes_of(docs, request.by)
        try:
            cut = self.cutter.cut(docs, CutOptions(request.n, request.overlap, 0, *self.cutter.around), likes)
        except EncodingFailed as error:
            raise EncodingFailed(base + error.document, error.offset, error.found, error.expected) from None
        if cut.stuck >= 0:
            self._raise_stuck(docs, cut, request.n, base, several)
        return laid_out(docs, cut)

    def _raise_stuck(self, docs: Documents, cut: Cut, n: int, base: int, several: bool) -> NoReturn:
        begin, stop, at = int(docs.starts[cut.stuck]), int(docs.stops[cut.stuck]), cut.stuck_at
        before = docs.between(begin, at).decode()
        character = docs.between(at, min(at + 4, stop)).decode("utf-8", "ignore")[0]
        where = f"document {base + cut.stuck}: " if several else ""
        said = f"found {n}, but the character {character!r} at {len(before)} alone has {self.count(character)} ids"
        raise TooManyIds(f"{where}n: {said}", base + cut.stuck, said)

    def _check(self, docs: Documents, base: int) -> None:
        """EncodingFailed for a text that is invalid UTF-8: pieces end at characters."""
        tokens = frozen(np.full(docs.starts.size, -1, np.int32), np.int32)
        bad = first_malformed(docs.data, docs.starts, docs.stops, tokens, 0, docs.starts.size)
        if bad != VALID:
            raw = docs.between(int(docs.starts[bad]), int(docs.stops[bad]))
            try:
                raw.decode()
            except UnicodeDecodeError as error:
                found = raw[error.start : error.start + 1]
                raise EncodingFailed(
                    base + bad, error.start, found, "valid UTF-8, as pieces begin and end at characters"
                ) from None


def likes_of(docs: Documents, by: str) -> Likes:
    """Where pieces of documents like to end."""
    places, offsets = list[int](), [0]
    for start, stop in zip(docs.starts.tolist(), docs.stops.tolist(), strict=True):
        places += [start + at for at in ends(docs.between(start, stop), by)]
        offsets.append(len(places))
    return Likes(np.array(places, np.int64), np.array(offsets, np.int64))


def laid_out(docs: Documents, cut: Cut) -> PieceRows:
    """The pieces, with offsets in characters, too."""
    offsets = np.searchsorted(cut.rows, np.arange(docs.starts.size + 1))
    begins = docs.starts[cut.rows]
    columns = np.empty((5, cut.rows.size), np.int64)
    columns[0], columns[1], columns[2] = cut.starts - begins, cut.stops - begins, cut.counts
    columns[3:] = columns[:2]
    if cut.rows.size and docs.data.max() >= 0x80:
        columns[3:] = character_spans(docs.data, docs.starts, docs.stops, offsets, columns[:2].T).T
    return PieceRows(docs.data, docs.starts, offsets, columns)


def joined(parts: list[PieceRows]) -> PieceRows:
    """The rows of several, one after the other."""
    if len(parts) == 1:
        return parts[0]
    none = np.zeros(0, np.int64)
    at = np.cumsum([0, *(part.data.size for part in parts)])
    rows = np.cumsum([0, *(part.counts.size for part in parts)])
    data = np.concatenate([np.zeros(0, np.uint8), *(part.data for part in parts)])
    begins = np.concatenate([none, *(part.text_starts + begin for part, begin in zip(parts, at, strict=False))])
    offsets = np.concatenate(
        [none, *(part.offsets[:-1] + row for part, row in zip(parts, rows, strict=False)), rows[-1:]]
    )
    columns = np.concatenate([np.zeros((5, 0), np.int64), *(part.columns for part in parts)], axis=1)
    return PieceRows(data, begins, offsets, columns)
