"""Merges that can never happen are left out, and nothing else: every list of symbols is merged as with all of them."""

import itertools
import json
import random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from write_gguf import vocab_file

import jittok
from jittok.common.unicode.tables import CHARACTER_OF_BYTE, ENCODED_BYTE
from jittok.files import read_pipeline
from jittok.kernels.jit import JIT, frozen
from jittok.kernels.merging.reachable import MergePairs, reachable_merges
from jittok.reference.pipeline import Runner
from jittok.reference.tokenize import tokenize
from jittok.vocab import read_vocab

BASES = 3
LETTERS = "abc"
LONGEST = 6 if JIT else 4


def kept_of(rules, symbols):
    """The rules that `reachable_merges` keeps. rules: {(left, right): (rank, merged)}"""
    rows = [(a, b, rank, merged) for (a, b), (rank, merged) in rules.items()]
    columns = zip(*rows, strict=True) if rows else [[]] * 4
    kept, table, _ = reachable_merges(
        MergePairs(*(frozen(list(column), np.int32) for column in columns)), np.arange(BASES, dtype=np.int32), symbols
    )
    assert np.count_nonzero(table.slots[::2]) == kept.left.size
    found = zip(*(column.tolist() for column in kept), strict=True)
    return {(a, b): (rank, merged) for a, b, rank, merged in found}


def merged(rules, symbols):
    """(the symbols that are left, the merges that happened), by the definition."""
    found, happened = list(symbols), []
    while True:
        ranked = [(rules[pair][0], k) for k, pair in enumerate(itertools.pairwise(found)) if pair in rules]
        if not ranked:
            return found, happened
        _, k = min(ranked)
        happened.append((found[k], found[k + 1]))
        found[k : k + 2] = [rules[found[k], found[k + 1]][1]]


@st.composite
def vocabularies(draw):
    """Merges whose symbols are texts, many of one symbol; ranks of their order, or some of them equal."""
    texts, rules, equal = [(k,) for k in range(BASES)], {}, draw(st.booleans())
    for order in range(draw(st.integers(0, 24))):
        a, b = draw(st.integers(0, len(texts) - 1)), draw(st.integers(0, len(texts) - 1))
        text = texts[a] + texts[b]
        if len(text) > LONGEST or (a, b) in rules:
            continue
        if text not in texts:
            texts.append(text)
        symbol = texts.index(text)
        rules[a, b] = (symbol if equal else order, symbol)
    return dict(draw(st.permutations(list(rules.items())))), texts


LATER_FIRST = {(0, 1): (5, 3), (3, 2): (1, 4), (1, 2): (3, 5), (0, 5): (2, 4)}
SPELLINGS = [(0,), (1,), (2,), (0, 1), (0, 1, 2), (1, 2)]


@settings(max_examples=settings().max_examples // 5)  # each merges a thousand lists by the definition
@given(vocabularies())
@example((LATER_FIRST, SPELLINGS))
def test_every_list_is_merged_as_with_all_merges_and_each_merge_that_stays_happens(vocabulary):
    rules, texts = vocabulary
    kept = kept_of(rules, len(texts))
    happened = set()
    for size in range(1, LONGEST + 1):
        for symbols in itertools.product(range(BASES), repeat=size):
            result, merges = merged(rules, symbols)
            assert merged(kept, symbols) == (result, merges)
            happened |= set(merges)
    assert happened == set(kept)


def test_of_two_pairs_that_make_a_symbol_the_one_that_comes_first_stays():
    rules = {(0, 1): (0, 3), (1, 2): (1, 5), (0, 5): (2, 4), (3, 2): (3, 4)}
    assert kept_of(rules, 6) == {(0, 1): (0, 3), (1, 2): (1, 5), (3, 2): (3, 4)}


def test_of_equal_pairs_the_first_one_stays():
    same = MergePairs(*(frozen(column, np.int32) for column in ([0, 0], [1, 1], [0, 1], [3, 3])))
    kept = reachable_merges(same, np.arange(BASES, dtype=np.int32), 4).pairs
    assert [column.tolist() for column in kept] == [[0], [1], [0], [3]]


def test_all_merges_stay_where_a_symbol_is_no_text_of_its_own():
    rules = {(0, 1): (0, 3), (1, 2): (1, 3), (3, 2): (2, 4), (0, 3): (3, 4)}
    assert kept_of(rules, 5) == rules


def drawn_merges(seed):
    """(tokens of more than one letter, merges), of which each token has several."""
    draw, texts, merges = random.Random(seed), list(LETTERS), []
    while len(texts) < 20:
        text = draw.choice(texts[:8]) + draw.choice(texts)
        if len(text) <= LONGEST and text not in texts:
            texts.append(text)
    for text in texts:
        merges += [(text[:k], text[k:]) for k in range(1, len(text)) if text[:k] in texts and text[k:] in texts]
    draw.shuffle(merges)
    return texts[len(LETTERS) :], merges


EVERY_TEXT = ["".join(text) for size in range(1, LONGEST + 1) for text in itertools.product(LETTERS, repeat=size)]
SEEDS = range(6 if JIT else 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_gguf_vocabulary_encodes_every_short_text_as_the_reference_does_with_all_merges(seed):
    tokens, merges = drawn_merges(seed)
    lines = [f"{a} {b}".encode() for a, b in merges]
    file = vocab_file("gpt2", [*ENCODED_BYTE, *(text.encode() for text in tokens)], pre="gpt-2", merges=lines)
    tok, vocab = jittok.load(file, cache=False), read_vocab(file)
    assert np.count_nonzero(tok.arrays.pairs.slots[::2]) <= len(tokens) < len(merges)
    wanted = [tokenize(vocab, text.encode()) for text in EVERY_TEXT]
    assert tok.encode_batch(EVERY_TEXT, threads=1).to_list() == wanted


@pytest.mark.parametrize("seed", SEEDS)
def test_a_gguf_vocabulary_of_scores_encodes_every_short_text_as_the_reference_does(seed):
    tokens, _ = drawn_merges(seed)
    draw = random.Random(seed)
    texts = [b"<unk>", *(b"<0x%02X>" % byte for byte in range(256)), *map(str.encode, [*LETTERS, "\u2581", *tokens])]
    scores = [float(-draw.randrange(8)) for _ in texts]
    file = vocab_file("llama", texts, scores=scores, token_type=[2, *[6] * 256, *[1] * (len(texts) - 257)])
    tok, vocab = jittok.load(file, cache=False), read_vocab(file)
    wanted = [tokenize(vocab, text.encode()) for text in EVERY_TEXT]
    assert tok.encode_batch(EVERY_TEXT, threads=1).to_list() == wanted


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tokenizer_json_encodes_every_short_text_as_the_reference_does_with_all_merges(seed):
    tokens, merges = drawn_merges(seed)
    vocab = {chr(c): byte for byte, c in enumerate(CHARACTER_OF_BYTE)} | {t: 256 + k for k, t in enumerate(tokens)}
    steps = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    model = {"type": "BPE", "vocab": vocab, "merges": [list(pair) for pair in merges]}
    content = json.dumps({"pre_tokenizer": steps, "model": model}).encode()
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    assert tok.runs == "kernels"
    assert np.count_nonzero(tok.arrays.pairs.slots[::2]) <= len(tokens) < len(merges)
    assert tok.encode_batch(EVERY_TEXT, threads=1).to_list() == [plain.encode(text) for text in EVERY_TEXT]
