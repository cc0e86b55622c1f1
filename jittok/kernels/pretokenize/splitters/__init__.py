"""The general splitter, which runs every pre type, and fast splitters for the common families."""
