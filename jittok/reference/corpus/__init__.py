"""Corpora: what a line of a document holds, and which sequences a reader gives."""
