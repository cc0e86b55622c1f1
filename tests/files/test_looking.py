"""Patterns that look back, or ahead by more than a character; anchors, scripts, POSIX classes, lazy and nested repeats:
as their libraries have them, in linear time."""

import json
import random
import time
from array import array
from itertools import pairwise
from pathlib import Path

import pytest
import regex

import jittok
from jittok.common.pipeline.patterns import PatternError, check_pattern, compiled, explicit
from jittok.common.pipeline.steps import BEHAVIORS, CRATE, ONIG, Cut, Pattern
from jittok.kernels.pretokenize import matcher
from jittok.kernels.pretokenize.families import crosses
from jittok.kernels.pretokenize.matcher import Matcher
from jittok.kernels.pretokenize.records import pre_types
from jittok.reference.split import splitter
from jittok.reference.text import Piece

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "patterns.json").read_text("utf-8"))
"""[pattern, behavior, invert, text, words] of tokenizers 0.23."""
LOOKING = [
    r"\d{1,3}(?=(?:\d{3})*\b)", r"(?<=\d)\d{3}(?!\d)", r"a+(?=b|c+d)", r"(?<!\S)a+?(?=\s*b)|b", r"(?<=a b|[ab]c)[a-d]+",
    r"^\s+|\w+\Z", r"\b[ab]+\b|.", r"(?<=(?<!a)b)c|d", r"(?<=a*b)c|(?=a(?=b(?!c)))..", r"a(?!.*b)|.", r"a(?=a*b)",
]  # fmt: skip
CHARACTERS = "aabbccdd 11223\n_é²α.,\t"


def words(pattern: Pattern, behavior: str, invert: bool, text: str) -> list[str]:
    run = splitter(Cut(pattern, behavior, invert))
    return [piece.text for piece in run(Piece(text, None))] if text else []


def test_words_are_those_that_tokenizers_was_recorded_to_cut():
    assert {row[1] for row in RECORDED} == set(BEHAVIORS)
    wrong = [row for row in RECORDED if words(Pattern(row[0]), row[1], row[2], row[3]) != row[4]]
    assert wrong == []


@pytest.mark.parametrize("pattern", LOOKING)
def test_what_looks_around_is_found_as_an_engine_that_goes_back_finds_it(pattern):
    found, other, draw = compiled(Pattern(pattern)), regex.compile(explicit(pattern), regex.V0), random.Random(4)
    assert isinstance(found, Matcher)
    for _ in range(150):
        text = "".join(draw.choices(CHARACTERS, k=draw.randrange(14)))
        assert [m.span() for m in found.finditer(text)] == [m.span() for m in other.finditer(text)], text


@pytest.mark.parametrize("pattern", [*LOOKING, r"(?=(\d{3})+(?!\d))", r"(?:\p{L}\p{M}*)+", r"(?:a+b?)+c|.", r"\B"])
def test_no_text_makes_the_search_slower_than_linear(pattern):
    found = compiled(Pattern(pattern))
    assert isinstance(found, Matcher | regex.Pattern)
    if isinstance(found, Matcher):  # the passes of look-arounds take a step a place, as they are written
        for part in ("a", "1", "ab", " ", "a\u0301"):
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


@pytest.mark.parametrize("number", range(len(pre_types())))
def test_every_pattern_that_llama_cpp_knows_is_taken_in_a_file(number):
    """They are those of models' own files."""
    for pattern, _ in pre_types()[number].patterns:
        if "AFMoE_digits" not in pattern:  # a name of llama.cpp's own, for what is the pattern of digit groups
            check_pattern(Pattern(pattern), empty=True)


def test_sets_of_very_many_characters_are_told_apart_or_refused_at_once():
    """More classes than a byte has values are left to plain Python."""
    for size in (255, 256, 300):
        pattern = "|".join(chr(0x4E00 + 2 * k) + chr(0x4E01 + 2 * k) + "+" for k in range(size)) + "|a"
        text = "".join(chr(0x4E00 + 2 * k) + chr(0x4E01 + 2 * k) * 2 + "x" for k in range(size)) + "a"
        spans = [match.span() for match in compiled(Pattern(pattern)).finditer(text)]
        assert spans == [match.span() for match in regex.finditer(pattern, text)]
    begun = time.process_time()
    many = "|".join(rf"{chr(0x4E00 + k)}\d" for k in range(2000))
    for pattern in (many, r"(?:[a-z]{0,3}[0-9]{0,3}){1,20}\b(?=ab)(?<!cd)x"):
        with pytest.raises(PatternError):
            check_pattern(Pattern(pattern))
    assert time.process_time() - begun < 5


def test_tokens_cannot_make_the_search_for_white_space_behind_a_line_slow():
    begun = time.process_time()
    assert not crosses([b"\n" + b"\xe1" * 5000 + b"\r", b"\n" * 5000, b"ab"])
    assert crosses([b"\n" + b"\xe1\x9a" * 5000])
    assert time.process_time() - begun < 1


def test_all_that_no_match_has_stays_where_matches_are_replaced() -> None:
    for text in ("abab a", "b", "", "a", "xbb"):
        assert Matcher("b+").sub(lambda match: f"<{match.span()}>", text) == regex.sub(
            "b+", lambda match: f"<{match.span()}>", text
        )


def test_anchors_are_those_of_the_engine():
    """Ruby's `^` and `$` are those of any line; Rust's are those of the text."""
    places = {name: [m.span()[0] for m in compiled(Pattern(name)).finditer("a b\nc\n")] for name in (r"\b", "^", "$")}
    assert places == {r"\b": [0, 1, 2, 3, 4, 5], "^": [0, 4], "$": [3, 5, 6]}
    for name, wanted in ((r"^[ab]", [0]), (r"[bc\n]$", [5]), (r"[abc]\z", []), (r"[abc]\Z", [4]), (r"\A.", [0])):
        assert [m.span()[0] for m in compiled(Pattern(name, engine=CRATE)).finditer("b a\nc\n")] == wanted, name
    for engine, wanted in ((ONIG, [2, 3]), (CRATE, [1, 2, 3])):  # `\Z` before several line feeds
        assert [m.span()[0] for m in compiled(Pattern(r"\s\Z", engine=engine)).finditer("a\n\n\n")] == wanted


def test_word_ends_in_what_looks_back_by_several_sizes_none_among_them_are_refused():
    """There Oniguruma finds others at the beginning of a text: of `(?<=\\ba?)b` in "b" nothing. Not in other cases."""
    for name in (r"(?<=\ba?)b", r"(?<!\Bb?).", r"(?<!(?:\B|ab)).", r"(?<!(?<=\b)a?)b"):
        with pytest.raises(PatternError, match="look-back that may take nothing or several"):
            check_pattern(Pattern(name), empty=True)
        check_pattern(Pattern(name, engine=CRATE), empty=True)
    for name in (r"(?<=\b|ab)c", r"(?<=\b)a", r"(?<=\ba{1,2})b", r"(?<=a?\Bb)c"):
        check_pattern(Pattern(name), empty=True)


def test_a_count_with_a_plus_repeats_in_ruby_and_keeps_in_rust():
    assert words(Pattern(r"\d{1,2}+"), "isolated", False, "12345") == ["12345"]
    assert explicit(r"\d{1,2}+a", CRATE) == explicit(r"\d{1,2}a", CRATE)


def test_only_a_splitter_may_match_the_empty_text():
    check_pattern(Pattern(r"(?<=\d)"), empty=True)
    for pattern in (r"(?<=\d)", "a|", r"\b", "a??"):
        with pytest.raises(PatternError, match="never matches the empty text"):
            check_pattern(Pattern(pattern))


def pairs_json(pattern: str, among: bytes = bytes(range(256))) -> str:
    """A byte-level BPE that joins any two bytes `among` which the texts are: every cut that is wrong changes ids."""
    from jittok.common.unicode.tables import CHARACTER_OF_BYTE

    vocab = {chr(letter): number for number, letter in enumerate(CHARACTER_OF_BYTE)}
    letters = [chr(CHARACTER_OF_BYTE[byte]) for byte in among]
    merges = [[a, b] for a in letters for b in letters]
    vocab |= {a + b: 256 + number for number, (a, b) in enumerate(merges)}
    cut = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    spell = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    model = {"type": "BPE", "vocab": vocab, "merges": merges}
    return json.dumps({"model": model, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [cut, spell]}})


@pytest.mark.parametrize("pattern", [r"\d{1,3}(?=(?:\d{3})*\b)", r"(?=(\d{3})+(?!\d))", r"(?<=[a-z])(?=[A-Z])"])
def test_a_long_text_is_cut_as_a_whole(pattern):
    """What a place is depends on what is far away, so no part of a text is cut alone."""
    tok = jittok.load(pairs_json(pattern, b"7aB 12").encode(), cache=False)
    for size in (2_999, 3_000, 3_001):
        text = "7" * size + "aB 12"
        spans = [match.span() for match in compiled(Pattern(pattern)).finditer(text)]
        cuts = sorted({0, len(text), *(place for span in spans for place in span)})
        wanted = [token for a, b in pairwise(cuts) for token in tok.encode(text[a:b]).tolist()]
        assert tok.encode(text).tolist() == wanted
        assert tok.encode_batch([text, "1234"])[0].tolist() == wanted
        assert tok.align(text).ids.tolist() == wanted


def test_info_tells_a_pattern_that_no_kernel_finds(tmp_path, capsys):
    from jittok.cli import main

    many = "|".join(chr(0x4E00 + 2 * k) + chr(0x4E01 + 2 * k) + "+" for k in range(100))  # classes of characters
    for pattern, told in ((many, True), (r"(?<=[a-z])(?=[A-Z])", False), (r"\p{Thai}+|[[:punct:]]", False)):
        (tmp_path / "tokenizer.json").write_text(pairs_json(pattern, b"ab"))
        assert main(["info", str(tmp_path / "tokenizer.json")]) == 0
        assert ("split 1 runs in plain Python" in capsys.readouterr().out) == told


def test_white_space_that_ends_a_text_is_one_word_of_cl100k():
    """`\\s++$` is before `\\s*[\\r\\n]`: a token may reach across the last line feed there, and only there."""
    from jittok.common.pipeline.known_patterns import CL100K

    pattern = Pattern(CL100K, engine=CRATE)
    assert words(pattern, "removed", True, "a\n  \nb\n \t") == ["a", "\n  \n", "b", "\n \t"]
    assert words(Pattern(CL100K), "isolated", False, "12345 1\n ") == ["12345", " ", "1", "\n "]
    import base64

    ranks = [bytes([byte]) for byte in range(256)] + [b"\n ", b"\n\n"]
    raw = b"".join(base64.b64encode(text) + b" %d\n" % rank for rank, text in enumerate(ranks))
    tok = jittok.load(raw, pattern=CL100K, special_tokens={}, cache=False)
    assert tok.encode("a\n ").tolist() == [97, 256]
    assert tok.encode("a\n b").tolist() == [97, 10, 32, 98]


def test_steps_of_a_look_around_are_forgotten_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    def marked(most: int) -> tuple[list[int], int]:
        monkeypatch.setattr(matcher, "MOST_KNOWN", most)
        (found,) = matcher.lookaround_pattern(r"a(?=[ab]*c[abc]*d)", 128, 4096).looks
        draw, end = random.Random(3), len(found.rows) - 1
        symbols, bits = array("i", [*draw.choices(range(end), k=400), end]), array("i", [0] * 401)
        found.mark(symbols, bits)
        return bits.tolist(), len(found.known)

    (few, least), (many, kept) = marked(3), marked(1 << 12)
    assert few == many
    assert least <= 3 < kept
