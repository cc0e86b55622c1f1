"""A sentencepiece .model, by the `sentencepiece` package's own message."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping
from typing import Any

from jittok.common.writers.atomic_files import atomic_file

KINDS = {"unigram": 1, "bpe": 2, "word": 3, "char": 4}


def write_model(
    path: str | os.PathLike[str],
    pieces: Iterable[tuple[str, float, int]],
    kind: str,
    trainer: Mapping[str, Any],
    normalizer: Mapping[str, Any],
) -> None:
    """pieces: (text, score, sentencepiece's type); trainer, normalizer: fields of the two parts of the message."""
    try:
        messages: Any = importlib.import_module("sentencepiece.sentencepiece_model_pb2")
    except ImportError:
        raise ImportError(f"{os.fspath(path)}: writing .model needs sentencepiece and protobuf") from None
    model = messages.ModelProto()
    for piece, score, type_ in pieces:
        model.pieces.add(piece=piece, score=score, type=type_)
    model.trainer_spec.model_type = KINDS[kind]
    model.trainer_spec.vocab_size = len(model.pieces)
    for part, values in ((model.trainer_spec, trainer), (model.normalizer_spec, normalizer)):
        for name, value in values.items():
            if isinstance(value, list | tuple):
                getattr(part, name).extend(value)
            else:
                setattr(part, name, value)
    with atomic_file(path) as new:
        new.write_bytes(model.SerializeToString(deterministic=True))
