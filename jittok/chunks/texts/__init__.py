"""Texts cut to tokens: pieces that have at most so many ids each. `search` finds where pieces end."""
