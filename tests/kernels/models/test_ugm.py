"""Unigram: the kernel gives the ids of the reference, for every vocabulary, charsmap and text."""

import math

import numpy as np
import pytest
from charsmap import build_charsmap
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.encode.encoder import Encoder
from jittok.errors import MalformedVocab
from jittok.kernels.fragments import TEXT_PREFIXED
from jittok.kernels.jit import JIT, frozen
from jittok.kernels.memory import PAD
from jittok.kernels.models import ugm
from jittok.kernels.models.ugm import kernel as ugm_kernel
from jittok.kernels.models.ugm import lattice
from jittok.kernels.models.ugm.compile import unknown_score
from jittok.kernels.pretoken_cache.tables import MISSES

UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 2, 4, 8, 16, 32
SPACE = "\u2581".encode()
alphabet = "abcAB \t\u2581\u00e9\u4e00\ufb01\u3000\ufffd"
pieces = st.text("abc \t\u2581\u00e9\u4e00X", min_size=1, max_size=4).map(str.encode) | st.sampled_from(
    [b"\xe2", b"\xe2\x96", b"\xff", SPACE, b"\xef\xbf\xbd", b"?"]
)
score = st.sampled_from([-1.0, -2.0, -3.0, 0.0, 0.1, -math.inf, math.inf, math.nan, 3e38, -3e38, -1e-40])
attribute = st.sampled_from([NORMAL] * 10 + [USER_DEFINED] * 2 + [UNUSED, CONTROL, BYTE, UNKNOWN])
token_lists = st.dictionaries(
    pieces, st.tuples(score | st.floats(-20, 0, width=32), attribute), min_size=1, max_size=30
)
texts = (
    st.text(alphabet, max_size=40).map(str.encode)
    | st.binary(max_size=30)
    | st.lists(st.text(alphabet, max_size=5).map(str.encode) | st.binary(max_size=2), max_size=8).map(b"".join)
)
flags = st.fixed_dictionaries(
    {
        name: st.booleans()
        for name in (
            "add_space_prefix",
            "remove_extra_whitespaces",
            "treat_whitespace_as_suffix",
            "escape_whitespaces",
        )
    }
)
keys = st.sampled_from(["A", "\ufb01", "\u3000", "\t", "ab", "abc", "  ", "\u2581", "\ufffd", "\u4e00"]).map(str.encode)
keys = keys | st.binary(min_size=1, max_size=3).filter(lambda key: b"\0" not in key)
replacements = st.sampled_from([b"", b" ", b"a", b"fi", b"  _ ", b"\xff", b" \xe4\xb8\x80 "])
rules = st.dictionaries(keys, replacements, max_size=12)


OF_TABS = {
    text: (-float(k), NORMAL) for k, text in enumerate([SPACE, b"-", b"a", b"b", b"1", b"a\t", b"\t1\tb", b"\t"])
}
"""Tokens with a control that becomes a space."""


def make(make_vocab, tokens, charsmap=b"", unk_id=0, **settings):
    scores, attributes = [s for s, _ in tokens.values()], [a for _, a in tokens.values()]
    return make_vocab(
        "ugm", [b"<unk>", *tokens], [0.0, *scores], [UNKNOWN, *attributes], charsmap=charsmap, unk_id=unk_id, **settings
    )


@given(token_lists, rules, texts, flags, st.sampled_from([0, 0, -1, 1]))
@example({b"a": (-math.inf, NORMAL), b"b": (-1.0, NORMAL)}, {}, b"bab", {}, 0)
@example({b"a": (math.nan, NORMAL), b"b": (-1.0, NORMAL)}, {}, b"bab", {}, 0)
@example({b"a": (-50.0, UNUSED), b"b": (-1.0, NORMAL)}, {}, b"bab", {}, 0)
@example({b"ab c": (0.0, USER_DEFINED)}, {b"a": b"X"}, b"abX a", {}, 0)
@example({b"a": (-1.0, NORMAL)}, {}, b"xx\xff\xffax", {"remove_extra_whitespaces": True}, -1)
@example({SPACE: (-1.0, NORMAL)}, {}, b"   ", {"remove_extra_whitespaces": True}, 0)
@example(OF_TABS, {b"\t": b" "}, b"a\t-", {"remove_extra_whitespaces": True, "add_space_prefix": True}, 0)
def test_kernel_equals_reference(make_vocab, witnesses, tokens, rules, text, settings, unk_id):
    charsmap = build_charsmap(rules) if rules else b""
    kernel, reference = witnesses(make(make_vocab, tokens, charsmap, unk_id, **settings), text)
    assert kernel == reference


@given(
    rules.filter(bool), st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 31)), min_size=1, max_size=8), texts
)
def test_a_spoiled_charsmap_is_refused_or_fails_where_it_leads_astray(make_vocab, witnesses, rules, flips, text):
    charsmap = bytearray(build_charsmap(rules))
    for place, bit in flips:
        at = place % (len(charsmap) // 4) * 4
        charsmap[at + bit // 8] ^= 1 << bit % 8
    vocab = make(make_vocab, {b"a": (-1.0, NORMAL), SPACE: (-1.0, NORMAL)}, bytes(charsmap))
    try:
        ugm.compile_pipeline(vocab.pipeline)
    except MalformedVocab:
        return
    kernel, reference = witnesses(vocab, text)
    assert kernel == reference


@given(token_lists, rules, st.lists(texts | st.integers(0, 5), max_size=6))
@example({b"a": (-1.0, NORMAL)}, {b"A": b"a" * 500}, [b"AAAA", 3, b"A"])
def test_memory_is_asked_for_until_it_suffices(make_vocab, witnesses, starved, tokens, rules, fragments):
    vocab = make(make_vocab, tokens, build_charsmap(rules) if rules else b"", remove_extra_whitespaces=True)
    answers = [[f] if isinstance(f, int) else witnesses(vocab, f)[0] for f in fragments]
    ids, ends = starved(ugm, vocab, fragments)
    assert ids == [token for answer in answers for token in answer]
    assert ends == np.cumsum([len(answer) for answer in answers]).tolist()


def test_the_unknown_score_is_a_float32_below_the_lowest_number():
    assert unknown_score(np.array([-1.5, np.nan, -3.0], np.float32)) == -13.0
    assert unknown_score(np.array([], np.float32)) == np.finfo(np.float32).max
    assert unknown_score(np.array([-16777216.0], np.float32)) == float(np.float32(-16777226.0))
    assert unknown_score(np.array([-np.inf], np.float32)) == -math.inf


def test_a_path_is_seen_wherever_it_stands_in_a_block(make_vocab, witnesses):
    tokens = dict.fromkeys((SPACE, b"<", b"a", b"b", b"c", b">", b"x"), (-1.0, NORMAL))
    tokens[b"<a b>"] = (0.0, USER_DEFINED)
    vocab = make(make_vocab, tokens, build_charsmap({b"b": b"c"}), -1, escape_whitespaces=True)
    assert ugm.compile_pipeline(vocab.pipeline).cut_limit > 0
    for count in range(140) if JIT else range(54, 68):
        kernel, reference = witnesses(vocab, b"x" * count + b"<a b x")  # b is copied there, not mapped
        assert kernel == reference, count


@pytest.mark.parametrize("user", [b"\t\tx", b"<\tx", b"\tx", b"x\t"])
@pytest.mark.parametrize("merge", [False, True])
def test_a_control_that_becomes_a_space_is_none_in_a_user_defined_text(make_vocab, witnesses, user, merge):
    tokens = {SPACE: (-1.0, NORMAL), b"a": (-1.0, NORMAL), b"<": (-1.0, NORMAL), user: (0.0, USER_DEFINED)}
    charsmap = build_charsmap({b"\t": b" "})
    vocab = make(make_vocab, tokens, charsmap, 0, escape_whitespaces=True, remove_extra_whitespaces=merge)
    for text in (b"a\n\ta", b"<\t\n", b"<\t\n\ta", b"a\n\t", b"\t\n", b"x\n\tx \t<\t a", b"\ta\t\ta \t"):
        kernel, reference = witnesses(vocab, text)
        assert kernel == reference, text


def test_spaces_in_front_of_the_first_word_belong_to_its_span(make_vocab, witnesses):
    tokens = dict.fromkeys((SPACE, SPACE + b"b", SPACE * 4, b"a", b"b", b"ab"), (-1.0, NORMAL))
    vocab = make(make_vocab, tokens, add_space_prefix=True, escape_whitespaces=True)
    for count in (0, 1, 2, 3, 4, 5, 62, 63, 64, 65, 300, 5000 if JIT else 500):
        for words in (b"", b"b", b"ab b ", b"\tb", "\u00e9 a".encode(), b"\xffa"):
            kernel, reference = witnesses(vocab, b" " * count + words)
            assert kernel == reference, (count, words)
    arrays = ugm.compile_pipeline(vocab.pipeline)
    work, report = ugm.make_work(arrays, 64), np.zeros(4, np.int64)
    data, one = frozen(np.frombuffer(b"     b ab" + bytes(PAD), np.uint8), np.uint8), frozen([9], np.int64)
    room, ends, prefixed = np.zeros(99, np.int32), np.zeros(1, np.int64), frozen([TEXT_PREFIXED], np.int32)
    ugm.encode_fragments(arrays, work, data, frozen([0], np.int64), one, prefixed, 0, 1, 0, room, ends, report)
    assert work.spans.cache.state[MISSES] == 2  # not encoded as a whole


@pytest.fixture
def piece(monkeypatch):
    """Bytes that a long text is done in at once; fewer where the kernels are interpreted."""
    if not JIT:
        monkeypatch.setattr(ugm_kernel, "CHUNK_BYTES", 256)
        monkeypatch.setattr(lattice, "SUMS_KEPT", 100)
    return ugm_kernel.CHUNK_BYTES


LONG_WORDS = (b"a", b"b", b"ab", b"ba", b"aab", b"abba", b"c" * 7, b"aaaaa", b"d" * 40, "\u00e9\u00e9".encode(), SPACE)


@pytest.mark.parametrize("letters", ["a", "abc", "ad\u00e9", "xa", "x"])
def test_a_long_span_is_the_path_through_the_whole(make_vocab, witnesses, piece, letters):
    """Letters that nothing cuts, more of them than are looked at at once."""
    tokens = {word: (-1.0 - 0.25 * k, NORMAL) for k, word in enumerate(LONG_WORDS)}
    arrays = ugm.compile_pipeline((vocab := make(make_vocab, tokens, escape_whitespaces=True)).pipeline)
    assert arrays.cut_limit > 12 * piece
    random = np.random.default_rng(1)
    text = "".join(random.choice([*letters], piece + piece // 3).tolist()).encode()
    kernel, reference = witnesses(vocab, text)
    assert kernel == reference
    uncut = Encoder(vocab, arrays._replace(cut_limit=-1))
    assert uncut.one(text, uncut.bare_rule()).tolist() == reference


@pytest.mark.parametrize("limit", [1 << 40, -1], ids=["spans", "whole"])
def test_a_text_that_grows_is_done_in_pieces_where_every_place_is_inside_of_a_token(
    make_vocab, witnesses, piece, limit
):
    tokens = {
        word: (-1.0 - 0.1 * k * k, NORMAL) for k, word in enumerate((b"1", b"2", b"/", b"21", b"1/", b"/2", SPACE))
    }
    vocab = make(make_vocab, tokens, build_charsmap({b"h": b"1/2" * 4}), escape_whitespaces=True)
    text = b"h" * (piece // 11)
    encoder = Encoder(vocab, ugm.compile_pipeline(vocab.pipeline))
    encoder.arrays = encoder.arrays._replace(cut_limit=min(limit, encoder.arrays.cut_limit))
    assert encoder.one(text, encoder.bare_rule()).tolist() == witnesses(vocab, text)[1]
    text = text[:1024]
    work, report = ugm.make_work(encoder.arrays, len(text)), np.zeros(4, np.int64)
    work.sums[:], work.text[:] = np.nan, 255  # what was there before means nothing
    data, one = frozen(np.frombuffer(text + bytes(PAD), np.uint8), np.uint8), frozen([len(text)], np.int64)
    room, ends, tokens = (
        np.zeros(20 * len(text) + 9999, np.int32),
        np.zeros(1, np.int64),
        frozen([TEXT_PREFIXED], np.int32),
    )
    done = ugm.encode_fragments(
        encoder.arrays, work, data, frozen([0], np.int64), one, tokens, 0, 1, 0, room, ends, report
    )
    assert done > 0, report
    assert room[:done].tolist() == witnesses(vocab, text)[1]  # 12 times its size, in capacity for twice


@pytest.mark.skipif(JIT, reason="the compiled kernels look at more text at once than is drawn")
@given(token_lists, rules, flags, st.lists(texts, min_size=3, max_size=12).map(b"".join))
def test_pieces_of_any_text_have_the_path_of_the_whole(make_vocab, witnesses, tokens, charsmap, settings, text):
    vocab = make(make_vocab, tokens, build_charsmap(charsmap) if charsmap else b"", **settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ugm_kernel, "CHUNK_BYTES", 24)
        patch.setattr(lattice, "SUMS_KEPT", 16)
        kernel, reference = witnesses(vocab, text)
    assert kernel == reference


LENGTH = 50_000 if JIT else 2_000


@pytest.mark.parametrize(
    "text", [b"a" * LENGTH, b"\xff" * LENGTH, b" " * LENGTH, b"b c " * (LENGTH // 2), b" " * LENGTH + b"b"]
)
def test_long_texts_take_linear_time(make_vocab, text):
    tokens = {b"a" * n: (-float(n), NORMAL) for n in range(1, 20)}
    encoder = Encoder(make(make_vocab, {**tokens, SPACE: (-1.0, NORMAL), b"b": (-1.0, NORMAL)}))
    assert encoder.one(text, encoder.bare_rule()).size > 0
