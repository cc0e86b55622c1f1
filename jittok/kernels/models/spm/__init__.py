"""SPM (GGUF "llama", sentencepiece's BPE): adjacent symbols are merged by the score of the token that they make.

`compile` builds the arrays, `files` those of other files, and `kernel` encodes span by span.
"""

from typing import TYPE_CHECKING, Any

from jittok.kernels.models.spm.kernel import SpmArrays, SpmWork, encode_fragments, make_work, regrow

if TYPE_CHECKING:
    from jittok.kernels.models.spm.compile import can_split_at_spaces, compile_pipeline, with_chain

IDS_PER_BYTE = 1

__all__ = [
    "IDS_PER_BYTE",
    "SpmArrays",
    "SpmWork",
    "can_split_at_spaces",
    "compile_pipeline",
    "encode_fragments",
    "make_work",
    "regrow",
    "with_chain",
]


def __getattr__(name: str) -> Any:
    """Import the compiling modules on first use: a vocabulary loaded from the cache never needs them."""
    if name in ("compile_pipeline", "can_split_at_spaces", "with_chain"):
        from jittok.kernels.models.spm import compile as compiler

        return getattr(compiler, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
