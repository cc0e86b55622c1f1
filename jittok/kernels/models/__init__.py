"""The vocabulary types, one module or package each, as `Model` describes them.

What is known of a type without its kernels is in `jittok.vocab.types`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from jittok.common.pipeline import Pipeline


class Model(Protocol):
    """The module that holds a type's arrays and kernels.

    It may also define `regrow`, `can_split_at_spaces`, `optimized_layout`, `with_chain` and `ODD_TEXT` (see
    `jittok.encode.encoder`), and `pieces(vocab)` (see `VocabType.prints`).
    """

    IDS_PER_BYTE: int

    def compile_pipeline(self, pipeline: Pipeline) -> Any:
        """Read-only flat arrays that depend on the pipeline's steps and model only."""

    def make_work(self, arrays: Any, longest: int) -> Any:
        """Scratch for fragments of up to `longest` bytes."""

    def encode_fragments(self, *args: Any) -> int:
        """The kernel (see `jittok.kernels.fragments`)."""
