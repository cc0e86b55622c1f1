"""What users hold: a `Tokenizer` checks its arguments, calls one room and returns."""

from jittok.tokenizer.tokenizer import ReloadRecipe, Tokenizer

__all__ = ["ReloadRecipe", "Tokenizer"]
