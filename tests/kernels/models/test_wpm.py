"""WordPiece: the kernel gives the ids of the reference, for every vocabulary and every text."""

import random
import unicodedata

import numpy as np
import pytest
from amounts import amount
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.encode.encoder import Encoder
from jittok.kernels.jit import JIT
from jittok.kernels.models import wpm
from jittok.kernels.models.wpm import alphabet as alphabet_
from jittok.kernels.models.wpm.compile import IMAGE

SPACE = "\u2581".encode()
alphabet = "abcABC!$. \t\u2581\u00e9\u00c5\u0301\u0130\u1e9e\u4e00\uac00\u0958\u200b\x00\ufffd\u2028"
alphabet += "\u023a\u2b82\U0002b830\U0001f600"
pieces = st.text("abc!\u00e9\u2581\u4e00\u1100\u2c65i", min_size=1, max_size=4).map(str.encode) | st.just(SPACE)
odd_pieces = pieces | st.sampled_from([b"\xe2", b"\xe2\x96", b"\xff"])  # such a vocabulary is left to the reference


def lists_of(drawn):
    return st.lists(drawn.flatmap(lambda t: st.sampled_from([t, SPACE + t])), min_size=1, max_size=30, unique=True)


token_lists = lists_of(pieces)
texts = (
    st.text(alphabet, max_size=40).map(str.encode)
    | st.binary(max_size=30)
    | st.lists(st.text(alphabet, max_size=6).map(str.encode) | st.binary(max_size=3), max_size=8).map(b"".join)
)


@given(token_lists | lists_of(odd_pieces), texts, st.booleans(), st.booleans(), st.sampled_from([-1, 0]))
@example([SPACE, b"x"], b"x x!", True, True, 0)
@example([b"a"], b"a", True, True, 0)
@example([b"\xe2", b"\x96", b"\x81", b"a"], b"a", True, True, -1)
@example([SPACE + b"a"], b"a\xf4\x90\x80\x80", True, True, 0)
@example([SPACE + b"ab"], b"a\x00\xffb", False, False, 0)
@example([SPACE + "\u2c65".encode()], "\u023a".encode(), True, False, 0)
def test_kernel_equals_reference(make_vocab, witnesses, tokens, text, lowercase, strip_accents, unk_id):
    vocab = make_vocab("wpm", tokens, lowercase=lowercase, strip_accents=strip_accents, unk_id=unk_id)
    kernel, reference = witnesses(vocab, text)
    assert kernel == reference


@given(token_lists, st.lists(texts | st.integers(0, 5), max_size=6))
def test_memory_is_asked_for_until_it_suffices(make_vocab, witnesses, starved, tokens, fragments):
    vocab = make_vocab("wpm", tokens, unk_id=0)
    answers = [[f] if isinstance(f, int) else witnesses(vocab, f)[0] for f in fragments]
    if "fails" not in answers:
        ids, ends = starved(wpm, vocab, fragments)
        assert ids == [token for answer in answers for token in answer]
        assert [len(answer) for answer in answers] == np.diff(ends, prepend=0).tolist()


def test_room_is_proved_by_a_table_where_ascii_stays_ascii():
    for lowercase in (False, True):
        for strip_accents in (False, True):
            _, entries = wpm.normal_table(lowercase, strip_accents)
            pages, _ = wpm.normal_table(lowercase, strip_accents)
            ascii_entries = entries[pages[0] * 256 :][:128]
            assert ((ascii_entries & IMAGE) < 128).all()


@pytest.mark.parametrize("count", [60, 64, 65, 400, *([alphabet_.MIDDLE_CODES, 30_000] if JIT else [])])
def test_characters_have_codes_of_one_byte_two_or_three(make_vocab, witnesses, count):
    letters = [chr(c) for c in range(0x100, 0x10000) if chr(c).isalpha() and chr(c).lower() == chr(c)]
    letters = [c for c in letters if unicodedata.normalize("NFD", c) == c][: count - 1]  # U+2581 is one, too
    assert len(letters) == count - 1
    draw = random.Random(count)
    shown = draw.sample(letters, 50)
    pairs = {a + b for a in shown[:10] for b in shown[5:15]}
    tokens = [text for word in sorted({*letters, *pairs}) for text in (word.encode(), SPACE + word.encode())]
    vocab = make_vocab("wpm", [b"[UNK]", *tokens], unk_id=0, lowercase=True, strip_accents=True)
    lengths = wpm.compile_pipeline(vocab.pipeline).alphabet.codes >> alphabet_.LENGTH_BIT & 3
    assert lengths.max() == (1 if count <= alphabet_.SHORT_CODES else 2 if count <= alphabet_.MIDDLE_CODES else 3)
    for _ in range(amount(25, 10, 4)):
        words = ["".join(draw.choices([*shown[:15], draw.choice(shown)], k=draw.randint(1, 9))) for _ in range(9)]
        kernel, reference = witnesses(vocab, " ".join([*words, "\u0416\U0001f600"]).encode())
        assert kernel == reference


@pytest.mark.parametrize(
    "odd",
    [b"\xc1\xa1", b"\xe0\x81\xa1", b"\xed\xa0\x80", b"\xe2\x96", b"\x96\x81a", b"\xf8\x88", b"a\xff", b"", b"a\0"],
)
def test_tokens_that_are_no_utf_8_match_as_bytes_do(make_vocab, witnesses, odd):
    vocab = make_vocab("wpm", [b"[UNK]", SPACE, SPACE + b"a", b"a", b"b", odd, SPACE + odd], unk_id=0)
    for text in (b"a", b"ab ba", odd, b"a" + odd, odd + b"b a", "\u2581a \u2595b".encode()):
        kernel, reference = witnesses(vocab, text)
        assert kernel == reference, text


def test_long_texts_take_linear_time(make_vocab):
    vocab = make_vocab("wpm", [b"[UNK]", SPACE, b"a", b"b", b"ab" * 20 + b"c", b"!", "\u4e00".encode()], unk_id=0)
    encoder = Encoder(vocab)
    count = 20_000 if JIT else 1_000
    for text, ids in ((b"ab", [2, 3]), (b"!", [1, 5]), ("\u4e00".encode(), [1, 6])):
        found = encoder.one(text * count, encoder.bare_rule())
        assert found.tolist() == ([1] if text == b"ab" else []) + ids * count
