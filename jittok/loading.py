"""Where a Tokenizer comes from: a file, bytes, the package, a pickle. What was compiled before is taken from disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from jittok._jit import patiently
from jittok.compiled import content_key, recall
from jittok.errors import MalformedVocab
from jittok.tokenizer import CACHE_BYTES, IN_MEMORY, Tokenizer
from jittok.vocab import Vocab, bundled_vocab
from jittok.vocab.bundled import bundled_path

Source = str | os.PathLike[str] | bytes | bytearray | memoryview


def load(source: Source, *, cache: bool = True, cache_bytes: int = CACHE_BYTES) -> Tokenizer:
    """The Tokenizer of a GGUF file (a model, its first part, or a vocabulary) or of bytes with its header.

    Only the header is read. `cache`: keep the compiled vocabulary on disk and use it the next time. `cache_bytes`:
    upper bound of the piece cache of one thread. Raises MalformedVocab, UnsupportedVocab, OSError.
    """
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else IN_MEMORY
    key = patiently(content_key, source) if cache else None

    def read() -> Vocab:
        from jittok.vocab import read_vocab

        return read_vocab(source)

    again = None if name == IN_MEMORY else _reloaded
    return patiently(_load, key, str(Path(name)), read, again=again, cache=cache, cache_bytes=cache_bytes)


def _load(key: str | None, source: str, read: Callable[[], Vocab], **options: Any) -> Tokenizer:
    """The Tokenizer kept under a key, or else of the Vocab that `read` gives."""
    kept = None if key is None else recall(key, "encoder")
    known = None if kept is None else kept.part("vocab")
    if known is not None:
        return Tokenizer(replace(known["vocab"], source=source), key=key, kept=kept, **options)
    return Tokenizer(replace(read(), source=source), key=key, **options)


def bundled(name: str) -> Tokenizer:
    """The Tokenizer of a vocabulary shipped with the package; `bundled_names()` lists them. ValueError for others."""
    key = content_key(bundled_path(name))

    def again(_tok: Tokenizer) -> tuple[Any, ...]:
        return bundled, (name,)

    return patiently(_load, key, f"bundled vocabulary {name}", lambda: bundled_vocab(name), again=again)


def _reloaded(tok: Tokenizer) -> tuple[Any, ...]:
    """How to pickle a tokenizer that came from a file: by the file's place."""
    return reload, (str(Path(tok.vocab.source).absolute()), tok.fingerprint, tok._options)


def reload(path: str, fingerprint: str, options: dict[str, Any]) -> Tokenizer:
    """Unpickle a tokenizer that came from a file, which must still hold the same vocabulary."""
    tok = load(path, **options)
    if tok.fingerprint != fingerprint:
        raise MalformedVocab(path, "vocabulary", tok.fingerprint, f"{fingerprint}, as when the tokenizer was pickled")
    return tok
