"""Compilation of vocabularies to arrays, and the kernels that run over them."""
