"""Documents that are chats: messages in a field, rendered by the chat template, with a mask of what is to be learned.

A document is JSON, an object with the messages and the tools in their fields, until it is rendered: the line of a file,
or what `columns.ChatColumns` makes of a row. A chat that cannot be read, rendered or encoded is a bad document.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.inputs.json_rows import member
from jittok.corpus.options import Options
from jittok.corpus.ranges.documents import Bad, RangeTexts, select
from jittok.corpus.ranges.split import is_training
from jittok.errors import ChatError, CorpusError, InWords, JittokError
from jittok.kernels.jit.pool import Cancellation

if TYPE_CHECKING:
    from jittok.chat.many import Asked, Made
    from jittok.tokenizer import Tokenizer

AT_ONCE = 512
"""Chats that are rendered between two checks for cancellation, and encoded together: about 50 ms."""
SURROGATE = re.compile("[\ud800-\udfff]")
ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape of JSON that may be half of a pair."""
SHOWN = 60


class Chats(NamedTuple):
    """The ids of some chats."""

    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]
    mask: NDArray[np.uint8] | None
    text_bytes: int  # of what was rendered
    training: NDArray[np.bool_] | None  # which are for training, where chats have sides


class _BadChat(ValueError):
    """What was found, and what was expected; `lost`: no chat at all."""

    def __init__(self, found: str, expected: str, lost: bool = False) -> None:
        super().__init__(found, expected)
        self.found, self.expected, self.lost = found, expected, lost


class ChatEncoder:
    """Encodes the chats of ranges. Thread-safe; pickled as its tokenizer and options."""

    def __init__(self, tok: Tokenizer, options: Options) -> None:
        """CorpusError where the template cannot tell what is to be learned, or reads a clock that is not said."""
        from jittok.chat.many import Rule, check_masks
        from jittok.chat.request import Request

        self.tok, self.options = tok, options
        self._chats = tok._conversations
        request = Request(template=options.template, now=options.clock())
        self._rule = Rule(request, dict(options.variables or {}), options.trusted, options.learn is not None)
        try:
            sources = self._chats.sources(request)
            if self._rule.masked:
                check_masks(self._chats, self._rule)
                if len(sources) > 1:
                    check_masks(self._chats, self._rule._replace(request=request._replace(tools=[])))
        except ChatError as error:
            where, found, expected = error._given
            raise CorpusError(where if where in SAID else "--template", found, expected) from None
        if options.now is None and any(CLOCK in source for source in sources):
            raise CorpusError(
                "--now", InWords("a chat template that reads the clock"),
                "a date, 2026-01-31, so that the same chats give the same ids on any day",
            )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        return ChatEncoder, (self.tok, self.options)

    def __call__(self, texts: RangeTexts, stop: Cancellation) -> tuple[RangeTexts, Chats]:
        """The chats that are kept, and their ids. CancelledError if it is stopped."""
        parts: list[tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8], NDArray[np.bool_]]] = []
        wrong, size, share = np.zeros(texts.docs.starts.size, np.bool_), 0, self.options.train_val
        known = {(bad.source, bad.line) for bad in texts.bad if bad.lost}  # nulls of tables, with "replace"
        for first, some in self._parts(texts):
            stop.check()
            made = self._encoded(texts, first, some, wrong, known)
            sides = [] if share is None else [is_training(text, share) for text in made.texts]
            parts.append((made.ids, made.lengths, made.mask, np.array(sides, np.bool_)))
            size += sum(map(len, made.texts))
        texts.bad.sort(key=lambda bad: (bad.source, bad.line))
        ids, lengths, mask, training = (
            np.concatenate([np.zeros(0, kind), *(part[k] for part in parts)])
            for k, kind in enumerate((np.int32, np.int64, np.uint8, np.bool_))
        )
        if self.options.on_error != "replace":
            texts, lengths = select(texts, ~wrong), lengths[~wrong]
            training = training if share is None else training[~wrong]
        return texts, Chats(
            ids, lengths, mask if self._rule.masked else None, size, None if share is None else training
        )

    def _parts(self, texts: RangeTexts) -> Iterator[tuple[int, list[bytes]]]:
        data, starts, stops, *_ = texts.docs
        raw = data.data
        for first in range(0, starts.size, AT_ONCE):
            spans = zip(starts[first : first + AT_ONCE].tolist(), stops[first : first + AT_ONCE].tolist(), strict=True)
            yield first, [bytes(raw[i:j]) for i, j in spans]

    def _encoded(
        self, texts: RangeTexts, first: int, some: list[bytes], wrong: NDArray[np.bool_], known: set[tuple[int, int]]
    ) -> Made:
        """Some chats, the first of which is number `first` of a range; those that are bad are noted, unless it is
        known: (source, line)."""
        from jittok.chat.many import encode_many

        asked: list[Asked] = []
        rows: list[int] = []  # of those that were read
        for row, raw in enumerate(some, first):
            if (int(texts.sources[row]), int(texts.lines[row])) in known:
                wrong[row] = True
                continue
            found = self._asked(raw, texts, row)
            if isinstance(found, _BadChat):
                self._note(texts, row, found, wrong)
            else:
                asked.append(found)
                rows.append(row)
        made = encode_many(self._chats, asked, self._rule)
        for k, error in made.errors.items():
            self._note(texts, rows[k], _of_chat(error), wrong)
        lengths, rendered = np.zeros(len(some), np.int64), [b""] * len(some)
        lengths[np.array(rows, np.int64) - first] = made.lengths
        for row, text in zip(rows, made.texts, strict=True):
            rendered[row - first] = text
        return made._replace(lengths=lengths, texts=rendered)

    def by_reference(self, raw: bytes) -> list[int]:
        """The ids that the plain reference gives a chat. Raises the errors of `encode_chat`."""
        from jittok.chat.many import literal_ids

        asked = self._read(raw.decode("utf-8", "replace"), mend=True)
        return literal_ids(self._chats, asked, self._rule)

    def _note(self, texts: RangeTexts, row: int, error: _BadChat, wrong: NDArray[np.bool_]) -> None:
        wrong[row] = True
        place = int(texts.sources[row]), int(texts.lines[row])
        texts.bad.append(Bad(*place, error.found, error.expected, lost=True))

    def _asked(self, raw: bytes, texts: RangeTexts, row: int) -> Asked | _BadChat:
        """The messages and tools of a document. With "replace", what is no Unicode is noted and replaced."""
        try:
            return self._read(raw.decode())
        except _BadChat as error:
            return error
        except UnicodeDecodeError as error:
            found = f"byte 0x{raw[error.start]:02x} at offset {error.start}"
        except _Surrogate:
            found = f"{_shown(raw)} (a lone surrogate)"
        if self.options.on_error != "replace":
            return _BadChat(found, "UTF-8")
        texts.bad.append(Bad(int(texts.sources[row]), int(texts.lines[row]), found, "UTF-8"))
        try:
            return self._read(raw.decode("utf-8", "replace"), mend=True)
        except _BadChat as error:
            texts.bad.pop()
            return error

    def _read(self, text: str, mend: bool = False) -> Asked:
        """What stands in a text of JSON."""
        from jittok.chat.many import Asked

        try:
            row = json.loads(text.removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            shown = _shown(text.encode("utf-8", "replace"))
            raise _BadChat(f"{shown} ({error})", "a JSON object in UTF-8", lost=True) from None
        messages, tools = self._field(row, str(self.options.messages), False), None
        if self.options.tools is not None:
            tools = self._field(row, self.options.tools, True) or None
        if ESCAPED.search(text) and SURROGATE.search(json.dumps([messages, tools], ensure_ascii=False)):
            if not mend:
                raise _Surrogate
            messages, tools = _mended(messages), _mended(tools)
        _check_messages(messages)
        return Asked(messages, tools)

    def _field(self, row: Any, name: str, may_lack: bool) -> Any:
        """A list of objects in a field, or a text that is the JSON of one."""
        option = "--tools" if may_lack else "--messages"
        try:
            value = member(row, name)
        except (KeyError, TypeError):
            if may_lack:
                return None
            fields = ", ".join(map(str, row)) if isinstance(row, dict) else ""
            found = SURROGATE.sub("\ufffd", f"fields {fields}")[:SHOWN] if fields else _shown(json.dumps(row).encode())
            raise _BadChat(found, f"messages in {name!r} ({option})", lost=True) from None
        if isinstance(value, str):  # as datasets keep what has no one type
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                value = "a text that is no JSON"
        if value is None and may_lack:
            return None
        if not isinstance(value, list):
            shown = value if isinstance(value, str) else type(value).__name__
            raise _BadChat(f"{shown} in {name!r}", f"a list ({option})", lost=not may_lack)
        return value


class _Surrogate(Exception):
    """A lone surrogate stands in a chat."""


CLOCK = "strftime_now"
SAID = ("--learn", "--template")


def _check_messages(messages: list[Any]) -> None:
    """_BadChat for what are no messages."""
    if not messages:
        raise _BadChat("no messages", "one or more")
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            raise _BadChat(f"{type(message).__name__} as messages[{number}]", "an object with role and content")
        if not isinstance(message.get("role"), str):
            keys = SURROGATE.sub("\ufffd", ", ".join(message))[:SHOWN] or "none"
            raise _BadChat(f"messages[{number}] with keys {keys}", "an object with role and content")


def _mended(value: Any) -> Any:
    """The same with U+FFFD for lone surrogates."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(SURROGATE.sub("\ufffd", text))


def _of_chat(error: Exception) -> _BadChat:
    """The error of a chat, in words."""
    if isinstance(error, JittokError):
        where = getattr(error, "where", "")
        found, expected = getattr(error, "found", str(error)), getattr(error, "expected", "a chat that can be encoded")
        shown = f"{where}: {found}" if where else str(found)
        return _BadChat(_short(shown), str(expected))
    return _BadChat(_short(str(error)), "a chat that the template renders")


def _short(text: str) -> str:
    return SURROGATE.sub("\ufffd", text if len(text) <= 2 * SHOWN else text[: 2 * SHOWN] + "…")


def _shown(line: bytes) -> str:
    return repr(line[:SHOWN])[1:] + ("…" if len(line) > SHOWN else "")


def templates_of(tok: Tokenizer, options: Options) -> str:
    """SHA-256 of all that a vocabulary's files say of chats, 64 hex digits: the templates and the special tokens that
    they see."""
    files = tok._conversations.files
    said: Sequence[Mapping[str, str]] = ({} if "{" in (options.template or "") else files.templates, files.special)
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
