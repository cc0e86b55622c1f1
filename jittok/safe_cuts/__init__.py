"""Where a text may be cut without changing one id: the rules of a vocabulary, and the search for such places."""
