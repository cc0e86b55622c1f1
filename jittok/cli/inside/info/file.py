"""`jittok info` for files other than GGUF: their steps, whether compiled kernels run them, and notes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jittok.cli.common import write
from jittok.common.display.terminal import print_notes, print_table
from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.descriptions import in_words
from jittok.common.pipeline.pipeline import FIRST_TEXT
from jittok.common.pipeline.steps import Cut
from jittok.kernels.pretokenize.compile import chain_of
from jittok.tokenizer.facts import KERNELS

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer


CLEANS = "removes spaces before ? ! . , and around apostrophes; decode(ids, clean=False), or --no-clean, keeps them"
"""Shown for a vocabulary whose decoder cleans up spaces."""


def show(tok: Tokenizer, pipeline: Pipeline, as_json: bool) -> int:
    """Print the facts."""
    known = facts(tok, pipeline)
    if as_json:
        write(json.dumps(known) + "\n")
        return 0
    rows = [
        ("format", known["format"]), ("answers as", known["library"]), ("type", known["type"]),
        ("fingerprint", known["fingerprint"]), ("tokens", known["vocab_size"]), ("merges", known["merges"]),
        ("added tokens", f"{known['added']}, {known['special']} of them special"), ("encoded by", known["runs"]),
    ]  # fmt: skip
    print_table(pipeline.source, rows, sys.stdout)
    show_steps(pipeline)
    print_notes("notes", known["notes"] or ["none"], sys.stdout)
    show_cleaning(pipeline)
    return 0


def show_cleaning(pipeline: Pipeline) -> None:
    """Print a note if decoded text may differ from the encoded text."""
    if pipeline.cleans_spaces:
        print_notes("decoding", [CLEANS], sys.stdout)


def show_steps(pipeline: Pipeline) -> None:
    """Print the steps from text to ids and back, in words."""
    steps = [
        *_numbered("normalize", pipeline.normalize), *_numbered("split", pipeline.split),
        ("model", in_words(pipeline.model)), ("around a text", _around(pipeline)),
        *_numbered("decode", pipeline.decode),
    ]  # fmt: skip
    print_table("steps", steps, sys.stdout)


def _numbered(part: str, steps: Sequence[Any]) -> list[tuple[str, str]]:
    return [(f"{part} {k}", in_words(step)) for k, step in enumerate(steps, 1)] or [(part, "nothing")]


def _around(pipeline: Pipeline) -> str:
    """The tokens that `add_special` adds before and after a text."""
    parts = ["text" if item == FIRST_TEXT else _named(pipeline, item) for item in pipeline.single]
    return " ".join(parts) if len(parts) > 1 else "no tokens"


def _named(pipeline: Pipeline, token: int) -> str:
    text = (pipeline.tokens[token] or b"").decode("utf-8", "backslashreplace")
    return f"{text!r} ({token})"


def facts(tok: Tokenizer, pipeline: Pipeline) -> dict[str, Any]:
    """The printed facts, as data."""
    return {
        "source": pipeline.source,
        "format": pipeline.format,
        "library": pipeline.library,
        "type": pipeline.type,
        "fingerprint": pipeline.fingerprint,
        "vocab_size": len(pipeline),
        "merges": pipeline.merges,
        "added": len(pipeline.added),
        "special": sum(token.special for token in pipeline.added),
        "clean_spaces": pipeline.cleans_spaces,
        **steps_of(pipeline),
        "runs": tok.runs,
        "notes": [*pipeline.notes, *(_slow(pipeline) if tok.runs == KERNELS else ())],
    }


def _slow(pipeline: Pipeline) -> Iterator[str]:
    """Notes on patterns that no kernel supports, if all other steps run in kernels."""
    for number, stage in enumerate(pipeline.split, 1):
        if isinstance(stage, Cut) and chain_of((stage,)) is None:
            yield f"split {number} runs in plain Python and takes most of the time: no kernel supports its pattern"


def steps_of(pipeline: Pipeline) -> dict[str, Any]:
    """The steps as data."""
    return {
        "normalize": [shown(step) for step in pipeline.normalize],
        "split": [shown(step) for step in pipeline.split],
        "decode": [shown(step) for step in pipeline.decode],
        "model": shown(pipeline.model),
        "around": ["text" if item == FIRST_TEXT else item for item in pipeline.single],
    }


def shown(step: Any) -> str:
    """A step as text: its name and settings, arrays shown by their size."""
    values = (f"{name}={_value(getattr(step, name))}" for name in step._fields)
    return f"{type(step).__name__}({', '.join(values)})"


def _value(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<{value.size}>"
    if hasattr(value, "_fields"):
        return shown(value)
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"
