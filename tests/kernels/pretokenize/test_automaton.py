"""An automaton finds what the `regex` module finds with the same pattern, in one pass."""

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st
from patterns import LETTERS, first_match, patterns

from jittok.common.unicode.tables import LAST_CODE_POINT
from jittok.kernels.pretokenize import automaton as construction
from jittok.kernels.pretokenize.automaton import compile_pattern
from jittok.kernels.pretokenize.definition import COLLAPSED, collapsed_pattern, pre_types, wide_pattern


def agree(pattern, text, size=256):
    automaton, compiled = compile_pattern(pattern, size), regex.compile(pattern)
    symbols = list(text) if isinstance(text, bytes) else [ord(c) for c in text]
    for at in range(len(text)):
        match = compiled.match(text, at)
        assert first_match(automaton, symbols, at) == (match.end() if match else None), (pattern, text, at)


@given(patterns, st.lists(st.sampled_from(LETTERS), max_size=14).map(bytes))
@example(rb"a|ab", b"ab")
@example(rb"a+(?!\S)|a+", b"aaa")
@example(rb"\s+(?!\S)|\s+", b"  a")
@example(rb"(?:'|'a)+b|'", b"''a'ab")
def test_drawn_patterns_match_what_a_backtracking_engine_matches(pattern, text):
    try:
        agree(pattern, text)
    except ValueError as error:
        assert str(error) == "the pattern matches the empty text"  # noqa: PT017  behind a look-ahead, for example


CORPUS = b"I'll don't  go\n\n 12345 \xd2\xd2a\xd1\xd3 \t\r\n'S 'sx//'c' <a b>AbcD'RE 1\x0b \x0b.\xd5\n"


@pytest.mark.parametrize("pre", pre_types(), ids=lambda pre: pre.name)
def test_the_patterns_of_all_pre_types_match_as_they_do_in_regex(pre):
    for pattern, engine in pre.patterns:
        if pattern in (r"(?=(\d{3})+(?!\d))", r"\s+$") or engine not in (COLLAPSED, "wide"):
            continue  # stages of their own, see `compile`
        if engine == COLLAPSED:
            agree(collapsed_pattern(pattern), CORPUS)
        else:
            text = "Été l'été A\u4e00\u3042b \x0b12345 \n don't\u0301 \U0001f600ABc//\n" + CORPUS.decode("latin-1")
            agree(wide_pattern(pattern), text, LAST_CODE_POINT + 1)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (rb"a*", "matches the empty text"),
        (rb"(?=a)", "matches the empty text"),
        (rb"(?<=a)b", "look-ahead of one character"),
        (rb"a(?=bc)", "look-ahead of one character"),
        (rb"(a)\1", "is not covered"),
        (rb"\bword", "is not covered"),
        (rb"^a", "is not covered"),
    ],
)
def test_patterns_that_one_pass_cannot_match_are_a_value_error(pattern, message):
    with pytest.raises(ValueError, match=message):
        compile_pattern(pattern, 256)


def test_a_pattern_of_too_many_states_is_a_value_error(monkeypatch):
    monkeypatch.setattr(construction, "MOST_STATES", 20)
    with pytest.raises(ValueError, match="the pattern needs more than 20 states"):
        compile_pattern(rb"(?:a|b)+a(?:a|b){6}", 256)


@pytest.mark.parametrize("repeat", ["+", "+?", "{1,}"])
def test_repeats_within_repeats_are_as_many_nodes_as_they_are_written(repeat):
    """Each took two copies of what it repeats, so twenty took a million."""
    pattern = "a"
    for _ in range(15):
        pattern = f"(?:{pattern}|x){repeat}"
    nodes = construction.Nodes(256)
    nodes.sequence(construction.parsed_pattern(pattern + "z"), nodes.match())
    assert len(nodes.nodes) < 64
    agree((pattern + "z").encode(), b"axxaz zxaz ax")
