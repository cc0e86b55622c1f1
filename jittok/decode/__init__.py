"""Ids to text: the piece of each id, rows of ids joined and cleaned, ids one at a time."""
