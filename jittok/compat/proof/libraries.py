"""A tokenizer file in its own library: llama.cpp for a GGUF, tokenizers for a tokenizer.json, and so on.

    kind            library                 with special tokens                     spans
    GGUF            llama-cpp-python        added around a text, and found in it    none
    tokenizer.json  tokenizers              added around a text, and found in it    characters
    vocab files     transformers            added around a text, and found in it    characters
    .model          sentencepiece           neither                                 characters
    ranks           tiktoken                found in a text                         where each token starts
    tekken.json     mistral-common          neither                                 none
    RWKV's list     pyrwkv-tokenizer        neither                                 none

Each gives ids of a text by its own code from its own reading of the file: nothing of jittok's takes part.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.steps import Cut
from jittok.compat.proof.spans import Spans
from jittok.errors import InWords, UnsupportedVocab
from jittok.vocab import Vocab
from jittok.vocab.releases import NEWEST, RELEASES

Encode = Callable[[str, bool, bool], list[int]]
"""(text, add special tokens, find special tokens in it) -> ids."""
PLAIN, FOUND, AROUND, BOTH = (False, False), (False, True), (True, False), (True, True)
ALL_WAYS = (PLAIN, AROUND, FOUND, BOTH)
SAID = {PLAIN: "as text", FOUND: "found", AROUND: "added", BOTH: "found and added"}
"""Options of `encode` -> what happens with special tokens."""


class Library(NamedTuple):
    """A tokenizer file as its own library reads it."""

    name: str  # of the library
    version: str
    encode: Encode
    decode: Callable[[list[int]], str] | None  # None: a text cannot be compared
    ways: tuple[tuple[bool, bool], ...]  # (add_special, parse_special) that it can be asked for
    encode_many: Callable[[list[str]], Any]  # its fastest call on one thread; without special tokens
    stages: Callable[[str], tuple[str, list[str]]] | None = None  # normalized text, pre-tokens
    spans: Callable[[str, bool, bool], Spans] | None = None  # of the same arguments as encode
    note: str = ""


class LibraryMissing(ImportError):
    """The library of a tokenizer file is not installed."""

    def __init__(self, package: str, kind: str) -> None:
        super().__init__(f"{package} is not installed, which reads {kind} files: pip install {package}", name=package)


PACKAGES = {
    "gguf": ("llama_cpp", "llama-cpp-python"),
    "tokenizer.json": ("tokenizers", "tokenizers"),
    "sentencepiece": ("sentencepiece", "sentencepiece"),
    "tiktoken": ("tiktoken", "tiktoken"),
    "tekken": ("mistral_common", "mistral-common"),
    "rwkv": ("pyrwkv_tokenizer", "pyrwkv-tokenizer"),
    "vocab files": ("transformers", "transformers"),
}
"""Kind of file -> the module that reads it, and its package."""


def kind_of(vocab: Vocab | Pipeline) -> str:
    """The key of a vocabulary in `PACKAGES`."""
    if isinstance(vocab, Vocab):
        return "gguf"
    return vocab.format if vocab.format in PACKAGES else "vocab files"


def release_of(version: str) -> tuple[str, str]:
    """The release of llama.cpp to compare with an installed llama-cpp-python, and a remark where it is not the same."""
    names = [release.name for release in RELEASES]
    if version in names:
        return version, ""
    known = names[0]
    newer = _numbers(version) > _numbers(known)
    nearest = NEWEST if newer else known
    return nearest, f"llama-cpp-python {version} is compared with the release {nearest}, the nearest that is recorded"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def installed(kind: str) -> str:
    """The version of the library of a kind of files. LibraryMissing."""
    module, package = PACKAGES[kind]
    try:
        importlib.import_module(module)
        return importlib.metadata.version(package)
    except (ImportError, importlib.metadata.PackageNotFoundError):
        raise LibraryMissing(package, kind) from None


def own_library(path: str | os.PathLike[str], vocab: Vocab | Pipeline) -> Library:
    """Read a tokenizer file, or a folder with one, by its own library. `vocab`: what jittok has read of it, which
    says what kind of file it is.

    LibraryMissing; UnsupportedVocab for a file that its library cannot read alone.
    """
    kind = kind_of(vocab)
    version = installed(kind)
    return _READERS[kind](Path(path), vocab, version)


# ---- each library


def _llama_cpp(path: Path, _: Any, version: str) -> Library:
    import llama_cpp
    from llama_cpp._internals import LlamaModel

    settings = llama_cpp.llama_model_default_params()
    settings.vocab_only = True
    model = LlamaModel(path_model=str(path), params=settings, verbose=False)

    def encode(text: str, around: bool, found: bool) -> list[int]:
        return list(model.tokenize(text.encode(), around, found))

    def many(texts: list[str]) -> list[list[int]]:
        return [model.tokenize(text.encode(), False, False) for text in texts]

    def decode(ids: list[int]) -> str:
        given = (llama_cpp.llama_token * len(ids))(*ids)
        room = 64 * len(ids) + 64
        while True:
            text = ctypes.create_string_buffer(room)
            size = llama_cpp.llama_detokenize(model.vocab, given, len(ids), text, room, False, False)
            if size >= 0:
                return text.raw[:size].decode("utf-8", "replace")
            room = -size

    note = release_of(version)[1]
    return Library("llama.cpp", f"llama-cpp-python {version}", encode, decode, ALL_WAYS, many, note=note)


def _backend(name: str, version: str, backend: Any) -> Library:
    """A `tokenizers.Tokenizer`."""
    backend.no_truncation()
    backend.no_padding()

    def row(text: str, around: bool, found: bool) -> Any:
        backend.encode_special_tokens = not found
        return backend.encode(text, add_special_tokens=around)

    def encode(text: str, around: bool, found: bool) -> list[int]:
        return list(row(text, around, found).ids)

    def spans(text: str, around: bool, found: bool) -> Spans:
        return list(row(text, around, found).offsets)

    def many(texts: list[str]) -> Any:
        backend.encode_special_tokens = True
        return getattr(backend, "encode_batch_fast", backend.encode_batch)(texts, add_special_tokens=False)

    def stages(text: str) -> tuple[str, list[str]]:
        before = backend.normalizer.normalize_str(text) if backend.normalizer else text
        cut = backend.pre_tokenizer.pre_tokenize_str(before) if backend.pre_tokenizer else [(before, (0, len(before)))]
        return before, [word for word, _ in cut]

    def decode(ids: list[int]) -> str:
        return str(backend.decode(ids, skip_special_tokens=False))

    shown = stages if hasattr(backend, "normalizer") else None
    return Library(name, version, encode, decode, ALL_WAYS, many, shown, spans)


def _tokenizers(path: Path, _: Any, version: str) -> Library:
    from tokenizers import Tokenizer

    file = path / "tokenizer.json" if path.is_dir() else path
    return _backend("tokenizers", version, Tokenizer.from_file(str(file)))


def _transformers(path: Path, vocab: Any, version: str) -> Library:
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")  # it would say that there is no PyTorch
    import transformers

    folder = path if path.is_dir() else path.parent
    config = folder / "tokenizer_config.json"
    default = "BertTokenizer" if vocab.format == "vocab.txt" else "GPT2Tokenizer"
    named = json.loads(config.read_text("utf-8")).get("tokenizer_class", default) if config.exists() else default
    kind = getattr(transformers, str(named).removesuffix("Fast"), None)
    if kind is None:
        raise UnsupportedVocab(str(config), "tokenizer_class", named, f"a class of transformers {version}")
    return _backend("transformers", version, kind.from_pretrained(str(folder)).backend_tokenizer)


def _only(path: Path, patterns: Iterable[str]) -> Path:
    """The file itself, or the first of a folder."""
    if not path.is_dir():
        return path
    return next(found for pattern in patterns for found in sorted(path.glob(pattern)))


def _sentencepiece(path: Path, _: Any, version: str) -> Library:
    from sentencepiece import SentencePieceProcessor

    file = _only(path, ("tokenizer.model", "spiece.model", "*.model"))
    model = SentencePieceProcessor(model_file=str(file))

    def decode(ids: list[int]) -> str:
        return str(model.decode(ids))

    def spans(text: str, *_: bool) -> Spans:
        if hasattr(model, "encode_as_offset_mapping"):
            return list(model.encode_as_offset_mapping(text)["offsets"])
        older: Any = model  # before 0.2.3
        return [(piece.begin, piece.end) for piece in older.encode(text, out_type="immutable_proto").pieces]

    return Library(
        "sentencepiece", version, lambda text, *_: list(model.encode(text)), decode, (PLAIN,),
        lambda texts: model.encode(texts, num_threads=1), spans=spans,
    )  # fmt: skip


def _tiktoken(path: Path, vocab: Any, version: str) -> Library:
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    ranks = load_tiktoken_bpe(str(_only(path, ("tokenizer.model", "*.tiktoken", "*.model"))))
    try:
        known = tiktoken.get_encoding(vocab.name) if vocab.name in tiktoken.list_encoding_names() else None
    except Exception:  # noqa: BLE001  it downloads: no network, a proxy ...
        known = None
    pattern = known._pat_str if known else next(step.pattern.text for step in vocab.split if isinstance(step, Cut))
    special = {token.content: token.id for token in vocab.added}
    encoding = tiktoken.Encoding(vocab.name or "file", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)

    def encode(text: str, _around: bool, found: bool) -> list[int]:
        return encoding.encode(text, allowed_special="all") if found else encoding.encode_ordinary(text)

    def many(texts: list[str]) -> Any:
        return [encoding.encode_ordinary(text) for text in texts]

    def spans(text: str, around: bool, found: bool) -> Spans:
        return list(encoding.decode_with_offsets(encode(text, around, found))[1])

    return Library("tiktoken", version, encode, encoding.decode, (PLAIN, FOUND), many, spans=spans)


def _tekken(path: Path, _: Any, version: str) -> Library:
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    model = Tekkenizer.from_file(_only(path, ("tekken.json",)))

    def encode(text: str, *_: bool) -> list[int]:
        return list(model.encode(text, bos=False, eos=False))

    return Library("mistral-common", version, encode, None, (PLAIN,), lambda texts: [encode(text) for text in texts])


def _rwkv(path: Path, vocab: Any, version: str) -> Library:
    from pyrwkv_tokenizer import RWKVTokenizer

    model = RWKVTokenizer()
    if len(vocab) != WORLD:
        raise UnsupportedVocab(
            str(path),
            "list",
            InWords(f"{len(vocab)} tokens"),
            f"the {WORLD} of RWKV World, the only list that {PACKAGES['rwkv'][1]} has",
        )

    def encode(text: str, *_: bool) -> list[int]:
        return list(model.encode(text))

    return Library("pyrwkv-tokenizer", version, encode, None, (PLAIN,), lambda texts: [encode(text) for text in texts])


WORLD = 65530
"""Tokens of the list of RWKV World."""
_READERS: dict[str, Callable[[Path, Any, str], Library]] = {
    "gguf": _llama_cpp,
    "tokenizer.json": _tokenizers,
    "sentencepiece": _sentencepiece,
    "tiktoken": _tiktoken,
    "tekken": _tekken,
    "rwkv": _rwkv,
    "vocab files": _transformers,
}
__all__ = ["PLAIN", "SAID", "Library", "LibraryMissing", "installed", "kind_of", "own_library", "release_of"]
