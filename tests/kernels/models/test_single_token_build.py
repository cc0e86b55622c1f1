"""Seeds told from how merging makes symbols are those that encoding each token's text finds."""

import random

import pytest
from write_gguf import vocab_file

import jittok
from jittok.common.unicode.tables import ENCODED_BYTE
from jittok.kernels.jit import JIT
from jittok.kernels.models.bpe import compile as compile_module
from jittok.kernels.models.bpe.words.single_token_build import build_single_token_words
from jittok.vocab import read_vocab

LETTERS, A_LINE = "ab", ENCODED_BYTE[ord("\n")].decode()


def seeds_of(seeds):
    """{key: token}"""
    rows = seeds.slots.reshape(-1, 4).tolist()
    return {(low, high): token for low, high, token, _ in rows if high}


def drawn_vocab(seed, pre):
    """Tokens of which some are reached by no merging, and some symbols are no tokens."""
    draw = random.Random(seed)
    texts, merges = [*LETTERS, A_LINE], []
    for _ in range(40):
        a, b = draw.choice(texts), draw.choice(texts)
        if len(a + b) < 18:
            texts.append(a + b)
            merges.append(f"{a} {b}".encode())
    draw.shuffle(merges)
    tokens = [*dict.fromkeys(text.encode() for text in texts if len(text) > 1 and draw.random() < 0.9)]
    return vocab_file("gpt2", [*ENCODED_BYTE, *tokens], pre=pre, merges=merges[: draw.randrange(50)])


@pytest.mark.parametrize("pre", ["gpt-2", "llama-bpe"])
@pytest.mark.parametrize("seed", range(12 if JIT else 1))
def test_they_are_those_that_encode_to_themselves(monkeypatch, pre, seed):
    known = []
    monkeypatch.setattr(
        compile_module, "build_single_token_words", lambda arrays, made: known.append(made) or arrays.seeds
    )
    arrays = compile_module.compile_pipeline(read_vocab(drawn_vocab(seed, pre)).pipeline)
    assert known[0] is not None
    found = seeds_of(build_single_token_words(arrays, known[0]))
    assert found == seeds_of(build_single_token_words(arrays, None))
    assert len(found) >= 256


def test_no_kernel_of_words_is_asked_for_where_merges_tell(monkeypatch):
    monkeypatch.setattr("jittok.kernels.models.bpe.words.single_token_build.insert_encoded", None)
    assert jittok.load(drawn_vocab(0, "gpt-2"), cache=False).encode("ab").size
