"""Tokenizer files that other programs have put on this machine: Hugging Face's cache, Ollama, LM Studio, llama.cpp.

`located` finds the file of a name such as "hf:org/name"; `places` lists what is there. Names come from outside: each
part of one is checked before it becomes a part of a path.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SCHEMES = ("hf:", "ollama:", "lmstudio:")
"""Beginnings of names of files that are looked up."""
TOKENIZERS = ("tokenizer.json", "tekken.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt")
"""Files that make a folder one of a tokenizer."""
WANTED = [*TOKENIZERS, "merges.txt", "*.tiktoken", "tokenizer_config.json", "special_tokens_map.json",
          "added_tokens.json", "generation_config.json", "config.json", "chat_template.jinja"]  # fmt: skip
"""Files of a repository that are asked for."""
PART = re.compile(r"[A-Za-z0-9_][\w.+-]*", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}")
DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")
MODEL = "application/vnd.ollama.image.model"
LARGEST = 1 << 22
"""Bytes of a manifest that is read."""


class Place(NamedTuple):
    """A tokenizer file on this machine."""

    name: str  # what `jittok.load` takes
    path: Path
    program: str


def is_name(source: str) -> bool:
    """Whether a source is the name of a file of another program, and no file itself."""
    return source.startswith(SCHEMES) and not os.path.lexists(source)


def located(source: str) -> str:
    """The path of "hf:org/name[@revision][/file]", "ollama:name[:tag]" or "lmstudio:org/name[/file]".

    ValueError for a name that cannot be one; FileNotFoundError where there is no such file, with where it was looked
    for. A repository of Hugging Face that is not in the cache is fetched where huggingface_hub is installed.
    """
    scheme, _, name = source.partition(":")
    return str({"hf": _of_hub, "ollama": _of_ollama, "lmstudio": _of_lmstudio}[scheme](source, name))


def places() -> Iterator[Place]:
    """The tokenizer files of other programs on this machine, by program and name."""
    yield from sorted(_hub_places())
    yield from sorted(_ollama_places())
    for folder in _lmstudio_folders():
        for path in sorted(folder.glob("*/*/*.gguf")):
            yield Place(f"lmstudio:{path.relative_to(folder).as_posix()}", path, "LM Studio")
    cache = Path(os.environ.get("LLAMA_CACHE") or _cache() / "llama.cpp")
    for path in sorted(cache.glob("*.gguf")):
        yield Place(str(path), path, "llama.cpp")


def _parts(source: str, name: str, least: int, most: int, form: str) -> list[str]:
    """The checked parts of a name."""
    parts = name.split("/")
    if not least <= len(parts) <= most or not all(PART.fullmatch(part) and ".." not in part for part in parts):
        raise ValueError(f"source: found {source[:200]!r}, expected {form}")
    return parts


def _missing(source: str, where: Path, what: str) -> FileNotFoundError:
    return FileNotFoundError(f"{source}: found no {what} in {where}; `jittok vocabs` lists what this machine has")


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _read(path: Path) -> str:
    """A small file of another program."""
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path}: found {path.stat().st_size} bytes, expected at most {LARGEST}")
    return path.read_text(encoding="utf-8")


# ---- Hugging Face


def hub_cache() -> Path:
    """The folder that huggingface_hub keeps repositories in."""
    said = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    home = Path(os.environ.get("HF_HOME") or _cache() / "huggingface")
    return Path(said) if said else home / "hub"


def _of_hub(source: str, name: str) -> Path:
    form = "hf:org/name, hf:org/name@revision or hf:org/name/file"
    name, _, revision = name.partition("@")
    revision, _, inside = revision.partition("/")
    parts = _parts(source, f"{name}/{inside}" if inside else name, 1, 6, form)
    if revision and (not PART.fullmatch(revision) or ".." in revision):
        raise ValueError(f"source: found {source[:200]!r}, expected {form}")
    repository, rest = "/".join(parts[:2]), parts[2:]
    folder = hub_cache() / f"models--{'--'.join(parts[:2])}"
    snapshot = _snapshot(folder, revision or "main")
    if snapshot is None:
        snapshot = _fetched(source, repository, revision or None, folder)
    if rest:
        path = snapshot.joinpath(*rest)
        if not path.is_file():
            raise _missing(source, snapshot, f"file {'/'.join(rest)}")
        return path
    if any((snapshot / file).is_file() for file in TOKENIZERS) or any(snapshot.glob("*.tiktoken")):
        return snapshot
    files = sorted(snapshot.glob("*.gguf"))
    if len(files) != 1:
        found = ", ".join(path.name for path in files[:5]) or "no tokenizer file"
        raise FileNotFoundError(f"{source}: found {found} in {snapshot}, expected one file: hf:{repository}/NAME.gguf")
    return files[0]


def _snapshot(folder: Path, revision: str) -> Path | None:
    """The folder of a revision of a repository; None if it is not there."""
    ref = folder / "refs" / revision
    commit = _read(ref).strip() if ref.is_file() else revision
    found = folder / "snapshots" / commit
    return found if COMMIT.fullmatch(commit) and found.is_dir() else None


def _fetched(source: str, repository: str, revision: str | None, folder: Path) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise _missing(source, folder, "such repository") from None
    try:
        return Path(snapshot_download(repository, revision=revision, allow_patterns=WANTED))
    except Exception as error:  # noqa: BLE001  its errors are of many kinds
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise FileNotFoundError(f"{source}: not in {folder}, and not fetched: {said[0][:300]}") from None


def _hub_places() -> Iterator[Place]:
    for folder in hub_cache().glob("models--*"):
        name = folder.name.removeprefix("models--").replace("--", "/")
        snapshot = _snapshot(folder, "main")
        if snapshot is None:
            continue
        if any((snapshot / file).is_file() for file in TOKENIZERS):
            yield Place(f"hf:{name}", snapshot, "Hugging Face")
        for path in snapshot.glob("*.gguf"):
            yield Place(f"hf:{name}/{path.name}", path, "Hugging Face")


# ---- Ollama


def _ollama() -> Path:
    return Path(os.environ.get("OLLAMA_MODELS") or Path.home() / ".ollama" / "models")


def _of_ollama(source: str, name: str) -> Path:
    name, _, tag = name.partition(":")
    parts = _parts(source, f"{name}/{tag or 'latest'}", 2, 4, "ollama:name or ollama:name:tag")
    host = ["registry.ollama.ai", "library"][: 4 - len(parts)]
    manifest = (_ollama() / "manifests").joinpath(*host, *parts)
    if not manifest.is_file():
        raise _missing(source, _ollama(), f"manifest {'/'.join([*host, *parts])}")
    path = _blob(manifest)
    if path is None:
        raise _missing(source, _ollama(), "model that its manifest names")
    return path


def _blob(manifest: Path) -> Path | None:
    """The model of a manifest; None if there is none."""
    try:
        layers = json.loads(_read(manifest)).get("layers", [])
        digests = [layer["digest"] for layer in layers if layer.get("mediaType") == MODEL]
    except (ValueError, AttributeError, KeyError, TypeError):
        return None
    found = DIGEST.fullmatch(digests[0]) if digests and isinstance(digests[0], str) else None
    path = _ollama() / "blobs" / f"sha256-{found[1]}" if found else None
    return path if path is not None and path.is_file() else None


def _ollama_places() -> Iterator[Place]:
    root = _ollama() / "manifests"
    for manifest in root.glob("*/*/*/*"):
        host, owner, name, tag = manifest.relative_to(root).parts
        path = _blob(manifest) if manifest.is_file() else None
        if path is not None:
            before = "" if (host, owner) == ("registry.ollama.ai", "library") else f"{owner}/"
            before = before if host == "registry.ollama.ai" else f"{host}/{owner}/"
            yield Place(f"ollama:{before}{name}:{tag}", path, "Ollama")


# ---- LM Studio


def _lmstudio_folders() -> list[Path]:
    known = Path.home() / ".lmstudio" / "models", Path.home() / ".cache" / "lm-studio" / "models"
    return [folder for folder in known if folder.is_dir()]


def _of_lmstudio(source: str, name: str) -> Path:
    parts = _parts(source, name, 2, 3, "lmstudio:org/name or lmstudio:org/name/file.gguf")
    for folder in _lmstudio_folders():
        path = folder.joinpath(*parts)
        files = [path] if path.is_file() else sorted(path.glob("*.gguf"))
        if len(files) == 1:
            return files[0]
        if files:
            found = ", ".join(each.name for each in files[:5])
            raise FileNotFoundError(f"{source}: found {found}, expected one of them: {source}/NAME.gguf")
    raise _missing(source, Path.home() / ".lmstudio" / "models", "such model")
