"""NFC: a quick check, then the fragments that change."""
