"""Where a Tokenizer comes from: a file, bytes, the package, a pickle. What was compiled before is taken from disk."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from jittok._jit import on_compile, patiently
from jittok.compiled import WHOLE, content_key, folder, name_of, recall
from jittok.digest import blake2b
from jittok.errors import IN_MEMORY, MalformedVocab, refuse_keywords
from jittok.pipeline import Pipeline
from jittok.record import Record
from jittok.tokenizer import Again, Tokenizer
from jittok.vocab import Vocab, bundled_vocab
from jittok.vocab.bundled import bundled_names, bundled_path
from jittok.vocab.releases import NEWEST, release_named

GGUF = b"GGUF"
BESIDE = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
"""Files that say more of the one beside them."""
PARTS = (
    "tokenizer.json", "tekken.json", "*.model", "*.tiktoken", "vocab.json", "merges.txt", "vocab.txt", "rwkv*.txt",
    *BESIDE,
)  # fmt: skip
"""Files of a folder that `read_pipeline` may read: a tokenizer of another one would not be found in the cache."""

Source = str | os.PathLike[str] | bytes | bytearray | memoryview


def load(
    source: Source,
    *,
    cache: bool = True,
    cache_bytes: int | None = None,
    llama_cpp: str | None = None,
    pre: str | None = None,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    encoding: str | None = None,
    **others: NoReturn,
) -> Tokenizer:
    """The Tokenizer of a file, a folder, or the bytes of a file, told apart by what it holds.

    A GGUF file (a model, its first part, or a vocabulary; only the header is read) answers as llama.cpp. `llama_cpp`:
    the release whose answers are wanted, "0.3.36" for example; the newest that jittok knows otherwise. `pre`: a
    tokenizer.ggml.pre in place of the file's, for one that jittok does not know.

    tokenizer.json, tekken.json, a sentencepiece model, tiktoken ranks, RWKV's list, vocab.txt, and a folder with one of
    these or with vocab.json and merges.txt answer as the model's own library. `pattern`, `special_tokens`: of rank
    files that jittok does not know by their content; `encoding`: which of several that have the same ranks.

    `cache`: keep the compiled vocabulary on disk and use it the next time. `cache_bytes`: upper bound of the piece
    cache of one thread, which grows by what it loses; None: 256 MB, or a 32nd of the machine's memory if that is less.
    Raises MalformedVocab, UnsupportedVocab, OSError, ValueError for an unknown release or an
    option that is not for this kind of file.
    """
    if others:
        refuse_keywords(load, others)
    if not isinstance(source, str | os.PathLike):
        try:
            memoryview(source)
        except TypeError:
            expected = "the name of a file or folder, or the bytes of a file"
            raise TypeError(f"found {type(source).__name__}, expected {expected}") from None
    else:
        try:
            os.stat(source)
        except OSError as error:
            from jittok.hints import not_there

            raise not_there(os.fsdecode(source), error, bundled_names()) from None
    release_named(llama_cpp)
    given = {"pattern": pattern, "special_tokens": special_tokens and dict(special_tokens), "encoding": encoding}
    asked = {name: value for name, value in given.items() if value is not None}
    if asked or not gguf_of(source):
        if llama_cpp is not None or pre is not None:
            raise ValueError(
                "llama_cpp, pre: found a file that is no GGUF, or options of such a file, expected a GGUF file"
            )
        return patiently(_load_file, source, asked, cache=cache, cache_bytes=cache_bytes)
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else IN_MEMORY

    def key() -> str | None:
        return _key_of(content_key(source) if cache else None, llama_cpp, pre)

    def read() -> Vocab:
        from jittok.vocab import read_vocab

        return read_vocab(source, llama_cpp=llama_cpp, pre=pre)

    options: dict[str, Any] = {"cache": cache, "cache_bytes": cache_bytes, "llama_cpp": llama_cpp, "pre": pre}
    return patiently(_load, key, name, read, again=_again(name), **options)


def _key_of(content: str | None, llama_cpp: str | None, pre: str | None) -> str | None:
    """The name of a content that is read in this way; its own name for the newest release and the file's own `pre`."""
    asked = ([] if llama_cpp in (None, NEWEST) else [f"llama_cpp {llama_cpp}"]) + (
        [] if pre is None else [f"pre {pre}"]
    )
    return content if content is None or not asked else name_of("\n".join([content, *asked]).encode())


def gguf_of(source: Any) -> bool:
    """Whether a source is a GGUF file or its bytes, or nothing that another reader takes."""
    if isinstance(source, str | os.PathLike):
        if not os.path.isfile(source):
            return not os.path.isdir(source)
        with open(source, "rb") as file:
            return file.read(4) in (GGUF, b"")
    try:
        return bytes(memoryview(source).cast("B")[:4]) in (GGUF, b"")
    except TypeError:
        return True


def _load_file(source: Any, options: dict[str, Any], *, cache: bool, cache_bytes: int | None) -> Tokenizer:
    """The Tokenizer of any file but GGUF."""

    def read() -> Pipeline:
        from jittok.files import read_pipeline

        return read_pipeline(source, **options)

    def key() -> str | None:
        return _file_key(source, options) if cache else None

    name = os.fspath(source) if isinstance(source, str | os.PathLike) else IN_MEMORY
    return _load(key, name, read, cache=cache, cache_bytes=cache_bytes, file_options=options, again=_again(name))


_off: list[object] = []
"""One entry for each call that has turned the collector off."""


def _on_again() -> None:
    if _off:
        _off.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_on_again)  # a child has no other thread, which would turn it on again


@contextmanager
def _without_collector() -> Iterator[None]:
    """The collector looks at every list that JSON and tokens become, again and again, and takes longer than reading.
    Where a kernel is compiled it goes on: the compiler leaves much behind."""
    if not gc.isenabled():
        yield
        return

    def told(begins: bool) -> None:
        if begins:
            gc.enable()

    _off.append(told)
    gc.disable()
    on_compile.append(told)
    try:
        yield
    finally:
        on_compile.remove(told)
        gc.enable()
        if told in _off:  # a fork has forgotten it
            _off.remove(told)


def _file_key(source: Any, options: dict[str, Any]) -> str | None:
    """The name of all that decides what a file means: its content, the files beside it, what `load` was told. None
    without a cache and where a file is very large: such a tokenizer is read each time."""
    if folder() is None:
        return None
    digest = blake2b(repr(sorted(options.items())).encode(), digest_size=20)
    if not isinstance(source, str | os.PathLike):
        digest.update(name_of(memoryview(source).cast("B")).encode())
        return digest.hexdigest()
    for part in _parts(os.fspath(source)):
        if not os.path.isfile(part):
            continue
        if os.stat(part).st_size > WHOLE:
            return None
        known, name = content_key(part), os.fsencode(os.path.basename(part))
        if known is None:
            return None
        digest.update(b"%d %b %b\n" % (len(name), name, known.encode()))  # a name may hold any byte
    return digest.hexdigest()


def _parts(path: str) -> list[str]:
    """The files that may say something of a tokenizer, if they are there: of a folder, or of a file those beside it."""
    if not os.path.isdir(path):
        return [path, *(os.path.join(os.path.dirname(path), name) for name in BESIDE)]
    import fnmatch

    names = os.listdir(path)
    return sorted({os.path.join(path, name) for part in PARTS for name in fnmatch.filter(names, part)})


def _load(
    key_of: Callable[[], str | None], source: str, read: Callable[[], Vocab | Pipeline], **options: Any
) -> Tokenizer:
    """The Tokenizer kept under the key of a source, or else of the Vocab that `read` gives.

    key_of(): the key. It is asked again after reading: what was exchanged meanwhile is not kept, for it would answer
    under the other's name. A file that was hashed before is known by its times, unless they are too young to tell.
    """
    key = key_of()
    kept = None if key is None else recall(key, "encoder")
    known = None if kept is None else kept.part("vocab")
    if known is not None:
        return Tokenizer(known["vocab"]._replace(source=source), key=key, kept=kept, **options)
    with _without_collector():
        vocab = read()._replace(source=source)
        return Tokenizer(vocab, key=key if key is not None and key_of() == key else None, **options)


def bundled(
    name: str, *, cache_bytes: int | None = None, llama_cpp: str | None = None, pre: str | None = None,
    **others: NoReturn,
) -> Tokenizer:  # fmt: skip
    """The Tokenizer of a vocabulary shipped with the package; `bundled_names()` lists them. ValueError for others.

    `cache_bytes`, `llama_cpp` and `pre`: as for `load`.
    """
    if others:
        refuse_keywords(bundled, others)
    release_named(llama_cpp)
    path = bundled_path(name)

    def key() -> str | None:
        return _key_of(content_key(path), llama_cpp, pre)

    def read() -> Vocab:
        return bundled_vocab(name, llama_cpp=llama_cpp, pre=pre)

    options: dict[str, Any] = {"again": _Bundle(name), "cache_bytes": cache_bytes, "llama_cpp": llama_cpp, "pre": pre}
    return patiently(_load, key, f"bundled vocabulary {name}", read, **options)


class _Bundle(Record):
    """How to pickle a tokenizer that came from the package: by its name there."""

    name: str

    def __call__(self, tok: Tokenizer) -> tuple[Any, ...]:
        return rebundle, (self.name, {"cache_bytes": tok._options["cache_bytes"], **tok._read_as()})


def _again(name: str) -> Again | None:
    """How to pickle a tokenizer that came from a file, None for one from memory."""
    return None if name == IN_MEMORY else _reloaded


def _reloaded(tok: Tokenizer) -> tuple[Any, ...]:
    """By the file's place."""
    options = {**tok._options, **tok._read_as()}
    return reload, (os.path.join(os.getcwd(), tok.vocab.source), tok.fingerprint, options)


def of_release(tok: Tokenizer, llama_cpp: str) -> Tokenizer:
    """The vocabulary of a tokenizer as another release of llama.cpp reads it. ValueError for an unknown release, and
    for a vocabulary that came neither from a file nor from the package."""
    asked: dict[str, Any] = {"llama_cpp": llama_cpp, "pre": tok.asked_pre}
    if isinstance(tok._again, _Bundle):
        return bundled(tok._again.name, cache_bytes=tok._options["cache_bytes"], **asked)
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
