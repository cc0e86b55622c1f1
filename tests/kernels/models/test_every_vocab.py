"""Safe cuts and the cache change no id: every vocabulary at hand, cut and uncut, on texts made to trip them."""

import importlib
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import jittok
from jittok.encode.encoder import Encoder
from jittok.encode.threads.batch import encode_batch
from jittok.errors import EncodingFailed
from jittok.kernels.jit import JIT
from jittok.kernels.merging.left_to_right import BUILD_ON_DEMAND, IMPOSSIBLE, READY, UNORDERED
from jittok.kernels.merging.left_to_right import ROW as CHAIN_ROW
from jittok.kernels.models import bpe
from jittok.kernels.models.bpe.words.merge_boundary_tables import all_joined
from jittok.kernels.pretokenize.splitters import GENERAL
from jittok.kernels.safe_cuts.rules import no_cuts
from jittok.vocab.types import type_of

pytestmark = pytest.mark.skipif(not JIT, reason="compiling a whole vocabulary takes half a minute without the compiler")

CUT_TYPES = ("spm", "wpm", "ugm")
FOLDER = os.environ.get("JITTOK_VOCABS")
BUNDLED = ("gpt-2", "mistral")
NAMES = [*BUNDLED, *sorted({path.stem for path in Path(FOLDER).glob("*.gguf")} - {*BUNDLED})] if FOLDER else BUNDLED
GLUE = [
    " ",
    "  ",
    "\n",
    "\t",
    "\r\n",
    "\u2581",
    " \u2581",
    "1",
    "23",
    ".",
    ", ",
    "(",
    "</",
    ">",
    "> ",
    "\u3000",
    "\x1b[",
]
ODD = [
    "\u00e9",
    "e\u0301",
    "\u4e00\u4e8c",
    "\uac00",
    "\u0e01\u0e33",
    "\U0001f600",
    "\ufb01",
    "\u00ad",
    "\x00",
    "\x7f",
    "\u200b",
]


@cache
def tokenizer(name):
    return jittok.bundled(name) if name in BUNDLED else jittok.load(Path(FOLDER, f"{name}.gguf"))


def texts(vocab, count, seed):
    """Tokens, words and glue in random order; some texts are spoiled."""
    random = np.random.default_rng(seed)
    for k in range(count):
        parts = []
        for _ in range(int(random.integers(1, 40))):
            kind = random.integers(0, 8)
            if kind < 4:
                token = int(random.integers(0, len(vocab)))
                text = vocab.token_bytes[vocab.token_offsets[token] : vocab.token_offsets[token + 1]].tobytes()
                parts.append(text.replace("\u2581".encode(), b" ") if random.integers(0, 8) else text)
            elif kind < 6:
                parts.append(GLUE[int(random.integers(0, len(GLUE)))].encode())
            elif kind == 6:
                parts.append(ODD[int(random.integers(0, len(ODD)))].encode() * int(random.integers(1, 20)))
            else:
                parts.append(bytes(random.integers(32, 127, int(random.integers(1, 30)), np.uint8)))
        text = b"".join(parts)
        if k % 8 == 0 and text:
            at = int(random.integers(0, len(text)))
            text = text[:at] + bytes(random.integers(0, 256, 1 + k % 3, np.uint8)) + text[at + 1 :]
        yield text


@pytest.mark.parametrize("name", NAMES)
def test_cut_and_uncut_give_the_same_ids(name):
    vocab = tokenizer(name)._encoder.vocab
    if vocab.type not in CUT_TYPES:
        pytest.skip("is encoded without cuts")
    model = importlib.import_module(type_of(vocab).module)
    arrays = model.compile_pipeline(vocab.pipeline)
    cut, uncut = Encoder(vocab, arrays), Encoder(vocab, arrays._replace(rules=no_cuts()))
    for seed in range(2):
        several = [*texts(vocab, 400, seed)]
        rows = [encode_batch(each, several, each.rule(False, False, True), 1, False) for each in (cut, cut, uncut)]
        for text, *found in zip(several, *rows, strict=True):
            assert found[0].tolist() == found[1].tolist() == found[2].tolist(), text


def long_words(vocab, unordered, count, seed):
    """Words of up to 6000 bytes: letters, digits, ideographs and bytes at random, one token or two again and again."""
    random = np.random.default_rng(seed)

    def token():
        k = int(
            random.choice(unordered) if unordered.size and random.integers(0, 4) == 0 else random.integers(len(vocab))
        )
        text = vocab.token_bytes[vocab.token_offsets[k] : vocab.token_offsets[k + 1]].tobytes()
        return text.replace("\u0120".encode(), b" ").replace("\u2581".encode(), b" ")

    for k in range(count):
        size = int(random.choice([50, 300, 2000, 6000]))
        yield [
            lambda size: bytes(random.integers(97, 123, size, np.uint8)),
            lambda size: bytes(random.choice(random.integers(33, 127, 3, np.uint8), size)),
            lambda size: "".join(map(chr, random.integers(0x3040, 0x5000, size // 3))).encode(),
            lambda size: bytes(random.integers(0, 256, size, np.uint8)),
            lambda size: token() * size,
            lambda size: (token() + token()) * size,
            lambda size: b"".join(token() for _ in range(size // 5)).replace(b" ", b""),
        ][k % 7](size)[:size]


def answer(encoder, text):
    """Ids, or why there are none."""
    try:
        return encoder.one(text, encoder.rule(False, False, True)).tolist()
    except jittok.EncodingFailed as error:
        return str(error)


@pytest.mark.parametrize("name", NAMES if FOLDER else ["gpt-2", "mistral"])
def test_long_words_from_the_left_and_by_rank_give_the_same_ids(name):
    vocab = (jittok.bundled("gpt-2") if name == "gpt-2" and not FOLDER else tokenizer(name))._encoder.vocab
    if vocab.type not in ("spm", "bpe"):
        pytest.skip("does not merge")
    by_rank, from_left = (Encoder(vocab, cache_bytes=1 << 14) for _ in range(2))
    by_rank.arrays = by_rank.arrays._replace(chain=by_rank.arrays.chain._replace(state=IMPOSSIBLE))
    from_left.arrays = from_left.model.with_chain(from_left.arrays)
    assert from_left.arrays.chain.state == READY
    unordered = np.flatnonzero(from_left.arrays.chain.rows[UNORDERED::CHAIN_ROW][: len(vocab)])
    for text in long_words(vocab, unordered, 70, 1):
        assert answer(from_left, text) == answer(by_rank, text), text


@pytest.mark.parametrize("name", ["gpt-2", "mistral"])
def test_the_first_long_word_makes_the_chain(name):
    encoder = Encoder(jittok.bundled(name)._encoder.vocab)
    rule, text = encoder.bare_rule(), b"xyzzy" * 900
    assert encoder.one(text[:2000], rule).size
    assert encoder.arrays.chain.state == BUILD_ON_DEMAND
    ids = encoder.one(text, rule).tolist()
    assert encoder.arrays.chain.state == READY
    assert ids == encoder.one(text, rule).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_general_bpe_cut_where_no_merge_joins_gives_the_same_ids(name):
    vocab = tokenizer(name)._encoder.vocab
    if vocab.type != "bpe":
        pytest.skip("merges nothing")
    arrays = bpe.compile_pipeline(vocab.pipeline)
    general = arrays._replace(family=GENERAL)
    joined = all_joined(not arrays.byte_encode)
    encoders = [Encoder(vocab, each) for each in (arrays, general, general._replace(joints=joined))]
    several = [text for text in texts(vocab, 400, 5) if can_be_encoded(encoders[0], text)]
    assert len(several) > 100
    rows = [encode_batch(each, several, each.rule(False, False, True), 1, False) for each in encoders]
    for text, *found in zip(several, *rows, strict=True):
        assert found[0].tolist() == found[1].tolist() == found[2].tolist(), text


def can_be_encoded(encoder, text):
    """Whether llama.cpp does not die of it."""
    try:
        encoder.one(text, encoder.rule(False, False, True))
    except EncodingFailed:
        return False
    return True
