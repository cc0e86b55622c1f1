"""Merging symbols pair by pair, lowest rank first: one word, several at once, long words from the left."""
