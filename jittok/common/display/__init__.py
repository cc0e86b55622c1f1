"""Displays of tokens, traces and facts, as HTML and for terminals: plain data in, markup out. Imports nothing else of
the package, so that every package may use it."""
