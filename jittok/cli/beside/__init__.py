"""Commands that put a tokenizer beside others."""
