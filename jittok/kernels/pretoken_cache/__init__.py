"""The pre-token cache (ids of pre-tokens that were encoded before), and the loops over the pre-tokens of a text."""
