"""Writers of vocabulary files in every format, for training and conversion.

Plain values in, a file out; GGUF by the `gguf` package, sentencepiece models by sentencepiece's own message. Whoever
calls knows what the values mean; see `jittok.train.export` and `jittok.convert`.
"""
