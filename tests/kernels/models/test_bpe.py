"""BPE: the kernels are the reference on drawn vocabularies and texts, in every session, with hardly any memory too."""

import functools

import numpy as np
import pytest
from amounts import amount
from hypothesis import example, given, settings
from hypothesis import strategies as st
from write_gguf import vocab_file

from jittok.common.unicode.tables import ENCODED_BYTE
from jittok.encode.encoder import Encoder
from jittok.errors import EncodingFailed
from jittok.kernels.jit import JIT
from jittok.kernels.models import bpe
from jittok.kernels.models.bpe.scratch import make_work
from jittok.reference.tokenize import tokenize
from jittok.vocab import read_vocab
from jittok.vocab.keys import pre_names

ALPHABET = b"abc '1\n\xc3\xa9"
LETTERS = [ENCODED_BYTE[b] for b in ALPHABET]
HEX = [b"<0x%02X>" % b for b in range(256)]
ONE_NAME_EACH = {entry["pre_type"]: name for name, entry in sorted(pre_names().items())}.values()
BROKEN = [b"\xff", b"\xc3", b"\xe4\xb8", b"\xc0\x80", b"\xed\xa0\x80", b"\xf0\x80\x80\x80", b"\x80"]

words = st.lists(st.sampled_from(LETTERS), min_size=1, max_size=3).map(b"".join)
lines = st.lists(
    st.tuples(words, words).map(b" ".join) | st.sampled_from([b"", b" ", b"a", b"a ", b"  a", b"a b c"]), max_size=20
)
texts = st.lists(
    st.sampled_from([*(bytes([b]) for b in ALPHABET), "é".encode(), "\u3000".encode(), b"'ll", b"   ", *BROKEN]),
    max_size=40,
).map(b"".join) | st.binary(max_size=30)


def both(vocab, text):
    """(ids of the kernel, ids of the reference); where they fail, the offset."""
    encoder = Encoder(vocab)
    try:
        kernel = encoder.one(text, encoder.bare_rule()).tolist()
    except EncodingFailed as error:
        kernel = ("fails", error.offset)
    try:
        reference = tokenize(vocab, text)
    except EncodingFailed as error:
        reference = ("fails", error.offset)
    return kernel, reference


@settings(max_examples=settings().max_examples // 3)  # each compiles a vocabulary
@given(st.data(), st.sampled_from(sorted(ONE_NAME_EACH)), lines, st.lists(texts, min_size=1, max_size=4))
def test_drawn_vocabularies_encode_as_the_reference_does(data, pre, merges, documents):
    raw = pre in ("gemma4", "granite-embed-multi-311m", "sarvam-moe", "whitespace", "mmbert")
    base = [c.encode() for c in "abc'1\né▁"] + HEX if raw else ENCODED_BYTE
    missing = set(data.draw(st.lists(st.sampled_from(base), max_size=4)))  # bytes without a token
    joined = [line.replace(b" ", b"", 1) for line in merges if b" " in line]
    unnamed = set(data.draw(st.lists(st.sampled_from(joined), max_size=3))) if joined else set()
    tokens = dict.fromkeys(
        [*(t for t in base if t not in missing), *(t for t in joined if t and t not in unnamed), b"ab", b"\n\n"]
    )
    vocab = read_vocab(vocab_file("gpt2", list(tokens), pre=pre, merges=merges))
    for text in documents:
        kernel, reference = both(vocab, text)
        assert kernel == reference


@pytest.fixture(scope="module")
def small():
    """A vocabulary of each session, by model and pre."""
    made = {}

    def make(model, pre, release="b11739"):
        if (model, pre, release) not in made:
            raw = pre in ("gemma4", "sarvam-moe", "whitespace", "mmbert")
            tokens = [
                *([*HEX, b"a", b"b", "▁".encode(), b"\n", "é".encode()] if raw else ENCODED_BYTE),
                b"ab",
                "▁a".encode(),
                b"abab",
            ]
            tokens += [
                b"<dna>",
                b"</dna>",
                b"<oov>",
                "ACGTAC\ue000".encode(),
                b"ACGTAC",
                b"the",
                "\u0120the".encode(),
                b"\n\n",
            ]
            merges = [b"a b", b"ab ab", "▁ a".encode(), b"\n \n", "\u0120 t".encode()]
            file = vocab_file(model, list(dict.fromkeys(tokens)), pre=pre, merges=merges)
            made[model, pre, release] = read_vocab(file, llama_cpp=release)
        return made[model, pre, release]

    return make


@pytest.fixture(scope="module")
def encoder_of(small):
    """An Encoder of each session, compiled once."""
    return functools.cache(lambda *session: Encoder(small(*session)))


SESSIONS = [("gpt2", "gpt-2"), ("gpt2", "llama-bpe"), ("gpt2", "kimi-k2"), ("gpt2", "sarvam-moe"), ("gemma4", "gemma4"),
            ("hybriddna", "gpt-2"), ("whitespace", "whitespace"), ("gpt2", "whitespace"), ("whitespace", "gemma4"),
            ("hybriddna", "sarvam-moe")]  # fmt: skip
PARTS = [
    b"a",
    b"ab",
    b" a",
    b"  ",
    b"\n\n",
    b"<dna>ACGTACACG</dna>",
    b"<dna>",
    b"</dna>",
    b"acgtac",
    b"\xc3\xa9",
    b"the The",
    b"\t",
    b"\xe3\x80\x80",
    *BROKEN,
]


RELEASE = st.sampled_from(["0.3.36", "b11739"])
NEW = [("gpt2", "mmbert"), ("gpt2", "k2-horizon"), ("whitespace", "mmbert")]
"""Only b11739 knows these."""


@given(st.sampled_from(SESSIONS + NEW), st.lists(st.sampled_from(PARTS), max_size=12).map(b"".join), RELEASE)
@example(("gpt2", "whitespace"), b"a  b", "0.3.36")
@example(("gpt2", "llama-bpe"), b"\xff>the", "b11739")
@example(("gpt2", "whitespace"), b"\xff  ", "b11739")
@example(("hybriddna", "gpt-2"), b"x<dna>ACGTACN</dna>y<dna>AC", "b11739")
@example(("gemma4", "gemma4"), b"a\xc0\xa0b", "0.3.36")
@example(("gpt2", "mmbert"), b"\xff\n\xff\n\xff\n\xff", "b11739")
@example(("whitespace", "mmbert"), b" a  b\t \n", "b11739")
@example(("whitespace", "gemma4"), b" a\xc0\xa0 \xff a\tb", "0.3.36")
@example(("hybriddna", "sarvam-moe"), b"a <dna>AC G T  </dna> <dna> acg  a", "b11739")
@example(("gpt2", "mmbert"), "\n\n a  \u2581\u2581a\nab".encode(), "b11739")
def test_every_session_encodes_as_the_reference_does(small, session, text, release):
    kernel, reference = both(small(*session, "b11739" if session in NEW else release), text)
    assert kernel == reference


@pytest.mark.parametrize("session", SESSIONS, ids="-".join)
@pytest.mark.parametrize("beyond", [b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf7\xbf\xbf\xbf"])
@pytest.mark.parametrize("before", ["é".encode() * 40, b"", b"ab", b"\xff\xff"][: amount(4, 4, 1)])
def test_code_points_beyond_unicode_fail_at_their_offset(encoder_of, session, beyond, before):
    encoder = encoder_of(*session, "0.3.36")
    with pytest.raises(EncodingFailed, match=r"expected no code point above U\+10FFFF") as caught:
        encoder.one(before + beyond + b"ab", encoder.bare_rule())
    assert caught.value.offset == len(before)


@pytest.mark.parametrize("session", SESSIONS + NEW, ids="-".join)
@pytest.mark.parametrize(
    "wrong", [b"\xf4\x90\x80\x80", b"\xc0\xa0", b"\xf7\xbf\xbf\xbf", b"\xe0\x9f\xbf"][: amount(4, 4, 2)]
)
def test_each_byte_of_what_is_not_the_shortest_form_is_replaced(encoder_of, session, wrong):
    encoder = encoder_of(*session)
    rule = encoder.bare_rule()
    replaced = b"ab" + "\ufffd".encode() * len(wrong) + b"ab"
    assert encoder.one(b"ab" + wrong + b"ab", rule).tolist() == encoder.one(replaced, rule).tolist()


def test_long_pieces_are_encoded_as_the_reference_encodes_them(small):
    size = amount(9000, 3000, 50)
    for text in (b"ab" * size, b"a" * size, b" " * size, b"\xff" * size, b"a \n" * size):
        for session in (("gpt2", "gpt-2"), ("gpt2", "llama-bpe"), ("gemma4", "gemma4")):
            kernel, reference = both(small(*session), text[:size])
            assert kernel == reference


@pytest.mark.parametrize("session", SESSIONS, ids="-".join)
def test_little_memory_and_room_are_asked_for_and_change_nothing(small, starved, session):
    vocab = small(*session)
    size = 3000 if JIT else 100
    fragments = [b"ab", 7, b"a" * size, b"", b"\xff" * 100, 3, b"ab ab\n\n" * 50, "é".encode() * size]
    expected, ends = [], []
    for fragment in fragments:
        expected += [fragment] if isinstance(fragment, int) else tokenize(vocab, fragment)
        ends.append(len(expected))
    assert starved(bpe, vocab, fragments) == (expected, ends)


def encode_with(arrays, work, text):
    """Ids by one call with plenty of room."""
    data = np.frombuffer(text, np.uint8)
    start, stop, tokens = (
        np.array([value], dtype) for value, dtype in ((0, np.int64), (len(text), np.int64), (-1, np.int32))
    )
    for array in (start, stop, tokens):
        array.flags.writeable = False
    ids, ends, report = np.zeros(6 * len(text) + 100, np.int32), np.zeros(1, np.int64), np.zeros(4, np.int64)
    count = bpe.encode_fragments(arrays, work, data, start, stop, tokens, 0, 1, 0, ids, ends, report)
    assert count >= 0
    return ids[:count].tolist()


@settings(max_examples=settings().max_examples if JIT else 2)
@given(st.lists(texts, max_size=6).map(b" ".join), st.sampled_from([64, 100, 256]))
def test_small_chunks_and_a_tiny_cache_change_no_id(small, text, chunk):
    for session in (("gpt2", "gpt-2"), ("gpt2", "llama-bpe")):
        vocab = small(*session)
        arrays = Encoder(vocab).arrays
        work = make_work(arrays, 4096, 1 << 10, chunk)
        for document in (text, text * 5, text) if JIT else (text, text):
            assert encode_with(arrays, work, document) == tokenize(vocab, document)
