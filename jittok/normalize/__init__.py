"""Bytes to bytes as a vocabulary wants them, before any token is looked for."""
