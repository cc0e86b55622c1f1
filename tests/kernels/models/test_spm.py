"""SPM: the kernel gives the ids of the reference, for every vocabulary and every text, whole or span by span."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.encode.encoder import Encoder
from jittok.errors import EncodingFailed
from jittok.kernels.fragments import TEXT_PREFIXED
from jittok.kernels.jit import JIT, frozen
from jittok.kernels.models import spm
from jittok.kernels.safe_cuts.rules import no_cuts

SPACE = "\u2581".encode()
BYTES = [b"<0x%02X>" % byte for byte in range(256)]
alphabet = "abcAB01.,> \n\u2581\u00e9\u0438\u4e00\u4e01\u0e01\U0001f600"
pieces = st.text("abA01.> \u2581\u00e9\u0438\u4e00\u4e01", min_size=1, max_size=4).map(str.encode) | st.sampled_from(
    [b"\xe2", b"\xe2\x96", b"\xff", SPACE, SPACE + SPACE, b"\xe4a ", b"> "]
)
score = st.sampled_from([-1.0, -2.0, -3.0, 0.0, 1.0, float("-inf")])
token_lists = st.dictionaries(pieces, score | st.floats(-20, 0, width=32), min_size=1, max_size=40)
texts = (
    st.text(alphabet, max_size=60).map(str.encode)
    | st.binary(max_size=40)
    | st.lists(st.text(alphabet, max_size=9).map(str.encode) | st.binary(max_size=2), max_size=8).map(b"".join)
)


def make(make_vocab, tokens, complete=True, **settings):
    tokens = {**dict.fromkeys(BYTES if complete else (), 0.0), **tokens}
    return make_vocab("spm", [*tokens], [*tokens.values()], **settings)


@given(token_lists, texts, st.booleans(), st.booleans())
@example({SPACE + SPACE: 0.0, SPACE + b"a": -1.0}, b"a  a \xe2\x96\x81 a", True, True)
@example({SPACE + SPACE: 0.0}, b"\xe2\x96\x81 " * 30, True, False)
@example({b">" + SPACE: 0.0, b"a>": -1.0}, b"a> a>  a >", True, True)
@example({SPACE + b"a": 0.0}, b"\xe2 a\xe2\x96 a\xe2\x96\x81 a", True, True)
@example({"\u4e00\u4e01".encode(): 0.0}, "\u4e00\u4e01\u4e00\u4e00\u4e01 \u4e01a\u4e00".encode() * 9, True, True)
def test_kernel_equals_reference(make_vocab, witnesses, tokens, text, complete, prefix):
    kernel, reference = witnesses(make(make_vocab, tokens, complete, add_space_prefix=prefix), text)
    assert kernel == reference


@given(token_lists, st.lists(texts | st.integers(0, 5), max_size=6), st.integers(1, 200))
def test_spans_give_the_ids_of_the_whole(make_vocab, tokens, fragments, chunk):
    """Many fragments through one cache and small chunks, against each fragment encoded as a whole."""
    vocab = make(make_vocab, tokens, add_space_prefix=True)
    arrays = spm.compile_pipeline(vocab.pipeline)
    data = b"".join(f for f in fragments if isinstance(f, bytes)) + bytes(100)
    lengths = [len(f) if isinstance(f, bytes) else 0 for f in fragments]
    ends = np.cumsum(lengths)
    tokens_of = [f if isinstance(f, int) else TEXT_PREFIXED for f in fragments]
    count = len(fragments)
    wholes = arrays._replace(rules=no_cuts())
    found = []
    for model, span in ((arrays, chunk), (wholes, 4096)):
        work = spm.make_work(model, 4096, 1 << 14, span)
        ids, fragment_ends = np.empty(20_000, np.int32), np.zeros(count, np.int64)
        arguments = (frozen(np.frombuffer(data, np.uint8), np.uint8), frozen(ends - lengths, np.int64),
                     frozen(ends, np.int64), frozen(tokens_of, np.int32), 0, count, 0)  # fmt: skip
        report = np.zeros(4, np.int64)
        for _ in range(2):  # the second time from the cache
            code = spm.encode_fragments(model, work, *arguments, ids, fragment_ends, report)
            found.append((code, ids[:code].tolist(), fragment_ends.tolist()))
    assert found == [found[0]] * 4


@given(token_lists, st.lists(texts | st.integers(0, 5), max_size=6))
def test_memory_is_asked_for_until_it_suffices(make_vocab, witnesses, starved, tokens, fragments):
    vocab = make(make_vocab, tokens)
    answers = [[f] if isinstance(f, int) else witnesses(vocab, f)[0] for f in fragments]
    ids, ends = starved(spm, vocab, fragments)
    assert ids == [token for answer in answers for token in answer]
    assert ends == np.cumsum([len(answer) for answer in answers]).tolist()


def test_a_span_with_an_unknown_byte_is_not_kept_for_callers_who_want_none(make_vocab):
    vocab = make_vocab("spm", [b"<unk>", b"a", SPACE], unk_id=0)
    encoder = Encoder(vocab)
    for _ in range(2):
        with pytest.raises(EncodingFailed):
            encoder.one(b"a b a", encoder.rule(False, False, False))
        assert encoder.one(b"a b a", encoder.rule(False, False, True)).tolist() == [1, 2, 0, 2, 1]


@pytest.mark.parametrize("text", [b"a", b" ", b"ab", b"\xe2\x96\x81", b"\xff", "\u4e00".encode(), b"a "])
def test_long_texts_are_encoded(make_vocab, text):
    tokens = {b"a" * n: -float(n) for n in (1, 2, 4, 8)} | {
        SPACE: -1.0,
        SPACE * 2: -0.5,
        b"b": -1.0,
        SPACE + b"a": -2.0,
    }
    encoder = Encoder(make(make_vocab, tokens))
    assert encoder.one(text * (30_000 if JIT else 1_500), encoder.bare_rule()).size > 0
