"""A vocabulary as data: what the file says, checked, before anything is compiled."""

from jittok.vocab.vocab import NO_TOKEN, SPACE, Vocab

__all__ = ["NO_TOKEN", "SPACE", "Vocab"]
