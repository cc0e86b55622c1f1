"""Cut texts and rows of ids: what `jittok.chunks` must find."""
