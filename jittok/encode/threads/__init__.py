"""Many texts, or one long one, on several threads."""
