"""Reads tokenizer files of other libraries as Pipelines. The format is detected from the content.

One small reader a format. A reader checks everything it reads: an invalid value raises MalformedVocab with its
position, a component that this version does not support UnsupportedVocab with its name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jittok.common.pipeline import Pipeline
from jittok.errors import IN_MEMORY, InWords, MalformedVocab, UnsupportedVocab
from jittok.files.contents import exists, matching, parse_json, read_file
from jittok.files.json_nodes import Node
from jittok.files.transformers.auto_class import beside, class_of, own_steps

__all__ = ["holds_ranks", "read_object", "read_pipeline"]

EXPECTED = "a GGUF file, tokenizer.json, tekken.json, a sentencepiece model, tiktoken ranks or an RWKV list"
SINGLE = {
    "merges.txt": "vocab.json beside it, and the folder's name in place of the file's",
    "vocab.json": "merges.txt beside it, and the folder's name in place of the file's",
    "tokenizer_config.json": "tokenizer.json, tokenizer.model or vocab.txt beside it, and the folder's name",
}
"""Files that are a part of a tokenizer -> what they need."""


def read_pipeline(source: Any, **options: Any) -> Pipeline:
    """The Pipeline of a file, a folder, or the bytes of a file. `options`: of rank files, see `jittok.load`.

    MalformedVocab, UnsupportedVocab, OSError; TypeError for options that the file does not take.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.is_dir():
            return _folder(path, given)
        return _file(path, read_file(path), given)
    return _content(IN_MEMORY, bytes(memoryview(source).cast("B")), given)


def read_object(content: bytes) -> Pipeline:
    """The Pipeline of a serialized object of `tokenizers`, with its scores to the last bit."""
    from jittok.files.hf.tokenizer_json import pipeline_of
    from jittok.files.hf.tokenizers_1_0 import as_before, check_ids

    root = parse_json(IN_MEMORY, content)
    made = pipeline_of(as_before(root), b"")
    check_ids(root, made.ids)
    return made


def _folder(folder: Path, given: Mapping[str, Any]) -> Pipeline:
    for name in ("tokenizer.json", "tekken.json", "tokenizer.model", "spiece.model"):
        if path := exists(folder, name):
            return _file(path, read_file(path), given)
    for pattern in ("*.model", "*.tiktoken"):
        if path := next(iter(matching(folder, pattern)), None):
            return _file(path, read_file(path), given)
    vocab, merges, plain = (exists(folder, name) for name in ("vocab.json", "merges.txt", "vocab.txt"))
    if vocab and merges:
        from jittok.files.transformers.vocab_folder import read_vocab_json

        _none_of(str(folder), given)
        return read_vocab_json(folder, vocab, merges)
    if plain:
        return _file(plain, read_file(plain), given)
    if path := next(iter(matching(folder, "rwkv*.txt")), None):
        return _file(path, read_file(path), given)
    for name, expected in SINGLE.items():
        if exists(folder, name):
            raise MalformedVocab(str(folder), "folder", InWords(f"{name} alone"), expected)
    found = sorted(path.name for path in folder.iterdir())[:10]
    raise MalformedVocab(
        str(folder),
        "folder",
        found,
        "a supported file: tokenizer.json, tekken.json, *.model, *.tiktoken, vocab.txt, rwkv*.txt, or "
        "vocab.json and merges.txt",
    )


def _file(path: Path, content: bytes, given: Mapping[str, Any]) -> Pipeline:
    if path.name in SINGLE and not _is_tokenizer(str(path), content):
        raise MalformedVocab(str(path), "file", InWords(f"{path.name} alone"), SINGLE[path.name])
    if path.name == "vocab.txt" and not _is_rwkv(content):
        from jittok.files.transformers.vocab_folder import read_vocab_txt

        _none_of(str(path), given)
        return read_vocab_txt(path)
    return _content(str(path), content, given, path.parent)


def _is_tokenizer(file: str, content: bytes) -> bool:
    return content.lstrip()[:1] == b"{" and isinstance(parse_json(file, content).of(dict).get("model"), dict)


def _is_rwkv(content: bytes) -> bool:
    return content.startswith(b"1 '\\x00' 1")


def _content(file: str, content: bytes, given: Mapping[str, Any], folder: Path | None = None) -> Pipeline:
    """The Pipeline of the bytes of a file; `folder`: where other files of the same tokenizer may be."""
    if _is_ranks(content) or (given and content.lstrip()[:1] != b"{"):
        from jittok.files.ranks import read_ranks

        return _said(read_ranks(file, content, **given), folder)
    _none_of(file, given)
    if content[:1] == b"\n":
        return _said(_sentencepiece(file, content, folder), folder)
    if _is_rwkv(content):
        from jittok.files.rwkv import read_rwkv

        return _said(read_rwkv(file, content), folder)
    if content.lstrip()[:1] == b"{":
        root = parse_json(file, content)
        keys = root.of(dict)
        if "model" in keys:
            return _of_json(root, content, folder)
        if "config" in keys and "vocab" in keys:
            from jittok.files.ranks import read_tekken

            return read_tekken(file, content)
        names = ", ".join(map(repr, sorted(keys)[:6])) or "no keys"
        raise UnsupportedVocab(file, "file", InWords(f"JSON with {names}"), EXPECTED)
    raise UnsupportedVocab(file, "file", content[:16], EXPECTED)


def _said(made: Pipeline, folder: Path | None, byte_level: bool = False) -> Pipeline:
    """A tokenizer with the special ids of its folder."""
    from jittok.files.transformers.roles import with_padding, with_roles

    return with_padding(made) if folder is None else with_roles(made, folder, class_of(folder, byte_level))


def _sentencepiece(file: str, content: bytes, folder: Path | None) -> Pipeline:
    from jittok.files.sentencepiece import read_sentencepiece
    from jittok.files.transformers.roles import named_beside

    if folder is None:
        return read_sentencepiece(file, content)
    config = beside(folder, "tokenizer_config.json")
    add_bos, add_eos = (config.get(key, bool, False) for key in ("add_bos_token", "add_eos_token"))
    return read_sentencepiece(file, content, add_bos, add_eos, named_beside(folder))


def _of_json(root: Node, content: bytes, folder: Path | None) -> Pipeline:
    """The Pipeline of a tokenizer.json: the file's own steps, with a note where transformers would take others."""
    from jittok.files.hf.tokenizer_json import pipeline_of

    if folder is None:
        return _said(pipeline_of(root, content), None)
    parts = [*_kinds(root.value.get("pre_tokenizer")), *_kinds(root.value.get("decoder"))]
    byte_level = "ByteLevel" in parts
    name = class_of(folder, byte_level)
    notes: tuple[str, ...] = ()
    if name is not None and own_steps(name, root.value):
        notes = (f"transformers' AutoTokenizer takes {name}'s own steps instead of the file's: its ids may differ",)
    return _said(pipeline_of(root, content, notes), folder, byte_level)


def _kinds(part: Any) -> list[Any]:
    """The types of a component, and of those in a Sequence."""
    if not isinstance(part, dict):
        return []
    rows = part.get("pretokenizers") or part.get("decoders")
    within = [kind for row in rows for kind in _kinds(row)] if isinstance(rows, list) else []
    return [part.get("type"), *within]


def _is_ranks(content: bytes) -> bool:
    """Whether the first line is base64, a space and a number."""
    first = content[:1000].split(b"\n", 1)[0].strip().split(b" ")
    return (
        len(first) == 2 and first[1].isdigit() and len(first[0]) % 4 == 0 and first[0] != b""
        and not first[0].strip(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
    )  # fmt: skip


def holds_ranks(source: str | os.PathLike[str]) -> bool:
    """Whether `read_pipeline` reads tiktoken ranks from a file, or from a folder."""
    path = Path(source)
    if path.is_dir():
        if any(exists(path, name) for name in ("tokenizer.json", "tekken.json")):
            return False
        found = next((p for kind in ("tokenizer.model", "spiece.model", "*.model", "*.tiktoken")
                      for p in sorted(path.glob(kind))), None)  # fmt: skip
        return found is not None and holds_ranks(found)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _is_ranks(file.read(1000))


def _none_of(file: str, given: Mapping[str, Any]) -> None:
    if given:
        raise TypeError(f"{file}: found {', '.join(given)}, expected a rank file, the only kind that takes them")
