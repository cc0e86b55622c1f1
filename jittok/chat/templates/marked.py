"""`Marked`: a str that knows for each of its characters from which text of a chat it came.

>>> text = Marked("<b>", 1)
>>> whole = "Say: " + text.upper() + "!"
>>> whole, whole.runs
('Say: <B>!', ((5, 0), (3, 1), (1, 0)))

Marks are kept in runs: (characters, mark). 0 stands for the template, a positive number for a text of the chat. Every
method of str keeps the marks or raises MarksLost: a method that a later Python adds, too. A template sees the ordinary
text, so nothing can be forged in it, and nothing that it tests comes out otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, SupportsIndex

from jittok.errors import InWords, MarksLost, TemplateError

GENERATED = 1 << 24
"""This bit of a mark: the character is inside {% generation %}."""
SOURCE = GENERATED - 1
"""These bits of a mark: the number of the text that the character came from."""
Runs = tuple[tuple[int, int], ...]
"""(characters, mark) of each part of a text, in order; no part is empty."""
MOST_CHARACTERS = 1 << 26
"""Characters of a text that a template makes."""
_plain = str.__str__


def lost(step: str) -> MarksLost:
    """The error for a step of a template that makes text of unknown origin."""
    expected = "a step that keeps track of it (render_chat has the text; `trusted` takes roles out of the search)"
    return MarksLost(f"template: {step}", InWords("a message's text, whose origin is lost here"), expected)


class Marked(str):
    """A str with the origin of its characters. Immutable."""

    __slots__ = ("runs",)
    runs: Runs

    def __new__(cls, text: str, mark: int = 0) -> Marked:
        """A text whose characters all have one mark."""
        return make(_plain(text), ((len(text), mark),) if text else ())

    def __str__(self) -> Marked:
        return self

    def __repr__(self) -> str:
        return repr(_plain(self))

    def __format__(self, spec: str) -> str:
        raise lost("format()")

    def __reduce__(self) -> NoReturn:
        raise TypeError("Marked: cannot be pickled")

    def __getitem__(self, at: SupportsIndex | slice) -> Marked:
        if not isinstance(at, slice):
            k = range(len(self))[at]
            return self.part(k, k + 1)
        start, stop, step = at.indices(len(self))
        if step == 1:
            return self.part(start, max(start, stop))
        return concat([self.part(k, k + 1) for k in range(start, stop, step)])

    def part(self, start: int, stop: int) -> Marked:
        """self[start:stop], with 0 <= start <= stop <= len(self)."""
        if start == 0 and stop == len(self):
            return self
        text, runs = str.__getitem__(self, slice(start, stop)), self.runs
        if not text:
            return EMPTY
        if len(runs) == 1:
            return make(text, ((stop - start, runs[0][1]),))
        found, at = [], 0
        for size, mark in runs:
            here = min(stop, at + size) - max(start, at)
            if here > 0:
                found.append((here, mark))
            at += size
        return make(text, tuple(found))

    def __iter__(self) -> Iterator[Marked]:
        return (make(c, ((1, mark),)) for c, mark in zip(_plain(self), each_mark(self.runs), strict=True))

    def __add__(self, other: Any) -> Marked:
        return concat((self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: Any) -> Marked:
        return concat((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> Marked:
        check_size(len(self) * max(times.__index__(), 0))
        text = str.__mul__(self, times)
        return make(text, self.runs * (len(text) // len(self) if self else 0))

    __rmul__ = __mul__

    def __mod__(self, other: Any) -> NoReturn:
        raise lost("% with a text")

    __rmod__ = __mod__

    # ---- parts of the text

    def strip(self, chars: str | None = None, /) -> Marked:
        """As in str."""
        start = len(self) - len(str.lstrip(self, chars))
        return self.part(start, max(start, len(str.rstrip(self, chars))))

    def lstrip(self, chars: str | None = None, /) -> Marked:
        """As in str."""
        return self.part(len(self) - len(str.lstrip(self, chars)), len(self))

    def rstrip(self, chars: str | None = None, /) -> Marked:
        """As in str."""
        return self.part(0, len(str.rstrip(self, chars)))

    def removeprefix(self, prefix: str, /) -> Marked:
        """As in str."""
        return self.part(len(prefix), len(self)) if str.startswith(self, prefix) else self

    def removesuffix(self, suffix: str, /) -> Marked:
        """As in str."""
        return self.part(0, len(self) - len(suffix)) if str.endswith(self, suffix) else self

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[Marked]:  # type: ignore[override]
        """As in str."""
        found, at, text = [], 0, _plain(self)
        for part in str.split(self, sep, maxsplit):
            while sep is None and part and text[at].isspace():
                at += 1
            found.append(self.part(at, at + len(part)))
            at += len(part) + (0 if sep is None else len(sep))
        return found

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[Marked]:  # type: ignore[override]
        """As in str."""
        found, at, text = [], len(self), _plain(self)
        for part in reversed(str.rsplit(self, sep, maxsplit)):
            while sep is None and part and text[at - 1].isspace():
                at -= 1
            found.append(self.part(at - len(part), at))
            at -= len(part) + (0 if sep is None else len(sep))
        return found[::-1]

    def splitlines(self, keepends: bool = False) -> list[Marked]:  # type: ignore[override]
        """As in str."""
        found, at = [], 0
        for line, whole in zip(str.splitlines(self), str.splitlines(self, True), strict=True):
            found.append(self.part(at, at + len(whole if keepends else line)))
            at += len(whole)
        return found

    def partition(self, sep: str, /) -> tuple[Marked, Marked, Marked]:
        """As in str."""
        at = str.find(self, sep) if sep else len(str.partition(self, sep)[0])
        if at < 0:
            return self, EMPTY, EMPTY
        return self.part(0, at), self.part(at, at + len(sep)), self.part(at + len(sep), len(self))

    def rpartition(self, sep: str, /) -> tuple[Marked, Marked, Marked]:
        """As in str."""
        at = str.rfind(self, sep) if sep else len(str.rpartition(self, sep)[0])
        if at < 0:
            return EMPTY, EMPTY, self
        return self.part(0, at), self.part(at, at + len(sep)), self.part(at + len(sep), len(self))

    # ---- other texts of the same characters

    def _mapped(self, change: Callable[[str], str], whole: str) -> Marked:
        """`whole`, the text after a change of its characters. A change that moves characters across runs, or depends on
        those around, must keep their number."""
        parts = [change(text) for text, _ in each_run(self)]
        if "".join(parts) == whole:
            runs = ((len(part), mark) for part, (_, mark) in zip(parts, self.runs, strict=True))
            return make(whole, tuple(run for run in runs if run[0]))
        if len(whole) != len(self):
            raise lost("a change of case that moves characters")
        return make(whole, self.runs)

    def upper(self) -> Marked:
        """As in str."""
        return self._mapped(str.upper, str.upper(self))

    def lower(self) -> Marked:
        """As in str."""
        return self._mapped(str.lower, str.lower(self))

    def title(self) -> Marked:
        """As in str."""
        return self._mapped(str.title, str.title(self))

    def capitalize(self) -> Marked:
        """As in str."""
        return self._mapped(str.capitalize, str.capitalize(self))

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> Marked:
        """As in str."""
        return replaced(self, old, new, count)

    def join(self, parts: Iterable[str], /) -> Marked:
        """As in str."""
        found = list(parts)
        for k, part in enumerate(found):
            if not isinstance(part, str):
                raise TypeError(f"sequence item {k}: expected str instance, {type(part).__name__} found")
        return joined(self, found)


_KEPT = {
    *vars(Marked), *vars(object), "__len__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__", "__getnewargs__",
    "startswith", "endswith", "find", "rfind", "index", "rindex", "count", "isspace", "isalpha", "isdigit", "isalnum",
    "isupper", "islower", "istitle", "isnumeric", "isdecimal", "isidentifier", "isprintable", "isascii",
}  # fmt: skip
"""What keeps the marks, or makes no text."""


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(_self: Marked, *_: Any, **__: Any) -> NoReturn:
        raise lost(f"str.{name}")

    return refuse


for _name in dir(str):
    if _name not in _KEPT:
        setattr(Marked, _name, _refusing(_name))


def make(text: str, runs: Runs) -> Marked:
    """A text, an exact str, with its runs."""
    made = str.__new__(Marked, text)
    made.runs = runs
    return made


EMPTY = make("", ())


def plain(text: str) -> str:
    """The same characters, as an exact str."""
    return _plain(text) if isinstance(text, Marked) else text


def runs_of(text: str) -> Runs:
    """The runs of any str: one that is not Marked is the template's."""
    if isinstance(text, Marked):
        return text.runs
    return ((len(text), 0),) if text else ()


def each_mark(runs: Runs) -> Iterator[int]:
    """The mark of each character."""
    for size, mark in runs:
        for _ in range(size):
            yield mark


def each_run(text: str) -> Iterator[tuple[str, int]]:
    """(characters, mark) of each run."""
    at, whole = 0, plain(text)
    for size, mark in runs_of(text):
        yield whole[at : at + size], mark
        at += size


def concat(parts: Iterable[Any]) -> Marked:
    """All texts, one after the other; other values are printed as a template prints them."""
    runs: list[tuple[int, int]] = []
    texts: list[str] = []
    for part in parts:
        kind = type(part)
        if kind is str:
            if part:
                runs.append((len(part), 0))
                texts.append(part)
        elif kind is Marked:
            runs += part.runs
            texts.append(part)
        else:
            text = part if isinstance(part, str) else str(printed(part))
            runs += runs_of(text)
            texts.append(text)
    check_size(sum(map(len, texts)))
    return make("".join(texts), tuple(runs))


def check_size(size: int) -> None:
    """Raise TemplateError for a text of more than MOST_CHARACTERS characters."""
    if size > MOST_CHARACTERS:
        raise TemplateError("template", InWords(f"a text of {size:,} characters"), f"at most {MOST_CHARACTERS:,}")


def joined(sep: str, parts: Iterable[Any]) -> Marked:
    """`sep.join(parts)`."""
    found: list[Any] = []
    for part in parts:
        found += (sep, part) if found else (part,)
    return concat(found)


def replaced(text: str, old: str, new: str, count: SupportsIndex = -1) -> Marked:
    """`text.replace(old, new, count)`."""
    whole = text if isinstance(text, Marked) else Marked(text)
    found: list[str] = []
    at, left, word = 0, count.__index__(), plain(old)
    if not word:
        if new and left:
            raise lost("replace('', ...)")
        return whole
    while left and (here := str.find(whole, word, at)) >= 0:
        found += (whole.part(at, here), new)
        at, left = here + len(word), left - 1
    return concat([*found, whole.part(at, len(whole))]) if found else whole


def holds(value: Any) -> bool:
    """Whether a text of the chat is in a value."""
    if isinstance(value, str):
        return isinstance(value, Marked) and any(mark & SOURCE for _, mark in value.runs)
    if isinstance(value, Mapping):
        return any(holds(key) or holds(part) for key, part in value.items())
    return isinstance(value, list | tuple | set | frozenset) and any(map(holds, value))


def has_unmarked(value: Any) -> bool:
    """Whether text that is not Marked is in a value."""
    if isinstance(value, str):
        return bool(value) and not isinstance(value, Marked)
    if isinstance(value, Mapping):
        return any(has_unmarked(part) for part in value.values())
    return isinstance(value, list | tuple | set | frozenset) and any(map(has_unmarked, value))


def printed(value: Any) -> Any:
    """What a template prints for a value, as text: of lists and dicts Python's repr, character by character."""
    if isinstance(value, str) or not holds(value):
        return value
    return concat(_repr(value))


def _repr(value: Any) -> Iterator[str]:
    if isinstance(value, Marked):
        quote = repr(_plain(value))[0]
        yield quote
        for text, mark in each_run(value):  # repr chooses the quote by the whole text
            shown = "".join("\\" + c if c == quote else c if c in "\"'" else repr(c)[1:-1] for c in text)
            yield Marked(shown, mark)
        yield quote
    elif isinstance(value, Mapping):
        yield "{"
        for number, (key, part) in enumerate(value.items()):
            yield ", " if number else ""
            yield from _repr(key)
            yield ": "
            yield from _repr(part)
        yield "}"
    elif isinstance(value, list):
        yield from _repr_items("[", value, "]")
    elif isinstance(value, tuple):
        yield from _repr_items("(", value, ",)" if len(value) == 1 else ")")
    elif holds(value):
        raise lost(f"printing a {type(value).__name__}")
    else:
        yield repr(value)


def _repr_items(opened: str, items: Sequence[Any], closed: str) -> Iterator[str]:
    yield opened
    for number, part in enumerate(items):
        yield ", " if number else ""
        yield from _repr(part)
    yield closed
