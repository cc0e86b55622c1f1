"""Ranges: sources are cut into ranges, a range is read into documents, and documents are encoded to ids."""
