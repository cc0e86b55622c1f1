"""A GGUF that holds nothing but a vocabulary."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jittok.common.writers.atomic_files import atomic_file

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""GGUF's types of tokens."""
LOWERCASE, STRIP_ACCENTS = "tokenizer.ggml.normalizer.lowercase", "tokenizer.ggml.normalizer.strip_accents"


@dataclass
class GgufVocab:
    """What such a file says; what is None or empty is left out."""

    model: str  # tokenizer.ggml.model
    tokens: Sequence[bytes]
    types: Sequence[int]
    architecture: str = "llama"
    name: str = ""
    pre: str | None = None
    scores: Sequence[float] | None = None
    merges: Sequence[str] | None = None
    roles: Mapping[str, int] = field(default_factory=dict)  # "bos", "eos" ... -> id
    add_bos: bool | None = None
    add_eos: bool | None = None
    add_space_prefix: bool | None = None
    remove_extra_whitespaces: bool | None = None
    charsmap: bytes = b""
    lowercase: bool | None = None
    strip_accents: bool | None = None


def write_gguf(path: str | os.PathLike[str], vocab: GgufVocab) -> None:
    """Write it, by the `gguf` package."""
    with atomic_file(path) as new:
        _write(new, vocab)


def _write(path: Path, vocab: GgufVocab) -> None:
    import gguf

    writer = gguf.GGUFWriter(path, vocab.architecture)
    if vocab.name:
        writer.add_name(vocab.name)
    writer.add_tokenizer_model(vocab.model)
    if vocab.pre is not None:
        writer.add_tokenizer_pre(vocab.pre)
    writer.add_token_list(list(vocab.tokens))
    if vocab.scores is not None:
        writer.add_token_scores(list(vocab.scores))
    writer.add_token_types(list(vocab.types))
    if vocab.merges is not None:
        writer.add_token_merges(list(vocab.merges))
    for role, token in vocab.roles.items():
        getattr(writer, f"add_{role}_token_id")(token)
    flags = (
        (vocab.add_bos, writer.add_add_bos_token),
        (vocab.add_eos, writer.add_add_eos_token),
        (vocab.add_space_prefix, writer.add_add_space_prefix),
        (vocab.remove_extra_whitespaces, writer.add_remove_extra_whitespaces),
        (vocab.lowercase, lambda value: writer.add_bool(LOWERCASE, value)),
        (vocab.strip_accents, lambda value: writer.add_bool(STRIP_ACCENTS, value)),
    )
    for value, put in flags:
        if value is not None:
            put(value)
    if vocab.charsmap:
        writer.add_precompiled_charsmap(vocab.charsmap)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
