"""A vocabulary as data: what the file says, checked, before anything is compiled."""

from jittok.vocab.bundled import bundled_names, bundled_vocab
from jittok.vocab.load import read_vocab
from jittok.vocab.vocab import NO_TOKEN, SPACE, Vocab

__all__ = ["NO_TOKEN", "SPACE", "Vocab", "bundled_names", "bundled_vocab", "read_vocab"]
