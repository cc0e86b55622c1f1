"""A pattern that some text makes slow is known from its automaton, and found in linear time or refused by its name."""

import json
import random
import re

import pytest
import regex
from drawn_files import SPLITS, byte_level_json

import jittok
from jittok.common.pipeline.known_patterns import GPT2, GREEDY_CL100K, GREEDY_R50K, O200K
from jittok.common.pipeline.patterns import compiled, explicit
from jittok.common.pipeline.steps import Pattern
from jittok.kernels.pretokenize.automaton import compile_pattern
from jittok.kernels.pretokenize.matcher import Matcher, is_linear

FAST = [
    GPT2, O200K, GREEDY_R50K, GREEDY_CL100K, *SPLITS, r"a+b?|c", r"\s*[\r\n]+|\s+(?!\S)|\s+", r"a+b+c|a+|b+",
    r"\w+\s*=|\w+|\s", " {2,}", r"\s?\p{P}+",
]  # fmt: skip
SLOW = [
    r"a*b", r"a*b|a", r"(?:ab)*c|a|b", r"[ab]*c|a+|b+", r"\w+\s*=|\w|\s", r"\s+$", r"\p{L}*\p{N}|\p{L}", r".*x|.",
]  # fmt: skip


def _rows(pattern: str):
    automaton = compile_pattern(explicit(pattern), 0x110000)
    return automaton.transitions.reshape(-1, automaton.width)


def reads(pattern: str, text: str) -> int:
    """How many characters a search for all matches reads."""
    automaton = compile_pattern(explicit(pattern), 0x110000)
    starts, rows = automaton.starts.tolist(), automaton.transitions.reshape(-1, automaton.width).tolist()
    which = [automaton.classes[max(k for k, c in enumerate(starts) if c <= ord(char))] for char in text]
    at = total = 0
    while at < len(text):
        state, j, match = rows[1][which[at]] >> 1, at + 1, at
        while state != 0:
            total += 1
            entry = rows[state][which[j] if j < len(text) else -1]
            match = j if entry & 1 else match
            state = entry >> 1 if j < len(text) else 0
            j += 1
        at = max(match, at + 1)
    return total


@pytest.mark.parametrize("pattern", FAST)
def test_a_pattern_that_reads_each_character_a_few_times_is_linear(pattern):
    assert is_linear(_rows(pattern), 1)
    for part in ("a", " ", "\n", "ab", "1", "=", "a ", "\n "):
        assert reads(pattern, part * 200 + "?") < 1200, part


@pytest.mark.parametrize("pattern", SLOW)
def test_a_pattern_that_reads_on_from_every_place_is_not(pattern):
    assert not is_linear(_rows(pattern), 1)
    most = max(reads(pattern, part * 100 + "?") for part in ("a", " ", "ab"))
    assert most > 4000


KNOWN = [
    *SLOW, r"a++b|.", r"a*+b|[^b]", r"a*a*a*b|a+|.", "a?" * 25 + "a" * 25 + "|a", r"(?:ab|a)*c|a|b", r"<[^>]*>|.",
    r"(?:a+b)?c|.", r"(?:a|b)*(?:a|b)c|.",
]  # fmt: skip
PARTS = ("a", "ab", " ", "\n", " \n", "<", "a<", "aab", "b")


@pytest.mark.parametrize("pattern", KNOWN)
def test_slow_patterns_are_found_by_what_reads_no_state_twice_at_a_place(pattern):
    found, written, draw = compiled(Pattern(pattern)), explicit(pattern), random.Random(3)
    assert isinstance(found, Matcher)
    for _ in range(60):
        text = "".join(
            draw.choice(["a", "a", "b", "c", " ", "\n", "<", ">", "x", "1", "="]) for _ in range(draw.randrange(9))
        )
        assert [match.span() for match in found.finditer(text)] == [m.span() for m in regex.finditer(written, text)]
    for part in PARTS:
        text = part * 1500 + "?"
        found._rows = rows = [Counted(row) for row in found._rows]
        list(found.finditer(text))
        assert sum(row.asked for row in rows) < 40 * len(text), part


class Counted(list):
    """A row of an automaton that counts how often it is asked."""

    asked = 0

    def __getitem__(self, key):
        self.asked += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("place", ["normalizer", "pre_tokenizer", "decoder"])
@pytest.mark.parametrize("pattern", [r"a*b", r"\s+$", r"<[^>]*>"])
def test_files_with_such_patterns_answer_as_their_library(pattern, place):
    if place == "pre_tokenizer":
        content = json.loads(byte_level_json(pattern, None))
    else:
        content = json.loads(byte_level_json(GPT2, None))
        content[place] = {"type": "Replace", "pattern": {"Regex": pattern}, "content": "x"}
    for step in content["pre_tokenizer"].get("pretokenizers", [content["pre_tokenizer"]]):
        step.setdefault("trim_offsets", True)
    whole = json.dumps(content)
    tokenizers = pytest.importorskip("tokenizers")
    ours, theirs = jittok.load(whole.encode(), cache=False), tokenizers.Tokenizer.from_str(whole)
    for text in ("aab ab b", "a  \nb  ", "<a> < <b>> ", "aaaa", "  \n \n", ""):
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text).tolist() == ids
        if place == "decoder":
            assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize("pattern", [r"a*+a", r"(a)\1", r"[ab]*a[ab]{12}c|.", r"(?:a{1,30}){1,30}b"])
def test_a_pattern_without_a_linear_way_is_refused_by_its_name(pattern):
    with pytest.raises(jittok.UnsupportedVocab, match=re.escape(repr(pattern))):
        jittok.load(byte_level_json(pattern, None), cache=False)


@pytest.mark.parametrize(
    ("kept", "greedy"),
    [
        (r"[^\r\n\p{L}\p{N}]?+\p{L}+", r"[^\r\n\p{L}\p{N}]?\p{L}+"),
        (r" ?[^\s\p{L}\p{N}]++[\r\n]*", r" ?[^\s\p{L}\p{N}]+[\r\n]*"),
        (r"a++b", r"a+b"), (r"a++$", r"a+$"), (r"a*+(?:b|cd)", r"a*(?:b|cd)"),
    ],
)  # fmt: skip
def test_what_gives_nothing_back_is_greedy_where_what_follows_could_not_begin_so(kept, greedy):
    assert explicit(kept) == explicit(greedy)
    for other in (r"a++a", r"a++(?=a)", r"a*+[ab]", r"(?:a++)a", r"a++b*a"):
        assert explicit(other) != explicit(other.replace("++", "+").replace("*+", "*"))
