"""What every package may import: the form of a tokenizer, rows of ids, display, tables of characters, locks."""
