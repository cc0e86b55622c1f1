"""Cut texts and rows of ids: what `jittok.chunks` must find.

>>> import jittok
>>> from jittok.reference.chunks.texts import Cuts
>>> Cuts(jittok.bundled("gpt-2").count).pieces("The compatibility of tokenizers", 2)
[(0, 17), (17, 26), (26, 31)]
"""
