"""Bytes to bytes as a vocabulary wants them, before any token is searched for."""
