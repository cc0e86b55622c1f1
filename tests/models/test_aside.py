"""New words that are set aside, merged together and put back where they stood, among pieces that were known."""

import numpy as np
import pytest
from write_gguf import vocab_file

from jittok._jit import JIT
from jittok.encoder import Encoder
from jittok.reference.tokenize import tokenize
from jittok.structures.merge_lanes import LANES
from jittok.unicode.tables import ENCODED_BYTE
from jittok.vocab import read_vocab

LETTERS = b"abcd"
WORDS = 3000 if JIT else 150


@pytest.fixture(scope="module", params=["gpt-2", "llama-bpe", "deepseek-llm"])
def vocab(request):
    """Some pairs and pairs of pairs are tokens; b"d" and b"ab" + b"cd" are none, so their symbols fall back."""
    merges = [b"a b", b"b a", b"c d", b"ab a", b"ab cd", "Ġ a".encode(), "Ġa b".encode(), "Ġ Ġ".encode()]
    tokens = [t for t in ENCODED_BYTE if t != b"d"] + [m.replace(b" ", b"") for m in merges if m != b"ab cd"]
    return read_vocab(vocab_file("gpt2", tokens, pre=request.param, merges=merges))


def drawn_text(random, words):
    """Words of up to 18 letters; a new one is often met again within the next few."""
    parts, recent = [], [b"a"]
    for _ in range(words):
        if random.random() < 0.4:
            word = recent[random.integers(len(recent))]
        else:
            word = bytes(random.choice(list(LETTERS), random.integers(1, 19)).tolist())
            recent = [*recent[-5:], word]
        parts.append(word + bytes(random.choice(list(b"  \n."), random.integers(1, 3)).tolist()))
    return b"".join(parts)


@pytest.mark.parametrize("cache_bytes", [1 << 10, 1 << 14, 1 << 22])
def test_words_that_are_merged_together_stand_where_they_stood(vocab, cache_bytes):
    encoder, random = Encoder(vocab, cache_bytes=cache_bytes), np.random.default_rng(cache_bytes)
    for words in (1, 2, LANES - 1, LANES, LANES + 1, 3 * LANES, WORDS):
        text = drawn_text(random, words)
        expected = tokenize(vocab, text)
        for _ in range(2):  # with a cache that knows nothing of it, and everything
            assert encoder.one(text, encoder.bare_rule()).tolist() == expected


def test_words_stand_where_they_stood_in_every_document(vocab):
    encoder, random = Encoder(vocab, cache_bytes=1 << 12), np.random.default_rng(7)
    for _ in range(20 if JIT else 2):
        texts = [drawn_text(random, int(words)) for words in random.integers(0, 60, 12)]
        for text in texts:
            assert encoder.one(text, encoder.bare_rule()).tolist() == tokenize(vocab, text)
