"""Pieces of text that were encoded before, and the loops over the pieces of a text that use them."""
