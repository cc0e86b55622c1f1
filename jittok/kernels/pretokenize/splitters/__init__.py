"""The general splitter, which runs every pre type, and fast splitters for the common families."""

GENERAL, GPT2, LLAMA3, LINES, MARKED = range(5)
"""Which splitter a vocabulary has. MARKED: words are already split, with a bitmap of their starts (`word_bitmap`); no
pre type has it."""
