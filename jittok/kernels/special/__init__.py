"""Special tokens: tables of their texts, the search for them, documents cut around them."""
