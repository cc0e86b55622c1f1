"""The results of alignment: ids with their spans, for one text or for a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.align.conversions import character_spans
from jittok.common.display import html
from jittok.common.locks import once
from jittok.common.rows.growing_array import Growing
from jittok.common.rows.ids import Ids
from jittok.common.rows.token_array import Describe, TokenArray

Text = str | bytes
UNITS = ("bytes", "characters")
"""The units of a batch's spans."""
SHOWN = 2000
"""The most tokens that are displayed."""


class Alignment:
    """The ids of one text and their spans.

    `ids`: int32[n]
    `spans`: int64[n, 2], byte offsets into the text as given (for a str, into its UTF-8). Token k covers the bytes from
    spans[k, 0] up to, not including, spans[k, 1]
    `text`: str or bytes, None for rows of a batch

    Starts never decrease, nor do ends. If one character of the text became several tokens, they share its span; other
    tokens never overlap. A token that covers nothing has an empty span: an added space, BOS, EOS. Arrays are read-only.
    """

    def __init__(self, ids: NDArray[np.int32], spans: NDArray[np.int64], text: Text | None = None) -> None:
        self.ids = ids.view(Ids)
        self.spans = spans
        self.text = text
        self._describe: Describe | None = None

    def described_by(self, describe: Describe) -> Alignment:
        """The same alignment, displayed with details of its tokens: describe(ids) returns one record a token. It is not
        pickled."""
        same = Alignment(self.ids, self.spans, self.text)
        same._describe = describe
        return same

    def __reduce__(self) -> tuple[Any, ...]:
        return Alignment, (self.ids, self.spans, self.text)

    @once
    def char_spans(self) -> NDArray[np.int64]:
        """int64[n, 2]: the spans in characters of a str. Tokens that cover part of a character get the whole character.

        TypeError if the text is not a str.
        """
        if not isinstance(self.text, str):
            raise TypeError(f"char_spans: found a text of type {type(self.text).__name__}, expected str")
        if self.text.isascii():
            return self.spans
        raw = np.frombuffer(self._raw, np.uint8)
        ends = np.array([0, self.ids.size], np.int64)
        return character_spans(raw, np.zeros(1, np.int64), np.array([raw.size]), ends, self.spans)

    @property
    def _raw(self) -> bytes:
        if self.text is None:
            raise ValueError("a row of a batch does not keep its text: slice your own, text[start:stop]")
        return self.text.encode("utf-8", "surrogatepass") if isinstance(self.text, str) else self.text

    def __len__(self) -> int:
        return self.ids.size

    def __iter__(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """(id, (start, stop)) of each token."""
        starts, stops = self.spans.T.tolist()
        yield from zip(self.ids.tolist(), zip(starts, stops, strict=True), strict=True)

    def __getitem__(self, k: int) -> tuple[int, tuple[int, int]]:
        """(id, (start, stop)) of token k. IndexError if there is none."""
        start, stop = self.spans[k].tolist()
        return int(self.ids[k]), (start, stop)

    def slice(self, k: int) -> Text:
        """The part of the text that token k covers; for a str, in whole characters."""
        if isinstance(self.text, str):
            start, stop = self.char_spans[k].tolist()
            return self.text[start:stop]
        start, stop = self.spans[k].tolist()
        return self._raw[start:stop]

    @property
    def slices(self) -> list[Text]:
        """`slice` of every token."""
        return [self.slice(k) for k in range(len(self))]

    def tokens_of(self, start: int, stop: int | None = None) -> range:
        """The indices of the tokens that cover any of text[start:stop] (in characters of a str, else in bytes); without
        `stop`, of the single character or byte at `start`. Empty if no token covers it."""
        stop = start + 1 if stop is None else stop
        spans = self.char_spans if isinstance(self.text, str) else self.spans
        first = int(np.searchsorted(spans[:, 1], start, "right"))
        last = int(np.searchsorted(spans[:, 0], stop, "left"))
        return range(first, max(first, last))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Alignment):
            return NotImplemented
        same = np.array_equal(self.ids, other.ids) and np.array_equal(self.spans, other.spans)
        return same and self.text == other.text

    __hash__ = None  # type: ignore[assignment]  # compared by content

    def __repr__(self) -> str:
        return f"Alignment({len(self)} ids)"

    def _repr_html_(self) -> str:
        ids, spans = self.ids[:SHOWN].tolist(), self.spans[:SHOWN].tolist()
        tokens = self._describe(ids) if self._describe else [{"id": token} for token in ids]
        for token, span in zip(tokens, spans, strict=True):
            token["span"] = span
            if self.text is not None:
                token["source"] = self._raw[slice(*span)].hex(" ")
        size = len(self._raw) if self.text is not None else int(self.spans[-1, 1]) if len(self) else 0
        return html.aligned(tokens, f"{len(self)} ids over {size} bytes")


class AlignmentBatch:
    """The alignments of many texts.

    `ids`: int32[total]; `offsets`: int64[texts + 1], text i has ids[offsets[i]:offsets[i + 1]]; `spans`:
    int64[total, 2], relative to the start of each text, in `unit`: "bytes" or "characters". All are read-only.
    """

    def __init__(
        self, ids: NDArray[np.int32], offsets: NDArray[np.int64], spans: NDArray[np.int64], unit: str = "bytes"
    ) -> None:
        self.ids = ids
        self.offsets = offsets
        self.spans = spans
        self.unit = unit

    @classmethod
    def joined(cls, stretches: Iterable[tuple[Any, ...]], unit: str) -> AlignmentBatch:
        """One batch from several of (ids, ends of rows, spans), in order. Each is released before the next is taken
        from the iterator."""
        ids, spans, ends = Growing(np.int32), Growing(np.int64), [np.zeros(1, np.int64)]
        for stretch in stretches:
            ends.append(stretch[1] + ids.size)
            ids.add(stretch[0])
            spans.add(stretch[2].reshape(-1))
            del stretch
        offsets = np.concatenate(ends)
        offsets.flags.writeable = False
        return cls(ids.detach(), offsets, spans.detach().reshape(-1, 2), unit)

    @property
    def tokens(self) -> TokenArray:
        """The ids without spans; nothing is copied."""
        return TokenArray(self.ids, self.offsets)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, row: int) -> Alignment:
        """The ids and spans of one text, as views. IndexError if there is no such row."""
        at = int(row) + (len(self) if row < 0 else 0)
        if not 0 <= at < len(self):
            raise IndexError(f"row {row}: expected {-len(self)} <= row < {len(self)}")
        start, stop = self.offsets[at : at + 2].tolist()
        return Alignment(self.ids[start:stop], self.spans[start:stop])

    def __iter__(self) -> Iterator[Alignment]:
        for row in range(len(self)):
            yield self[row]

    def __repr__(self) -> str:
        return f"AlignmentBatch({len(self)} texts, {self.ids.size} ids, spans in {self.unit})"
