"""BLAKE2b for what every start checks, without `hashlib`: that loads OpenSSL, which takes 3 ms.

Where much is hashed, `hashlib.sha256` is twice as fast on processors that have instructions for it.
"""

try:
    from _blake2 import blake2b  # where `hashlib` itself takes it from
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b"]
