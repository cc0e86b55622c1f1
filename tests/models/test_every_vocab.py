"""Safe cuts and the cache change no id: every vocabulary at hand, cut and uncut, on texts made to trip them."""

import importlib
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import jittok
from jittok.batch import MODELS, Encoder
from jittok.structures.cuts import no_cuts

CUT_TYPES = ("spm", "wpm", "ugm")
FOLDER = os.environ.get("JITTOK_VOCABS")
NAMES = ["mistral", *sorted(path.stem for path in Path(FOLDER).glob("*.gguf"))] if FOLDER else ["mistral"]
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
    return jittok.bundled(name) if name == "mistral" else jittok.load(Path(FOLDER, f"{name}.gguf"))


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
    model = importlib.import_module(MODELS[vocab.type])
    arrays = model.compile_vocab(vocab)
    cut, uncut = Encoder(vocab, arrays), Encoder(vocab, arrays._replace(rules=no_cuts()))
    for seed in range(2):
        several = [*texts(vocab, 400, seed)]
        rows = [encoder.batch(several, encoder.rule(False, False, True), 1, False) for encoder in (cut, cut, uncut)]
        for text, *found in zip(several, *rows, strict=True):
            assert found[0].tolist() == found[1].tolist() == found[2].tolist(), text
