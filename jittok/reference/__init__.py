"""The reference: plain Python that defines what kernels must return, with each library's steps in its order.

No code is shared with the kernels. Read these files first; each opens with an example. For a GGUF, `tokenize` has the
entry points: `steps` makes pre-tokens of the text between two special tokens, `models` has one file per type. For other
files, `pipeline` has them: `normalize`, `split`, `models`. Functions that take `observe` or `watch` call it after each
step: traces are recorded this way.

>>> import jittok
>>> from jittok.reference.tokenize import tokenize
>>> tokenize(jittok.bundled("gpt-2").vocab, b"Hello, world")
[15496, 11, 995]
"""
