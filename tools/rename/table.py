"""The renames of a table, by kind."""

from __future__ import annotations

import re


class Table:
    """The renames, by kind; and which entries have matched."""

    def __init__(self, text: str) -> None:
        self.modules: dict[str, str] = {}
        self.names: dict[tuple[str, str], str] = {}
        self.members: dict[str, str] = {}
        self.of_class: dict[tuple[str, str, str], str] = {}
        self.parameters: list[tuple[str, str, str, str]] = []  # modules, function or *, name, new
        self.texts: list[tuple[str, str, str]] = []
        self.left: set[str] = set()
        self.matched: dict[str, bool] = {}
        for number, line in enumerate(text.splitlines(), 1):
            entry = re.sub(r"(^|\s)#.*", "", line).strip()
            if entry:
                self.read(entry, number)

    def read(self, entry: str, number: int) -> None:
        """One line."""
        if entry.startswith("leave "):
            self.left.add(entry[6:].strip())
            return
        self.matched[entry] = False
        if text := re.fullmatch(r'text (\S+): "(.*)" -> "(.*)"', entry):
            self.texts.append((text[1], text[2], text[3]))
            return
        found = re.fullmatch(r"([\w.*]+)(?::([\w.]+))?(?:\((\w+)\))? -> ([\w.|]+)", entry)
        if not found:
            raise SystemExit(f"line {number}: found {entry!r}, expected OLD -> NEW")
        module, name, parameter, new = found.groups()
        if parameter:
            self.parameters.append((module, name or "*", parameter, new))
        elif module.startswith("*."):
            self.members[module[2:]] = new
        elif not name:
            self.modules[module] = new
        elif "." in name:
            kind, _, member = name.rpartition(".")
            self.of_class[module, kind, member] = new
        else:
            self.names[module, name] = new

    def module(self, name: str) -> str:
        """The new name of a module: that of its own entry, else within its package's new name."""
        if name in self.modules:
            return self.modules[name]
        package, dot, own = name.rpartition(".")
        return f"{self.module(package)}.{own}" if dot else name
