"""Stage "fragments": the buffer after each special token that was searched for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jittok.common.display.characters import readable
from jittok.common.display.tables import ROWS, Markup, table
from jittok.common.display.terminal import FAINT, GOOD, StyledText, clipped
from jittok.common.display.tokens import DIM, rest, text_chip
from jittok.reference.special import BLANKS, RSTRIP, Fragment, partition
from jittok.reference.vocab_tables import attributes
from jittok.trace.recorder import Record
from jittok.trace.stages.base import Records, StageKind, clipped_text
from jittok.vocab import Vocab
from jittok.vocab.describe import shown

ALL_SHOWN = 64
"""Up to so many special tokens, each has a record; with more, only those that were found."""


class FragmentsStage(StageKind):
    """The text cut around special tokens."""

    name = "fragments"
    about = "the text cut around special tokens: the buffer after each of them"

    def html(self, records: Records, context: Record) -> str:
        """A picture and a table."""
        raw: bytes = context["text"]

        def buffer(parts: Records) -> Markup:
            shown = []
            for part in parts[:ROWS]:
                stretch = raw[part["offset"] : part["offset"] + part["length"]]
                where = f"offset {part['offset']}, length {part['length']}"
                if part["type"] == "token":
                    named = f"token {part['token']}, {where}"
                    shown.append(f"<b>{text_chip(stretch, 1, named)}</b>")
                else:
                    position = f'<small style="{DIM}">({part["offset"]}, {part["length"]})</small>'
                    shown.append(text_chip(clipped_text(readable(stretch)), 0, where) + position)
            return Markup(" ".join(shown) + rest(len(parts) - ROWS, "fragments"))

        rows = [
            (
                record["searched"],
                "start" if record["special"] is None else f"{record['text']} ({record['special']})",
                record["found"],
                buffer(record["buffer"]),
            )
            for record in records[:ROWS]
        ]
        return table(("", "looked for", "found", "buffer"), rows, len(records))

    def row(self, record: Record, context: Record) -> list[StyledText]:
        """A line of a terminal."""
        raw: bytes = context["text"]
        parts = []
        for part in record["buffer"][:12]:
            stretch = clipped(raw[part["offset"] : part["offset"] + part["length"]].decode("utf-8", "backslashreplace"))
            if part["type"] == "token":
                parts.append(f"[{part['token']} {stretch}]")
            else:
                parts.append(f"({part['offset']}, {part['length']}) {stretch}")
        more = f" … {len(record['buffer']) - 12} more" if len(record["buffer"]) > 12 else ""
        name = "start" if record["special"] is None else f"{record['text']} ({record['special']})"
        style = GOOD if record["found"] else FAINT
        return [
            StyledText(name, style),
            StyledText(f"found {record['found']}", FAINT),
            StyledText(" | ".join(parts) + more),
        ]

    def sentence(self, record: Record, regexes: Sequence[str]) -> str:
        """What happened."""
        buffer = " ".join(
            f"text({part['offset']}, {part['length']})" if part["type"] == "raw_text" else f"token {part['token']}"
            for part in record["buffer"]
        )
        if record["special"] is None:
            return f"the buffer is {buffer or 'empty'}"
        count = record["found"]
        times = "not found" if not count else "found once" if count == 1 else f"found {count} times"
        return f"{record['text']!r} (id {record['special']}) is {times}; the buffer is {buffer or 'empty'}"


def record_partition(vocab: Vocab, text: bytes, parse_special: bool) -> tuple[list[Fragment], list[Record]]:
    """(the fragments, a record of the buffer at the start and after each special token)."""
    states: list[tuple[int, list[Fragment]]] = []
    found = partition(vocab, text, parse_special, lambda token, now: states.append((token, now)))
    before = [Fragment(None, 0, len(text))] if text else []
    records: list[Record] = [{"searched": 0, "special": None, "text": None, "found": 0, "buffer": _buffer(before)}]
    for position, (token, now) in enumerate(states, 1):
        count = sum(part.token == token for part in now)
        if count or len(states) <= ALL_SHOWN:
            name = shown(vocab.tokens[token])
            records.append(
                {"searched": position, "special": token, "text": name, "found": count, "buffer": _buffer(now)}
            )
    return found, records


def insertions(vocab: Vocab, text: bytes, parse_special: bool) -> Iterator[list[Record]]:
    """The buffer at the start and after each insertion and removal, as a debugger shows the list.

    A fragment is removed only after its parts have been inserted after it. Source: llama.cpp, `tokenizer_st_partition`.
    """
    states: list[tuple[int, list[Fragment]]] = []
    partition(vocab, text, parse_special, lambda token, now: states.append((token, now)))
    buffer = [Fragment(None, 0, len(text))] if text else []
    yield _buffer(buffer)
    for token, now in states:
        after, at = list(now), 0
        while at < len(buffer):
            source = buffer[at]
            stop = next((k for k, part in enumerate(after) if part.start >= source.stop), len(after))
            parts, after = after[:stop], after[stop:]
            if source.token is not None or not any(part.token == token for part in parts):
                at += 1
                continue
            for source_place, state in _cut(vocab, text, buffer, at, parts, token):
                at = source_place
                yield _buffer(state)
                buffer = state


def _cut(
    vocab: Vocab, text: bytes, buffer: list[Fragment], at: int, parts: list[Fragment], token: int
) -> Iterator[tuple[int, list[Fragment]]]:
    """(where to continue, the buffer) after each change while buffer[at] becomes `parts`."""
    end = buffer[at].stop
    while parts:
        new, parts = (parts[:2], parts[2:]) if parts[0].token is None else (parts[:1], parts[1:])
        right = new[-1].stop
        while attributes(vocab)[token] & RSTRIP and right < end and text[right] in BLANKS:
            right += 1
        if right < end:
            new.append(Fragment(None, right, end))
        buffer = list(buffer)
        for k, part in enumerate(new, 1):
            buffer = [*buffer[: at + k], part, *buffer[at + k :]]
            yield at, buffer
        buffer = [*buffer[:at], *buffer[at + 1 :]]
        at += len(new) - 1  # the rest of the text, if there is one: it is split next
        more = any(part.token == token for part in parts)
        yield at if more else at + 1, buffer
        if not more:
            return


def _buffer(fragments: list[Fragment]) -> list[Record]:
    return [
        {"type": "raw_text", "offset": part.start, "length": part.stop - part.start}
        if part.token is None
        else {"type": "token", "token": part.token, "offset": part.start, "length": part.stop - part.start}
        for part in fragments
    ]
