"""The worst texts for every vocabulary type: 4 MB each, beside the half of it and beside prose that was never seen.

Asserted before the clock: the ids of a small text are those of the plain reference, where long words go the way of
very long ones. Noted beside MB/s: time(4 MB) / time(2 MB) in CPU time, 2 where it is linear, and the speed as a part of
that on prose. JITTOK_VOCABS, a folder of GGUF files, adds the types that the package has no vocabulary of.
"""

import functools
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import jittok
from jittok.errors import EncodingFailed
from jittok.reference.tokenize import tokenize
from jittok.vocab.bundled import bundled_vocab

MB = 1 << 20
SMALL = 1 << 11
FOLDER = os.environ.get("JITTOK_VOCABS")
MORE = ["llama-bpe", "gemma-3", "rwkv-world", "syn-plamo2"] if FOLDER else []

_LETTERS, _DIGITS = b"abcdefghijklmnopqrstuvwxyz", b"0123456789"


def _again(unit: str | bytes) -> Callable[[int], bytes]:
    unit = unit.encode() if isinstance(unit, str) else unit
    return lambda size: unit * (size // len(unit))


def _drawn(choices: bytes) -> Callable[[int], bytes]:
    return lambda size: bytes(random.Random(3).choices(choices, k=size))


TEXTS: dict[str, Callable[[int], bytes]] = {
    "one letter": _again("a"),
    "a pair": _again("ab"),
    "a pair of a word": _again("th"),
    "random letters": _drawn(_LETTERS),
    "spaces": _again(" "),
    "line ends": _again("\n"),
    "one digit": _again("7"),
    "random digits": _drawn(_DIGITS),
    "hyphens": _again("-"),
    "apostrophes": _again("'"),
    "U+2581": _again("\u2581"),
    "letters with marks": _again("a\u0301"),
    "marks": _again("\u0301"),
    "special tokens": _again("<|endoftext|></s>[SEP]"),
    "beginnings of special tokens": _again("<|endoftex"),
    "more beginnings": _again("<s<s<"),
    "two ideographs": _again("\u6f22\u5b57"),
    "random ideographs": lambda size: "".join(
        random.Random(3).choices([*map(chr, range(0x4E00, 0x8000))], k=size // 3)
    ).encode(),
    "an invalid byte": _again(b"\xff"),
    "random bytes": _drawn(bytes(range(256))),
    "zeros": _again(b"\0"),
}
"""Name -> the text of about so many bytes."""


@functools.cache
def vocab_of(name):
    return jittok.read_vocab(Path(FOLDER, f"{name}.gguf")) if name in MORE else bundled_vocab(name)


@functools.cache
def tokenizer(name):
    tok = jittok.load(Path(FOLDER, f"{name}.gguf")) if name in MORE else jittok.bundled(name)
    tok.encode(b"x" * 5000, errors="replace")  # what long words need
    return tok


@functools.cache
def prose_rate(name, corpus):
    """MB/s of documents that are new to a new tokenizer."""
    documents = corpus("english")
    seconds = []
    for _ in range(3):
        tok = jittok.load(Path(FOLDER, f"{name}.gguf")) if name in MORE else jittok.bundled(name)
        tok.encode("The first text.")
        start = time.process_time()
        tok.encode_batch(documents, threads=1)
        seconds.append(time.process_time() - start)
    return sum(map(len, documents)) / sorted(seconds)[1] / 1e6


def reference(name, text):
    try:
        return tokenize(vocab_of(name), text, parse_special=True)
    except EncodingFailed:
        return None


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", ["gpt-2", "mistral", "bert", "t5", *MORE])
def test_worst_text(benchmark, rate, corpus, name, text):
    tok, small, half, whole = tokenizer(name), TEXTS[text](SMALL), TEXTS[text](2 * MB), TEXTS[text](4 * MB)
    expected = reference(name, small)
    if expected is None:
        pytest.skip("cannot be encoded")
    assert tok.encode(small, parse_special=True).tolist() == list(expected)
    encode = functools.partial(tok.encode, parse_special=True)

    def seconds(data):
        start = time.process_time()
        encode(data)
        return time.process_time() - start

    encode(whole)  # the memory of a text of this size is touched
    halves, wholes = zip(*((seconds(half), seconds(whole)) for _ in range(3)), strict=True)
    benchmark.pedantic(encode, (whole,), rounds=2)
    rate(len(whole))
    benchmark.extra_info["4 MB / 2 MB"] = round(min(wholes) / min(halves), 2)
    benchmark.extra_info["of prose"] = round(len(whole) / min(wholes) / 1e6 / prose_rate(name, corpus), 2)
