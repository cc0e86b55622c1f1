"""Inputs: names become a list of sources, and a source is opened, decompressed, and checked before it is read."""
