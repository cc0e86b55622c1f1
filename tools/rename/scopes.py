"""The scopes of a Python text, and every token of it that a rename may change."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Scope:
    """One scope of a file: what it binds, and where every name that resolves to it is written."""

    kind: str  # module, class, function
    name: str
    parent: Scope | None
    bound: dict[str, str] = field(default_factory=dict)  # name -> how: def, class, arg, local, import
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)  # name -> (module, name there or None)
    uses: list[tuple[str, int, int]] = field(default_factory=list)
    outer: dict[str, str] = field(default_factory=dict)  # name -> global, nonlocal
    params: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    children: list[Scope] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.parent:
            self.parent.children.append(self)

    def top(self) -> Scope:
        """The scope of the module."""
        return self if self.parent is None else self.parent.top()

    def find(self, name: str) -> Scope | None:
        """The scope that binds a name which is used here."""
        if self.outer.get(name) == "global":
            return self.top() if name in self.top().bound else None
        scope: Scope | None = self
        while scope:
            if name in scope.bound and (scope is self or scope.kind != "class") and name not in scope.outer:
                return scope
            scope = scope.parent
        return None

    def path(self) -> str:
        """Class.method, function.inner; "" for the module."""
        return self.name if not self.parent or not self.parent.path() else f"{self.parent.path()}.{self.name}"

    def all(self) -> Iterator[Scope]:
        """This scope and all within."""
        yield self
        for child in self.children:
            yield from child.all()


class Source(ast.NodeVisitor):
    """A Python text with its scopes and the tokens that a rename may change."""

    def __init__(self, name: str, text: str, module: str) -> None:
        self.name, self.text, self.module = name, text, module
        self.lines = [line.encode() for line in text.split("\n")]
        self.scope = self.root = Scope("module", "", None)
        self.scopes: dict[ast.AST, Scope] = {}  # of nodes that tokens are looked up in
        self.attributes: list[tuple[ast.Attribute, Scope]] = []
        self.calls: list[tuple[ast.Call, Scope]] = []
        self.froms: list[tuple[ast.Import | ast.ImportFrom, Scope]] = []
        self.strings: list[tuple[ast.Constant, Scope, str]] = []  # with what they are for: "", name, annotation
        self.patterns: list[ast.MatchClass] = []
        self.members: dict[str, set[str]] = defaultdict(set)  # class -> its members
        self.functions: dict[str, Scope] = {}
        self.tree = ast.parse(text)
        self.is_package = name.endswith("/__init__.py")
        self.visit(self.tree)

    def bind(self, name: str, how: str, line: int, column: int) -> None:
        """A name bound here, written at a place of the text."""
        scope = self.scope
        if scope.outer.get(name) == "global":
            scope = self.root
        elif scope.outer.get(name) == "nonlocal":
            while scope.parent and (scope.kind == "class" or name not in scope.bound or name in scope.outer):
                scope = scope.parent
        if how != "local" or name not in scope.bound:
            scope.bound[name] = how
        self.scope.uses.append((name, line, column))

    def after(self, line: int, column: int, word: str) -> tuple[int, int]:
        """Where a word is, on this line or a later one."""
        for number in range(line, len(self.lines) + 1):
            begin = column if number == line else 0
            if match := re.compile(rb"(?<![\w.])" + word.encode() + rb"\b").search(self.lines[number - 1], begin):
                return number, match.start()
        raise ValueError(f"{self.name}:{line}: no {word}")

    def inside(self, scope: Scope, nodes: list[Any]) -> None:
        """Visits nodes in a scope of their own."""
        self.scope, before = scope, self.scope
        for node in nodes:
            self.visit(node)
        self.scope = before

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Decorators, defaults and annotations belong to the scope around."""
        for each in node.decorator_list:
            self.visit(each)
        line, column = self.after(node.lineno, node.col_offset + 4, node.name)
        self.bind(node.name, "def", line, column)
        scope = Scope("function", node.name, self.scope)
        self.functions[scope.path()] = scope
        if self.scope.kind == "class":
            self.members[self.scope.path()].add(node.name)
        self.arguments(node.args, scope)
        if node.returns:
            self.annotation(node.returns)
        self.globals_first(node.body, scope)
        self.inside(scope, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def globals_first(self, body: list[ast.stmt], scope: Scope) -> None:
        """What `global` and `nonlocal` say of a function."""
        for node in body:
            for each in ast.walk(node):
                if isinstance(each, ast.Global | ast.Nonlocal):
                    scope.outer |= dict.fromkeys(each.names, type(each).__name__.lower())

    def arguments(self, args: ast.arguments, scope: Scope) -> None:
        """The parameters of a function or lambda."""
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
        for arg in [*every, *filter(None, (args.vararg, args.kwarg))]:
            scope.bound[arg.arg] = "arg"
            scope.uses.append((arg.arg, arg.lineno, arg.col_offset))
            if arg.annotation:
                self.annotation(arg.annotation)
        scope.params = [arg.arg for arg in every]
        for each in [*args.defaults, *filter(None, args.kw_defaults)]:
            self.visit(each)

    def annotation(self, node: ast.expr) -> None:
        """Strings in annotations are names too."""
        for each in ast.walk(node):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                self.strings.append((each, self.scope, "annotation"))
        self.visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """A scope of its own."""
        scope = Scope("function", "<lambda>", self.scope)
        self.arguments(node.args, scope)
        self.inside(scope, [node.body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Its body is a scope whose names are members."""
        for each in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(each)
        line, column = self.after(node.lineno, node.col_offset + 6, node.name)
        self.bind(node.name, "class", line, column)
        scope = Scope("class", node.name, self.scope)
        for each in node.body:
            for target in [each.target] if isinstance(each, ast.AnnAssign) else getattr(each, "targets", []):
                self.members[scope.path()] |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
        for each in ast.walk(node):
            if (
                isinstance(each, ast.Attribute)
                and isinstance(each.ctx, ast.Store)
                and ast.unparse(each.value) == "self"
            ):
                self.members[scope.path()].add(each.attr)
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Attribute):
                self.members[scope.path()].add(each.target.attr)
        self.members[scope.path()] |= set()
        self.inside(scope, node.body)

    def comprehension(self, node: Any) -> None:
        """The first iterable belongs to the scope around."""
        self.visit(node.generators[0].iter)
        scope = Scope("function", "<comprehension>", self.scope)
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        rest = [each for k, g in enumerate(node.generators) for each in [g.target, *([g.iter] if k else []), *g.ifs]]
        self.inside(scope, [*rest, *results])

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension  # noqa: N815

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """Binds in the function around a comprehension."""
        scope = self.scope
        while scope.name == "<comprehension>" and scope.parent:
            scope = scope.parent
        self.scope.uses.append((node.target.id, node.target.lineno, node.target.col_offset))
        if node.target.id not in scope.outer:
            scope.bound.setdefault(node.target.id, "local")
        self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        """Bound or used."""
        if isinstance(node.ctx, ast.Load):
            self.scope.uses.append((node.id, node.lineno, node.col_offset))
        else:
            self.bind(node.id, "local", node.lineno, node.col_offset)
        self.scopes[node] = self.scope

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Its annotation may be a string."""
        self.visit(node.target)
        self.annotation(node.annotation)
        if node.value:
            self.visit(node.value)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        """The names of the statement are tokens."""
        for name in node.names:
            self.scope.uses.append((name, *self.after(node.lineno, node.col_offset, name)))

    visit_Nonlocal = visit_Global  # noqa: N815

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """`except X as name`."""
        if node.type:
            self.visit(node.type)
            if node.name:
                place = self.after(node.type.end_lineno or 0, node.type.end_col_offset or 0, node.name)
                self.bind(node.name, "local", *place)
        for each in node.body:
            self.visit(each)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        """A name that a pattern binds."""
        pattern = getattr(node, "pattern", None)
        if pattern:
            self.visit(pattern)
        if node.name:
            begin = (pattern.end_lineno, pattern.end_col_offset) if pattern else (node.lineno, node.col_offset)
            self.bind(node.name, "local", *self.after(*begin, node.name))

    visit_MatchStar = visit_MatchAs  # noqa: N815

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        """Keywords of a class pattern are members."""
        self.patterns.append(node)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Looked up later."""
        self.attributes.append((node, self.scope))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Keywords, and names given as strings."""
        self.calls.append((node, self.scope))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """A string may be a name."""
        if isinstance(node.value, str):
            self.strings.append((node, self.scope, ""))

    def visit_Import(self, node: ast.Import) -> None:
        """`import a.b` binds a; `import a.b as c` binds c to a.b."""
        self.froms.append((node, self.scope))
        for alias in node.names:
            first = alias.name.partition(".")[0]
            if alias.asname:
                place = self.after(alias.lineno, alias.col_offset + len(alias.name), alias.asname)
                self.bind(alias.asname, "import", *place)
                self.scope.imports[alias.asname] = (alias.name, None)
            else:
                self.scope.bound.setdefault(first, "import")
                self.scope.imports[first] = (first, None)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """`from a import b [as c]`."""
        if node.level and self.name.startswith("jittok/"):
            raise ValueError(f"{self.name}:{node.lineno}: relative imports are not known here")
        if not node.level:
            self.froms.append((node, self.scope))
        for alias in node.names:
            bound = alias.asname or alias.name
            column = alias.col_offset + (len(alias.name) if alias.asname else 0)
            self.bind(bound, "import", *self.after(alias.lineno, column, bound))
            if not node.level:  # tests may take a name from a file beside them, which no module of the package has
                self.scope.imports[bound] = (str(node.module), alias.name)
