"""What users hold: a `Tokenizer` checks its arguments, calls one room and returns."""

from jittok.tokenizer.tokenizer import IN_MEMORY, Again, Tokenizer

__all__ = ["IN_MEMORY", "Again", "Tokenizer"]
