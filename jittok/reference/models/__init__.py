"""One file per model: what llama.cpp makes of one pre-token, and what the library of another file makes of it.

>>> from jittok.reference.models import rwkv
>>> rwkv.unescape(rb"\\x41")
b'A'
"""
