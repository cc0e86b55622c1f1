"""Writers of vocabulary files in every format, for training and conversion.

Plain values in, a file out; GGUF by the `gguf` package, sentencepiece models by sentencepiece's own message. What the
values mean is the caller's matter: see `jittok.train.export` and `jittok.convert`.
"""
