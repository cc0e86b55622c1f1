"""RWKV: the kernel gives the ids of the reference, for every vocabulary and every text."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.kernels.jit import frozen
from jittok.kernels.models import rwkv
from jittok.kernels.models.rwkv import unescape_texts

escaped = st.lists(
    st.sampled_from(
        [b"a", b"b", b"c", b"\\n", b"\\t", b"\\r", b"\\\\", b"\\'", b"\\x61", b"\\xff", b"\\xAB", b"\\xzz", b"\xff"]
    )
    | st.binary(min_size=1, max_size=2),
    min_size=1,
    max_size=4,
).map(lambda parts: b"".join(parts).replace(b"\0", b"\\x00"))
token_lists = st.lists(escaped, min_size=1, max_size=25, unique=True)
every_byte = [b"\\x%02x" % byte for byte in range(256)]
texts = st.text("abc\n\t\\'", max_size=40).map(str.encode) | st.binary(max_size=30)


@given(token_lists, texts, st.booleans(), st.sampled_from([-1, 0]))
@example([b"ab"], b"aab", False, -1)
@example([b"a", b"\\x61"], b"a", False, -1)
@example([b"\\x00"], b"\0\0", False, 0)
@example([b"a\\", b"a\\x", b"a\\x1"], b"a", False, 0)
def test_kernel_equals_reference(make_vocab, witnesses, tokens, text, complete, unk_id):
    tokens = list(dict.fromkeys(tokens + (every_byte if complete else [])))
    kernel, reference = witnesses(make_vocab("rwkv", tokens, unk_id=unk_id), text)
    assert kernel == reference
    assert kernel != "fails" or not complete


@given(token_lists, st.lists(texts | st.integers(0, 5), max_size=6))
def test_memory_is_asked_for_until_it_suffices(make_vocab, witnesses, starved, tokens, fragments):
    vocab = make_vocab("rwkv", list(dict.fromkeys(tokens + every_byte)))
    answers = [[f] if isinstance(f, int) else witnesses(vocab, f)[0] for f in fragments]
    ids, ends = starved(rwkv, vocab, fragments)
    assert ids == [token for answer in answers for token in answer]
    assert ends == np.cumsum([len(answer) for answer in answers]).tolist()


def test_escapes_are_undone_as_llama_cpp_does():
    cases = {
        rb"\t\n\r": b"\t\n\r",
        rb"\\x41": rb"\x41",
        rb"\x41\'": b"A'",
        rb"\xAB": b"\x22",
        rb"\x4": b"",
        b"a\\": b"a",
    }
    cases |= {b"\\x\x850": b"\x50", b"\\x\x7f0": b"\x80"}
    data = frozen(np.frombuffer(b"".join(cases), np.uint8), np.uint8)
    offsets = frozen(np.cumsum([0, *map(len, cases)]), np.int64)
    out, ends = np.zeros(data.size, np.uint8), np.zeros(len(cases) + 1, np.int64)
    size = unescape_texts(data, offsets, out, ends)
    assert out[:size].tobytes() == b"".join(cases.values())
    assert np.diff(ends).tolist() == [len(text) for text in cases.values()]
