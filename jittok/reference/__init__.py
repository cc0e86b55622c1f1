"""What is right, in plain Python: one file a vocabulary type, in llama.cpp's order of steps.

No code is shared with the kernels. Read these files first. `tokenize` has the entries; every session gets a stretch of
text between special tokens and yields tokens with the bytes of the document that they stand for. Functions that take
`observe` call it after each step, which is what traces are made of.
"""
