"""The vocabularies in data/vocabs: each is read once, and its tables are built once, whichever files of tests ask."""

import functools
import lzma
from pathlib import Path

import jittok
from jittok.tokenizer import Tokenizer
from jittok.vocab import Vocab, read_vocab

VOCABS = Path(__file__).parents[1] / "data" / "vocabs"
MADE_UP = sorted(path.name.removesuffix(".gguf.xz") for path in VOCABS.glob("*.gguf.xz"))


@functools.cache
def made_up_tokenizer(name: str) -> Tokenizer:
    """Of a name in MADE_UP, as `load` makes it."""
    return jittok.load(lzma.decompress((VOCABS / f"{name}.gguf.xz").read_bytes()), cache=False)


@functools.cache
def made_up_vocab(name: str) -> Vocab:
    """Of a name in MADE_UP, read alone: nothing is compiled."""
    return read_vocab(lzma.decompress((VOCABS / f"{name}.gguf.xz").read_bytes()))
