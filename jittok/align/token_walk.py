"""Spans of a long document from its ids: the document is normalized and split in windows, and each id covers as much of
the result as its token spells. No word is encoded again, so no word is too long.

A window in the middle of a document gets a letter before and after it, which is removed from the result, because some
steps treat the ends of a text specially.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from jittok.align.windows import Joint, Window, WindowReader, goes_through
from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import BYTE, NO_TOKEN, NORMAL, USER, Merges, Pieces, Unigram, WordPiece, Words
from jittok.reference.pipeline.documents import read_text
from jittok.reference.pipeline.normalize import Piece
from jittok.reference.pipeline.run import Token, runner

LARGEST_WINDOW = 1 << 17
"""The most bytes of a window."""
EQUAL_CHARACTERS = 16
"""Characters that must be equal on either side of an offset where windows are joined."""
MOST_PENDING_BYTES = 1 << 16
"""The most bytes that are kept while the end of an unknown token is not known."""
WORD_START = 1 << 24
"""Added to the first character of a word."""
SENTINEL = "x"
ADDED = 8
"""Bytes that represent an added token: 0xF8 and above, with three bits of its id in each."""
FAILED, UNDECIDED = 0, -1
"""Codes in place of a token's length: the token spells something else; the text does not contain its end yet."""


class NormalizedWindow(NamedTuple):
    """Characters in UTF-8, and the span in the document that each byte comes from."""

    text: bytes
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    firsts: NDArray[np.int64]  # offsets of the bytes that begin words


class TokenWalk(WindowReader):
    """Windows of characters after all steps except the model. Ids are walked along these."""

    alike, most = EQUAL_CHARACTERS, LARGEST_WINDOW

    def __init__(
        self, pipeline: Pipeline, raw: bytes, ids: NDArray[np.int32], parse_special: bool, spans: NDArray[np.int64]
    ) -> None:
        self.run, self.raw, self.parse_special = runner(pipeline), raw, parse_special
        self.ids, self.spans, self.done, self.furthest = ids, spans, 0, 0
        self.spelling = _spelling(pipeline)
        nowhere = np.empty(0, np.int64)
        self.left, self.opened = NormalizedWindow(b"", nowhere, nowhere, nowhere), -1

    def rows(self, raw: bytes, start: int, stop: int) -> NDArray[np.int64]:
        """int64[n, 3]: characters (negative numbers for added tokens), and the span of each in the document."""
        text, units = read_text(raw[start:stop])
        front, after = start > 0 and not self.run.pieces, stop < len(raw)
        text = SENTINEL * front + text + SENTINEL * after
        units = [(0, 0)] * front + units + [(stop - start, stop - start)] * after
        rows: list[tuple[int, int, int]] = []
        if self.run.pieces:
            word = self.run.squeezed(text, units, raw[start:stop])
            rows = [(ord(c), *unit) for c, unit in zip(word.text, word.units or (), strict=True)]
        else:
            positions = [*range(int(front), int(front) + len(text))]
            for part in self.run.words(Piece(text, positions, units, raw[start:stop]), self.parse_special):
                if isinstance(part, Token):
                    rows.append((-1 - part.id, part.start, part.stop))
                    continue
                assert part.units is not None
                characters = [ord(c) for c in part.text]
                characters[0] += WORD_START
                rows += [(c, *unit) for c, unit in zip(characters, part.units, strict=True)]
        found = np.array(rows, np.int64).reshape(-1, 3)
        found[:, 1:] += start
        begin, end = 0, len(found)
        while start > 0 and begin < end and found[begin, 2] == (found[begin, 1] if self.run.pieces else start):
            begin += 1  # the added letter and the prefix
        while after and begin < end and found[end - 1, 1] == stop:
            end -= 1
        return found[begin:end]

    def joint(self, here: Window, after: Window) -> Joint | None:
        """The joint of windows that have no characters in common, or only one that crosses both."""
        found = goes_through(here, after)
        if found is not None:
            alone = len(here.rows) < 2 or here.rows[-2, 2] <= here.rows[-1, 1]
            alone &= found.first == len(after.rows) or after.rows[found.first, 1] >= after.rows[found.first - 1, 2]
            return found if alone else None
        before = not len(here.rows) or here.rows[-1, 2] < after.start
        following = not len(after.rows) or after.rows[0, 1] > here.stop
        return Joint(len(here.rows), 0, False) if before and following else None

    def add(self, rows: NDArray[np.int64], stop: int | None) -> bool:
        """Walk the ids along these characters; returns whether the ids spell them."""
        left = self.left
        if stop is not None and left.stops.size:
            left.stops[left.stops == left.stops[-1]] = stop
        new, size = self._spelled(rows), len(left.text)
        return self._walk(
            NormalizedWindow(
                left.text + new.text,
                np.concatenate([left.starts, new.starts]),
                np.concatenate([left.stops, new.stops]),
                np.concatenate([left.firsts, new.firsts + size]),
            ),
            final=False,
        )

    def finished(self) -> bool:
        """Whether the ids spell all characters."""
        return self._walk(self.left, final=True) and self.done == self.ids.size and not self.left.text

    def _spelled(self, rows: NDArray[np.int64]) -> NormalizedWindow:
        numbers, starts, stops = rows.T
        texts = [
            chr(number & WORD_START - 1).encode() if number >= 0 else added_text(-1 - number)
            for number in numbers.tolist()
        ]
        sizes = np.array([len(text) for text in texts], np.int64)
        ends = np.cumsum(sizes)
        text, offsets = b"".join(texts), np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes)
        firsts = (ends - sizes)[(numbers < 0) | (numbers >= WORD_START)]
        start, stop = np.repeat(starts, sizes), np.repeat(stops, sizes)
        source = np.frombuffer(self.raw or b"\0", np.uint8)
        same = source[np.minimum(start + offsets, source.size - 1)] == np.frombuffer(text, np.uint8)
        whole = np.add.reduceat(same, ends - sizes) == sizes if len(rows) else np.empty(0, bool)
        own = np.repeat(whole & (stops - starts == sizes), sizes)
        start[own] += offsets[own]
        stop[own] = start[own] + 1
        return NormalizedWindow(text, start, stop, firsts)

    def _walk(self, here: NormalizedWindow, final: bool) -> bool:
        """Walk the ids that certainly end in the known characters, and keep the rest."""
        text, at, count = here.text, 0, self.done
        firsts = here.firsts.tolist()
        capacity = 0 if final else self.spelling.longest + ADDED
        numbers = self.ids[count : count + len(text) + 1].tolist()
        begins, ends = [], []
        for k, token in enumerate(numbers):
            if at + capacity >= len(text):
                break
            after = numbers[k + 1] if k + 1 < len(numbers) else NO_TOKEN
            size = self.spelling.size(token, after, text, at, firsts, final)
            if size == UNDECIDED:
                break
            if size == FAILED:
                return False
            begins.append(at)
            at += size
            ends.append(at - 1)
        if begins:
            self._write(here.starts[begins], here.stops[ends])
        if (
            at + capacity < len(text) and len(text) - at > MOST_PENDING_BYTES
        ):  # a long unknown token, or no ids are left
            if self.done == self.ids.size:
                return False
            self.opened = int(here.starts[at]) if self.opened < 0 else self.opened
            at = last_character(text, len(text) - 1)
        known = np.searchsorted(here.firsts, at)
        self.left = NormalizedWindow(
            text[at:], here.starts[at:].copy(), here.stops[at:].copy(), here.firsts[known:] - at
        )
        return True

    def _write(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> None:
        if self.opened >= 0:
            starts[0], self.opened = self.opened, -1
        if not self.run.pieces:  # a prefix of several words from one unit covers that unit
            stops = np.maximum(np.maximum.accumulate(stops), self.furthest)
            self.furthest = int(stops[-1])
        begin, self.done = self.done, self.done + starts.size
        self.spans[begin : self.done, 0], self.spans[begin : self.done, 1] = starts, stops


_SPELLINGS: WeakKeyDictionary[Pipeline, PieceSpelling] = WeakKeyDictionary()


def _spelling(pipeline: Pipeline) -> PieceSpelling:
    """The `Spelling` of a pipeline, built once."""
    if pipeline not in _SPELLINGS:
        _SPELLINGS[pipeline] = PieceSpelling(pipeline)
    return _SPELLINGS[pipeline]


def added_text(token: int) -> bytes:
    """The bytes that represent an added token; they never occur in UTF-8."""
    return bytes(0xF8 | token >> 3 * k & 7 for k in range(ADDED))


def last_character(text: bytes, at: int) -> int:
    """The offset of the character that contains the byte at `at`."""
    while at and text[at] & 0xC0 == 0x80:
        at -= 1
    return at


class PieceSpelling:
    """Computes how many bytes of a normalized text a token covers."""

    def __init__(self, pipeline: Pipeline) -> None:
        model = pipeline.model
        self.texts, self.kind = pipeline.model_tokens, type(model)
        self.added = {} if isinstance(model, Pieces) else {token.id: added_text(token.id) for token in pipeline.added}
        self.known = frozenset(pipeline.vocabulary)
        self.unknown = model.unknown if isinstance(model, Merges | Unigram | WordPiece | Words | Pieces) else NO_TOKEN
        self.prefix = model.prefix.encode() if isinstance(model, Merges | WordPiece) else b""
        self.suffix = model.suffix.encode() if isinstance(model, Merges) else b""
        self.alone = isinstance(model, Merges) and not model.fuse_unknown
        fallback = isinstance(model, Merges | Unigram | Pieces) and model.byte_fallback
        self.bytes = {b"<0x%02X>" % byte: byte for byte in range(256)} if fallback else {}
        if isinstance(model, Pieces):
            kinds = model.types.tolist()
            self.bytes = {text: byte for text, byte in self.bytes.items() if kinds[pipeline.vocabulary[text]] == BYTE}
            self.known = frozenset(text for text in self.known if kinds[pipeline.vocabulary[text]] in (NORMAL, USER))
        self.longest = max(map(len, self.known), default=0)

    def size(self, token: int, after: int, text: bytes, at: int, firsts: list[int], final: bool) -> int:
        """Bytes of text[at:] that a token takes, FAILED or UNDECIDED; after: the token after it; firsts: where words
        begin."""
        added = self.added.get(token)
        if added is not None and text.startswith(added, at):
            return ADDED
        if token == self.unknown:
            return self._unknown(after, text, at, firsts, final)
        own = self.texts[token] if 0 <= token < len(self.texts) else None
        if not own:
            return FAILED
        if not self.prefix and not self.suffix:
            size = len(own) if text.startswith(own, at) else FAILED
            byte = self.bytes.get(own)
            return size if byte is None or text[at] != byte else FAILED if size else 1
        word = bisect_right(firsts, at)
        if self.prefix and (word == 0 or firsts[word - 1] != at):
            if not own.startswith(self.prefix):
                return FAILED
            own = own[len(self.prefix) :]
        end = firsts[word] if word < len(firsts) else len(text) if final else -1
        size = len(own) if own and text.startswith(own, at) else FAILED
        if not self.suffix:
            return size
        short = own.removesuffix(self.suffix)
        if len(short) < len(own) and at + len(short) == end and text.startswith(short, at):
            return len(short)
        return size if at + size != end else FAILED

    def _unknown(self, after: int, text: bytes, at: int, firsts: list[int], final: bool) -> int:
        word = bisect_right(firsts, at)
        end = firsts[word] if word < len(firsts) else len(text)
        if self.kind is WordPiece or self.kind is Words:
            return UNDECIDED if word == len(firsts) and not final else end - at
        if self.bytes or text[at] >= 0xF8:
            return FAILED
        first, stop = firsts[word - 1] if word else -1, at
        while stop < end and (stop == at or not self.alone):
            behind_it = stop + 1 + (text[stop] >= 0xC0) + (text[stop] >= 0xE0) + (text[stop] >= 0xF0)
            front = b"" if stop == first else self.prefix
            if front + text[stop:behind_it] + (self.suffix if behind_it == end else b"") in self.known:
                break
            stop = behind_it
        if stop == len(text) and not final:
            return UNDECIDED
        own = self.texts[after] if 0 <= after < len(self.texts) and after != self.unknown else None
        if own and self.kind is not Merges and own.decode("utf-8", "replace")[0].encode() not in self.known:
            return FAILED  # it may begin inside the run of unknown characters
        return stop - at
