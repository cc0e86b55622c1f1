"""SPM (GGUF "llama", sentencepiece's BPE): adjacent symbols are merged by the score of the token that they make.

`compile` builds the arrays, `kernel` encodes span by span, and `whole` encodes fragments that cannot be cut.
"""

from typing import TYPE_CHECKING, Any

from jittok.models.spm.arrays import Arrays, Work, make_work, regrow
from jittok.models.spm.kernel import encode_fragments

if TYPE_CHECKING:
    from jittok.models.spm.compile import compile_pipeline, may_part, with_chain

IDS_PER_BYTE = 1

__all__ = [
    "IDS_PER_BYTE",
    "Arrays",
    "Work",
    "compile_pipeline",
    "encode_fragments",
    "make_work",
    "may_part",
    "regrow",
    "with_chain",
]


def __getattr__(name: str) -> Any:
    """Import the compiling modules on first use: a vocabulary loaded from the cache never needs them."""
    if name in ("compile_pipeline", "may_part", "with_chain"):
        from jittok.models.spm import compile as compiler

        return getattr(compiler, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
