"""The class `Tokenizer`: it checks arguments and delegates to one package per method."""

from jittok.tokenizer.tokenizer import ReloadRecipe, Tokenizer

__all__ = ["ReloadRecipe", "Tokenizer"]
