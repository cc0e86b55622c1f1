"""A long word is merged by stretches: any stretch, however short, gives the ids of the whole word."""

import numpy as np
import pytest
from amounts import amount
from write_gguf import vocab_file

from jittok.common.unicode.tables import ENCODED_BYTE
from jittok.kernels.jit import JIT, U8, OutI32, frozen, kernel
from jittok.kernels.memory import window
from jittok.kernels.merging.left_to_right import MergerWork, make_merger_work, open_merger
from jittok.kernels.models import bpe
from jittok.kernels.models.bpe.arrays import BpeArrays
from jittok.kernels.models.bpe.words.word import CHUNK_BYTES, OVERLAP_SYMBOLS, merge_stretches, merge_word, open_words
from jittok.vocab import read_vocab

LETTERS = [ENCODED_BYTE[b] for b in b"ab\xff"]
VOCABULARIES, TEXTS = amount((16, 8), (8, 8), (2, 2))


@kernel
def whole(model: BpeArrays, work: MergerWork, text: U8, ids: OutI32) -> int:
    merger = open_merger(work, model.pairs, model.chain)
    return merge_word(open_words(model), merger, window(text), 0, text.size, window(ids), 0)


@kernel
def by_stretches(model: BpeArrays, work: MergerWork, text: U8, ids: OutI32, size: int, again: int) -> int:
    merger, words, to = open_merger(work, model.pairs, model.chain), open_words(model), window(ids)
    return merge_stretches(words, merger, window(text), 0, text.size, to, 0, size, again)


def arrays_of(random):
    """Merges of what was merged before, so that long tokens reach far to the left and to the right."""
    symbols, merges = list(LETTERS), dict[bytes, bytes]()
    for _ in range(random.integers(3, 30)):
        left, right = (symbols[random.integers(len(symbols))] for _ in range(2))
        if len(left + right) < 24 and left + b" " + right not in merges:
            merges[left + b" " + right] = left + right
            symbols.append(left + right)
    tokens = dict.fromkeys([*ENCODED_BYTE, *merges.values()])
    vocab = read_vocab(vocab_file("gpt2", list(tokens), pre="gpt-2", merges=list(merges)))
    return bpe.with_chain(bpe.compile_pipeline(vocab.pipeline))


def test_stretches_give_the_ids_of_the_whole_word():
    random, others = np.random.default_rng(11), 0
    for _ in range(VOCABULARIES):
        model, work = arrays_of(random), make_merger_work(400)
        for _ in range(TEXTS):
            parts = [bytes(random.choice(list(b"ab\xff"), random.integers(1, 9))) for _ in range(4)]
            raw = b"".join(parts[random.integers(4)] * int(random.integers(1, 20)) for _ in range(9))[:300] + b"ab"
            text, expected, found = frozen(np.frombuffer(raw, np.uint8), np.uint8), *np.zeros((2, 800), np.int32)
            count = whole(model, work, text, expected)
            for size, again in ((1, 1), (7, 1), (40, 2), (100, 5)):
                assert by_stretches(model, work, text, found, size, again) == count
                assert found[:count].tolist() == expected[:count].tolist()
                others += 1
    assert others == 4 * VOCABULARIES * TEXTS


@pytest.mark.skipif(not JIT, reason="a word of a hundred kilobytes")
def test_a_long_word_is_merged_by_stretches():
    random = np.random.default_rng(3)
    model, size = arrays_of(random), CHUNK_BYTES + 10 * OVERLAP_SYMBOLS
    text = frozen(random.choice(np.frombuffer(b"ab", np.uint8), size), np.uint8)
    expected, found = np.zeros((2, size), np.int32)
    count = by_stretches(model, make_merger_work(size), text, expected, size, OVERLAP_SYMBOLS)
    # capacity for a stretch and no more: `whole` would write past it
    assert whole(model, make_merger_work(CHUNK_BYTES), text, found) == count
    assert found.tolist() == expected.tolist()
