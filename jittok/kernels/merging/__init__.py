"""Merging symbols pair by pair, lowest rank first: one word, several words at once, long words left to right."""
