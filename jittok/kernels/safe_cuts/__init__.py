"""Safe cuts: offsets where a text may be split without changing an id. `rules` computes a vocabulary's tables from its
tokens, and `cuts` holds them and the look-ups that kernels use.
"""
