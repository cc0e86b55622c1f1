"""Tokenizers of any file as one frozen record of data, `Pipeline`: the steps from text to ids.

A reader (`jittok.files`) makes a Pipeline of a file; `jittok.reference.pipeline` runs it literally; kernels are chosen
from it and nothing else. The records hold no behaviour: `steps` has what is done to texts, `models` what is done to a
word, `patterns` what a regular expression of another engine means.
"""

from jittok.common.pipeline.pipeline import AddedToken, Pipeline

__all__ = ["AddedToken", "Pipeline"]
