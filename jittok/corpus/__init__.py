"""The corpus compiler: documents in, training-ready token shards out, nothing lost, nothing different.

Names are loaded when first used; what reads or writes tables needs the extra `corpus`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jittok.corpus.compiler import (
        Planned,
        Ran,
        Summary,
        abandon_corpus,
        compile_corpus,
        corpus_status,
        finish_corpus,
        plan_corpus,
        run_corpus,
    )
    from jittok.corpus.options import Options
    from jittok.corpus.reading.batches import batches
    from jittok.corpus.reading.loader import Loader
    from jittok.corpus.reading.sequences import Packed, Sequences, WithMask, WithTargets, sequences
    from jittok.corpus.shards.fields import fields
    from jittok.corpus.shards.readback import Corpus, open  # noqa: A004  jittok.corpus.open is what one looks for
    from jittok.corpus.tasks.abandon import Abandoned
    from jittok.corpus.verifier import verify

__all__ = [
    "Abandoned", "Corpus", "Loader", "Options", "Packed", "Planned", "Ran", "Sequences", "Summary", "WithMask",
    "WithTargets", "abandon_corpus", "batches", "compile_corpus", "corpus_status", "fields", "finish_corpus", "open",
    "plan_corpus", "run_corpus", "sequences", "verify",
]  # fmt: skip
_HOME = {
    "reading.batches": ("batches",),
    "shards.fields": ("fields",),
    "reading.loader": ("Loader",),
    "reading.sequences": ("Packed", "Sequences", "WithMask", "WithTargets", "sequences"),
    "compiler": (
        "Planned",
        "Ran",
        "Summary",
        "abandon_corpus",
        "compile_corpus",
        "corpus_status",
        "finish_corpus",
        "plan_corpus",
        "run_corpus",
    ),
    "options": ("Options",),
    "shards.readback": ("Corpus", "open"),
    "tasks.abandon": ("Abandoned",),
    "verifier": ("verify",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(importlib.import_module(f"jittok.corpus.{module}"), name)
    raise AttributeError(f"module 'jittok.corpus' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
