"""PLaMo-2: the kernel gives the ids of the reference, for every vocabulary and every text."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.errors import MalformedVocab
from jittok.kernels.models import plamo2
from jittok.kernels.models.plamo2 import INVALID, fixed_scores

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


PARTS = [b"<|plamo:", b"|>", b"x" * 64, b"x", b" ", b"  ", b"aaaa", b"\n\n\n\n", b"<|plamo:a|>", "\uee00".encode(),
         b"ab", "\ufeff".encode(), b"\x1c", "\u3000".encode(), b"<" * 4, b">" * 4, b"\xf4\x90\x80\x80",
         b"|"]  # fmt: skip


@given(token_lists, st.lists(st.sampled_from(PARTS), max_size=8).map(b"".join))
@example({b"a": -1.0, b"aaaa": -1.0}, b"aaaaa  a<|plamo:x|>>>>>")
@example({b"a": -1.0}, "\uee00\uee00\uee00\uee00a\uee00".encode())
@example({b"a": -1.0}, b"<|plamo:" + b"x" * 65 + b"|>")
def test_segments_are_those_of_the_reference(witnesses, make_vocab, tokens, text):
    vocab = make(make_vocab, tokens)._replace(type="plamo3", model="plamo3")
    kernel, reference = witnesses(vocab, text)
    assert kernel == reference


def test_a_token_never_reaches_across_the_border_of_a_segment(witnesses, make_vocab):
    across = {b"b====": -0.1, b"====": -1.0, b"b": -1.0, b"a<|plamo:x|>": -0.1, b"<|plamo:x|>": -1.0, b"a": -1.0}
    plain = make(make_vocab, across)
    cut = plain._replace(type="plamo3", model="plamo3")
    for text in (b"b====", b"a<|plamo:x|>"):
        assert len(witnesses(plain, text)[0]) == 1
        assert len(witnesses(cut, text)[0]) == 2
    assert witnesses(cut, "a\uee00a".encode())[0] == witnesses(cut, b"a")[0] * 2


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
        plamo2.compile_pipeline(make(make_vocab, {b"fine": 0.0, token: 0.0}).pipeline)


def test_a_byte_without_a_token_is_refused(make_vocab):
    with pytest.raises(MalformedVocab, match="<0xFE>"):
        plamo2.compile_pipeline(
            make_vocab("plamo2", [b"<unk>", *BYTES[:254], BYTES[255]], attributes=[4] + [32] * 255).pipeline
        )
    with pytest.raises(MalformedVocab, match="<0x00>"):  # an id of 0 counts as none
        plamo2.compile_pipeline(make_vocab("plamo2", BYTES, attributes=[32] * 256).pipeline)


def test_long_texts_take_linear_time(make_vocab, witnesses):
    vocab = make(make_vocab, {b"a" * n: -float(n) for n in range(1, 30)})
    kernel, reference = witnesses(vocab, b"a" * 3_000)
    assert kernel == reference
