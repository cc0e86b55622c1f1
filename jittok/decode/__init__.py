"""Ids to text: the piece of each id, rows of ids joined and cleaned, a stream of ids."""
