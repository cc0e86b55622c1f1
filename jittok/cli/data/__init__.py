"""Commands that make training data and check it."""
