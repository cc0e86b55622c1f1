"""Commands over texts and tokens."""
