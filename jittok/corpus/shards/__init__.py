"""Shards: ids are written to disk range by range, listed in the manifest, and read back."""
