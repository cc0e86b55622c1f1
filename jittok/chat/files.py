"""Chats in files: one as JSON, or one a line as JSON Lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jittok.errors import ChatError, InWords

PARTS = ("messages", "tools", "documents", "add_generation_prompt", "continue_final_message")
"""Keys of a chat that is an object; a chat may also be its list of messages."""


def read_chats(name: str, messages: str = "messages") -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, a chat) of each chat in a file, "-" for standard input: the arguments of `Tokenizer.encode_chat`.

    messages: the key of the messages. ChatError for what is no chat, with its line.
    """
    text = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    source = "standard input" if name == "-" else name
    if name.endswith((".jsonl", ".ndjson")) or (name == "-" and _is_lines(text)):
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield _chat(f"{source}, line {number}", _json(f"{source}, line {number}", line), messages)
        return
    found = _json(source, text)
    if (
        isinstance(found, list)
        and found
        and all(isinstance(each, list) or (isinstance(each, dict) and messages in each) for each in found)
    ):
        for number, each in enumerate(found, 1):
            yield _chat(f"{source}, chat {number}", each, messages)
        return
    yield _chat(source, found, messages)


def _is_lines(text: bytes) -> bool:
    """Whether a text is JSON Lines and not JSON: its first line is whole, and more follows."""
    first, _, rest = text.strip().partition(b"\n")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return bool(rest)


def _json(where: str, text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ChatError(where, InWords(str(error)), "a chat as JSON, or one a line in a file .jsonl") from None


def _chat(where: str, found: Any, messages: str) -> tuple[str, dict[str, Any]]:
    if isinstance(found, list):
        return where, {"messages": found}
    if not isinstance(found, dict) or messages not in found:
        raise ChatError(where, found, f"a list of messages, or an object with {messages!r}")
    chat = {name: found[name] for name in PARTS if name in found and found[name] is not None}
    return where, {**chat, "messages": found[messages]}
