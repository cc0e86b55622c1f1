"""Corpora: what a line of a document holds, and which sequences a reader gives.

>>> from jittok.reference.corpus import json_lines, sequences
>>> json_lines.plain_fields(b'{"id": 7, "text": "ab"}', [[b"text"], [b"id"]])
[b'ab', b'7']
>>> sequences.split([5, 2, 4], 4)
[[(0, 0, 4)], [(0, 4, 1), (1, 0, 2), (2, 0, 1)]]
"""
