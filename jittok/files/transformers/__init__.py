"""Folders as transformers' AutoTokenizer reads them: the class it takes, special tokens, vocab.txt and vocab.json."""
