"""A pattern that some text makes slow is found from its automaton, and a file with one is refused by its name."""

import json

import pytest
from drawn_files import SPLITS, byte_level_json

import jittok
from jittok.pipeline.known_patterns import GPT2, GREEDY, O200K
from jittok.pipeline.patterns import explicit
from jittok.pretokenize.automaton import compile_pattern
from jittok.pretokenize.linear import is_linear

FAST = [
    GPT2, O200K, *GREEDY.values(), *SPLITS, r"a+b?|c", r"\s*[\r\n]+|\s+(?!\S)|\s+", r"a+b+c|a+|b+",
    r"\w+\s*=|\w+|\s", " {2,}", r"\s?\p{P}+",
]  # fmt: skip
SLOW = [
    r"a*b", r"a*b|a", r"(?:ab)*c|a|b", r"[ab]*c|a+|b+", r"\w+\s*=|\w|\s", r"\s+$", r"\p{L}*\p{N}|\p{L}", r".*x|.",
]  # fmt: skip


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
    assert is_linear(compile_pattern(explicit(pattern), 0x110000))
    for part in ("a", " ", "\n", "ab", "1", "=", "a ", "\n "):
        assert reads(pattern, part * 200 + "?") < 1200, part


@pytest.mark.parametrize("pattern", SLOW)
def test_a_pattern_that_reads_on_from_every_place_is_not(pattern):
    assert not is_linear(compile_pattern(explicit(pattern), 0x110000))
    most = max(reads(pattern, part * 100 + "?") for part in ("a", " ", "ab"))
    assert most > 4000


@pytest.mark.parametrize("place", ["normalizer", "pre_tokenizer"])
def test_a_file_with_such_a_pattern_is_refused_by_the_pattern(place):
    content = json.loads(byte_level_json(GPT2, None))
    if place == "normalizer":
        content["normalizer"] = {"type": "Replace", "pattern": {"Regex": "a*b"}, "content": "x"}
    else:
        content = json.loads(byte_level_json("a*b|[^b]", None))
    with pytest.raises(jittok.UnsupportedVocab, match=r"a\*b"):
        jittok.load(json.dumps(content).encode(), cache=False).encode("aab")
