"""New words that are deferred, merged together and put back where they stood, among pieces that were known."""

import numpy as np
import pytest
from amounts import amount
from write_gguf import vocab_file

from jittok.common.unicode.tables import ENCODED_BYTE
from jittok.encode.encoder import Encoder
from jittok.kernels.jit import JIT
from jittok.kernels.merging.lanes import LANES
from jittok.kernels.merging.left_to_right import LONG_WORD_SYMBOLS, READY
from jittok.reference.tokenize import tokenize
from jittok.vocab import read_vocab

LETTERS = "abcd"
WORDS = amount(800, 400, 40)


@pytest.fixture(scope="module", params=["gpt-2", "llama-bpe", "deepseek-llm"])
def vocab(request):
    """Some pairs and pairs of pairs are tokens; b"d" and b"ab" + b"cd" are none, so their symbols fall back."""
    merges = [b"a b", b"b a", b"c d", b"ab a", b"ab cd", "Ġ a".encode(), "Ġa b".encode(), "Ġ Ġ".encode()]
    tokens = [t for t in ENCODED_BYTE if t != b"d"] + [m.replace(b" ", b"") for m in merges if m != b"ab cd"]
    return read_vocab(vocab_file("gpt2", tokens, pre=request.param, merges=merges))


@pytest.fixture(scope="module", params=["gemma4", "sarvam-moe"])
def lines_vocab(request):
    """Merges of characters: "é" is no symbol, "漢字" and "aab" are symbols but no tokens, nor are <0xE6> and "d"; "bb"
    is a special token, so that there are runs of short fragments."""
    raw = [b"<0x%02X>" % byte for byte in range(256) if byte != 0xE6]
    merges = ["a b", "b a", "c d", "ab a", "a ab", "▁ a", "▁ ▁", "漢 字"]
    joined = [merge.replace(" ", "", 1).encode() for merge in merges if merge not in ("a ab", "漢 字")]
    tokens = [*raw, b" ", *(c.encode() for c in "abc\n漢字.▁"), *joined, b"bb"]  # b" " is in no text, as lines are read
    types = [6] * len(raw) + [1] * (len(tokens) - len(raw) - 1) + [4]
    return read_vocab(vocab_file("gpt2", tokens, pre=request.param, merges=merges, token_type=types))


def drawn_text(random, words, letters=LETTERS):
    """Words of up to 35 letters; a new one is often met again within the next few."""
    parts, recent = [], ["a"]
    for _ in range(words):
        if random.random() < 0.4:
            word = recent[random.integers(len(recent))]
        else:
            word = "".join(random.choice(list(letters), random.integers(1, 20 if random.random() < 0.7 else 36)))
            recent = [*recent[-5:], word]
        parts.append(word + "".join(random.choice(list("  \n."), random.integers(1, 3))))
    return "".join(parts).encode()


def agrees(encoder, vocab, text):
    """Whether the ids are the reference's, with a cache that knows nothing of the text, and with one that does."""
    expected = tokenize(vocab, text)
    rule = encoder.rule(add_special=False, parse_special=False, replace=False)
    return all(encoder.one(text, rule).tolist() == expected for _ in range(2))


@pytest.mark.parametrize("cache_bytes", [1 << 10, 1 << 14, 1 << 22])
def test_words_that_are_merged_together_stand_where_they_stood(vocab, cache_bytes):
    encoder, random = Encoder(vocab, cache_bytes=cache_bytes), np.random.default_rng(cache_bytes)
    for words in (1, 2, LANES - 1, LANES, LANES + 1, 3 * LANES, WORDS):
        assert agrees(encoder, vocab, drawn_text(random, words))


@pytest.mark.parametrize("cache_bytes", [1 << 10, 1 << 22])
@pytest.mark.parametrize("letters", ["abcd", "ab漢字é", "a漢字 "])
def test_words_of_lines_and_of_runs_do_too(lines_vocab, cache_bytes, letters):
    encoder, random = Encoder(lines_vocab, cache_bytes=cache_bytes), np.random.default_rng(cache_bytes)
    for words in (1, LANES, LANES + 1, WORDS // 3):
        assert agrees(encoder, lines_vocab, drawn_text(random, words, letters))


@pytest.mark.skipif(not JIT, reason="the reference takes long for such words")
@pytest.mark.parametrize("length", [LONG_WORD_SYMBOLS // 2 + 1, 2 * LONG_WORD_SYMBOLS])
def test_a_word_that_the_kernel_gives_up_at_leaves_nothing_aside(vocab, length):
    """Too long for the memory at hand, then long enough to make the chain for: with words before that wait."""
    random = np.random.default_rng(length)
    few, word = drawn_text(random, LANES // 2), b"ab" * length  # no place in it is cut
    for text in (few + b" " + word + b" " + few, few + b" " + word, word + b" " + few + b" " + word):
        encoder = Encoder(vocab)
        assert agrees(encoder, vocab, text)
        assert encoder.arrays.chain.state == READY  # it did give up


def test_words_stand_where_they_stood_in_every_document(vocab):
    encoder, random = Encoder(vocab, cache_bytes=1 << 12), np.random.default_rng(7)
    for _ in range(amount(8, 4, 1)):
        for words in random.integers(0, 60, 12):
            assert agrees(encoder, vocab, drawn_text(random, int(words)))
