"""A tokenizer file beside its own library, on the same texts: `jittok try`.

`libraries` reads a file with the library that its model's authors used, `texts` has texts on which tokenizers often
differ, `prove` compares and times.
"""

from jittok.compat.proof.prove import Difference, Proof, prove

__all__ = ["Difference", "Proof", "prove"]
