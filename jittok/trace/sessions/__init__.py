"""Records the steps on the text between two special tokens: one file per vocabulary type, as in `jittok.reference`."""
