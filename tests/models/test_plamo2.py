"""PLaMo-2: the kernel gives the ids of the reference, for every vocabulary and every text."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.errors import MalformedVocab
from jittok.models import plamo2
from jittok.models.plamo2 import INVALID, fixed_scores

BYTES = [b"<0x%02X>" % byte for byte in range(256)]
FIRST = len(BYTES) + 1
alphabet = "abcd\u00e9\u4e00\ufeff\ufffd\U0001f600"
score = st.sampled_from([-1000.0, -1.0, -2.0, 0.5, -999.9999, -2000.0, float("-inf"), float("nan"), 1e30, -0.00005])
token_lists = st.dictionaries(
    st.text(alphabet, min_size=1, max_size=5).map(str.encode),
    score | st.floats(-20, 0, width=32),
    min_size=1,
    max_size=30,
)
texts = st.text(alphabet + "x", max_size=40).map(str.encode) | st.binary(max_size=30)


def make(make_vocab, tokens):
    return make_vocab(
        "plamo2", [b"<unk>", *BYTES, *tokens], [0.0] * FIRST + [*tokens.values()], [4] + [32] * 256 + [4] * len(tokens)
    )


@given(token_lists, texts)
@example({b"abc": -1.0, b"bc": -1000.0, b"c": -1.0, b"b": -1.0}, b"abcbc")
@example({b"aab": -1000.0, b"aa": -1.0, b"a": -1.0}, b"aaabaab")
@example({b"a": -1.0}, b"\xef\xbb\xbf\xef\xbb\xbfa\xf7\xbf\xbf\xbf\xc0\x80\xff")
@example({b"ab": -1.0, b"a": -0.5, b"b": -0.5}, b"ab")
def test_kernel_equals_reference(make_vocab, witnesses, tokens, text):
    kernel, reference = witnesses(make(make_vocab, tokens), text)
    assert kernel == reference


@given(token_lists, st.lists(texts | st.integers(0, 5), max_size=6))
def test_memory_is_asked_for_until_it_suffices(make_vocab, witnesses, starved, tokens, fragments):
    vocab = make(make_vocab, tokens)
    answers = [[f] if isinstance(f, int) else witnesses(vocab, f)[0] for f in fragments]
    ids, ends = starved(plamo2, vocab, fragments)
    assert ids == [token for answer in answers for token in answer]
    assert ends == np.cumsum([len(answer) for answer in answers]).tolist()


def test_scores_are_rounded_with_halves_away_from_zero():
    scores = np.array([0.03125, -0.03125, 1.0, np.nan, np.inf, -np.inf, 3e5, -1000.0], np.float32)
    assert fixed_scores(scores).tolist() == [313, -313, 10_000, INVALID, INVALID, INVALID, INVALID, -10_000_000]


@pytest.mark.parametrize(
    ("token", "found"),
    [(b"a\xff", "UTF-8"), (b"\xc0\x80", "UTF-8"), (b"\xf4\x90\x80\x80", "UTF-8"), (b"\xe4\xb8", "UTF-8")],
)
def test_tokens_that_are_not_utf8_are_refused(make_vocab, token, found):
    with pytest.raises(MalformedVocab, match=rf"tokens\[{FIRST + 1}\].*{found}"):
        plamo2.compile_vocab(make(make_vocab, {b"fine": 0.0, token: 0.0}))


def test_a_byte_without_a_token_is_refused(make_vocab):
    with pytest.raises(MalformedVocab, match="<0xFE>"):
        plamo2.compile_vocab(make_vocab("plamo2", [b"<unk>", *BYTES[:254], BYTES[255]], attributes=[4] + [32] * 255))
    with pytest.raises(MalformedVocab, match="<0x00>"):  # an id of 0 counts as none
        plamo2.compile_vocab(make_vocab("plamo2", BYTES, attributes=[32] * 256))


def test_long_texts_take_linear_time(make_vocab, witnesses):
    vocab = make(make_vocab, {b"a" * n: -float(n) for n in range(1, 30)})
    kernel, reference = witnesses(vocab, b"a" * 3_000)
    assert kernel == reference
