"""Shards: ids are written to disk range by range, recorded in the ledger, listed in the manifest, and read back."""
