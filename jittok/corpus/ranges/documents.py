"""Turns the bytes or rows of a range into documents. Unreadable ones are counted with their line, never silently
dropped.

The texts of a range are checked together; only a range with an error is examined line by line. `read_documents` reads
all ranges of some inputs in this way: for `count`, `encode` and `trace`.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.rows.checks import own
from jittok.corpus.inputs.decompression import open_unpacked
from jittok.corpus.inputs.json_lines import BLANK, OTHER, TEXT, lines_of_block
from jittok.corpus.inputs.json_rows import LONG, member, row_of, text_of
from jittok.corpus.inputs.kinds import TABLES, is_wide
from jittok.corpus.inputs.sources import Source
from jittok.corpus.options import MAX_DOCUMENT_BYTES, Options
from jittok.corpus.ranges.cutting import Limit, cut_lines
from jittok.corpus.ranges.units import RawRange, opened, read_unit, units
from jittok.errors import CorpusError, InWords
from jittok.kernels.inputs import Documents, documents
from jittok.kernels.jit.pool import NEVER_CANCELLED, Cancellation

BOM = codecs.BOM_UTF8
CHECKED_AT_ONCE = 1 << 20
PARSED_AT_ONCE = 1 << 8
"""Lines of JSON between two checks for cancellation."""
SURROGATE = re.compile("[\ud800-\udfff]")
RELEASED = 32 << 20
"""Bytes of the rows of a range of a table from which on Arrow's memory is released before they are encoded."""
SHOWN = 60
WIDE_TEXT = "text in UTF-16 or UTF-32 (every second byte is NUL)"
LINES_BYTES = 1 << 16
"""Bytes of lines that are read at once."""


class Bad(NamedTuple):
    """A document that could not be read or encoded as it is."""

    source: int
    line: int  # from 1, in its range; the compiler makes it a line of the file
    found: str
    expected: str
    lost: bool = False  # there is no text at all: a wrong --field makes all documents so
    input: bool = False  # not a document: the rest of the input


@dataclass
class RangeTexts:
    """The documents of one range."""

    docs: Documents
    sources: NDArray[np.int64]  # int64[n]: which source each is from
    lines: NDArray[np.int64]  # int64[n]: line (row, document) in the range, from 1
    seen: int  # lines (rows, documents) of the range, of whatever kind
    blank: int = 0  # blank lines of JSON Lines, which are no documents
    bad: list[Bad] = field(default_factory=list)


Check = Callable[..., RangeTexts]
"""check(documents, source, options, offset of the first one in its file)"""


def read_texts(
    raw: RawRange,
    kind: str,
    options: Options,
    *,
    any_bytes: bool = False,
    stop: Cancellation = NEVER_CANCELLED,
) -> RangeTexts:
    """The documents of a range, with `options.on_error` applied; with "fail" the caller raises for the first of
    `bad`.

    `any_bytes`: a text need not be valid UTF-8 and is encoded as it is. CancelledError if it is stopped between two
    steps.
    """
    check = _taken if any_bytes else _checked
    if raw.pieces:
        return _pieces(raw, options, check, stop)
    if kind in TABLES:
        return _rows(raw, options, check)
    if kind == "jsonl":
        return _json_lines(raw, options, stop) if options.messages is None else _chat_lines(raw)
    if kind == "lines":
        return _lines(raw, options, check)
    if kind == "separated":
        return check(_joined(raw.payload), raw.key.source, options)
    return _whole_files(raw, options, check)


def _pieces(raw: RawRange, options: Options, check: Check, stop: Cancellation) -> RangeTexts:
    """The documents of a range of several files. Lines are those of the file."""
    found = []
    for kind, pieces in groupby(raw.payload, key=lambda piece: piece.kind):
        stop.check()
        if kind == "txt":
            whole = replace(raw, payload=[(piece.source, piece.payload) for piece in pieces], lost=(), pieces=False)
            found.append(_whole_files(whole, options, check))
            continue
        for piece in pieces:
            key = raw.key._replace(source=piece.source)
            one = read_texts(
                replace(raw, key=key, payload=piece.payload, lost=(), pieces=False), kind, options,
                any_bytes=check is _taken, stop=stop,
            )  # fmt: skip
            one.lines = one.lines + piece.before
            one.bad = [bad._replace(line=bad.line + piece.before) for bad in one.bad]
            found.append(one)
    texts = _together(found)
    texts.bad += [Bad(one.source, one.line, one.found, one.expected, input=True) for one in raw.lost]
    texts.bad.sort(key=lambda bad: (bad.source, bad.line))
    return texts


def _together(found: list[RangeTexts]) -> RangeTexts:
    """Several results as one, whose lines do not continue those of the range before."""
    if len(found) == 1:
        found[0].seen = 0
        return found[0]
    datas = [texts.docs.data for texts in found]
    shifts = np.cumsum([0, *(data.size for data in datas)])
    none = np.zeros(0, np.int64)
    starts, stops = (
        _fixed(np.concatenate([none, *(each + shift for each, shift in zip(positions, shifts[:-1], strict=True))]))
        for positions in ([texts.docs.starts for texts in found], [texts.docs.stops for texts in found])
    )
    docs = Documents(np.concatenate([np.zeros(0, np.uint8), *datas]), starts, stops)
    return RangeTexts(
        docs, np.concatenate([none, *(texts.sources for texts in found)]),
        np.concatenate([none, *(texts.lines for texts in found)]), 0, sum(texts.blank for texts in found),
        [bad for texts in found for bad in texts.bad],
    )  # fmt: skip


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _joined(parts: list[Any]) -> Documents:
    """Texts one after the other."""
    data = parts[0] if len(parts) == 1 and parts[0] else b"".join(parts)
    return _of_sizes(data, np.fromiter(map(len, parts), np.int64, len(parts)))


def _of_sizes(data: Any, sizes: NDArray[np.int64]) -> Documents:
    """Texts of these sizes, in bytes, one after the other."""
    offsets = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    _fixed(offsets)
    return Documents(_fixed(np.frombuffer(data, np.uint8)), offsets[:-1], offsets[1:])


def _whole_files(raw: RawRange, options: Options, check: Check) -> RangeTexts:
    texts = check(_joined([text for _, text in raw.payload]), 0, options, raw.offset)
    texts = _without_wide(texts, (k for k, (_, text) in enumerate(raw.payload, 1) if is_wide(text)), options, check)
    texts.sources = np.array([source for source, _ in raw.payload], np.int64)[texts.lines - 1]
    texts.bad = [bad._replace(source=raw.payload[bad.line - 1][0], line=1) for bad in texts.bad]
    texts.lines = np.ones_like(texts.lines)
    return texts


def _without_wide(texts: RangeTexts, numbers: Iterable[int], options: Options, check: Check) -> RangeTexts:
    """The texts without those of these numbers, which look like UTF-16. They are errors, unless the user has given
    the kind of input."""
    if check is _taken or options.kind is not None or options.on_error == "replace":
        return texts
    known = {bad.line for bad in texts.bad}
    found = [number for number in numbers if number not in known]
    if not found:
        return texts
    source = int(texts.sources[0])
    texts.bad += [
        Bad(source, number, WIDE_TEXT, "UTF-8 (iconv -f utf-16le, or --input-format txt)") for number in found
    ]
    texts.bad.sort(key=lambda bad: bad.line)
    return select(texts, ~np.isin(texts.lines, found))


def _lines(raw: RawRange, options: Options, check: Check) -> RangeTexts:
    """Lines end in a newline or a carriage return and a newline; a last line may lack it."""
    if not raw.payload:  # an interval inside one long line
        return check(_joined([]), raw.key.source, options)
    data = np.frombuffer(raw.payload, np.uint8)
    newlines = np.flatnonzero(data == ord("\n"))
    stops = newlines if data[-1] == ord("\n") else np.append(newlines, data.size)
    starts = np.append(0, newlines[: stops.size - 1] + 1)
    ends = stops - ((stops > starts) & (data[np.maximum(stops, 1) - 1] == ord("\r")))
    texts = check(Documents(data, _fixed(starts), _fixed(ends)), raw.key.source, options)
    return _without_wide(texts, range(1, starts.size + 1) if is_wide(raw.payload) else (), options, check)


def _chat_lines(raw: RawRange) -> RangeTexts:
    """Lines as they are, each the JSON of a chat; blank ones are counted."""
    if not raw.payload:
        return _taken(_joined([]), raw.key.source, Options())
    block = raw.payload
    data = np.frombuffer(block, np.uint8)
    newlines = np.flatnonzero(data == ord("\n"))
    stops = newlines if data[-1] == ord("\n") else np.append(newlines, data.size)
    starts = np.append(0, newlines[: stops.size - 1] + 1)
    blank = (starts == stops) | np.isin(data[np.minimum(starts, data.size - 1)], np.frombuffer(b" \t\r\n", np.uint8))
    for k in np.flatnonzero(blank & (starts < stops)).tolist():
        blank[k] = not block[starts[k] : stops[k]].strip()
    texts = _taken(Documents(data, _fixed(starts), _fixed(stops)), raw.key.source, Options())
    texts.blank = int(np.count_nonzero(blank))
    return select(texts, ~blank) if texts.blank else texts


def _json() -> Any:
    """orjson's loads, or a slower function that accepts and rejects the same without another package."""
    try:
        import orjson
    except ImportError:
        return _loads
    return orjson.loads


def _loads(line: bytes) -> Any:
    def refused(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    row = json.loads(bytes(line).decode(), parse_constant=refused)
    json.dumps(row, ensure_ascii=False).encode()  # UnicodeEncodeError, a ValueError, for a lone surrogate
    return row


def _json_lines(raw: RawRange, options: Options, stop: Cancellation) -> RangeTexts:
    """With "replace" every line that is not blank becomes a document."""
    block, raw.payload = raw.payload, None
    lines = lines_of_block(block, options.field, stop)
    kept, sizes = lines.codes == TEXT, np.diff(lines.ends, prepend=0)
    parts: list[Any] = []
    bad, blank, done = [], int(np.count_nonzero(lines.codes == BLANK)), 0
    for number, k in enumerate(np.flatnonzero(lines.codes == OTHER).tolist()):
        start, end = lines.span(k, len(block))
        if number % PARSED_AT_ONCE == 0 or end - start >= LONG:
            stop.check()
        text, wrong = _json_line(block, start, end, options)
        if wrong is not None:
            bad.append(Bad(raw.key.source, k + 1, *wrong, lost=text is None))
            text = text or b"" if options.on_error == "replace" else None
        elif text is None:
            blank += 1
        if text is not None:
            kept[k], sizes[k] = True, len(text)
            parts += [lines.texts[done : lines.ends[k]], text]
            done = int(lines.ends[k])
    del block  # the texts alone are needed from here on
    parts = [part for part in (*parts, lines.texts[done:]) if len(part)]
    numbers = np.flatnonzero(kept) + 1
    docs = _of_sizes(parts[0] if len(parts) == 1 else b"".join(parts), sizes[kept])
    return RangeTexts(docs, np.full(numbers.size, raw.key.source), numbers, kept.size, blank, bad)


def _json_line(block: bytes, start: int, stop: int, options: Options) -> tuple[bytes | None, tuple[str, str] | None]:
    """(The text of the line [start, stop), None for a blank line; None), or for a bad line (what of its text can be
    read, None if there is none; what was found and expected)."""
    if block.startswith(BOM, start, stop):  # where a file of `cat` begins
        start += len(BOM)
    if stop - start >= LONG:
        try:
            text = text_of(block, start, stop, options.field, _json())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            text = None
        if text is not None:
            return text if isinstance(text, bytes) else text.encode(), None
    line = block[start:stop]
    if not line.strip():
        return None, None
    text, wrong = _json_text(line, options.field, options.join)
    return (text, None) if wrong is None else (_lenient_text(line, options.field, options.join), wrong)


def _json_text(line: bytes, name: str, join: str | None = None) -> tuple[bytes, tuple[str, str] | None]:
    """The text of one line, or what was found and expected."""
    refused = ""
    try:
        row = _json()(line)
    except (ValueError, RecursionError) as error:
        refused = str(error)
        try:
            row = row_of(line)
        except ValueError:
            return b"", (f"{_shown(line)} ({refused})", "a JSON object in UTF-8")
    if not isinstance(row, dict):
        return b"", (_shown(line), f"a JSON object with a text in {name!r}")
    try:
        value = member(row, name, join)
    except KeyError:
        fields = SURROGATE.sub("\ufffd", ", ".join(map(str, row)))
        return b"", (f"fields {fields or 'none'}"[:SHOWN], f"a text in {name!r} (--field)")
    if not isinstance(value, str):
        expected = "a text (--join for a list of texts)" if isinstance(value, list) and join is None else "a text"
        return b"", (f"{type(value).__name__} in {name!r}", expected)
    if refused and SURROGATE.search(value):
        return b"", (f"{_shown(line)} ({refused})", "a JSON object in UTF-8")
    return value.encode(), None


def _lenient_text(line: bytes, name: str, join: str | None = None) -> bytes | None:
    """The readable part of a bad line, with U+FFFD for the rest; None if it has no such text."""
    try:
        text = member(row_of(line, "replace"), name, join)
    except (ValueError, KeyError, TypeError):
        return None
    return SURROGATE.sub("\ufffd", text).encode() if isinstance(text, str) else None


def _shown(line: bytes) -> str:
    return repr(line[:SHOWN])[1:] + ("…" if len(line) > SHOWN else "")


def _rows(raw: RawRange, options: Options, check: Check) -> RangeTexts:
    array, raw.payload = raw.payload, None
    array = getattr(array, "texts", array)  # without the fields beside them
    if array.num_chunks != 1:
        array = array.combine_chunks()
    if hasattr(array, "chunks"):  # some versions give back a chunked array
        array = array.chunk(0)
    (docs,) = documents(array)
    nulls, large = np.zeros(0, np.int64), array.nbytes >= RELEASED
    if array.null_count:
        nulls = np.flatnonzero(~array.is_valid().to_numpy(zero_copy_only=False)) + 1
    del array
    if large:  # not even Arrow's pool holds memory while ids are made
        import pyarrow as pa

        pa.default_memory_pool().release_unused()
        docs = _copied(docs)
        pa.default_memory_pool().release_unused()
    texts = check(docs, raw.key.source, options)
    if not nulls.size:
        return texts
    texts.bad += [Bad(raw.key.source, int(row), "null", "a text", lost=True) for row in nulls]
    texts.bad.sort(key=lambda bad: bad.line)
    return texts if options.on_error == "replace" else select(texts, ~np.isin(texts.lines, nulls))


def _copied(docs: Documents) -> Documents:
    """Documents in a copy of their own, which kernels would need anyway."""
    low, high = int(docs.starts.min()), int(docs.stops.max())
    return Documents(own(docs.data[low:high]), _fixed(docs.starts - low), _fixed(docs.stops - low))


def select(texts: RangeTexts, kept: NDArray[np.bool_]) -> RangeTexts:
    """The same texts less those where `kept` (bool[n]) is false."""
    data, starts, stops, *_ = texts.docs
    docs = Documents(data, _fixed(starts[kept]), _fixed(stops[kept]))
    return RangeTexts(docs, texts.sources[kept], texts.lines[kept], texts.seen, texts.blank, texts.bad)


def _taken(docs: Documents, source: int, options: Options, offset: int = 0) -> RangeTexts:  # noqa: ARG001  as `_checked`
    """Documents as they are."""
    count = docs.starts.size
    return RangeTexts(docs, np.full(count, source), np.arange(1, count + 1), count)


def _checked(docs: Documents, source: int, options: Options, offset: int = 0) -> RangeTexts:
    """Documents of UTF-8, with `on_error` applied to those that are not."""
    texts = _taken(docs, source, options)
    if _all_utf8(docs):
        return texts
    raw, wrong = docs.data.data, {}
    parts = [raw[i:j] for i, j in zip(docs.starts.tolist(), docs.stops.tolist(), strict=True)]
    for row, part in enumerate(parts):
        try:
            codecs.utf_8_decode(part, "strict", True)
        except UnicodeDecodeError as error:  # noqa: PERF203
            wrong[row] = str(codecs.utf_8_decode(part, "replace", True)[0]).encode()
            found = f"byte 0x{part[error.start]:02x} at offset {error.start + offset}"
            texts.bad.append(Bad(source, row + 1, found, "UTF-8"))
    if not wrong:
        return texts
    if options.on_error == "replace":
        texts.docs = _joined([wrong.get(row, bytes(part)) for row, part in enumerate(parts)])
        return texts
    return select(texts, ~np.isin(np.arange(len(parts)), list(wrong)))


def _all_utf8(docs: Documents) -> bool:
    """Whether every document is certainly valid UTF-8: the whole buffer is, and no document begins inside a
    character."""
    data, starts, stops, *_ = docs
    if not data.size or int(data.max()) < 0x80:
        return True
    full = starts[stops > starts]
    if ((data[full] & 0xC0) == 0x80).any():
        return False
    return _is_utf8(data.data)


def _is_utf8(raw: Any) -> bool:
    at = 0
    try:
        while at < len(raw):
            piece = raw[at : at + CHECKED_AT_ONCE]
            at += codecs.utf_8_decode(piece, "strict", at + len(piece) == len(raw))[1]
    except UnicodeDecodeError:
        return False
    return True


class Read(NamedTuple):
    """Documents of one range."""

    docs: Documents
    sources: NDArray[np.int64]  # int64[n]: which source each is from
    lines: NDArray[np.int64]  # int64[n]: its line (row, document) in there, from 1
    new: int  # bytes of input read for it


def read_documents(sources: Sequence[Source], options: Options) -> Iterator[Read]:
    """All documents in order, as their bytes are: a text need not be UTF-8.

    A line or row that holds no text is a CorpusError with file and line, whatever `on_error`; "replace" mends what can
    be read. Raises OSError, CorpusError.
    """
    source, base = -1, 0
    for unit in units(sources, options):
        for raw in read_unit(unit, sources, options):
            if raw.key.source != source:
                source, base = raw.key.source, 0
            texts = read_texts(raw, sources[source].kind, options, any_bytes=True)
            for bad in texts.bad:
                if options.on_error != "replace" or bad.lost or bad.input:
                    raise CorpusError(place(sources, bad.source, bad.line + base), InWords(bad.found), bad.expected)
            yield Read(texts.docs, texts.sources, texts.lines + base, raw.new)
            base += texts.seen


def lines_of(source: Source) -> Iterator[bytes]:
    """The lines of a text, packed or not, without their ends."""
    with opened(source) as raw:
        limit = Limit(source.path, MAX_DOCUMENT_BYTES, "line")
        for _, block in cut_lines(open_unpacked(raw, source.packing, source.path), LINES_BYTES, limit):
            yield from block.removesuffix(b"\n").split(b"\n")


def place(sources: Sequence[Source], source: int, line: int) -> str:
    """A document in words."""
    name = sources[source].path
    return name if sources[source].kind == "txt" else f"{name}, line {line}"
