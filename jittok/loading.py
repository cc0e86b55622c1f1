"""Where a Tokenizer comes from: a file, bytes, the package, a pickle. What was compiled before is taken from disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jittok._jit import patiently
from jittok.compiled import content_key, name_of, recall
from jittok.errors import MalformedVocab
from jittok.tokenizer import CACHE_BYTES, IN_MEMORY, Tokenizer
from jittok.vocab import Vocab, bundled_vocab
from jittok.vocab.bundled import bundled_path
from jittok.vocab.releases import NEWEST, release_named

Source = str | os.PathLike[str] | bytes | bytearray | memoryview


def load(
    source: Source,
    *,
    llama_cpp: str | None = None,
    pre: str | None = None,
    cache: bool = True,
    cache_bytes: int = CACHE_BYTES,
) -> Tokenizer:
    """The Tokenizer of a GGUF file (a model, its first part, or a vocabulary) or of bytes with its header.

    Only the header is read. `llama_cpp`: the release whose answers are wanted, "0.3.36" for example; the newest that
    jittok knows otherwise. `pre`: a tokenizer.ggml.pre in place of the file's, for one that jittok does not know.
    `cache`: keep the compiled vocabulary on disk and use it the next time. `cache_bytes`: upper bound of the piece
    cache of one thread. Raises MalformedVocab, UnsupportedVocab, OSError, ValueError for an unknown release.
    """
    release_named(llama_cpp)
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else IN_MEMORY
    key = _key_of(patiently(content_key, source) if cache else None, llama_cpp, pre)

    def read() -> Vocab:
        from jittok.vocab import read_vocab

        return read_vocab(source, llama_cpp=llama_cpp, pre=pre)

    options: dict[str, Any] = {"cache": cache, "cache_bytes": cache_bytes, "llama_cpp": llama_cpp, "pre": pre}
    return patiently(_load, key, str(Path(name)), read, **options)


def _key_of(content: str | None, llama_cpp: str | None, pre: str | None) -> str | None:
    """The name of a content that is read in this way; its own name for the newest release and the file's own `pre`."""
    asked = ([] if llama_cpp in (None, NEWEST) else [f"llama_cpp {llama_cpp}"]) + (
        [] if pre is None else [f"pre {pre}"]
    )
    return content if content is None or not asked else name_of("\n".join([content, *asked]).encode())


def _load(key: str | None, source: str, read: Callable[[], Vocab], **options: Any) -> Tokenizer:
    """The Tokenizer kept under a key, or else of the Vocab that `read` gives."""
    kept = None if key is None else recall(key, "encoder")
    known = None if kept is None else kept.part("vocab")
    if known is not None:
        return Tokenizer(replace(known["vocab"], source=source), key=key, kept=kept, **options)
    return Tokenizer(replace(read(), source=source), key=key, **options)


def bundled(name: str, *, llama_cpp: str | None = None, pre: str | None = None) -> Tokenizer:
    """The Tokenizer of a vocabulary shipped with the package; `bundled_names()` lists them. ValueError for others.

    `llama_cpp` and `pre`: as for `load`.
    """
    release_named(llama_cpp)
    key = _key_of(content_key(bundled_path(name)), llama_cpp, pre)

    def read() -> Vocab:
        return bundled_vocab(name, llama_cpp=llama_cpp, pre=pre)

    options: dict[str, Any] = {"bundle": name, "llama_cpp": llama_cpp, "pre": pre}
    return patiently(_load, key, f"bundled vocabulary {name}", read, **options)


def of_release(tok: Tokenizer, llama_cpp: str) -> Tokenizer:
    """The vocabulary of a tokenizer as another release of llama.cpp reads it. ValueError for an unknown release, and
    for a vocabulary that came neither from a file nor from the package."""
    asked: dict[str, Any] = {"llama_cpp": llama_cpp, "pre": tok.asked_pre}
    if tok._bundle is not None:
        return bundled(tok._bundle, **asked)
    if tok.vocab.source == IN_MEMORY:
        raise ValueError(f"{IN_MEMORY}: it cannot be read again; load it with llama_cpp={llama_cpp!r}")
    return load(tok.vocab.source, **tok._options, **asked)


def rebundle(name: str, options: dict[str, Any]) -> Tokenizer:
    """Unpickle a tokenizer that came from the package."""
    return bundled(name, **options)


def reload(path: str, fingerprint: str, options: dict[str, Any]) -> Tokenizer:
    """Unpickle a tokenizer that came from a file, which must still hold the same vocabulary."""
    tok = load(path, **options)
    if tok.fingerprint != fingerprint:
        raise MalformedVocab(path, "vocabulary", tok.fingerprint, f"{fingerprint}, as when the tokenizer was pickled")
    return tok


def rebuild(state: dict[str, Any], options: dict[str, Any]) -> Tokenizer:
    """Unpickle a tokenizer that came from memory."""
    for value in state.values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return Tokenizer(Vocab(**state), **options)
