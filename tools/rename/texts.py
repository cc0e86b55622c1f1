"""Names in texts: comments, documents, notebooks, the lists of mutants."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from project import ROOT, Project
from scopes import Scope, Source


class Words:
    """Names in texts: dotted ones, paths, and those in backticks."""

    def __init__(self, project: Project, moves: dict[str, str]) -> None:
        self.project, self.table = project, project.table
        self.for_users = (
            False  # of a text for users, where a plain word in backticks is their variable, column or option
        )
        paths = dict(moves)
        for old, new in moves.items():
            if old.startswith("jittok/"):
                paths[old.removeprefix("jittok/")] = new.removeprefix("jittok/")
                parts, news = old.split("/"), new.split("/")
                if len(parts) > 3 and len(parts) == len(news):
                    paths.setdefault("/".join(parts[-2:]), "/".join(news[-2:]))
            if old.startswith("tests/"):
                paths[old.removeprefix("tests/")] = new.removeprefix("tests/")
        for old, new in moves.items():  # folders that moved as a whole
            before, after = old.rpartition("/")[0], new.rpartition("/")[0]
            whole = all(name in moves for name in project.paths if name.startswith(f"{before}/"))
            if before != after and "/" in before and whole:
                paths.setdefault(before, after)
        self.paths = paths
        every = sorted(map(re.escape, paths), key=len, reverse=True)
        self.path = re.compile(rf"(?<![\w./-])(?:{'|'.join(every)})(?![\w])") if every else None
        self.stems: dict[str, set[str]] = defaultdict(set)
        for module in project.by_module:
            if module.startswith("jittok."):
                parts = module.split(".")[1:]
                for k in range(len(parts)):
                    self.stems[".".join(parts[k:])].add(module)
        self.symbols: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for module, source in project.by_module.items():
            if module.startswith("jittok"):
                for name, how in source.root.bound.items():
                    if how != "import":
                        self.symbols[name].add((module, name))

    def dotted(self, text: str) -> str:
        """jittok.a.b.Name, and jittok.a.b:Name."""

        def one(match: re.Match[str]) -> str:
            parts = match[0].split(".")
            for k in range(len(parts), 0, -1):
                module = ".".join(parts[:k])
                if module in self.project.by_module:
                    break
            else:
                return match[0]
            rest = parts[k:]
            if rest and (found := self.project.resolve(module, rest[0])) and found[1] == rest[0]:
                rest[0] = self.table.names.get((found[0], rest[0]), rest[0])
            rest[1:] = [self.table.members.get(each, each) for each in rest[1:]]
            return ".".join([self.table.module(module), *rest])

        return re.sub(r"(?<![\w./-])jittok(?:\.[A-Za-z_]\w*)+", one, text)

    def moved(self, text: str) -> str:
        """Paths of files."""
        return self.path.sub(lambda match: self.paths[match[0]], text) if self.path else text

    def backticked(self, text: str, source: Source | None, scopes: tuple[Scope, ...] = ()) -> str:
        """`name`, `module.name`, `function(name)`: as the file that says it knows it."""

        def one(match: re.Match[str]) -> str:
            inside = match[1]
            if near := self.beside(inside, source):
                return f"`{near}`"
            if not re.fullmatch(r"[A-Za-z_][\w.]*(\(.*\))?", inside):
                return match[0]
            return f"`{self.name(inside, source, scopes)}`"

        return re.sub(r"(?<!`)`([^`\n]+)`(?!`)", one, text)

    def beside(self, text: str, source: Source | None) -> str:
        """`name.py` of the same folder, or of the only file of this name; a path without its ending."""
        if f"{text}.py" in self.paths and "/" in text:
            return self.paths[f"{text}.py"].removesuffix(".py")
        if not re.fullmatch(r"\w+\.py", text):
            return ""
        folder = source.name.rpartition("/")[0] if source else ""
        homes = {new for old, new in self.paths.items() if old.rpartition("/")[2] == text and old.startswith("jittok/")}
        new = self.paths.get(f"{folder}/{text}") or (homes.pop() if len(homes) == 1 else text)
        return new.rpartition("/")[2]

    def name(self, text: str, source: Source | None, scopes: tuple[Scope, ...]) -> str:
        """One name in backticks."""
        if source is None and (text in self.table.left or (self.for_users and text.islower() and text.isalpha())):
            return text
        head, bracket, tail = text.partition("(")
        parts = head.split(".")
        if source and source.name.startswith("jittok"):
            for scope in scopes:
                if parts[0] in scope.renamed:
                    rest = [self.table.members.get(each, each) for each in parts[1:]]
                    return ".".join([scope.renamed[parts[0]], *rest]) + bracket + tail
                if parts[0] in scope.bound:
                    return text
        found = self.candidates(parts, source)
        if len(found) == 1:
            return found.pop() + bracket + tail
        if len(parts) > 1 and (parts[0] in self.symbols or parts[0] == "self"):
            homes = {self.table.names.get(each, each[1]) for each in self.symbols[parts[0]]} or {parts[0]}
            if len(homes) == 1:
                return ".".join([homes.pop(), *(self.table.members.get(p, p) for p in parts[1:])]) + bracket + tail
        if len(parts) == 1 and not self.symbols.get(parts[0]) and parts[0] in self.table.members:
            return self.table.members[parts[0]] + bracket + tail
        return text

    def candidates(self, parts: list[str], source: Source | None) -> set[str]:
        """What a name may be, nearest first: of this module, a module beside it, any module, any name."""
        module = source.module if source and source.name.startswith("jittok") else "jittok"
        near = [module, module.rpartition(".")[0], "jittok"]
        for k in range(len(parts), 0, -1):
            stem = ".".join(parts[:k])
            homes = self.stems.get(stem, set())
            beside = [f"{each}.{stem}" for each in near if f"{each}.{stem}" in homes]
            if len(parts) == 1 and self.symbols.get(stem) and (source or f"jittok.{stem}" not in homes):
                break
            chosen = beside[:1] or ([*homes] if len(homes) == 1 else [])
            if chosen:
                new = self.table.module(chosen[0]).split(".")
                rest = parts[k:]
                if rest:
                    target = self.project.resolve(chosen[0], rest[0])
                    if not target:
                        continue
                    rest = [self.table.names.get((target[0], str(target[1])), rest[0]), *rest[1:]]
                return {".".join([*new[len(new) - k :], *rest])}
        if len(parts) == 1:
            own = {each for each in self.symbols.get(parts[0], ()) if each[0] == module}
            return {self.table.names.get(each, parts[0]) for each in own or self.symbols.get(parts[0], ())}
        return set()

    def plain(self, text: str, source: Source | None, scopes: tuple[Scope, ...] = ()) -> str:
        """All of it."""
        return self.moved(self.dotted(self.backticked(text, source, scopes)))


def comment_spans(source: Source) -> Iterator[tuple[int, tuple[Scope, ...]]]:
    """Lines that hold comments or strings, each with the scopes around it, innermost first."""
    around: dict[int, tuple[Scope, ...]] = {}

    def within(nodes: list[ast.stmt], scope: Scope, scopes: tuple[Scope, ...]) -> None:
        children = iter(child for child in scope.children if child.name[:1] != "<")
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                child = next((c for c in children if c.name == node.name), None)
                if child is not None:
                    for line in range(node.lineno, (node.end_lineno or 0) + 1):
                        around[line] = (child, *scopes)
                    within(node.body, child, (child, *scopes))

    within(source.tree.body, source.root, (source.root,))
    for number in range(1, len(source.lines) + 1):
        yield number, around.get(number, (source.root,))


def rewrite_python(source: Source, lines: list[str], words: Words) -> str:
    """Texts within a Python file: lines with a backtick, a dotted name or a path."""
    for number, scopes in comment_spans(source):
        line = lines[number - 1]
        if "`" in line or "jittok" in line or "/" in line or ".py" in line:
            lines[number - 1] = words.plain(line, source, scopes)
    return "\n".join(lines)


def rewrite_mutants(text: str, project: Project, new_lines: dict[str, list[str]], words: Words) -> str:
    """The lists of changes: each quoted line as it is now, and what is put there with the same words changed."""
    made, source, changes = [], "", {}
    for line in text.split("\n"):
        mark, _, rest = line.partition(" ")
        new = line
        if mark == "==":
            source, new = rest.partition(":")[0], words.moved(line)
        elif re.fullmatch(r"-\d*", mark) and source in project.sources:
            quoted, changes = quoted_now(project, source, new_lines[source], rest, int(mark[1:] or 1))
            new = quoted or line
        elif mark == "+":
            new = f"+ {re.sub(r'[A-Za-z_][A-Za-z0-9_.]*', lambda m, now=changes: swapped(m[0], now), rest)}"
        made.append(new)
    return "\n".join(made)


def quoted_now(project: Project, source: str, lines: list[str], quoted: str, which: int) -> tuple[str, dict[str, str]]:
    """A line that a list quotes, as it reads after the edits, and old -> new of its names and of others in its file."""
    places = [k for k, each in enumerate(project.sources[source].lines) if each.decode().strip() == quoted]
    if which > len(places):
        project.tell(f"a list of mutants: no such line in {source}: {quoted}")
        return "", {}
    at = places[which - 1]
    whole: dict[str, set[str]] = defaultdict(set)
    for _, _, before, after in project.edits[source]:
        whole[before].add(after)
    changes = {b: next(iter(a)) for b, a in whole.items() if len(a) == 1 and b not in quoted}
    changes |= {b: a for number, _, b, a in project.edits[source] if number == at + 1}
    new = lines[at].strip()
    now = [k for k, each in enumerate(lines) if each.strip() == new].index(at) + 1
    return f"-{now if now > 1 else ''} {new}", changes


def swapped(name: str, changes: dict[str, str]) -> str:
    """A dotted name with each of its parts changed."""
    return ".".join(changes.get(part, part) for part in name.split("."))


def notebook(name: str, book: Any, project: Project, new_lines: dict[str, list[str]], words: Words) -> str:
    """A notebook with its cells edited, laid out as it was."""
    before = (ROOT / name).read_text(encoding="utf-8")
    for k, cell in enumerate(book["cells"]):
        text = "".join(cell["source"])
        if (code := f"{name}#{k}") in project.sources:
            text = rewrite_python(project.sources[code], [*new_lines[code]], words)
        elif cell["cell_type"] == "markdown":
            words.for_users = True
            text = words.plain(text, None)
        cell["source"] = text.splitlines(keepends=True)
    after = json.dumps(book, indent=1, ensure_ascii=False) + "\n"
    return before if json.loads(before) == json.loads(after) else after
