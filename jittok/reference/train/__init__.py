"""Training, step by step, one file per learner. Each counts everything again in every round.

>>> from jittok.reference.train import bpe, spm, unigram
>>> spm.learn({"▁aab": 3}, 1, lambda text: True)
['aa']
"""
