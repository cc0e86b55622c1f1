"""Vocabularies as files of every kind: what training and conversion write.

Plain values in, a file out; GGUF by the `gguf` package, sentencepiece models by sentencepiece's own message. Whoever
calls knows what the values mean; see `jittok.train.export` and `jittok.convert`.
"""
