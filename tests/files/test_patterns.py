"""Patterns of other engines written out match what the engine matches; and what the libraries know of characters."""

import random
import re

import pytest
import regex

from jittok.common.pipeline.patterns import PatternError, _read, compiled, explicit, is_possessive
from jittok.common.pipeline.steps import CRATE, ISOLATED, ONIG, REMOVED, Cut, Pattern
from jittok.common.unicode.libraries import mapping, normal_form
from jittok.kernels.pretokenize.automaton import compile_pattern
from jittok.kernels.pretokenize.compile import chain_of, covers, splitter_of_stages
from jittok.kernels.pretokenize.families import family_of
from jittok.kernels.pretokenize.matcher import automaton_of


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"\w", "aé_1²¼\u0301", " -\u200d"),
        (r"[\w]", "aé_1", "²¼ -"),
        (r"\W", " -", "²a"),
        (r"[^\W]", "a1", "²-"),
        (r"\s", "\t \u00a0\u0085\u3000\u2028", "\u200b\u180ea"),
        (r"(?i:s)", "sS\u017f", "zß"),
        (r"(?i:[kq])", "kK\u212aqQ", "x"),
        (r"[a-c\-\]]", "abc-]", "d["),
        (r"[\p{L}&&[^\p{Han}]]", "aя", "中1"),
        (r"[^\r\n\p{L}]", "1 中"[:2], "\r\na中"),
        (r"\x{1F600}|\u4e2d", "😀中", "a"),
        (r"\p{^Lu}", "a1", "AÉ"),
        (r".", "a\r", "\n"),
        (r"\p{Zs}", " \u00a0\u1680\u202f\u3000", "\t\n\u2028\u180e\u200b"),
        (r"[\p{Mn}\p{Sc}\p{Nl}]", "\u0301$€Ⅳ", "\u0903+1a"),
        (r"[\p{Pd}\p{Ps}\p{Cf}]", "-(\u2014\u200d", "_)\x01"),
    ],
)
def test_a_pattern_matches_what_its_engine_matches(pattern, yes, no):
    for engine in (re, regex):
        compiled = engine.compile(explicit(pattern))
        assert [c for c in yes if not compiled.fullmatch(c)] == []
        assert [c for c in no if compiled.fullmatch(c)] == []


def test_a_class_where_case_does_not_matter_is_as_the_engine_has_it():
    """Oniguruma leaves a class as it is. The regex crate adds letters of the other case."""
    assert regex.fullmatch(explicit(r"(?i:\p{Lu})", ONIG), "A")
    assert not regex.fullmatch(explicit(r"(?i:\p{Lu})", ONIG), "a")
    for pattern in (r"(?i:\p{Lu})", r"(?i:'s|\P{L})", r"(?i:\p{Mn}+)"):
        with pytest.raises(PatternError, match="where case does not matter"):
            explicit(pattern, CRATE)
    assert regex.fullmatch(explicit(r"(?i:s\p{N})", CRATE), "\u017f1")


def test_the_end_of_a_line_is_rubys_and_that_of_the_text_is_rusts():
    assert [m.end() for m in regex.finditer(explicit(r"a+$"), "aa\naab\naa")] == [2, 9]
    assert [m.end() for m in regex.finditer(explicit(r"a+$", CRATE), "aa\naab\naa")] == [9]
    assert is_possessive(explicit(r"a++(?=a)", CRATE))
    assert not is_possessive(explicit(r"\p{L}+|a{2}\+"))


UNKNOWN = (
    "(a", "a)", "[a", "[]", "a{2", "a{3,1}", "*a", "a**", r"\q", r"\p{Xx}", "(?<n a)", r"\G", r"(a)\1", "a{2}?",
    "(?=a)+", r"\xff", "[[:alpho:]]", "(?i:é)", "[z-a]", "a{0}", "(?:a?)+", "(?<=a)*", "(?>a)", "(?m)a", r"\X",
    "(?i:[[:alpha:]])",
)  # fmt: skip


@pytest.mark.parametrize("pattern", UNKNOWN)
def test_what_is_not_known_is_an_error_with_its_place(pattern):
    with pytest.raises(PatternError, match=r"character \d+: found"):
        explicit(pattern)


def test_a_pattern_covers_a_text_or_leaves_something_between_its_matches():
    for pattern, wanted in (
        (r"\p{L}+|[^\p{L}]", True),
        (r"\p{L}+", False),
        (r"a?b|\s+|\S+", True),
        (r"ab|a|\s", False),
    ):
        assert covers(compile_pattern(explicit(pattern), 0x110000)) == wanted, pattern
    kept, dropped = (Cut(Pattern(text), REMOVED, invert=True) for text in (r"\p{L}+|[^\p{L}]", r"\p{L}+"))
    assert splitter_of_stages((kept,)) is not None
    assert splitter_of_stages((dropped,)) is None
    assert splitter_of_stages((Cut(Pattern(r"a++b|\s+|\S"), ISOLATED),)) is not None
    assert family_of((kept,)) is None


def test_normal_forms_leave_alone_what_the_library_does_not_know():
    assert normal_form("NFC", "e\u0301") == "é"
    assert normal_form("NFKC", "\u32ff") == "\u32ff"  # the era of 2019
    assert normal_form("NFC", "a\u0301\u0898\u0323") == "á\u0898\u0323"  # a mark of 2021 is a starter


def test_maps_are_the_librarys():
    assert "İΣẞ".translate(mapping("lowercase")) == "i\u0307\u03c3ß"
    assert "a\x00\u00adb\t\u3000".translate(mapping("bert_clean")) == "ab  "
    assert "a中".translate(mapping("bert_chinese")) == "a 中 "
    assert "\u200bx\x07".translate(mapping("nmt")) == " x"


@pytest.mark.parametrize(
    "pattern", [r"(a?a)+b|a", r"(a|aa)+b|a", r"(?:\p{M}|\p{L})+|.", r"([ab]{1,3}c?){1,4}|.", r"(?:ab|a){2,3}(?=[c])|a"]
)
def test_a_repeat_of_what_matches_in_several_ways_is_walked_not_tried(pattern):
    found, draw = compiled(Pattern(pattern)), random.Random(1)
    assert len(list(found.finditer("a" * 200))) >= 1  # by going back this would not end
    for _ in range(200):
        text = "".join(draw.choice("aabbc \u0301e") for _ in range(draw.randrange(14)))
        spans = [match.span() for match in regex.finditer(explicit(pattern), text)]
        assert [match.span() for match in found.finditer(text)] == spans
        assert found.sub(lambda _: "-", text) == regex.sub(explicit(pattern), "-", text)


@pytest.mark.parametrize(
    ("remembered", "arguments"),
    [
        (_read, lambda text: (text, ONIG)),
        (automaton_of, lambda text: (text,)),
        (chain_of, lambda text: ((Cut(Pattern(text), ISOLATED),),)),
    ],
)
def test_patterns_of_files_that_are_gone_do_not_stay_for_ever(remembered, arguments):
    first = remembered(*arguments("a{3}b"))
    assert remembered(*arguments("a{3}b")) is first
    for number in range(4, 4 + remembered.cache_parameters()["maxsize"]):
        remembered(*arguments(f"a{number}b"))
    assert remembered(*arguments("a{3}b")) is not first
