"""The environments that chat templates run in: Jinja's sandbox with the settings of transformers, and bounds, as
templates are files that others wrote.

`plain` gives the ordinary text. `marking` gives the same text as `Marked`: every step keeps the marks or raises
MarksLost. A step counts a loop's turns and every call; text has at most `marked.MOST_CHARACTERS`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sized
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

import jinja2
import jinja2.ext
import jinja2.utils
from jinja2 import nodes
from jinja2.compiler import CodeGenerator
from jinja2.exceptions import SecurityError
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from jittok.chat.templates.filters import json_text, keeping
from jittok.chat.templates.marked import (
    GENERATED,
    Marked,
    check_size,
    concat,
    has_unmarked,
    holds,
    lost,
    make,
    plain,
    printed,
    runs_of,
)
from jittok.errors import InWords, TemplateError

MOST_STEPS = 10_000_000
"""Turns of loops, and calls, of one rendering."""
MOST_WIDTH, MOST_DIGITS = 1000, 7
"""An indentation of JSON, tab stops, digits of a rounded number; digits of a width in a format."""
GROWING = frozenset(["batch", "center", "format", "indent", "join", "replace", "round", "slice", "tojson"])
"""Filters that may make much more text than they are given."""
MOST_BITS = 4096
"""Bits of a number that a power makes."""
KEPT_TEMPLATES = 256
"""Compiled templates that are kept."""
STEPS = "steps of loops and calls"
CHOOSING = frozenset(
    "split rsplit strip lstrip rstrip removeprefix removesuffix partition rpartition splitlines".split(" ")  # noqa: SIM905
)
"""Methods of str whose argument only chooses parts of the text."""


class _Rendering(threading.local):
    """What belongs to the rendering of this thread."""

    left = MOST_STEPS
    now: datetime | None = None


_rendering = _Rendering()


def begin(now: datetime | None) -> None:
    """Begin a rendering: the clock that it sees (None: the system's), and its bounds."""
    _rendering.left, _rendering.now = MOST_STEPS, now


def _count(steps: int) -> None:
    _rendering.left -= steps
    if _rendering.left < 0:
        raise TemplateError("template", InWords(f"more than {MOST_STEPS:,} {STEPS}"), "a template that ends")


@jinja2.pass_context
def _bounded(_context: Context, items: Any) -> Any:
    """What a loop is over, counted."""
    if isinstance(items, Sized) and not isinstance(items, jinja2.Undefined):
        _count(1 + len(items))
        return items
    return _each(items) if isinstance(items, Iterator) else items


def _each(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        _count(1)
        yield item


class Generation(jinja2.ext.Extension):
    """{% generation %}: what the assistant writes. Its characters get the bit GENERATED where they are made."""

    tags = {"generation"}  # noqa: RUF012  Jinja's name

    def parse(self, parser: Parser) -> nodes.Node:
        """The node of a block."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_noted"), [], [], body).set_lineno(line)

    def _noted(self, caller: Any) -> str:
        text: str = caller()
        if not isinstance(self.environment, Marking):
            return text
        return make(plain(text), tuple((size, mark | GENERATED) for size, mark in runs_of(text)))


class _Dict:
    """The global `dict` of a template."""

    def __call__(self, *args: Any, **named: Any) -> dict[Any, Any]:
        return dict(*args, **named)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        """dict.fromkeys."""
        return dict.fromkeys(*args)


class _Namespace(jinja2.utils.Namespace):
    """The global `namespace`, without private names."""

    def __init__(*args: Any, **named: Any) -> None:
        own, *rest = args
        attributes = dict(*rest, **named)
        for name in attributes:
            _check_public(name)
        jinja2.utils.Namespace.__init__(own, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_public(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)


def _check_public(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"namespace: the private name {plain(name)!r}")


def raise_exception(message: Any) -> NoReturn:
    """The global `raise_exception`."""
    raise jinja2.TemplateError(plain(message) if isinstance(message, str) else str(message))


def strftime_now(format: Any) -> str:  # noqa: A002  transformers' name
    """The global `strftime_now`: local time, or the clock of the rendering."""
    return (_rendering.now or datetime.now()).strftime(plain(format))


class _Chains(CodeGenerator):
    """Jinja's code, but a chain of `+` is `environment.added` of all its operands, one of `~` `environment.concat`."""

    def visit_Concat(self, node: nodes.Concat, frame: Any) -> None:  # noqa: N802  as in Jinja
        """Write a chain."""
        self._call("concat", node.nodes, frame)

    def visit_Add(self, node: nodes.BinExpr, frame: Any) -> None:  # noqa: N802  as in Jinja
        """Write a chain."""
        operands: list[nodes.Expr] = []
        left: nodes.Expr = node
        while isinstance(left, nodes.Add):
            operands.append(left.right)
            left = left.left
        self._call("added", [left, *reversed(operands)], frame)

    def _call(self, name: str, operands: list[nodes.Expr], frame: Any) -> None:
        self.write(f"environment.{name}((")
        for operand in operands:
            self.visit(operand, frame)
            self.write(", ")
        self.write("))")


class Bounded(ImmutableSandboxedEnvironment):
    """The sandbox with transformers' settings, and bounds."""

    code_generator_class = _Chains
    texts: tuple[type, ...] = (str,)
    intercepted_binops = frozenset(["*", "**", "%"])

    def __init__(self, **more: Any) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols], **more)
        self.concat = _joined  # type: ignore[method-assign]
        self.filters["tojson"] = json_text
        self.globals.update(
            raise_exception=raise_exception, strftime_now=strftime_now, dict=_Dict(), namespace=_Namespace
        )
        self.filters = {name: bounded_filter(name, run) for name, run in self.filters.items()}
        self.filters["jittok bounded"] = _bounded

    def wrap_str_format(self, value: Any) -> Any:
        """str.format, with a bound."""
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None

        def run(*args: Any, **named: Any) -> str:
            check_call("format", value.__self__, args, named)
            return str.__str__(wrapped(*args, **named))

        return run

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for loop in tree.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, "jittok bounded", [], [], None, None, lineno=loop.lineno)
            loop.iter.set_environment(self)
        return tree

    def getattr(self, obj: Any, attribute: str) -> Any:
        """An attribute, or an item: what Jinja's sandbox gives, sooner for what templates ask for most."""
        kind = type(obj)
        if kind is dict:
            if attribute not in _OF_DICT:
                try:
                    return obj[attribute]
                except KeyError:
                    return self.undefined(obj=obj, name=attribute)
            if attribute in SAFE_OF_DICT:
                return getattr(obj, attribute)
        elif kind in self.texts:
            if attribute in SAFE_OF_STR:
                return getattr(obj, attribute)
            if attribute not in _OF_STR:  # a Marked has more
                return self.undefined(obj=obj, name=attribute)
        elif kind in _OPEN and attribute[:1] != "_":
            try:
                return getattr(obj, attribute)
            except AttributeError:
                return self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def added(self, operands: tuple[Any, ...]) -> Any:
        """operands[0] + operands[1] + ..."""
        size = 0
        for operand in operands:
            if type(operand) is not str:
                return _sum(operands)
            size += len(operand)
        check_size(size)
        return "".join(operands)

    def call(__self, __context: Context, __obj: Any, *args: Any, **named: Any) -> Any:  # noqa: N805  as in Jinja
        """As in Jinja."""
        _count(1)
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str):
            check_call(getattr(__obj, "__name__", ""), owner, args, named)
        return super().call(__context, __obj, *args, **named)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The operators whose results may be large."""
        if operator == "*":
            for text, times in ((left, right), (right, left)):
                if isinstance(text, str | list | tuple) and isinstance(times, int):
                    check_size(len(text) * max(times, 0))
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            if left.bit_length() * max(right, 0) > MOST_BITS:
                raise TemplateError("template", InWords(f"a power of more than {MOST_BITS} bits"), "a smaller number")
        elif operator == "%" and isinstance(left, str):
            _check_widths(left)
            check_size(
                max(
                    (
                        abs(n)
                        for n in (right if isinstance(right, tuple) else (right,))
                        if type(n) is int and "*" in left
                    ),
                    default=0,
                )
            )
        return super().call_binop(context, operator, left, right)


_OF_DICT, _OF_STR = frozenset(dir(dict)), frozenset(dir(str))
SAFE_OF_DICT = frozenset(["get", "items", "keys", "values"])
SAFE_OF_STR = frozenset(name for name in _OF_STR if name[0] != "_") - {"format", "format_map"}
"""Methods that the sandbox allows."""
_OPEN = (LoopContext, _Namespace)
"""Types whose public attributes it allows."""


def _sum(operands: tuple[Any, ...]) -> Any:
    found = operands[0]
    for operand in operands[1:]:
        if isinstance(found, str | list | tuple) and isinstance(operand, str | list | tuple):
            check_size(len(found) + len(operand))
        found = found + operand
    return found


def check_call(name: str, owner: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Refuse calls of methods and filters on `owner` that make more text than a template may."""
    numbers = [abs(value) for value in (*args, *named.values()) if isinstance(value, int)]
    most = max(numbers, default=0)
    if name in ("expandtabs", "round", "tojson") and most > MOST_WIDTH:
        raise TemplateError("template", InWords(f"{name} with {most:,}"), f"at most {MOST_WIDTH:,}")
    if name == "indent":
        widths = [len(value) for value in (*args, *named.values()) if isinstance(value, str)]
        check_size(max(most, *widths, 4) * (1 + str(owner).count("\n")))
    elif name == "join":
        items = [*args, *named.values()][:1]
        texts = [
            len(part)
            for part in (items[0] if items and isinstance(items[0], list | tuple) else ())
            if isinstance(part, str)
        ]
        check_size(sum(texts) + len(owner) * len(texts))
    elif name == "replace" and len(args) > 1 and isinstance(args[0], str) and isinstance(args[1], str):
        check_size(len(owner) + len(args[1]) * plain(owner).count(plain(args[0])))
    elif isinstance(owner, str) or name in ("batch", "slice"):
        check_size(most)
    if isinstance(owner, str) and name in ("format", "format_map"):
        _check_widths(owner)
        check_size(most)


def _check_widths(form: str) -> None:
    """Refuse '%999999999d', and '{:>999999999}'."""
    number = ""
    for c in plain(form):
        number = number + c if c.isdigit() else ""
        if len(number) > MOST_DIGITS:
            raise TemplateError("template", InWords("a format with a wide field"), f"at most {MOST_DIGITS} digits")


def bounded_filter(name: str, run: Any) -> Any:
    """A filter that checks how much text it would make."""
    if name not in GROWING:
        return run
    takes_context = getattr(run, "jinja_pass_arg", None) is not None

    def bounded(*args: Any, **named: Any) -> Any:
        given = args[1:] if takes_context else args
        if given:
            if name == "join":  # the list is what is filtered
                sep = given[1] if len(given) > 1 else named.get("d", "")
                check_call(name, sep if isinstance(sep, str) else "", (given[0],), {})
            else:
                check_call(name, given[0], given[1:], named)
        return run(*args, **named)

    if takes_context:
        bounded.jinja_pass_arg = run.jinja_pass_arg  # type: ignore[attr-defined]
    return bounded


def _joined(parts: Iterable[Any]) -> str:
    """The text of all parts."""
    found = [part if type(part) is str else str(part) for part in parts]
    check_size(sum(map(len, found)))
    return "".join(found)


class Marking(Bounded):
    """The same, but every step keeps the marks of texts."""

    texts = (str, Marked)

    def __init__(self) -> None:
        super().__init__(finalize=printed)
        self.concat = concat  # type: ignore[method-assign]
        self.filters = {name: bounded_filter(name, keeping(name, run)) for name, run in self.filters.items()}
        self.filters["jittok bounded"] = _bounded

    def added(self, operands: tuple[Any, ...]) -> Any:
        """operands[0] + operands[1] + ..."""
        for operand in operands:
            if type(operand) is not str and type(operand) is not Marked:
                return _sum(operands)
        return concat(operands)

    def call(__self, __context: Context, __obj: Any, *args: Any, **named: Any) -> Any:  # noqa: N805  as in Jinja
        """As in Jinja."""
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if isinstance(owner, str) and not isinstance(owner, Marked) and (holds(args) or holds(named)):
            if name in ("join", "replace"):  # the template's own text with one of the chat in it
                __obj = getattr(Marked(owner), name)
            elif name not in CHOOSING and has_unmarked(super().call(__context, __obj, *args, **named)):
                raise lost(f"str.{name} with a text")
        return super().call(__context, __obj, *args, **named)

    def wrap_str_format(self, value: Any) -> Any:
        """str.format, which loses marks."""
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None

        def run(*args: Any, **named: Any) -> str:
            if isinstance(value.__self__, Marked) or holds(args) or holds(named):
                raise lost("str.format")
            return str.__str__(wrapped(*args, **named))

        return run

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """An operator; `%` loses marks."""
        if operator == "%" and isinstance(left, str) and (holds(left) or holds(right)):
            raise lost("% with a text")
        return super().call_binop(context, operator, left, right)


# ---- templates


class Compiled(NamedTuple):
    """A template for both environments."""

    source: str
    plain: jinja2.Template
    marking: jinja2.Template
    literal: str  # all texts that stand in it, a NUL between them
    generates: bool  # whether it has {% generation %}
    filters: frozenset[str]  # names of the filters that it uses


@lru_cache(1)
def environments() -> tuple[Bounded, Marking]:
    """(plain, marking), which all templates share."""
    return Bounded(), Marking()


@lru_cache(KEPT_TEMPLATES)
def compiled(source: str) -> Compiled:
    """A template, compiled once. Raises TemplateError with its line."""
    whole, marking = environments()
    try:
        tree = whole.parse(source)
        data = [node.data for node in tree.find_all(nodes.TemplateData)]
        data += [node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)]
        generates = any(isinstance(node.call.node, nodes.ExtensionAttribute) for node in tree.find_all(nodes.CallBlock))
        filters = frozenset(node.name for node in tree.find_all(nodes.Filter))
        texts = whole.from_string(source), marking.from_string(source)
        for each in texts:
            each.globals = dict(each.globals)  # of a ChainMap, which takes 10 us to copy for each rendering
        return Compiled(source, *texts, "\0".join(data), generates, filters)
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(
            f"template, line {error.lineno}", InWords(str(error.message)), "a Jinja template", error.lineno
        ) from None
    except RecursionError:
        raise TemplateError("template", InWords("expressions nested too deep"), "a Jinja template") from None
