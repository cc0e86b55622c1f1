"""Large Unigram files: tokens that are searched for from many places in turns are those that a walk from each finds."""

import random

import numpy as np
import pytest
from drawn_unigram import drawn_model, drawn_unigram, drawn_words

import jittok
from jittok.common.pipeline.pipeline import packed
from jittok.kernels.jit import JIT, U8, OutI32, frozen, kernel
from jittok.kernels.memory import window
from jittok.kernels.models.ugm import lattice
from jittok.kernels.models.ugm.lattice import AT, BUFFER_SIZE, DEPTH, MASK, NODE, OFFSETS, TOKENS, find_tokens
from jittok.kernels.structures.double_array import (
    BASE,
    FREE,
    PARENT,
    ROOT,
    UNIT,
    VALUE,
    DoubleArray,
    build_double_array,
)

KINDS = {"tokenizer.json": drawn_unigram, "model": drawn_model}
UNUSED = (0, FREE, -1, 0)


@kernel
def found_tokens(trie: DoubleArray, text: U8, begin: int, until: int, size: int, found: OutI32) -> int:
    """As `find_tokens`."""
    return find_tokens(window(trie.units), window(text), window(found), begin, until, size)


def walked(units, text, p):
    """(tokens by their length, the node after DEPTH bytes or None) of a walk from p."""
    node, tokens = ROOT, {}
    for length in range(1, DEPTH + 1):
        place = units[UNIT * node + BASE] ^ text[p + length - 1]
        if units[UNIT * place + PARENT] != node:
            return tokens, None
        node = place
        if units[UNIT * node + VALUE] >= 0:
            tokens[length] = units[UNIT * node + VALUE]
    return tokens, node


@pytest.mark.parametrize("seed", range(20 if JIT else 4))
def test_walks_in_turns_find_what_each_finds_alone(seed):
    draw = random.Random(seed)
    keys = {"".join(draw.choices("abé ", k=draw.choice([1, 2, 3, 8, 20]))).encode() for _ in range(60)}
    keys |= {b"a" * length for length in (DEPTH - 1, DEPTH, DEPTH + 1)}
    trie = build_double_array(*packed(sorted(keys)), np.arange(len(keys), dtype=np.int32))
    raw = ("".join(draw.choices("abé ", k=40)) + "a" * 40).encode()
    size, units = len(raw), trie.units.tolist()
    text, found = frozen(np.frombuffer(raw + b"a" * DEPTH, np.uint8), np.uint8), np.empty(BUFFER_SIZE, np.int32)
    p = 0
    while p < size:
        count = found_tokens(trie, text, p, size, size, found)
        assert 0 < count <= OFFSETS
        for k in range(count):
            assert found[AT + k] == p
            tokens, node = walked(units, text.tolist(), p)
            bits = int(found[MASK + k])
            assert bits == sum(1 << (length - 1) for length in tokens) | (node is not None) << DEPTH
            assert {at: found[TOKENS + 2 * (DEPTH * k + at - 1)] for at in tokens} == tokens
            assert node is None or found[NODE + k] == node
            p += 1 if raw[p] < 0x80 else 2


@pytest.mark.parametrize("seed", range(4 if JIT else 1))
@pytest.mark.parametrize("kind", KINDS)
def test_a_large_trie_changes_no_id(kind, seed):
    draw = random.Random(seed)
    content = KINDS[kind](draw)
    tok, large = (jittok.load(content, cache=False) for _ in range(2))
    arrays = large._encoder.arrays
    more = np.tile(np.array(UNUSED, np.int32), lattice.OUT_OF_CACHE // UNIT)
    trie = DoubleArray(frozen(np.append(arrays.trie.units, more), np.int32))
    large._encoder.arrays = arrays._replace(trie=trie)
    texts = [drawn_words(draw) for _ in range(200 if JIT else 6)]
    if JIT:
        texts += ["".join(drawn_words(draw) for _ in range(400)), " ".join("ab" * 900 for _ in range(20)), "☃" * 9000]
    assert trie.units.size > lattice.OUT_OF_CACHE
    assert large.encode_batch(texts, threads=1).to_list() == tok.encode_batch(texts, threads=1).to_list()
