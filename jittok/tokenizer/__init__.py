"""What users hold: a `Tokenizer` checks its arguments, calls one room and returns."""

from jittok.tokenizer.tokenizer import Again, Tokenizer

__all__ = ["Again", "Tokenizer"]
