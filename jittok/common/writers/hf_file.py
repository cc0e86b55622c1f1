"""tokenizer.json of Hugging Face's tokenizers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jittok.common.pipeline.known_patterns import GPT2
from jittok.common.writers.atomic_files import atomic_file

Component = dict[str, Any]
BYTES_ONLY: Component = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
BYTE_DECODER: Component = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}


def write_tokenizer_json(
    path: str | os.PathLike[str],
    model: Component,
    added: Iterable[Mapping[str, Any]] = (),
    *,
    normalizer: Component | None = None,
    pre_tokenizer: Component | None = None,
    post_processor: Component | None = None,
    decoder: Component | None = None,
) -> None:
    """Write the file. added: see `added_token`."""
    root = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": list(added), "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer, "post_processor": post_processor, "decoder": decoder, "model": model,
    }  # fmt: skip
    with atomic_file(path) as new:
        new.write_text(json.dumps(root, ensure_ascii=False), encoding="utf-8")


def added_token(token: int, content: str, *, special: bool = True, **flags: bool) -> dict[str, Any]:
    """One of `added_tokens`."""
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": token, "content": content, **plain, **flags, "special": special}


def bpe(
    vocab: Mapping[str, int],
    merges: Sequence[Sequence[str]],
    *,
    unknown: str | None = None,
    byte_fallback: bool = False,
    ignore_merges: bool = False,
) -> Component:
    """The model of merges."""
    return {
        "type": "BPE", "dropout": None, "unk_token": unknown, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": unknown is not None, "byte_fallback": byte_fallback,
        "ignore_merges": ignore_merges, "vocab": dict(vocab), "merges": [list(pair) for pair in merges],
    }  # fmt: skip


def byte_level_splits(splits: Sequence[Component]) -> Component:
    """`pre_tokenizer` of these splits and then bytes."""
    return {"type": "Sequence", "pretokenizers": [*splits, BYTES_ONLY]}


def byte_level(patterns: Sequence[str]) -> Component:
    """`pre_tokenizer` of patterns that cut words, one after the other."""
    if list(patterns) == [GPT2]:
        return {**BYTES_ONLY, "use_regex": True}
    return byte_level_splits([split(pattern) for pattern in patterns])


def split(pattern: str, behavior: str = "Isolated", invert: bool = False) -> Component:
    """A Split by a regular expression."""
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def template(before: Sequence[tuple[int, str]], after: Sequence[tuple[int, str]]) -> Component | None:
    """`post_processor` that puts tokens around each text."""
    if not before and not after:
        return None

    def special(rows: Sequence[tuple[int, str]], kind: int) -> list[Component]:
        return [{"SpecialToken": {"id": text, "type_id": kind}} for _, text in rows]

    a, b = ({"Sequence": {"id": name, "type_id": kind}} for kind, name in enumerate("AB"))
    known = {text: {"id": text, "ids": [token], "tokens": [text]} for token, text in [*before, *after]}
    single = [*special(before, 0), a, *special(after, 0)]
    return {
        "type": "TemplateProcessing", "single": single, "special_tokens": known,
        "pair": [*single, *special(before, 1), b, *special(after, 1)],
    }  # fmt: skip
