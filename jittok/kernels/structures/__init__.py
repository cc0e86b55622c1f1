"""Compiled data structures, each with its builder and look-ups. They hold bytes and ids, independent of tokenizers."""
