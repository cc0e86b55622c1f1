"""How one pre-token becomes ids: found as a whole, merged alone or in a batch with others; and where it may be cut."""
