"""GGUF headers from Python values, right ones and wrong ones."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
CODES = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}
T = "tokenizer.ggml."


class Raw(NamedTuple):
    """A value whose type number and bytes are given."""

    kind: int
    payload: bytes


class Of(NamedTuple):
    """A value, or a list of them, of one numeric type."""

    kind: int
    value: Any


def string(text: str | bytes) -> bytes:
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def value(item: Any) -> bytes:
    """Type and bytes: bool, int (u32), float (f32), str, bytes, lists of texts, ints (i32) or floats, Of, Raw."""
    if isinstance(item, Raw):
        return struct.pack("<i", item.kind) + item.payload
    if isinstance(item, Of) and isinstance(item.value, (list, tuple)):
        code = f"<{len(item.value)}{CODES[item.kind]}"
        return struct.pack("<iiQ", ARRAY, item.kind, len(item.value)) + struct.pack(code, *item.value)
    if isinstance(item, Of):
        return struct.pack("<i", item.kind) + struct.pack(f"<{CODES[item.kind]}", item.value)
    if isinstance(item, (str, bytes)):
        return struct.pack("<i", STRING) + string(item)
    if isinstance(item, (list, tuple)):
        if not item or isinstance(item[0], (str, bytes)):
            return struct.pack("<iiQ", ARRAY, STRING, len(item)) + b"".join(map(string, item))
        return value(Of(F32 if isinstance(item[0], float) else I32, item))
    return value(Of(BOOL if isinstance(item, bool) else F32 if isinstance(item, float) else U32, item))


def pair(key: str | bytes, item: Any) -> bytes:
    return string(key) + value(item)


def file_of(*pairs: bytes, version: int = 3, tensors: int = 0, count: int | None = None) -> bytes:
    """A header of packed pairs; `count` may lie."""
    return struct.pack("<4sIqq", b"GGUF", version, tensors, len(pairs) if count is None else count) + b"".join(pairs)


def write_gguf(values: Mapping[str, Any]) -> bytes:
    """A header without tensors."""
    return file_of(*(pair(key, item) for key, item in values.items() if item is not None))


def vocab_file(model: str, tokens: list[str | bytes], /, **settings: Any) -> bytes:
    """The header of a vocabulary. settings: keys below tokenizer.ggml., `normalizer__lowercase` for nested ones,
    `general__name`; None leaves a key out."""
    values: dict[str, Any] = {"general.architecture": "llama", T + "model": model, T + "tokens": list(tokens)}
    if model in ("gpt2", "gemma4", "hybriddna", "whitespace"):
        values |= {T + "merges": [], T + "pre": "gpt-2"}
    for key, item in settings.items():
        name = key.replace("__", ".")
        values[name if name.startswith("general.") else T + name] = item
    return write_gguf(values)


SMALL = vocab_file(
    "llama",
    ["<unk>", "<s>", "</s>", "<0x0A>", "▁a", "b"],
    scores=[0.0, 0.0, 0.0, 0.0, -1.0, -2.0],
    token_type=[2, 3, 3, 6, 1, 1],
    bos_token_id=1,
    add_bos_token=True,
)
"""A small vocabulary of SPM, to be cut, flipped and read from wherever it lies."""
