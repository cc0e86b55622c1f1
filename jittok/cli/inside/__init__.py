"""Commands that show a tokenizer from inside."""
