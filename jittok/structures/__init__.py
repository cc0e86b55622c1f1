"""Compiled structures, builder and lookup side by side: they know bytes and ids, no tokenizer."""
