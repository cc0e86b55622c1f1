"""Values of a JSON file with their paths, so that every error can name one."""

from __future__ import annotations

from typing import Any

from jittok.errors import MalformedVocab, UnsupportedVocab

MISSING = object()
_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
}


class Node:
    """A value of a JSON file; `position` is its path, as in "model.merges[3]"."""

    def __init__(self, file: str, location: str, value: Any) -> None:
        self.file, self.position, self.value = file, location, value

    def bad(self, found: object, expected: str) -> MalformedVocab:
        """The error of a value that cannot be right."""
        return MalformedVocab(self.file, self.position or "file", found, expected)

    def unknown(self, found: object, expected: str) -> UnsupportedVocab:
        """The error of what this version does not know."""
        return UnsupportedVocab(self.file, self.position or "file", found, expected)

    def of(self, kind: type) -> Any:
        """The value, which must be of a kind; a whole number is a number, true is none."""
        value = self.value
        if kind is float and type(value) is int:
            return float(value)
        if type(value) is not kind:
            raise self.bad(value, _NAMES[kind])
        return value

    def has(self, key: str) -> bool:
        """Whether an object has a key with a value other than null."""
        return self.of(dict).get(key) is not None

    def child(self, key: str) -> Node:
        """What is under a key of an object; null where there is nothing."""
        return Node(self.file, f"{self.position}.{key}" if self.position else key, self.of(dict).get(key))

    def get(self, key: str, kind: type, default: Any = MISSING) -> Any:
        """The value of a key of an object. With a default, absent and null are the default."""
        child = self.child(key)
        if child.value is None and default is not MISSING:
            return default
        return child.of(kind)

    def items(self) -> list[Node]:
        """The elements of a list."""
        return [Node(self.file, f"{self.position}[{k}]", value) for k, value in enumerate(self.of(list))]

    def type(self) -> str:
        """The value of "type"."""
        return str(self.get("type", str))

    def one_of(self, key: str, allowed: tuple[str, ...], default: Any = MISSING) -> str:
        """The value of a key, one of the allowed texts."""
        found = self.get(key, str, default)
        if found not in allowed:
            raise self.child(key).bad(found, "one of " + ", ".join(allowed))
        return str(found)

    def count(self, key: str, default: Any = MISSING) -> int:
        """The value of a key, a whole number that is not negative and of reasonable size."""
        found = self.get(key, int, default)
        if not 0 <= found < 1 << 31:
            raise self.child(key).bad(found, "0 or more, below 2^31")
        return int(found)
