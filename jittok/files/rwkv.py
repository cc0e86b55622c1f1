"""RWKV World's list: lines `id literal length`, where the literal is a Python str or bytes literal."""

from __future__ import annotations

import ast
import warnings

import numpy as np

from jittok.common.pipeline.models import Longest
from jittok.common.pipeline.pipeline import Pipeline, packed, read_only_array
from jittok.common.pipeline.steps import JoinRaw
from jittok.errors import InWords, MalformedVocab
from jittok.files.contents import decoded

MOST_ID = 1 << 20
LONGEST_LINE = 4096


def read_rwkv(file: str, content: bytes) -> Pipeline:
    """The Pipeline of a list."""
    with warnings.catch_warnings():  # the parser's own, of a literal that is none
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        return _read(file, content)


def _read(file: str, content: bytes) -> Pipeline:
    lines = decoded(file, content).splitlines()
    tokens: dict[int, bytes] = {}
    seen: set[bytes] = set()
    for number, line in enumerate(lines, 1):
        first, last = line.find(" "), line.rfind(" ")
        raw = _literal(line[first + 1 : last]) if 0 < first < last and len(line) <= LONGEST_LINE else None
        ascii_numbers = line[:first].isdecimal() and line[last + 1 :].isdecimal() and line.isprintable()
        if raw is None or not ascii_numbers or int(line[last + 1 :][:9]) != len(raw):
            raise MalformedVocab(file, f"line {number}", line[:80], "an id, a literal and its number of bytes")
        token = int(line[:first][:9])
        if not 0 < token < MOST_ID or token in tokens or not raw or raw in seen:
            raise MalformedVocab(
                file, f"line {number}", line[:80], f"an id from 1 to {MOST_ID - 1} and a text, each once in the file"
            )
        tokens[token] = raw
        seen.add(raw)
    if not tokens:
        raise MalformedVocab(file, "line 1", InWords("no token"), "one token per line")
    missing = [byte for byte in range(256) if bytes([byte]) not in seen]
    if missing:
        raise MalformedVocab(file, "tokens", InWords(f"none for byte {missing[0]}"), "a token for each byte")
    rows = [tokens.get(token, b"") for token in range(max(tokens) + 1)]
    data, offsets = packed(rows)
    return Pipeline(
        source=file,
        format="rwkv",
        library="RWKV World",
        model_bytes=data,
        model_offsets=offsets,
        holes=read_only_array([token for token, text in enumerate(rows) if not text], np.int32),
        model=Longest(),
        decode=(JoinRaw(),),
    )


def _literal(text: str) -> bytes | None:
    """The bytes of a literal, None for what is none."""
    if not text.startswith(("'", '"', "b'", 'b"')):
        return None
    try:
        value = ast.literal_eval(text)
        return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else None
    except (ValueError, SyntaxError, MemoryError, RecursionError, UnicodeEncodeError):
        return None
