"""Which encoder a Pipeline gets: kernels where they say the same, else the general path."""

from __future__ import annotations

from typing import Any

from jittok.compiled import Kept
from jittok.general import GeneralEncoder
from jittok.pipeline import Pipeline


def make_encoder(pipeline: Pipeline, cache_bytes: int, kept: Kept | None) -> Any:
    """The encoder of a Pipeline."""
    return GeneralEncoder(pipeline)
