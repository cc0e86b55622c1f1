"""Plain data in, markup out. Imports nothing of the package, so that anything may show itself."""
