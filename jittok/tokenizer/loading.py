"""Loads a Tokenizer from a file, bytes, the package or a pickle. Compiled vocabularies are cached on disk.

What is kept there is found by the name of a content (`vocab_cache.name_of`). A file that was hashed before is known
by its path and times. Else it is opened and read once, and the bytes that were hashed are those that are parsed: what
is kept under a name is never made of other bytes, whatever others do with the file meanwhile.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from jittok.common.digest import blake2b
from jittok.common.pipeline import Pipeline
from jittok.common.record import Record
from jittok.encode.fallback.first_texts import is_cheap
from jittok.errors import IN_MEMORY, MalformedVocab, refuse_keywords
from jittok.kernels.jit import WouldCompile, on_compile, run_interruptible, without_compiling
from jittok.kernels.vocab_cache import folder, known_name, load_arrays, name_of, remember, save_arrays
from jittok.tokenizer import ReloadRecipe, Tokenizer
from jittok.vocab import Vocab
from jittok.vocab.bundled import bundled_names, bundled_path, packed_vocab
from jittok.vocab.releases import NEWEST, release_named

GGUF = b"GGUF"
SCHEMES = ("hf:", "ollama:", "lmstudio:")
"""Beginnings of names of files that other programs keep, see `jittok.files.places`."""
READ = "read"
"""The name of a cache entry that holds a vocabulary as it was read, before anything is compiled."""
BESIDE = (
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "generation_config.json", "config.json",
)  # fmt: skip
"""Files with further settings of the tokenizer file next to them."""
PARTS = (
    "tokenizer.json", "tekken.json", "*.model", "*.tiktoken", "vocab.json", "merges.txt", "vocab.txt", "rwkv*.txt",
    *BESIDE,
)  # fmt: skip
"""Files of a folder that `read_pipeline` may read; the cache key covers these only."""
WHOLE = 64 << 20
"""Files of up to this many bytes are hashed as a whole. Of larger GGUF files (models), only the header is hashed, if it
is within this limit. Anything larger has no cache key and is read each time."""

Source = str | os.PathLike[str] | bytes | bytearray | memoryview
Taken = tuple[Callable[[], str | None], Callable[[], Vocab | Pipeline]]
"""For an opened source: a function that returns its cache key (None: do not cache; called again after reading), and the
function that reads it."""


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
    """Load the Tokenizer of a file, a folder, or the bytes of a file. The format is detected from the content.

    A GGUF file (a model, its first part, or a vocabulary; only the header is read) gives the ids of llama.cpp.
    `llama_cpp`: the release to follow, such as "0.3.36"; by default the newest that jittok knows. `pre`: use this
    tokenizer.ggml.pre if jittok does not know the file's.

    tokenizer.json, tekken.json, a sentencepiece model, tiktoken ranks, RWKV's list, vocab.txt, and a folder with one of
    these or with vocab.json and merges.txt give the ids of the model's own library. `pattern`, `special_tokens`: for
    rank files whose content jittok does not recognize; `encoding`: which encoding, if several share the same ranks.

    "hf:org/name", "ollama:name" and "lmstudio:org/name" are files that these programs have on this machine; `jittok
    vocabs` lists them. Only a repository "hf:" that is not there is fetched, where huggingface_hub is installed.

    `cache`: keep the compiled vocabulary on disk and use it the next time. `cache_bytes`: upper bound of the piece
    cache of one thread, which grows as it evicts entries; None: 256 MB, or 1/32 of the machine's memory if less.
    Raises MalformedVocab, UnsupportedVocab, OSError, ValueError for an unknown release or an
    option that is not for this kind of file.
    """
    if others:
        refuse_keywords(load, others)
    source = _checked_source(source)
    release_named(llama_cpp)
    _check_types(pre=pre, pattern=pattern, encoding=encoding, special_tokens=special_tokens)
    given = {"pattern": pattern, "special_tokens": special_tokens and dict(special_tokens), "encoding": encoding}
    asked = {name: value for name, value in given.items() if value is not None}
    if asked or not gguf_of(source):
        if llama_cpp is not None or pre is not None:
            raise ValueError("llama_cpp, pre: found another kind of file, or options of one, expected a GGUF file")
        return run_interruptible(_load_file, source, asked, cache=cache, cache_bytes=cache_bytes)
    is_file = isinstance(source, str | os.PathLike)
    name = os.fspath(source) if is_file else IN_MEMORY  # type: ignore[arg-type]

    def known() -> str | None:
        return _key_of(known_name(name) if cache and is_file else None, llama_cpp, pre)

    def take() -> Taken:
        return _take_gguf(source, cache, llama_cpp, pre)

    options: dict[str, Any] = {"cache": cache, "cache_bytes": cache_bytes, "llama_cpp": llama_cpp, "pre": pre}
    return run_interruptible(_load, known, name, take, again=_again(name), **options)


def _checked_source(source: Any) -> Any:
    """The source as a str path or a bytes-like object. TypeError, ValueError; OSError if there is no such file."""
    if not isinstance(source, str | os.PathLike):
        try:
            memoryview(source)
        except TypeError:
            expected = "the path of a file or folder, or the bytes of a file"
            raise TypeError(f"source: found {type(source).__name__}, expected {expected}") from None
        return source
    name = os.fsdecode(source)  # os.PathLike objects may return bytes
    if "\0" in name:
        raise ValueError(f"source: found {name[:80]!r}, expected a name without NUL characters")
    if name.startswith(SCHEMES):
        from jittok.files.places import is_name, located

        name = located(name) if is_name(name) else name
    try:
        os.stat(name)
    except OSError as error:
        from jittok.common.hints import not_there

        raise not_there(name, error, bundled_names()) from None
    return name


def _check_types(special_tokens: Any, **texts: Any) -> None:
    """Raise TypeError for options of `load` of the wrong type."""
    for name, value in texts.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name}: found {type(value).__name__}, expected a str or None")
    if special_tokens is None:
        return
    if not isinstance(special_tokens, Mapping):
        raise TypeError(f"special_tokens: found {type(special_tokens).__name__}, expected a mapping of str to int")
    for text, token in special_tokens.items():
        if not isinstance(text, str) or isinstance(token, bool) or not isinstance(token, int):
            raise TypeError(f"special_tokens: found {text!r}: {token!r}, expected a str and its id, an int")


def _take_gguf(source: Any, cache: bool, llama_cpp: str | None, pre: str | None) -> Taken:
    """Open a GGUF file; only its header is read."""
    from jittok.vocab.gguf import FileBytes, HeldBytes, header_of, opened
    from jittok.vocab.load import from_header

    data, name = opened(source)
    content, header = None, None
    if cache and folder() is not None:
        file = data if isinstance(data, FileBytes) else None
        data = data if file is None else HeldBytes(file, WHOLE)
        header = header_of(data, name) if data.size > WHOLE else None
        size = data.size if header is None else header.stop
        content = name_of(data[:size]) if size <= WHOLE else None
        if file is not None and content is not None:
            remember(file.name, content, file.opened, file.facts())
    key = _key_of(content, llama_cpp, pre)
    return lambda: key, lambda: from_header(header or header_of(data, name), release_named(llama_cpp), pre)


def _key_of(content: str | None, llama_cpp: str | None, pre: str | None) -> str | None:
    """The cache key of a content read with these options; the name of the content for the defaults."""
    asked = ([] if llama_cpp in (None, NEWEST) else [f"llama_cpp {llama_cpp}"]) + (
        [] if pre is None else [f"pre {pre}"]
    )
    return content if content is None or not asked else name_of("\n".join([content, *asked]).encode())


@contextmanager
def _naming(source: str | os.PathLike[str]) -> Iterator[None]:
    """Add this file name to OSErrors without one."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = source
        raise


def gguf_of(source: Any) -> bool:
    """Whether a source is a GGUF file or its bytes, or something that no other reader takes."""
    if isinstance(source, str | os.PathLike):
        if not os.path.isfile(source):
            return not os.path.isdir(source)
        with _naming(source), open(source, "rb") as file:
            return file.read(4) in (GGUF, b"")
    try:
        return bytes(memoryview(source).cast("B")[:4]) in (GGUF, b"")
    except TypeError:
        return True


def _load_file(source: Any, options: dict[str, Any], *, cache: bool, cache_bytes: int | None) -> Tokenizer:
    """Load the Tokenizer of any file other than GGUF."""

    def known() -> str | None:
        return _known_files(source, options) if cache else None

    def take() -> Taken:
        return _take_files(source, options, cache)

    name = os.fspath(source) if isinstance(source, str | os.PathLike) else IN_MEMORY
    return _load(known, name, take, cache=cache, cache_bytes=cache_bytes, file_options=options, again=_again(name))


_off: list[object] = []
"""One entry per call that has turned the garbage collector off."""


def _on_again() -> None:
    if _off:
        _off.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_on_again)  # a child has no other thread, which would turn it on again


@contextmanager
def _without_collector() -> Iterator[None]:
    """Turn the garbage collector off: it would traverse all lists of tokens again and again, and take longer than
    reading. It is turned on again when a kernel is compiled, as the compiler leaves much garbage."""
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


def _key_of_files(names: Mapping[str, str], options: dict[str, Any]) -> str:
    """The cache key of files: their contents, those of the files next to them, and the options of `load`.

    names: file name -> name of its content; "" for bytes in memory
    """
    digest = blake2b(repr(sorted(options.items())).encode(), digest_size=20)
    for file, content in names.items():
        name = os.fsencode(file)
        digest.update(b"%d %b %b\n" % (len(name), name, content.encode()))  # a file name may contain any byte
    return digest.hexdigest()


def _known_files(source: Any, options: dict[str, Any]) -> str | None:
    """The cache key of files that were all hashed before and are unchanged; else None."""
    if folder() is None or not isinstance(source, str | os.PathLike):
        return None
    names = {}
    for part in _parts(os.fspath(source)):
        if os.path.isfile(part):
            content = known_name(part)
            if content is None:
                return None
            names[os.path.basename(part)] = content
    return _key_of_files(names, options)


def _take_files(source: Any, options: dict[str, Any], cache: bool) -> Taken:
    """Open a file, a folder or the bytes of a file for `read_pipeline`."""
    from jittok.files import read_pipeline

    if not cache or folder() is None:
        return lambda: None, lambda: read_pipeline(source, **options)
    if not isinstance(source, str | os.PathLike):
        content = source if type(source) is bytes else bytes(memoryview(source).cast("B"))
        key = _key_of_files({"": name_of(content)}, options)
        return lambda: key, lambda: read_pipeline(content, **options)
    return _take_parts(os.fspath(source), options)


def _take_parts(path: str, options: dict[str, Any]) -> Taken:
    """Open and read each relevant file once."""
    from pathlib import Path

    from jittok.files import read_pipeline
    from jittok.files.contents import Held, reading
    from jittok.vocab.gguf import FileBytes

    inside = os.path.isdir(path)
    contents, names = {}, {}
    for part in _parts(path):
        if os.path.isfile(part):
            file, name = FileBytes(part), os.path.basename(part)
            if file.size > WHOLE:
                return lambda: None, lambda: read_pipeline(path, **options)
            contents[name] = file[: file.size].tobytes()
            names[name] = name_of(contents[name])
            remember(part, names[name], file.opened, file.facts())
    asked = PARTS if inside else (os.path.basename(path), *BESIDE)
    held, key = Held(Path(path) if inside else Path(path).parent, asked, contents), _key_of_files(names, options)

    def read() -> Pipeline:
        with reading(held):
            return read_pipeline(path, **options)

    return lambda: key if held.complete else None, read


def _parts(path: str) -> list[str]:
    """Paths of files that may be relevant, existing or not: those of a folder, or a file and those next to it."""
    if not os.path.isdir(path):
        return [path, *(os.path.join(os.path.dirname(path), name) for name in BESIDE)]
    import fnmatch

    names = os.listdir(path)
    return sorted({os.path.join(path, name) for part in PARTS for name in fnmatch.filter(names, part)})


def _load(known: Callable[[], str | None], source: str, take: Callable[[], Taken], **options: Any) -> Tokenizer:
    """The Tokenizer cached under the key of a source, or else one of the Vocab that is read.

    known(): the key, if it is known without reading; take(): opens the source
    """
    with _naming(source):
        return _found_or_read(known, source, take, options)


def _found_or_read(
    known: Callable[[], str | None], source: str, take: Callable[[], Taken], options: dict[str, Any]
) -> Tokenizer:
    """The same, with the OSErrors of the system as they are."""
    key, taken = known(), None
    while True:
        kept = None if key is None else load_arrays(key, "encoder")
        parts = None if kept is None else kept.part("vocab")
        if parts is not None:
            return Tokenizer(parts["vocab"]._replace(source=source), key=key, kept=kept, **options)
        kept = None if key is None else load_arrays(key, READ)
        parts = None if kept is None else kept.part("vocab")
        if parts is not None:
            return Tokenizer(parts["vocab"]._replace(source=source), key=key, **options)
        if taken is not None:
            break
        taken = take()
        key, before = taken[0](), key
        if key == before:  # nothing is cached under it
            break
    with _without_collector():
        vocab = _read_at_hand(taken[1])._replace(source=source)
        key = taken[0]()
        tok = Tokenizer(vocab, key=key, **options)
        if key is not None and tok._read_alone:
            save_arrays(key, READ, {"vocab": vocab._replace(source="")})
        return tok


def _read_at_hand(read: Callable[[], Vocab | Pipeline]) -> Vocab | Pipeline:
    """Call `read` without kernels that would have to be compiled first, if possible: reading needs hardly any."""
    if is_cheap(0):
        try:
            with without_compiling():
                return read()
        except WouldCompile:
            pass
    return read()


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

    def known() -> str | None:
        return _key_of(known_name(path), llama_cpp, pre)

    def take() -> Taken:
        with open(path, "rb") as file:
            before, packed = os.fstat(file.fileno()), file.read()
            content = None if folder() is None else name_of(packed)
            if content is not None:
                remember(path, content, before, os.fstat(file.fileno()))
        key = _key_of(content, llama_cpp, pre)
        return lambda: key, lambda: packed_vocab(packed, llama_cpp=llama_cpp, pre=pre)

    options: dict[str, Any] = {"again": _Bundle(name), "cache_bytes": cache_bytes, "llama_cpp": llama_cpp, "pre": pre}
    return run_interruptible(_load, known, f"bundled vocabulary {name}", take, **options)


class _Bundle(Record):
    """Pickles a bundled tokenizer by its name."""

    name: str

    def __call__(self, tok: Tokenizer) -> tuple[Any, ...]:
        return rebundle, (self.name, {"cache_bytes": tok._options["cache_bytes"], **tok._read_as()})


def _again(name: str) -> ReloadRecipe | None:
    """How to pickle a tokenizer: by its file; None for one from memory."""
    return None if name == IN_MEMORY else _reloaded


def _reloaded(tok: Tokenizer) -> tuple[Any, ...]:
    """Pickle a tokenizer by the path of its file."""
    options = {**tok._options, **tok._read_as()}
    return reload, (os.path.join(os.getcwd(), tok.vocab.source), tok.fingerprint, options)


def of_release(tok: Tokenizer, llama_cpp: str) -> Tokenizer:
    """Reload the vocabulary of a tokenizer as another release of llama.cpp reads it. ValueError for an unknown release,
    and for a vocabulary that is neither from a file nor bundled."""
    asked: dict[str, Any] = {"llama_cpp": llama_cpp, "pre": tok.asked_pre}
    if isinstance(tok._again, _Bundle):
        return bundled(tok._again.name, cache_bytes=tok._options["cache_bytes"], **asked)
    if tok.vocab.source == IN_MEMORY:
        raise ValueError(f"{IN_MEMORY}: found no file to read again, expected one loaded with llama_cpp={llama_cpp!r}")
    return load(tok.vocab.source, **tok._options, **asked)


def rebundle(name: str, options: dict[str, Any]) -> Tokenizer:
    """Unpickle a bundled tokenizer."""
    return bundled(name, **options)


def reload(path: str, fingerprint: str, options: dict[str, Any]) -> Tokenizer:
    """Unpickle a tokenizer from a file, which must still hold the same vocabulary."""
    tok = load(path, **options)
    if tok.fingerprint != fingerprint:
        raise MalformedVocab(path, "vocabulary", tok.fingerprint, f"{fingerprint}, as when the tokenizer was pickled")
    return tok
