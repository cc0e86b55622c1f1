"""What happens to the text between two special tokens: one file a vocabulary type, as in `jittok.reference`."""
