"""Normalizers: kernels that rewrite the bytes of fragments before they are split, as a vocabulary requires.

The one idea to know: most text does not change, so each kernel first skips what is already normalized, 64 bytes at a
time.
"""
