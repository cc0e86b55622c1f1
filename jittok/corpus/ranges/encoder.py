"""Encodes a range, from bytes to ids: the one function that threads, Ray workers, `verify` and `--dry-run` all run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.inputs.sources import Source
from jittok.corpus.options import Options
from jittok.corpus.ranges.chats import ChatEncoder
from jittok.corpus.ranges.documents import Bad, RangeTexts, read_texts, select
from jittok.corpus.ranges.kept import Kept
from jittok.corpus.ranges.places import Placed
from jittok.corpus.ranges.split import training
from jittok.corpus.ranges.units import Key, RawRange
from jittok.errors import CorpusError, EncodingFailed, InWords
from jittok.kernels.inputs import Documents
from jittok.kernels.jit.pool import NEVER_CANCELLED, Cancellation

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

STEP = 16 << 20
"""Bytes of text that are encoded between two checks for cancellation: about 0.1 s. Ranges of the usual size are one
step, as the ids of several are copied once more."""
LARGEST_KEPT = 31 << 20
"""Bytes of a block that the C library keeps when it is freed: it raises its threshold no higher."""
NO_DOCUMENTS = Documents(np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))
WITH_PLACES = "olmo"
"""The format that says where documents are in their files."""
Row = tuple[NDArray[np.int32], NDArray[np.int64]]
"""Ids of some documents, and how many each has."""


@cache
def keep_freed_memory() -> None:
    """Have the C library keep the buffers of ranges when they are freed, for the next range: first touches of pages
    take longer than reading and parsing.

    By itself glibc gives back what is freed at the end of a heap beyond twice the largest block that it has mapped and
    unmapped so far, so one block of this size, once a process, of which no page is touched, is all that it takes.
    """
    np.empty(LARGEST_KEPT, np.uint8)


@dataclass
class Encoded:
    """The ids of a range, and the record of its lines."""

    key: Key
    last: int  # last source it has anything of
    read: int  # bytes of source `last` read when it was done
    new: int  # bytes read for it, for progress
    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]  # int64[n]: ids of each document
    sources: NDArray[np.int64]  # int64[n]
    lines: NDArray[np.int64]  # int64[n]: in the range, from 1
    seen: int
    blank: int
    text_bytes: int
    bad: list[Bad]
    places: NDArray[np.int64] | None = None  # int64[n]: see `ranges.places`; where they are wanted
    kept: tuple[Any, ...] = ()  # the fields to keep: of each a pyarrow array of large_string
    mask: NDArray[np.uint8] | None = None  # uint8[ids]: 1 for what is to be learned, of chats
    lost: int = 0  # of the bad, those without any text, such as all where --field is wrong
    begin: int = 0  # as in RawRange
    training: NDArray[np.bool_] | None = None  # bool[n]: which are for training, where documents have sides
    sizes: NDArray[np.int64] | None = None  # int64[n]: their bytes of text, where they have


class RangeEncoder:
    """A tokenizer with the options of a corpus. Thread-safe; pickled together with its tokenizer."""

    def __init__(self, tok: Tokenizer, sources: Sequence[Source], options: Options) -> None:
        self.tok, self.sources, self.options = tok, sources, options
        self._special: dict[str, Any] = {"add_special": options.add_special, "parse_special": options.parse_special}
        self.eos = self._eos()
        self.placed = WITH_PLACES in options.formats
        self.chats = ChatEncoder(tok, options) if options.messages is not None else None

    def _eos(self) -> int | None:
        """The id to append to each document, None for none: not requested, or --add-special adds it already."""
        if not self.options.append_eos and self.options.eos is None:
            return None
        token = self.tok.eos_id if self.options.eos is None else self._named(self.options.eos)
        if token is None:
            found = InWords("a vocabulary without an end-of-text token")
            raise CorpusError("--append-eos", found, "one that has it, or --eos ID|TEXT")
        probe = self.tok.encode("a", **self._special)
        return None if probe.size > 1 and int(probe[-1]) == token else token

    def _named(self, eos: int | str) -> int:
        """The id of --eos."""
        size = self.tok.vocab_size
        token = self.tok.token_to_id(eos) if isinstance(eos, str) else eos
        if token is None or not 0 <= token < size:
            raise CorpusError("--eos", eos, f"a token of this vocabulary: its text, or an id below {size}")
        return token

    def __call__(self, raw: RawRange, stop: Cancellation = NEVER_CANCELLED) -> Encoded:
        """Read and encode one range on this thread, and release its payload. CancelledError if it is stopped between
        two steps."""
        kept = Kept(raw, self.sources, self.options) if self.options.keep else None
        placed = Placed(raw, self.sources, self.options) if self.placed else None
        texts = self.read(raw, stop)
        raw.payload = None  # a long text is there once, and not any more where ids are copied
        mask, ours, share = None, None, self.options.train_val
        if self.chats is None:
            texts, rows = self.rows(texts, stop)
            size = int((texts.docs.stops - texts.docs.starts).sum())
            ours = None if share is None else training(texts.docs, share, stop)
        else:
            texts, made = self.chats(texts, stop)
            rows, mask, size = [(made.ids, made.lengths)], made.mask, made.text_bytes
            ours = made.training
        places = None if placed is None else placed(texts)
        fields = () if kept is None else kept(texts)
        sizes = texts.docs.stops - texts.docs.starts
        texts.docs = NO_DOCUMENTS
        ids, lengths = _together(rows)
        del rows
        if self.eos is not None:
            ids, lengths = append(ids, lengths, self.eos)
        return Encoded(
            raw.key, raw.last, raw.read, raw.new, ids, lengths, texts.sources, texts.lines,
            texts.seen, texts.blank, size, texts.bad, places, fields, mask, sum(bad.lost for bad in texts.bad),
            raw.begin, ours, None if ours is None else sizes,
        )  # fmt: skip

    def read(self, raw: RawRange, stop: Cancellation = NEVER_CANCELLED) -> RangeTexts:
        """The documents of a range."""
        return read_texts(raw, self.sources[raw.key.source].kind, self.options, stop=stop)

    def encode(
        self, texts: RangeTexts, stop: Cancellation = NEVER_CANCELLED
    ) -> tuple[RangeTexts, NDArray[np.int32], NDArray[np.int64]]:
        """The documents that are kept, the ids of all (int32), and the number of ids of each, int64[n]."""
        if self.chats is not None:
            texts, made = self.chats(texts, stop)
            return texts, made.ids, made.lengths
        texts, rows = self.rows(texts, stop)
        return texts, *_together(rows)

    def rows(self, texts: RangeTexts, stop: Cancellation) -> tuple[RangeTexts, list[Row]]:
        """As `encode`, with ids and lengths in parts. All texts are encoded here."""
        try:
            rows = [self.tok.encode_batch(docs, **self._special, threads=1) for docs in _steps(texts.docs, stop)]
        except EncodingFailed:
            return self._one_by_one(texts, stop)
        return texts, [(row.ids, row.lengths) for row in rows]

    def _one_by_one(self, texts: RangeTexts, stop: Cancellation) -> tuple[RangeTexts, list[Row]]:
        """Encode documents one by one: text that the vocabulary has no tokens for is an error of its document, like
        invalid UTF-8."""
        data, starts, stops, *_ = texts.docs
        parts: list[Any] = []
        kept = np.ones(starts.size, np.bool_)
        for row, (i, j) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
            stop.check()
            text = data[i:j].tobytes()
            try:
                parts.append(self.tok.encode(text, **self._special))
            except EncodingFailed as error:
                found = f"{error.found!r} at offset {error.offset}"
                texts.bad.append(Bad(int(texts.sources[row]), int(texts.lines[row]), found, error.expected))
                kept[row] = self.options.on_error == "replace"
                if kept[row]:
                    parts.append(self.tok.encode(text, **self._special, errors="replace"))
        texts.bad.sort(key=lambda bad: (bad.source, bad.line))
        lengths = np.fromiter((part.size for part in parts), np.int64, len(parts))
        return select(texts, kept), [(np.concatenate([np.zeros(0, np.int32), *parts]), lengths)]


def _together(rows: list[Row]) -> Row:
    if len(rows) == 1:
        return rows[0]
    return np.concatenate([ids for ids, _ in rows]), np.concatenate([lengths for _, lengths in rows])


def _steps(docs: Documents, stop: Cancellation) -> Iterator[Documents]:
    """The documents in parts of about STEP bytes, with a check for cancellation before each; at least one part. A long
    document is together with the short ones before it: ids of several parts are copied."""
    stop.check()
    ends = np.cumsum(docs.stops - docs.starts)
    if not ends.size or ends[-1] <= STEP:
        yield docs
        return
    marks = np.arange(STEP, int(ends[-1]), STEP)
    cuts = [0]
    for cut in np.searchsorted(ends, marks, "right").tolist():
        if cut and ends[cut - 1] - (ends[cuts[-1] - 1] if cuts[-1] else 0) >= STEP // 2:
            cuts.append(cut)
    for first, last in pairwise(dict.fromkeys([*cuts, ends.size])):
        stop.check()
        yield docs._replace(starts=docs.starts[first:last], stops=docs.stops[first:last])


def append(
    ids: NDArray[np.int32], lengths: NDArray[np.int64], token: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The same rows with one more id at the end of each."""
    out = np.full(ids.size + lengths.size, token, np.int32)
    kept = np.ones(out.size, np.bool_)
    longer = lengths + 1
    kept[np.cumsum(longer) - 1] = False
    out[kept] = ids
    return out, longer
