"""Scores of sentencepiece models as sentencepiece 0.2.3 takes them: their bits are compared, and sums begin again."""

import math

import pytest
from small_files import sentencepiece_of

import jittok
from jittok.files import read_pipeline
from jittok.kernels.jit import JIT
from jittok.reference.pipeline import Runner

UNIGRAM, BPE, WORD, CHAR = range(1, 5)
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
HEAD = [("<unk>", UNKNOWN, 0.0), ("<s>", CONTROL, 0.0), ("</s>", CONTROL, 0.0)]
BYTES = [(f"<0x{byte:02X}>", BYTE, 0.0) for byte in range(256)]
LETTERS = [("a", NORMAL, -5.0), ("b", NORMAL, -5.0), ("c", NORMAL, -5.0)]
INFINITE, NO_NUMBER = math.inf, math.nan


def both(content: bytes, text: str) -> list[int]:
    """The ids of a text, which the plain reference gives, and sentencepiece where it is installed."""
    found = jittok.load(content, cache=False).encode(text).tolist()
    assert found == Runner(read_pipeline(content)).encode(text, False)
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError:
        return found
    assert found == SentencePieceProcessor(model_proto=content).encode(text)
    return found


@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize(
    ("ab", "bc", "first"),
    [
        (-0.0, 0.0, "bc"), (0.0, -0.0, "ab"), (0.0, 0.0, "ab"), (-0.0, -0.0, "ab"), (-1.0, 1.0, "bc"), (2.0, 1.0, "ab"),
        (-INFINITE, -1.0, "bc"), (1.0, INFINITE, "bc"), (INFINITE, INFINITE, "ab"), (INFINITE, NO_NUMBER, "bc"),
        (-INFINITE, -NO_NUMBER, "ab"), (-1e-45, -0.0, "bc"), (1e-45, 0.0, "ab"),
    ],
)  # fmt: skip
def test_scores_are_compared_by_their_bits(ab, bc, first, fallback):
    pieces = [*HEAD, *(BYTES if fallback else []), *LETTERS, ("ab", NORMAL, ab), ("bc", NORMAL, bc)]
    content = sentencepiece_of(BPE, pieces, fallback, False, False)
    start = len(pieces) - 5
    assert both(content, "abc") == ([start + 3, start + 2] if first == "ab" else [start, start + 4])


def test_a_piece_that_is_not_used_is_taken_apart_by_the_bits_of_scores():
    pieces = [*HEAD, *LETTERS, ("ab", NORMAL, -0.0), ("bc", NORMAL, 0.0), ("abc", UNUSED, 1.0)]
    assert both(sentencepiece_of(BPE, pieces, False, False, False), "abc") == [3, 7]


@pytest.mark.parametrize("kind", [WORD, CHAR])
@pytest.mark.parametrize("score", [-INFINITE, INFINITE, NO_NUMBER])
def test_characters_and_words_may_have_any_score(kind, score):
    """The trainer writes minus infinity for a required character that no sentence has."""
    content = sentencepiece_of(kind, [*HEAD, *LETTERS, ("☃", NORMAL, score)], False, False, False)
    assert both(content, "☃") == [6]


@pytest.mark.parametrize("score", [-INFINITE, INFINITE, NO_NUMBER])
def test_unigram_needs_finite_scores(score):
    content = sentencepiece_of(UNIGRAM, [*HEAD, *LETTERS, ("☃", NORMAL, score)], False, False, False)
    with pytest.raises(jittok.MalformedVocab, match=r"pieces\[6\]: found the score .*expected a finite number"):
        jittok.load(content, cache=False)


def test_sums_may_be_infinite():
    pieces = [*HEAD, ("a", NORMAL, -3e38), ("b", NORMAL, 3e38), ("aa", NORMAL, -3e38), ("ab", NORMAL, 1.0)]
    content = sentencepiece_of(UNIGRAM, pieces, False, False, False)
    for text, wanted in (("aaaa", [5, 5]), ("aaabab", [5, 6, 6]), ("bbbb", [4, 4, 4, 4]), ("xx", [0])):
        assert both(content, text) == wanted


def test_without_a_normal_piece_an_unknown_character_has_the_largest_score():
    content = sentencepiece_of(UNIGRAM, [*HEAD, ("ab", USER, 0.0), ("abc", USER, 0.0)], False, False, False)
    assert both(content, "xabab") == [0]


@pytest.mark.skipif(not JIT, reason="a megabyte takes long in plain Python")
@pytest.mark.parametrize("fallback", [False, True])
def test_a_sum_begins_anew_on_either_side_of_0(fallback):
    """Beside 100,000 a float has units of 1 / 128, so -0.4 and -0.599 make -1."""
    user = "<" + "u" * 150 + ">"
    pieces = [("a", NORMAL, -0.4), ("b", NORMAL, -0.599), ("ab", NORMAL, -1.0), ("▁", NORMAL, -2.0), (user, USER, 0.0)]
    content = sentencepiece_of(UNIGRAM, [*HEAD, *(BYTES if fallback else []), *pieces], fallback, False, False)
    start = 3 + 256 * fallback
    tok = jittok.load(content, cache=False)
    assert tok.runs == "kernels"
    assert tok.encode(user * 6000 + "ab").tolist()[6000:] == [start + 2]
    assert tok.encode(user * 6700 + "ab").tolist()[6700:] == [start, start + 1]
