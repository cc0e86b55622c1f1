"""Pre-tokenizers: the patterns as defined, the state machines compiled from them, and the kernels that run those.

The one idea to know: a pattern becomes a table over character classes, so splitting is one pass without backtracking.
The common patterns have faster splitters that compute 64 bytes at a time (`splitters`).
"""
