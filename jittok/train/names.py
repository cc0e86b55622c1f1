"""What a `pre` begins with that is no `tokenizer.ggml.pre`."""

REGEX = "regex:"
"""Begins a `pre` that is a pattern of one's own."""
FILE = "file:"
"""Begins a `pre` that is the `pre_tokenizer` of a tokenizer.json, as JSON."""
