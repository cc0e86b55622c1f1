"""Spans of a document from its ids: it is read in windows, because the reference takes hundreds of bytes for each byte.
Windows overlap, and two of them are joined at an offset where both have the same rows on either side.

1. The rows are the characters after all steps except the model (`TokenWalk`). Each id covers as many of them as its
   token spells. No word is encoded again, so no word is too long. A window in the middle of a document gets a letter
   before and after it, which is removed from the result, because some steps treat the ends of a text specially.
2. Where a token does not show what it spells (an unknown one that could end at several offsets), the rows are tokens:
   each window is encoded as a document (`ReferenceTokens`). Text near its ends may become other tokens than in the
   whole document. A run of unknown characters or an endless word may be one token that is longer than any window: such
   tokens of both windows become one. All ids must equal those of the kernels.

If windows do not agree, longer ones are tried, and finally the whole document. A normal form sorts each run of
combining marks, however long: long runs are sorted before, and the spans mapped back (`ordered_document`).
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import cache
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import BYTE, NO_TOKEN, NORMAL, USER, Merges, Pieces, Unigram, WordPiece, Words
from jittok.common.pipeline.steps import Compose
from jittok.common.unicode.libraries import Form, non_starters, normal_form, normal_form_of_row, ranges
from jittok.errors import EncodingFailed
from jittok.reference.normalize import alike, stretches
from jittok.reference.pipeline import Runner, aligned, runner
from jittok.reference.text import Piece, Token, read_text

FIRST_WINDOW_BYTES = 1 << 13
"""The initial size of a window, in bytes."""
OVERLAP = 8
"""Two windows overlap by this fraction (1 / OVERLAP) of a window."""
EQUAL_TOKENS = 4
"""Tokens that must be equal on either side of an offset where windows are joined."""
TRIES = 256
"""The most offsets that are tried."""


class Window(NamedTuple):
    """document[start:stop] as read by the reference. A row is a character or a token."""

    start: int
    stop: int
    rows: NDArray[np.int64]  # [n, 3]: id or character, start and stop in the document
    first: int = 0  # the first row that is used
    goes_on: bool = False  # the row before it is the end of a token that began in the previous window


class Joint(NamedTuple):
    """Where one window ends and the next one continues, as row numbers."""

    last: int
    first: int
    is_one: bool  # the rows before `last` and `first` are the same token


class WindowReader(Protocol):
    """What to read in windows: computes the rows of a window, and receives the rows that windows agree on."""

    alike: int  # rows that must be equal on either side of an offset where windows are joined
    most: int  # the most bytes of a window

    def rows(self, raw: bytes, start: int, stop: int) -> NDArray[np.int64]:
        """int64[n, 3]: the rows of raw[start:stop], with spans in the document."""

    def joint(self, here: Window, after: Window) -> Joint | None:
        """The joint of windows that share no equal rows; None if there is none."""

    def add(self, rows: NDArray[np.int64], stop: int | None) -> bool:
        """Append rows; returns whether they are right. stop: the new end of the last row so far, or None."""

    def finished(self) -> bool:
        """Whether the added rows are complete."""


def by_windows(way: WindowReader, raw: bytes) -> bool:
    """Read a document in windows; returns whether they agreed."""
    size = FIRST_WINDOW_BYTES
    here = _window(way, raw, 0, size)
    while here.stop < len(raw):
        after = _window(way, raw, _next_start(raw, here, size // OVERLAP), size)
        joint = _join(here, after, way.alike) or way.joint(here, after)
        if joint is None:
            size *= 2
            longer = _longer(here, _window(way, raw, here.start, size), way.alike) if size <= way.most else None
            if longer is None:
                return False
            here = longer
        else:
            if not _add(way, here, joint.last):
                return False
            here, size = after._replace(first=joint.first, goes_on=joint.is_one), FIRST_WINDOW_BYTES
    return _add(way, here, len(here.rows)) and way.finished()


def _add(way: WindowReader, window: Window, last: int) -> bool:
    """Add the rows of a window up to `last`."""
    return way.add(window.rows[window.first : last], int(window.rows[window.first - 1, 2]) if window.goes_on else None)


def _longer(old: Window, new: Window, alike: int) -> Window | None:
    """Replace a window by a longer one from the same start; None if the rows at its beginning differ."""
    known = old.first - 1 if old.goes_on else old.first + alike if old.first else 0
    if not np.array_equal(old.rows[:known], new.rows[:known]):
        return None
    if old.goes_on and not np.array_equal(old.rows[known, :2], new.rows[known : known + 1, :2].reshape(-1)):
        return None
    return new._replace(first=old.first, goes_on=old.goes_on)


def _window(way: WindowReader, raw: bytes, start: int, size: int) -> Window:
    stop = min(start + size, len(raw))
    while stop < len(raw) and raw[stop] & 0xC0 == 0x80 and stop < start + size + 3:
        stop += 1
    return Window(start, stop, way.rows(raw, start, stop))


def _next_start(raw: bytes, window: Window, overlap: int) -> int:
    """The start of the next window: if possible, where a token of this one begins, so that both find the same
    tokens."""
    at = window.stop - overlap
    for row in range(int(np.searchsorted(window.rows[:, 1], at)), len(window.rows)):
        start = int(window.rows[row, 1])
        if start >= at + overlap // 2:
            break
        if raw[start] & 0xC0 != 0x80 and _is_border(window.rows, row):
            return start
    while raw[at] & 0xC0 == 0x80 and at > window.stop - overlap - 3:
        at -= 1
    return at


def _is_border(rows: NDArray[np.int64], row: int) -> bool:
    """Whether all rows before this one end at or before its own bytes."""
    return row > 0 and bool(rows[row - 1, 1] < rows[row, 1] >= rows[row - 1, 2])


def _join(here: Window, after: Window, alike: int) -> Joint | None:
    """The joint of two windows that have equal rows, preferably in the middle of their overlap; None if there is
    none."""
    middle = (after.start + here.stop) // 2
    begin = int(np.searchsorted(here.rows[:, 1], middle))
    for row in range(max(begin, here.first + alike), min(begin + TRIES, len(here.rows) - alike + 1)):
        if not _is_border(here.rows, row):
            continue
        other = int(np.searchsorted(after.rows[:, 1], here.rows[row, 1]))
        if other >= alike and np.array_equal(
            here.rows[row - alike : row + alike], after.rows[other - alike : other + alike]
        ):
            return Joint(row, other, False)
    return None


def goes_through(here: Window, after: Window) -> Joint | None:
    """The joint of windows whose whole overlap is covered by one row."""
    first = int(np.searchsorted(after.rows[:, 2], after.start, "right"))
    if not len(here.rows) or first == len(after.rows):
        return None
    last, other = here.rows[-1].tolist(), after.rows[first].tolist()
    through = last[1] < after.start and last[2] == here.stop and other[1] == after.start and other[2] > here.stop
    return Joint(len(here.rows), first + 1, True) if through and last[0] == other[0] else None


# ---- windows of characters

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


def walked(
    pipeline: Pipeline, raw: bytes, ids: NDArray[np.int32], parse_special: bool, spans: NDArray[np.int64]
) -> bool:
    """Write the spans of a document's ids (without special ids around it) to `spans`, int64[n, 2], along the characters
    after all steps except the model; returns whether the ids spell these."""
    return by_windows(TokenWalk(pipeline, raw, ids, parse_special, spans), raw)


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
        text, _, units, _ = read_text(raw[start:stop])
        front, after = start > 0 and not self.run.pieces, stop < len(raw)
        text = SENTINEL * front + text + SENTINEL * after
        units = [(0, 0)] * front + (units or []) + [(stop - start, stop - start)] * after
        rows: list[tuple[int, int, int]] = []
        if self.run.pieces:
            word = self.run.squeezed(Piece(text, None, units, raw[start:stop]))
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


# ---- windows of tokens


def spans_by_windows(
    pipeline: Pipeline, raw: bytes, ids: NDArray[np.int32], parse_special: bool, spans: NDArray[np.int64]
) -> bool:
    """Write the spans of a document's ids (without special ids around it) to `spans`, int64[n, 2]; returns whether
    windows agreed."""
    if not ids.size:
        return True
    try:
        return by_windows(ReferenceTokens(pipeline, ids, parse_special, spans), raw)
    except EncodingFailed:  # a window may end inside a character or token
        return False


class ReferenceTokens(WindowReader):
    """Reads windows of tokens, whose ids must be those of the document."""

    alike = EQUAL_TOKENS

    def __init__(
        self, pipeline: Pipeline, ids: NDArray[np.int32], parse_special: bool, spans: NDArray[np.int64]
    ) -> None:
        self.pipeline, self.parse_special, self.unknown = pipeline, parse_special, _unknown(pipeline)
        self.ids, self.spans, self.done, self.most = ids, spans, 0, 1 << 62

    def rows(self, raw: bytes, start: int, stop: int) -> NDArray[np.int64]:
        """int64[n, 3]: ids and their spans."""
        found = np.array(aligned(self.pipeline, raw[start:stop], False, self.parse_special), np.int64).reshape(-1, 3)
        found[:, 1:] += start
        return found

    def joint(self, here: Window, after: Window) -> Joint | None:
        """The joint of windows whose whole overlap is covered by one unknown token."""
        found = goes_through(here, after)
        return found if found and here.rows[-1, 0] == self.unknown else None

    def add(self, rows: NDArray[np.int64], stop: int | None) -> bool:
        """Write the spans of these tokens; returns whether they have the right ids."""
        if stop is not None:
            self.spans[self.done - 1, 1] = stop
        begin, self.done = self.done, self.done + len(rows)
        if self.done > self.ids.size or not np.array_equal(self.ids[begin : self.done], rows[:, 0]):
            return False
        self.spans[begin : self.done] = rows[:, 1:]
        return True

    def finished(self) -> bool:
        """Whether these are all tokens."""
        return self.done == self.ids.size


def _unknown(pipeline: Pipeline) -> int:
    """The unknown token, which may cover any number of characters; a negative number if there is none."""
    model = pipeline.model
    return model.unknown if isinstance(model, Merges | Unigram | WordPiece | Words | Pieces) else NO_TOKEN


# ---- long runs of marks

LONG_ROW = 1 << 12
"""The least marks of a run that is sorted here. Windows contain shorter ones as a whole."""
CONTEXT_CHARACTERS = 64
"""Characters before a run that are searched for the beginning of the part that changes with it."""
SPANS_PER_STEP = 1 << 16
"""Spans that are mapped at a time."""
ESCAPED = "surrogateescape"
"""The error handler that keeps bytes of invalid UTF-8 in a str."""


class OrderedDocument(NamedTuple):
    """A document with sorted runs, and its changed parts, by rising offset."""

    raw: bytes
    starts: NDArray[np.int64]  # [n] the changed parts in `raw`
    stops: NDArray[np.int64]
    old_starts: NDArray[np.int64]  # [n] the same parts in the original document
    old_stops: NDArray[np.int64]

    def put_back(self, spans: NDArray[np.int64]) -> None:
        """Convert int64[n, 2] spans in `raw` to spans in the original document, in place."""
        for at in range(0, len(spans), SPANS_PER_STEP):
            part = spans[at : at + SPANS_PER_STEP]
            empty = part[:, 0] == part[:, 1]
            starts, stops = self._places(part[:, 0])[0], self._places(part[:, 1] - 1)[1]
            part[:, 0], part[:, 1] = starts, np.where(empty, starts, stops)

    def _places(self, at: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(starts, stops) in the original document of the bytes at these offsets of `raw`."""
        change = np.searchsorted(self.starts, at, "right") - 1
        inside = (change >= 0) & (at < self.stops[change])
        shifted = at + np.where(change >= 0, self.old_stops[change] - self.stops[change], 0)
        begins = np.where(inside, self.old_starts[change], shifted)
        return begins, np.where(inside, self.old_stops[change], shifted + 1)


def ordered_document(run: Runner, raw: bytes, parse_special: bool) -> OrderedDocument | None:
    """The document with its long runs of marks sorted; None if it has none, or if sorting might change the result."""
    steps = run.pipeline.normalize
    if run.pieces or not steps or not isinstance(steps[0], Compose):
        return None
    text, form = raw.decode(errors=ESCAPED), steps[0].form
    if _marks().isdisjoint(text[::LONG_ROW]) or any("\ufffd" in token for token in run.raw.tokens):
        return None
    parts, changes, done, at, size = list[bytes](), list[tuple[int, int, int, int]](), 0, 0, 0
    for token, first, last in run.raw.cut(text, parse_special):
        for row in _rows().finditer(text, first, last) if token is None else ():
            start = _start(text, first, row.start(), form)
            if start < done:
                return None
            old, new = text[start : row.end()], normal_form_of_row(form, text[start : row.start()], row[0])
            last_of_it, after = new[-CONTEXT_CHARACTERS:], text[row.end() : row.end() + 1] if row.end() < last else ""
            if normal_form(form, last_of_it + after) != last_of_it + normal_form(form, after):
                return None
            begin, end = alike(old, new)
            front, middle = _bytes(text[done : start + begin]), _bytes(old[begin : len(old) - end])
            changed = _bytes(new[begin : len(new) - end])
            at, size = at + len(front), size + len(front)
            changes.append((size, size + len(changed), at, at + len(middle)))
            parts += [front, changed]
            at, size, done = at + len(middle), size + len(changed), row.end() - end
    if not changes:
        return None
    return OrderedDocument(b"".join([*parts, raw[at:]]), *np.array(changes, np.int64).T)


def _bytes(text: str) -> bytes:
    return text.encode(errors=ESCAPED)


def _start(text: str, first: int, row: int, form: Form) -> int:
    """The beginning of the part that a normal form changes together with a run of marks; -1 if it is unknown."""
    begin = max(first, row - CONTEXT_CHARACTERS)
    found = begin + [start for start, _ in stretches(text[begin : row + 1], form)][-1]
    return found if found > begin or begin == first else -1


@cache
def _marks() -> frozenset[str]:
    """The combining marks, including characters of later versions of Unicode that are marks for Python."""
    newer = (chr(c) for first, last in ranges("newer") for c in range(first, last + 1))
    later = (c for c in newer if unicodedata.combining(unicodedata.normalize("NFKD", c)[0]))
    return non_starters("NFKC") | frozenset(later)


@cache
def _rows() -> Any:
    return re.compile(f"[{''.join(sorted(_marks()))}]{{{LONG_ROW},}}")
