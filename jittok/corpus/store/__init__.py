"""Stores: where files of a corpus lie, a local folder or a bucket, with one interface.

A name in a store is a path with "/" between its components, each checked (`disk.is_component`), so that no name leads
out of it. An object appears under its name whole or not at all.
"""

from jittok.corpus.store.base import Store, Stored
from jittok.corpus.store.lease import Lease, claim
from jittok.corpus.store.opening import is_far, open_store

__all__ = ["Lease", "Store", "Stored", "claim", "is_far", "open_store"]
