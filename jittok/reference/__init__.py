"""The reference: plain Python that defines what kernels must return. One file per vocabulary type, with llama.cpp's
steps in llama.cpp's order.

No code is shared with the kernels. Read these files first. `tokenize` has the entry points; every session takes the
text between two special tokens and yields tokens with their spans in the document. Functions that take `observe` call
it after each step: traces are recorded this way.
"""
