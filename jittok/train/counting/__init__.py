"""Distinct words of documents and how often each occurs: all that learning needs of a corpus."""
