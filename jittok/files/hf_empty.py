"""Normalizers of a tokenizer.json that prepend or match the empty text.

tokenizers keeps which characters of the document each character comes from. A text put before the empty text, and what
replaces it, come from none. A later step that maps characters then fails, or writes the first character twice. Such
files are refused.
"""

from __future__ import annotations

from jittok.common.pipeline.patterns import matches_empty
from jittok.common.pipeline.steps import (
    FIRST,
    Clusters,
    Compose,
    Map,
    Metaspace,
    Normalizer,
    Prepend,
    Replace,
    SpellBytes,
    Splitter,
    Strip,
)
from jittok.files.json_nodes import Node

MAPS = (Map, Compose, Clusters, SpellBytes)
"""Steps that map characters one by one."""


def check_empty_texts(root: Node, normalize: tuple[Normalizer, ...], split: tuple[Splitter, ...]) -> None:
    """UnsupportedVocab where a step maps characters after the empty text was prepended or replaced."""
    for k, step in enumerate(normalize):
        after: tuple[Normalizer | Splitter, ...] = (*normalize[k + 1 :], *split)
        bad: tuple[type, ...]
        if step == Prepend(""):
            bad, what = (*MAPS, Strip), "the empty text is prepended"
        elif isinstance(step, Replace) and step.content and matches_empty(step.pattern):
            bad, what = MAPS, "the empty text is replaced"
        else:
            continue
        for later in after:
            if isinstance(later, bad):
                raise root.child("normalizer").unknown(
                    root.child("normalizer").value,
                    f"no step that maps characters ({type(later).__name__}) after {what}: tokenizers fails on texts "
                    "there, or writes characters twice",
                )


def without_empty(normalize: tuple[Normalizer, ...], split: tuple[Splitter, ...]) -> tuple[Normalizer, ...]:
    """Normalizers without an empty text put before, which matters only where a place in the document is asked for."""
    asked = any(isinstance(stage, Metaspace) and stage.scheme == FIRST for stage in split)
    return normalize if asked else tuple(step for step in normalize if step != Prepend(""))
