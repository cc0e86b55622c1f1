"""The data of a chat: what a template sees, and where each text of it comes from.

Messages become plain JSON types by the rules of transformers: keys whose value is None are dropped, reasoning is there
under all its names, any other object is the text `<its type>`.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from jittok.chat.templates.marked import Marked, make
from jittok.errors import ChatError, InWords

REASONED = ("reasoning_content", "thinking", "reasoning")
"""Names of a message's reasoning. The first that is there gives all."""
REASONING = frozenset(REASONED)
STRUCTURE = frozenset({"role", "type"})
"""Keys whose short plain names belong to the form of a chat, not to its text."""
USUAL = frozenset(["user", "assistant", "system", "tool", "developer", "function", "text", "image", "object", "string"])
"""Values of these that most chats have."""
NO_TEXT = frozenset({int, float, bool})
"""Types of plain values that are no text."""
LONGEST_NAME = 32
"""Characters of such a name."""
FORM = REASONING | {
    "role", "content", "type", "text", "name", "id", "function", "arguments", "tool_calls", "tool_call_id",
}  # fmt: skip
"""Keys of messages and of their parts that no one chooses: they are not marked."""
MOST_DEPTH = 200
"""Levels of data in a message."""
Path = tuple[str | int, ...]
"""Where a text is in a chat: ("messages", 0, "content")."""
Messages = Iterable[Any]
"""The messages of a chat: dicts, dataclasses, or objects with `model_dump`."""


class Source(NamedTuple):
    """Where a text of a chat is, and the role of its message ("" if it is in none)."""

    path: Path
    role: str


def plain_data(value: Any, depth: int = 0) -> Any:
    """A value as plain JSON types, which have no methods of their own."""
    kind = type(value)
    if kind is str or value is None or kind in NO_TEXT:
        return value
    if depth > MOST_DEPTH:
        raise ChatError("messages", InWords(f"data of more than {MOST_DEPTH} levels"), "fewer")
    depth += 1
    if kind is dict:
        return {
            (key if type(key) is str else plain_data(key, depth)): part
            if type(part) is str
            else plain_data(part, depth)
            for key, part in value.items()
        }
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Mapping):
        return {plain_data(key, depth): plain_data(part, depth) for key, part in value.items()}
    if isinstance(value, list):
        return [plain_data(part, depth) for part in value]
    if isinstance(value, tuple):
        return tuple(plain_data(part, depth) for part in value)
    return _of_object(value, depth)


def _of_object(value: Any, depth: int) -> Any:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_data(getattr(value, field.name), depth) for field in dataclasses.fields(value)}
    if callable(getattr(value, "model_dump", None)):
        return plain_data(value.model_dump(), depth)
    if isinstance(value, numbers.Number) or type(value).__module__ == "numpy":
        item = getattr(value, "item", None)
        if getattr(value, "shape", ()) == () and callable(item):
            return plain_data(item(), depth)
    return f"<{type(value).__name__}>"


def prepared(messages: Any) -> list[dict[str, Any]]:
    """The messages of a chat as a template gets them. TypeError for one that is none; ChatError if there are none."""
    found = getattr(messages, "messages", messages)
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise TypeError(f"messages: found {type(found).__name__}, expected a list of messages")
    made = []
    for number, message in enumerate(found):
        data = plain_message(message)
        if not isinstance(data, dict):
            hint = " (encode_chat takes one chat)" if isinstance(message, list | tuple) else ""
            raise TypeError(f"messages[{number}]: found {type(message).__name__}, expected a dict{hint}")
        thought = None if REASONING.isdisjoint(data) else next(data[key] for key in REASONED if key in data)
        if thought is not None:
            data = {"thinking": thought, **data, "reasoning_content": thought}
        made.append(data)
    if not made:
        raise ChatError("messages", InWords("none"), "one or more")
    return made


def plain_message(message: Any) -> Any:
    """A message as plain JSON types, without the keys whose value is None."""
    if type(message) is dict:
        for key, value in message.items():
            if type(value) is not str or type(key) is not str:
                break
        else:
            return dict(message)
    data = plain_data(message)
    return {key: value for key, value in data.items() if value is not None} if isinstance(data, dict) else data


class Marker:
    """Marks the texts of a chat, and lists where they are: text number k is sources[k - 1]."""

    def __init__(self) -> None:
        self.sources: list[tuple[Path, str]] = []  # as Source

    def mark(self, value: Any, path: Path, role: str = "", form: bool = False) -> Any:
        """The value with every text, and every key, marked. form: whether it belongs to a key of STRUCTURE."""
        kind = type(value)
        if kind is str:
            return value if form and _is_name(value) else self._text(value, path, role)
        if kind is dict:
            sources, made = self.sources, {}
            for key, part in value.items():
                own, here = key, form
                if type(key) is str:
                    sources.append(((*path, "key", key), role))
                    own, here = make(key, ((len(key), len(sources)),) if key else ()), key in STRUCTURE
                if type(part) is str and not here:
                    sources.append(((*path, key), role))
                    made[own] = make(part, ((len(part), len(sources)),) if part else ())
                elif part is None or type(part) in NO_TEXT:
                    made[own] = part
                else:
                    made[own] = self.mark(part, (*path, key), role, here)
            return made
        if kind is list or kind is tuple:
            return [self.mark(part, (*path, number), role, form) for number, part in enumerate(value)]
        return value

    def messages(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages with their texts marked. Keys that belong to the form of a message are not."""
        made = []
        for number, message in enumerate(messages):
            role = message.get("role")
            role = role if isinstance(role, str) else ""
            marked: dict[str, Any] = {}
            for key, part in message.items():
                if type(part) is str and key in FORM:  # most are
                    if key in STRUCTURE and _is_name(part):
                        marked[key] = part
                    else:
                        self.sources.append((("messages", number, key), role))
                        marked[key] = make(part, ((len(part), len(self.sources)),) if part else ())
                    continue
                path = "messages", number, key
                own = key if key in FORM or not isinstance(key, str) else self._text(key, (*path, "key", key), role)
                if type(part) is list and key == "content":
                    marked[own] = [self._part(each, (*path, k), role) for k, each in enumerate(part)]
                else:
                    marked[own] = self.mark(part, path, role, key in STRUCTURE)
            made.append(marked)
        return made

    def _part(self, part: Any, path: Path, role: str) -> Any:
        """A part of a message's content."""
        if not isinstance(part, dict) or not part.keys() <= FORM:
            return self.mark(part, path, role)
        return {key: self.mark(value, (*path, key), role, key in STRUCTURE) for key, value in part.items()}

    def _text(self, text: str, path: Path, role: str) -> Marked:
        self.sources.append((path, role))
        return make(text, ((len(text), len(self.sources)),) if text else ())


def _is_name(text: str) -> bool:
    """Whether a value of `role` or `type` is a short plain name."""
    if text in USUAL:
        return True
    if text.isalnum():
        return len(text) <= LONGEST_NAME and text.isascii()
    return len(text) <= LONGEST_NAME and text.isascii() and text.translate(_PUNCTUATION).isalnum()


_PUNCTUATION = str.maketrans("_-.", "aaa")


def tool_schemas(tools: Iterable[Any] | None) -> list[Any] | None:
    """Tools as JSON schemas: dicts as they are, functions by their docstring and hints. TypeError for others."""
    if tools is None:
        return None
    if isinstance(tools, str | bytes | Mapping):
        raise TypeError(f"tools: found {type(tools).__name__}, expected a list of JSON schemas or functions")
    made = []
    for number, tool in enumerate(tools):
        if isinstance(tool, Mapping):
            made.append(plain_data(tool))
        elif isinstance(tool, Callable):  # type: ignore[arg-type]
            from jittok.chat.tools import schema_of

            made.append(schema_of(tool))
        else:
            found = type(tool).__name__
            raise TypeError(f"tools[{number}]: found {found}, expected a JSON schema (a dict) or a function")
    return made
