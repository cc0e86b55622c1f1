"""Spaces inside words, on which llama.cpp dies: with errors="replace" each of their bytes is U+FFFD."""

import lzma
from pathlib import Path

import pytest
from pair_vocab import pair_vocab

import jittok
from jittok.errors import EncodingFailed
from jittok.kernels.jit import JIT
from jittok.kernels.pretokenize.spaces_in_words import spaces_in_words, without_spaces
from jittok.reference.tokenize import tokenize

VOCABS = Path(__file__).parents[2] / "data" / "vocabs"
BAD = "\ufffd".encode()
CASES = {
    "whitespace": [
        (b"  ", 2 * BAD),
        (b"a  b c", b"a" + 2 * BAD + b"b c"),
        (b"a \n", b"a" + BAD + b"\n"),
        (b"x\xc0\xa0 y z", b"x" + 3 * BAD + b"y z"),
        (b"x\xc0\xa0y", b"x\xc0\xa0y"),
        (b"a \xf4\x90\x80\x80  b", b"a " + 6 * BAD + b"b"),
    ],
    "syn-gemma4": [(b"a b  c", b"a b  c"), (b"a\xc0\xa0b\n", b"a" + 2 * BAD + b"b\n")],
    "syn-sarvam": [(b"a \xe0\x80\xa0b", b"a " + 3 * BAD + b"b")],
}


@pytest.fixture(scope="module")
def tok_of():
    def load(name):
        if name == "whitespace":
            return jittok.load(pair_vocab(name), cache=False, llama_cpp="0.3.36")
        return jittok.load(lzma.decompress((VOCABS / f"{name}.gguf.xz").read_bytes()), cache=False, llama_cpp="0.3.36")

    return load


@pytest.mark.skipif(not JIT, reason="the tables of a vocabulary take too long to build")
@pytest.mark.parametrize("name", CASES)
def test_spaces_inside_words_are_replaced_where_that_is_asked_for(tok_of, name):
    tok = tok_of(name)
    for text, mended in CASES[name]:
        ids = tokenize(tok.vocab, mended)
        if mended != text:
            with pytest.raises(EncodingFailed, match=r"space|code point"):
                tok.encode(text)
        assert tok.encode(text, errors="replace").tolist() == ids, text
        rows = tok.encode_batch([b"a b", text, b"a b"], errors="replace", threads=1)
        assert rows.to_list() == [tok.encode(b"a b").tolist(), ids, tok.encode(b"a b").tolist()]
        aligned = tok.align(text, errors="replace")
        assert aligned.ids.tolist() == ids
        starts, stops = aligned.spans.T.tolist() if ids else ([], [])
        assert starts == sorted(starts) and stops == sorted(stops)  # noqa: PT018
        assert all(0 <= i < j <= len(text) for i, j in zip(starts, stops, strict=True))
        assert tok.trace(text, errors="replace").ids.tolist() == ids


def test_only_the_spaces_of_longer_words_are_crowded(vocab_of):
    vocab = vocab_of([b"a", b" ", b"  "], type="bpe", pre="whitespace", pre_type=53, escape_whitespaces=False)
    assert spaces_in_words(vocab, b"a b  c \n d") == [(3, 4), (4, 5), (6, 7), (8, 9)]
    assert without_spaces(b"b  c", [(1, 2), (2, 3)]) == b"b" + 2 * BAD + b"c"
    assert without_spaces(b"bc", []) == b"bc"
    assert spaces_in_words(vocab, b"") == []
