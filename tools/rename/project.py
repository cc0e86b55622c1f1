"""All files of the repository: what they bind and import, and the edits of Python files."""

from __future__ import annotations

import ast
import builtins
import fnmatch
import json
import re
from collections import defaultdict
from pathlib import Path, PurePosixPath
from typing import Any

from scopes import Scope, Source
from table import Table

ROOT = Path(__file__).resolve().parents[2]
BY_NAME = ("getattr", "hasattr", "setattr", "delattr", "patch")


class Project:
    """All files of the repository, what they bind and import, and the edits."""

    def __init__(self, table: Table, names: list[str]) -> None:
        self.table, self.told = table, []
        self.paths = names
        self.sources: dict[str, Source] = {}
        self.by_module: dict[str, Source] = {}
        self.edits: dict[str, set[tuple[int, int, str, str]]] = defaultdict(set)
        self.cells: dict[str, Any] = {}
        for name in names:
            if name.endswith(".py"):
                self.add(name, (ROOT / name).read_text(encoding="utf-8"))
            elif name.endswith(".ipynb"):
                self.cells[name] = json.loads((ROOT / name).read_text(encoding="utf-8"))
                for k, cell in enumerate(self.cells[name]["cells"]):
                    if cell["cell_type"] == "code":
                        self.add(f"{name}#{k}", "".join(cell["source"]))
        for module, source in [*self.by_module.items()]:  # what cells bind, the next ones know
            if module not in table.modules and module.startswith("jittok"):
                self.by_module[module] = source

    def add(self, name: str, text: str) -> None:
        """A Python text."""
        path = PurePosixPath(name).with_suffix("")
        module = ".".join(path.parts).removesuffix(".__init__") if "#" not in name else name
        try:
            source = Source(name, text, module)
        except SyntaxError:  # a cell with a magic command
            return
        self.sources[name] = source
        self.by_module[module] = source
        if module.startswith("tests."):  # conftest's and helpers' own folders are on the path
            self.by_module.setdefault(module.rpartition(".")[2], source)

    def tell(self, text: str) -> None:
        """Something that was not done."""
        self.told.append(text)

    def resolve(self, module: str, name: str, seen: int = 0) -> tuple[str, str | None] | None:
        """What a module's name is: (module, name) where it is defined, (module, None) for a module."""
        source = self.by_module.get(module)
        bound = source.root.imports.get(name) == (module, name) if source else False  # a package imports its own module
        if f"{module}.{name}" in self.by_module and not (source and name in source.root.bound and not bound):
            return f"{module}.{name}", None
        if not source or seen > 9:
            return None
        if name in source.root.imports and source.root.bound[name] == "import":
            target, part = source.root.imports[name]
            return (target, None) if part is None else self.resolve(target, part, seen + 1)
        if name in source.root.bound:
            return module, name
        for scope in source.root.children:  # `__getattr__` that loads names when they are first used
            if scope.name == "__getattr__":
                return self.lazily(source, name)
        return None

    def lazily(self, source: Source, name: str) -> tuple[str, str | None] | None:
        """A name that `__getattr__` of a package loads: one child module defines it."""
        children = [m for m in self.by_module if m.rpartition(".")[0] == source.module]
        homes = [m for m in children if self.by_module[m].root.bound.get(name) in ("def", "class", "local")]
        return (homes[0], name) if len(homes) == 1 else None

    def meaning(self, scope: Scope, node: ast.expr) -> tuple[str, str | None] | None:
        """What an expression names, as `resolve` says it."""
        if isinstance(node, ast.Name):
            home = scope.find(node.id)
            if home is None:
                return None
            if node.id in home.imports and home.bound[node.id] == "import":
                module, name = home.imports[node.id]
                return (module, None) if name is None else self.resolve(module, name)
            return (self.owner[home.top()], node.id) if home.kind == "module" else None
        if isinstance(node, ast.Attribute):
            base = self.meaning(scope, node.value)
            if base and base[1] is None:
                return self.resolve(base[0], node.attr)
        return None

    def run(self) -> None:
        """All edits of Python files."""
        self.owner = {source.root: source.module for source in self.sources.values()}
        self.check_members()
        self.choose()
        for source in self.sources.values():
            self.tokens(source)
            self.imports(source)
            self.attributes(source)
            self.keywords(source)
            self.named(source)

    def edit(self, source: Source, line: int, column: int, old: str, new: str) -> None:
        """One token."""
        if old != new:
            assert source.lines[line - 1][column : column + len(old.encode())] == old.encode(), (source.name, line, old)
            self.edits[source.name].add((line, column, old, new))

    def check_members(self) -> None:
        """Members by class become members by name where all classes with this name agree."""
        homes: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for source in self.sources.values():
            for kind, members in source.members.items():
                for member in members:
                    homes[member].add((source.module, kind))
        given: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
        for (module, kind, member), new in self.table.of_class.items():
            if (module, kind) in homes[member]:
                self.table.matched[f"{module}:{kind}.{member} -> {new}"] = True
                given[member][module, kind] = new
        for member, kinds in given.items():
            rest = homes[member] - kinds.keys()
            if rest or len({*kinds.values()}) > 1:
                self.tell(f".{member} is not renamed: also a member of {sorted(':'.join(each) for each in rest)}")
            else:
                self.table.members[member] = next(iter(kinds.values()))
        for source in self.sources.values():  # modules that are imported by a name from a table have no class
            for node, _ in source.attributes:
                homes.setdefault(node.attr, {("", "")} if node.attr in self.table.members else set())
        for member, new in self.table.members.items():
            self.table.matched[f"*.{member} -> {new}"] = bool(homes[member])
            if homes[new] & homes[member]:
                self.tell(f".{member} is not renamed: {sorted(homes[new] & homes[member])} have .{new} too")
        self.table.members = {m: n for m, n in self.table.members.items() if homes[m] and not homes[n] & homes[m]}

    def choose(self) -> None:
        """Which binding of which scope gets which name."""
        for (module, name), new in self.table.names.items():
            source = self.by_module.get(module)
            if source and name in source.root.bound and source.root.bound[name] != "import":
                self.table.matched[f"{module}:{name} -> {new}"] = True
        for source in self.sources.values():
            for scope in source.root.all():
                for name, how in scope.bound.items():
                    new = name
                    if how == "import" and name in scope.imports:
                        new = self.imported(scope, name)
                    elif scope.kind == "module":
                        new = self.table.names.get((source.module, name), name)
                    elif scope.kind == "class":
                        new = self.table.members.get(name, name) if name in source.members[scope.path()] else name
                    elif how not in ("def", "class"):
                        new = self.parameter(source, scope, name)
                    *others, last = new.split("|")
                    free = next((each for each in others if self.is_free(scope, name, each)), last)
                    if free == name:
                        continue
                    if free in scope.renamed.values() or not self.is_free(scope, name, free):
                        self.tell(
                            f"{source.name}: {scope.path() or 'the module'}: {name} is not renamed: {free} is taken"
                        )
                    else:
                        scope.renamed[name] = free

    def imported(self, scope: Scope, name: str) -> str:
        """The new name of what an import binds without `as`."""
        module, part = scope.imports[name]
        if part is None or part != name:
            return name
        found = self.resolve(module, part)
        if found is None:
            return name
        if found[1] is None:
            return self.table.module(found[0]).rpartition(".")[2]
        return self.table.names.get((found[0], found[1]), name)

    def parameter(self, source: Source, scope: Scope, name: str) -> str:
        """The new name of a parameter or local."""
        path = scope.path()
        for modules, function, old, new in self.table.parameters:
            inside = fnmatch.fnmatchcase(source.module, modules) or (
                modules.endswith(".*") and source.module == modules[:-2]
            )
            if old == name and inside and (function in ("*", path) or path.startswith(f"{function}.")):
                of = modules if function == "*" else f"{modules}:{function}"
                self.table.matched[f"{of}({old}) -> {new}"] = True
                return new
        return name

    def is_free(self, scope: Scope, name: str, new: str) -> bool:
        """Whether a scope and those within it that use the name know no other thing by the new one."""
        for each in scope.all():
            uses = {used for used, _, _ in each.uses}
            own = each is scope
            if (own and new in each.bound and each.bound.get(new) != "class-member") or (
                not own and new in each.bound and each.kind != "class" and name in uses and each.find(name) is scope
            ):
                return False
            if new in uses and not own and each.find(new) not in (each, None) and each.find(new) in self.around(scope):
                return False
            if own and new in uses and each.kind != "class":
                return False
        return scope.kind == "class" or not hasattr(builtins, new)

    def around(self, scope: Scope) -> set[Scope]:
        """The scopes outside of one, which its names would hide."""
        found, outside = set(), scope.parent
        while outside:
            found.add(outside)
            outside = outside.parent
        return found

    def tokens(self, source: Source) -> None:
        """Names where they are written."""
        for scope in source.root.all():
            for name, line, column in scope.uses:
                home = scope.find(name)
                if home and name in home.renamed:
                    if home.bound[name] == "import" and home.imports.get(name, ("", ""))[1] == name:
                        pass  # the token of the import itself is among these uses
                    self.edit(source, line, column, name, home.renamed[name])

    def imports(self, source: Source) -> None:
        """The modules and names of imports."""
        for node, scope in source.froms:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if (new := self.table.module(alias.name)) != alias.name and alias.name in self.by_module:
                        self.edit(source, alias.lineno, alias.col_offset, alias.name, new)
                continue
            module = str(node.module)
            if module in self.by_module and module.startswith("jittok"):
                new = self.table.module(module)
                line, column = self.after_from(source, node, module)
                moved = {self.home(module, alias.name) for alias in node.names}
                if moved != {new} and len(moved) == 1:
                    new = moved.pop()
                elif moved != {new}:
                    self.tell(f"{source.name}:{node.lineno}: what is imported here has moved to {sorted(moved)}")
                self.edit(source, line, column, module, new)
            for alias in node.names:
                found = self.resolve(module, alias.name)
                if not found:
                    continue
                new = (
                    self.table.names.get(found, alias.name)
                    if found[1]
                    else self.table.module(found[0]).rpartition(".")[2]
                )
                if found[1] is not None and found[1] != alias.name:
                    continue  # re-exported by another name
                bound = alias.asname or alias.name
                if alias.asname is None and scope.renamed.get(bound, bound) != new:
                    line, column = alias.lineno, alias.col_offset
                    self.edits[source.name].discard((line, column, bound, new))
                    if new != alias.name:
                        self.edit(source, line, column, alias.name, f"{new} as {alias.name}")
                elif alias.asname:
                    self.edit(source, alias.lineno, alias.col_offset, alias.name, new)

    def home(self, module: str, name: str) -> str:
        """The new module that a name of an import is found in."""
        child = f"{module}.{name}"
        is_module = child in self.by_module and self.resolve(module, name) == (child, None)
        return self.table.module(child).rpartition(".")[0] if is_module else self.table.module(module)

    def after_from(self, source: Source, node: ast.ImportFrom, module: str) -> tuple[int, int]:
        """Where the module of an import is written."""
        return source.after(node.lineno, node.col_offset + 4, re.escape(module))

    def attributes(self, source: Source) -> None:
        """`module.name`, `a.b.module`, `thing.member`."""
        for node, scope in source.attributes:
            line, column = node.end_lineno or 0, (node.end_col_offset or 0) - len(node.attr.encode())
            base = self.meaning(scope, node.value)
            if base and base[1] is None and base[0].startswith(("jittok", "tests")):
                found = self.resolve(base[0], node.attr)
                if found and found[1] is None:
                    self.edit(source, line, column, node.attr, self.table.module(found[0]).rpartition(".")[2])
                elif found and found[1] == node.attr:
                    self.edit(source, line, column, node.attr, self.table.names.get(found, node.attr))
            elif (
                not (base and base[1] is None) and node.attr in self.table.members and not self.is_foreign(scope, node)
            ):
                self.edit(source, line, column, node.attr, self.table.members[node.attr])
        for pattern in source.patterns:
            for name, value in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
                if name in self.table.members:
                    begin = source.lines[value.lineno - 1].rfind(name.encode() + b"=", 0, value.col_offset)
                    if begin >= 0:
                        self.edit(source, value.lineno, begin, name, self.table.members[name])

    def is_foreign(self, scope: Scope, node: ast.Attribute) -> bool:
        """Whether a member belongs to something that was imported from elsewhere."""
        while isinstance(node.value, ast.Attribute):
            node = node.value
        if not isinstance(node.value, ast.Name):
            return False
        home = scope.find(node.value.id)
        module = home.imports.get(node.value.id, ("jittok", None))[0] if home else "jittok"
        return (
            bool(home and home.bound.get(node.value.id) == "import")
            and not module.startswith(("jittok", "tests"))
            and module not in self.by_module
        )

    def definition(self, found: tuple[str, str | None] | None) -> Scope | None:
        """The scope of a function that a name stands for."""
        source = self.by_module.get(found[0]) if found and found[1] else None
        return source.functions.get(str(found[1])) if source and found else None

    def keywords(self, source: Source) -> None:
        """Keyword arguments: parameters of the function that is called, or fields of the class."""
        for node, scope in source.calls:
            called = node.func
            if isinstance(called, ast.Name | ast.Attribute) and ast.unparse(called).endswith("partial") and node.args:
                called = node.args[0]
            found = self.meaning(scope, called)
            function = self.definition(found)
            for keyword in node.keywords:
                if keyword.arg is None:
                    continue
                new = keyword.arg
                last = getattr(called, "attr", getattr(called, "id", ""))
                if function:
                    new = function.renamed.get(new, new) if new in function.params else new
                elif (
                    last == "_replace"
                    or last[:1].isupper()
                    or last.lstrip("_")[:1].isupper()
                    or last in ("cls", "type")
                ):
                    new = self.table.members.get(new, self.of_methods("__init__", new))
                else:
                    new = self.of_methods(last, new)
                self.edit(source, keyword.lineno, keyword.col_offset, keyword.arg, new)

    def of_methods(self, name: str, parameter: str) -> str:
        """The new name of a parameter of methods or inner functions of this name."""
        if not hasattr(self, "by_name"):
            self.by_name: dict[str, list[Scope]] = defaultdict(list)
            for source in self.sources.values():
                for scope in source.functions.values():
                    self.by_name[scope.name].append(scope)
        found = {s.renamed.get(parameter, parameter) for s in self.by_name[name] if parameter in s.params}
        if len(found) > 1:
            self.tell(f"keyword {parameter}= of {name}(): some functions of this name are renamed, some are not")
        return found.pop() if len(found) == 1 else parameter

    def named(self, source: Source) -> None:
        """Strings that are names: `__all__`, lazy homes, getattr and setattr, annotations, modules."""
        for node, scope in source.calls:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in BY_NAME and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
                self.named_of(source, scope, node.args[0], node.args[1])
        inside: set[ast.AST] = set()
        for node in source.tree.body:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
            known = [target.id for target in targets if isinstance(target, ast.Name)]
            if any(re.fullmatch(r"__all__|_HOMES?|_MODULES|_ROOTS", name) for name in known):
                inside |= {*ast.walk(node)}
        slots = {
            each
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("__slots__", "__match_args__")
            for each in ast.walk(node)
        }
        for node, scope, what in source.strings:
            new = value = str(node.value)
            if what == "annotation":
                new = re.sub(r"[A-Za-z_]\w*", lambda m, scope=scope: self.new_name(scope, m[0]), value)
            elif node in slots:
                new = self.table.members.get(value, value)
            elif "from jittok" in value:
                self.code_in_text(source, node, value)
            elif node in inside or scope.name == "__getattr__":
                child = next((n for n in (f"{source.module}.{value}", f"jittok.{value}") if n in self.by_module), "")
                found = self.resolve(source.module, value)
                new = self.table.module(child).removeprefix(child[: len(child) - len(value)]) if child else value
                if found and found[1]:
                    new = self.table.names.get((found[0], found[1]), value)
            elif re.fullmatch(r"[a-z_]\w*(\.\w+)+", value) and f"jittok.{value}" in self.by_module:
                new = self.table.module(f"jittok.{value}").removeprefix("jittok.")
            elif source.name.startswith("tests") and re.fullmatch(r"[A-Z_][A-Z0-9_]{2,}", value):
                new = self.of_bound_modules(source, value)
            self.in_string(source, node, value, new)

    def code_in_text(self, source: Source, node: ast.Constant, value: str) -> None:
        """A program in a string: the names that it imports, wherever the string has them."""
        new: dict[str, str] = {}
        for module, names in re.findall(r"from (jittok[\w.]*) import ([\w, ]+)", value):
            for name in re.findall(r"\w+", names):
                found = self.resolve(module, name)
                if found and found[1] is None:
                    new[name] = self.table.module(found[0]).rpartition(".")[2]
                elif found:
                    new[name] = self.table.names.get((found[0], str(found[1])), name)
        for number in range(node.lineno, (node.end_lineno or 0) + 1):
            for old in [name for name in new if new[name] != name]:
                for match in re.finditer(rb"(?<![\w.])" + old.encode() + rb"\b", source.lines[number - 1]):
                    self.edit(source, number, match.start(), old, new[old])

    def new_name(self, scope: Scope, name: str) -> str:
        """A name in a text that is code."""
        home = scope.find(name)
        return home.renamed.get(name, name) if home else name

    def of_bound_modules(self, source: Source, value: str) -> str:
        """A constant of a module that a test has by name: what it parametrizes `setattr` with."""
        found = set()
        for bound in source.root.imports:
            meaning = self.meaning(source.root, ast.Name(bound))
            if meaning and meaning[1] is None and (meaning[0], value) in self.table.names:
                found.add(self.table.names[meaning[0], value])
        return found.pop() if len(found) == 1 else value

    def named_of(self, source: Source, scope: Scope, thing: ast.expr, node: ast.Constant) -> None:
        """getattr(thing, "name")."""
        value = node.value
        if not isinstance(value, str):
            return
        base = self.meaning(scope, thing)
        if base and base[1] is None:
            found = self.resolve(base[0], value)
            new = self.table.names.get((found[0], found[1]), value) if found and found[1] else value
            if found and found[1] is None:
                new = self.table.module(found[0]).rpartition(".")[2]
        else:
            alike = {new for (_, name), new in self.table.names.items() if name == value}
            new = self.table.members.get(value, alike.pop() if len(alike) == 1 else value)
        self.in_string(source, node, value, new)

    def in_string(self, source: Source, node: ast.Constant, value: str, new: str) -> None:
        """Replaces the text of a string literal on one line."""
        if new == value or node.lineno != node.end_lineno:
            return
        line = source.lines[node.lineno - 1]
        literal = line[node.col_offset : node.end_col_offset]
        at = literal.find(value.encode())
        if at >= 0:
            self.edit(source, node.lineno, node.col_offset + at, value, new)

    def edited(self, name: str) -> list[str]:
        """The lines of a Python text with its edits."""
        lines = [*self.sources[name].lines]
        for number, column, old, new in sorted(self.edits[name], reverse=True):
            line = lines[number - 1]
            assert line[column : column + len(old.encode())] == old.encode(), (name, number, old)
            lines[number - 1] = line[:column] + new.encode() + line[column + len(old.encode()) :]
        return [line.decode() for line in lines]

    def moves(self) -> dict[str, str]:
        """File -> its new name: of modules, and of the tests that mirror them."""
        found: dict[str, str] = {}
        for name in self.paths:
            path = PurePosixPath(name)
            if path.suffix == ".py" and path.parts[0] == "jittok":
                module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
                ending = "/__init__.py" if path.name == "__init__.py" else ".py"
                new = self.table.module(module).replace(".", "/") + ending
                found |= {name: new} if new != name else {}
            elif path.parts[0] == "jittok":
                new = self.table.module(".".join(path.parent.parts)).replace(".", "/") + f"/{path.name}"
                found |= {name: new} if new != name else {}
        for old, new in self.table.modules.items():
            self.table.matched[f"{old} -> {new}"] = old in self.by_module
        folders = {
            old.replace("jittok.", "tests/", 1).replace(".", "/"): new.replace("jittok.", "tests/", 1).replace(".", "/")
            for old, new in self.table.modules.items()
            if old in self.by_module and self.by_module[old].is_package
        }
        stems = {old: new for old, new in self.table.modules.items() if old in self.by_module}
        for name in self.paths:
            path = PurePosixPath(name)
            if path.parts[0] != "tests":
                continue
            folder, stem = str(path.parent), path.name
            for old, new in folders.items():
                if folder == old or folder.startswith(old + "/"):
                    folder = new + folder[len(old) :]
            if stem.startswith("test_") and stem.endswith(".py"):
                room, own = ".".join(["jittok", *path.parent.parts[1:]]), stem[5:-3]
                new_stem = self.mirrored(stems, room, own)
                stem = f"test_{new_stem}.py"
            new = f"{folder}/{stem}" if folder != "." else stem
            if new != name and new not in self.paths and new not in found.values():
                found[name] = new
        return found

    def mirrored(self, stems: dict[str, str], room: str, own: str) -> str:
        """The new stem of a test file: that of the module of its name in its room, or below it if there is only one."""
        if room.replace("jittok.", "jittok._", 1) in self.by_module:
            room = room.replace("jittok.", "jittok._", 1)
        exact = f"{room}.{own}"
        if exact in stems:
            return stems[exact].rpartition(".")[2]
        if exact in self.by_module:
            return own
        below = [m for m in self.by_module if m.startswith(room + ".") and m.rpartition(".")[2] == own]
        if len(below) == 1 and below[0] in stems:
            return stems[below[0]].rpartition(".")[2]
        return own
