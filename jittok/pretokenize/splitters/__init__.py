"""One splitter that every pre type has, and fast ones for the common families."""
