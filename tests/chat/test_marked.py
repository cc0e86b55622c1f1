"""`Marked`: its text is that of str, and each character keeps the mark of the text that it came from."""

import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jittok.chat.templates.filters import KEEPING, OWN, json_text, to_json
from jittok.chat.templates.marked import Marked, concat, each_mark, holds, make, plain, printed, runs_of
from jittok.errors import MarksLost

LETTERS = "aB \n\tß'\"\\<é"
PIECES = st.lists(st.tuples(st.text(LETTERS, max_size=5), st.integers(0, 3)), max_size=4)
SHORT = st.text(LETTERS, min_size=1, max_size=2)


def of(pieces: list[tuple[str, int]]) -> Marked:
    return concat([Marked(text, mark) for text, mark in pieces])


def marks(text: str) -> list[int]:
    return list(each_mark(runs_of(text)))


def private(pieces: list[tuple[str, int]]) -> tuple[Marked, dict[str, int]]:
    """A text all of whose characters differ, and the mark of each: where they are afterwards tells what was kept."""
    code, parts, origin = 0xF0000, [], {}
    for text, mark in pieces:
        letters = "".join(chr(code + k) for k in range(len(text)))
        code += len(text)
        origin |= dict.fromkeys(letters, mark)
        parts.append(Marked(letters, mark))
    return concat(parts), origin


PARTS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda s: s[1:-1], "step": lambda s: s[::-2], "first": lambda s: s[:1], "times": lambda s: s * 3,
    "twice": lambda s: 2 * s, "chars": list, "around": lambda s: "x" + s + "y", "strip": lambda s: s.strip(),
    "lstrip": lambda s: s.lstrip("aB"), "rstrip": lambda s: s.rstrip("é<"), "split": lambda s: s.split(),
    "rsplit": lambda s: s.rsplit(None, 1), "split a": lambda s: s.split("a"), "splitlines": lambda s: s.splitlines(),
    "kept ends": lambda s: s.splitlines(True), "partition": lambda s: s.partition("a"),
    "rpartition": lambda s: s.rpartition("B"), "prefix": lambda s: s.removeprefix("a"),
    "suffix": lambda s: s.removesuffix("a"), "upper": lambda s: s.upper(), "lower": lambda s: s.lower(),
    "title": lambda s: s.title(), "capitalize": lambda s: s.capitalize(), "replace": lambda s: s.replace("a", "xy"),
    "replace one": lambda s: s.replace("a", "", 1), "join": lambda s: s.join(["1", "2", "3"]),
    "joined": lambda s: Marked("-").join([s, s]) if type(s) is Marked else f"{s}-{s}",
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
@given(PIECES)
def test_each_method_gives_the_text_of_str(name: str, pieces: list[tuple[str, int]]) -> None:
    text, call = of(pieces), PARTS[name]
    try:
        found = call(text)
    except MarksLost:
        assert name in ("upper", "lower", "title", "capitalize")  # "ß" alone among others, in another run
        return
    expected = call(plain(text))
    assert found == expected
    for part in found if isinstance(found, list | tuple) else [found]:
        assert type(part) is Marked
        assert len(marks(part)) == len(part)
        assert all(size > 0 for size, _ in part.runs)


@pytest.mark.parametrize("name", ["slice", "step", "times", "chars", "around", "split", "splitlines", "join"])
@given(PIECES)
def test_each_character_keeps_its_mark(name: str, pieces: list[tuple[str, int]]) -> None:
    text, origin = private(pieces)
    found = PARTS[name](text)
    for part in found if isinstance(found, list | tuple) else [found]:
        assert marks(part) == [origin.get(c, 0) for c in plain(part)]


@given(PIECES, SHORT, SHORT)
def test_replaced_text_has_the_mark_of_what_replaces_it(pieces: list[tuple[str, int]], old: str, new: str) -> None:
    text = of(pieces)
    found = text.replace(old, Marked(new, 7))
    assert found == plain(text).replace(old, new)
    assert marks(found).count(7) == len(new) * plain(text).count(old)


def refuses(name: str) -> bool:
    """Whether a method of a text raises MarksLost; if not, what it makes of it is Marked, or no text."""
    method = getattr(Marked("ab", 1), name)
    try:
        found = method("a") if callable(method) else None
    except MarksLost:
        return True
    except (TypeError, ValueError, AttributeError):
        return False
    assert not isinstance(found, str) or isinstance(found, Marked) or name in ("__doc__", "__repr__"), name
    return False


def test_every_other_method_of_str_is_refused() -> None:
    refused = {name for name in dir(str) if refuses(name)}
    assert {"center", "encode", "expandtabs", "format", "ljust", "swapcase", "translate", "zfill", "casefold"} <= {
        *refused
    }


@pytest.mark.parametrize(
    "run", [lambda s: s % 1, lambda s: operator.mod("%s", s), lambda s: f"{s:>3}", lambda s: format(s, "s")]
)
def test_formatting_is_refused(run: Callable[[Any], Any]) -> None:
    with pytest.raises(MarksLost):
        run(Marked("ab", 1))


@pytest.mark.parametrize("other", [1, None, b"a"])
def test_adding_what_is_no_text_is_an_error(other: Any) -> None:
    for pair in ((Marked("a", 1), other), (other, Marked("a", 1))):
        with pytest.raises(TypeError):
            operator.add(*pair)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, width=16) | PIECES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(LETTERS, max_size=3), inner, max_size=3),
    max_leaves=6,
)


def with_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {Marked(key, 5): with_marks(part) for key, part in value.items()}
    if isinstance(value, list) and value and all(isinstance(part, tuple) for part in value):
        return of(value)
    return [with_marks(part) for part in value] if isinstance(value, list) else value


def without(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(key): without(part) for key, part in value.items()}
    return [without(part) for part in value] if isinstance(value, list) else value


@given(JSON, st.booleans(), st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_json_and_python_print_the_ordinary_text(value: Any, ascii_only: bool, indent: Any, sort: bool) -> None:
    marked = with_marks(value)
    how = {"ensure_ascii": ascii_only, "indent": indent, "sort_keys": sort}
    text = to_json(marked, **how)
    assert text == json_text(without(marked), **how)
    assert len(marks(text)) == len(text)
    if not isinstance(marked, str):
        assert str(printed(marked)) == str(without(marked))


def test_what_json_escapes_has_the_mark_of_its_text() -> None:
    text = to_json([Marked('<a"\n', 3)])
    assert text == '["<a\\"\\n"]'
    assert marks(text) == [0, 0, 3, 3, 3, 3, 3, 3, 0, 0]


def test_a_text_of_the_chat_is_found_in_any_value() -> None:
    assert holds({"a": [1, (Marked("b", 1),)]})
    assert holds({Marked("a", 1): 1})
    assert not holds({"a": [Marked("b", 0), make("", ())]})


def test_no_filter_is_both_kept_and_written_anew() -> None:
    assert KEEPING.isdisjoint(OWN)
