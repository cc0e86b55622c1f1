"""The buffer of fragments, after each special token and after each insertion."""

from __future__ import annotations

from collections.abc import Iterator

from jittok.reference.special import BLANKS, RSTRIP, Fragment, partition
from jittok.reference.vocab_tables import attributes
from jittok.trace.stage import Record
from jittok.vocab import Vocab
from jittok.vocab.describe import shown

ALL_SHOWN = 64
"""Up to so many special tokens, each has a record; with more, only those that were found."""


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
