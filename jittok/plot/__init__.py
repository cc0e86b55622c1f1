"""Plots of vocabularies and of texts under them. Needs matplotlib: pip install '.[notebook]' in a checkout.

`measure` computes the numbers. Each plot takes the axes to draw on, or makes some, and returns them:

    token_lengths(tok)      how long tokens are, in bytes
    scores(tok)             scores, or merge ranks, over ids
    scripts(tok)            tokens by script
    occupancy(tok)          how full the compiled tables are
    double_array(tok)       the slots of a trie, in use or free
    probes(tok)             how far look-ups in the hash tables go
    compression(table)      bytes per token, by language and vocabulary

`STYLE` holds the matplotlib settings of these figures, which are readable on light and on dark pages.
"""

from jittok.plot.drawing import STYLE, compression, double_array, occupancy, probes, scores, scripts, token_lengths
from jittok.plot.measure import Table, bytes_per_token, script_counts, tables

__all__ = [
    "STYLE",
    "Table",
    "bytes_per_token",
    "compression",
    "double_array",
    "occupancy",
    "probes",
    "scores",
    "script_counts",
    "scripts",
    "tables",
    "token_lengths",
]
