"""Compiled vocabularies on disk: structures of arrays in one file, which is mapped, not read, at later loads.

A file is a JSON header followed by arrays. The header describes the NamedTuples and records of this package that the
arrays and scalars belong to. The name of the file is a digest of the vocabulary's file (`name_of`), and it is valid for
one stamp of the package's sources and tables: another version writes it again.

A vocabulary's file is hashed once; later its path, size, times and inode identify it. A load checks sizes, offsets,
types and a sum over all words of the arrays. A damaged file is a miss.

Files are written under a temporary name and renamed, so any number of processes may start together. A file is mapped
only if no one but this user and root can write to it (`jit.trust`), so no one else can truncate or change it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import mmap
import os
import stat
import sys
import time
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.digest import blake2b
from jittok.common.record import Record
from jittok.kernels.jit import cache_dir, trust
from jittok.kernels.jit.stamps import MEMO_ENDING, SETTLED, kept_stamp
from jittok.kernels.jit.store import log, not_kept, read_kept
from jittok.kernels.pretokenize import records
from jittok.vocab.types import TYPES

MAGIC = b"jittok compiled vocabulary 2\n"
ALIGNMENT = 64
LEAST_HEAD, MOST_HEAD = 2, 1 << 20
ROW = 4099
"""Words of a row of the sum: no multiple of a page, so that exchanged pages are noticed."""
DIGITS = 40
ENDING, LINK_ENDING = ".vocab", ".path"
_ROOTS = ("encode.encoder", "decode.pieces", "vocab.load", "encode.file_plan", "files",
          "align.wordpiece", "align.unigram_normalizer", "kernels.vocab_cache")  # fmt: skip
"""Modules that, with those of the vocabulary types, import all that makes a compiled vocabulary."""
TABLES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "common", "unicode")
"""The folder of the tables of characters."""


class Damaged(Exception):
    """A file that differs from what was written."""


_NOT_WRITTEN = (Damaged, OSError, ValueError, KeyError, TypeError, AttributeError, ImportError)
"""Exceptions that a damaged file may raise."""


def folder() -> str | None:
    """The folder of compiled vocabularies, None if nothing is cached."""
    root = cache_dir()
    return None if root is None else os.path.join(root, "vocabularies")


@cache
def stamp() -> str:
    """A digest of everything else that a compiled vocabulary depends on."""
    digest = blake2b(sys.byteorder.encode(), digest_size=32)
    kernels = dict.fromkeys(kind.module for kind in TYPES.values() if kind.module)
    digest.update(kept_stamp(*(f"jittok.{module}" for module in _ROOTS), *kernels))
    tables = [os.path.join(TABLES, name) for name in sorted(os.listdir(TABLES)) if name.endswith(".npz")]
    for path in (records.FILE, *tables):
        with open(path, "rb") as file:
            digest.update(blake2b(file.read()).digest())
    return digest.hexdigest()


# ---- which vocabulary


def name_of(content: Any) -> str:
    """The name of a content: 40 hex digits. SHA-256 has instructions of its own: it takes half as long as BLAKE2."""
    import hashlib

    return hashlib.sha256(content).hexdigest()[:DIGITS]


def _state_of(facts: os.stat_result) -> list[int]:
    """What changes with the content of a file."""
    return [facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns]


def _link_of(path: str) -> tuple[str, str]:
    """(absolute path, the file that records the name of its content). realpath would look up every folder above."""
    file_path = os.path.abspath(path)
    name = blake2b(os.fsencode(file_path), digest_size=DIGITS // 2).hexdigest()
    return file_path, os.path.join(folder(), name + LINK_ENDING)  # type: ignore[arg-type]  # asked where there is one


def known_name(path: str) -> str | None:
    """The name of a file's content by its path, size, times and inode, without opening it; None if it was not hashed
    as it is now. OSError.

    A file that others can write to is hashed each time: through a mapping they change it without changing its times.
    """
    facts = os.stat(path)
    if folder() is None or not stat.S_ISREG(facts.st_mode) or trust.doubt(facts) is not None:
        return None
    file_path, link = _link_of(path)
    try:
        known = json.loads(read_kept(link) or b"")
        return str(known["key"]) if known["state"] == _state_of(facts) and known["path"] == file_path else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(path: str, name: str, before: os.stat_result, after: os.stat_result) -> None:
    """Keep the name of the content that an open file had between two looks at it, unless it was exchanged or written
    to meanwhile, or so lately that its times do not tell: its path would lead to the other content from then on."""
    state, youngest = _state_of(before), max(before.st_mtime, before.st_ctime)
    if trust.doubt(before) is None and time.time() - youngest > SETTLED:
        try:
            same = state == _state_of(after) == _state_of(os.stat(path))
        except OSError:
            return
        if same:
            file_path, link = _link_of(path)
            _write(link, json.dumps({"state": state, "path": file_path, "key": name}).encode())


# ---- structures to bytes


def save_arrays(key: str, name: str, structures: dict[str, Any]) -> None:
    """Write structures under a key. What cannot be written is logged."""
    arrays: list[NDArray[Any]] = []
    seen: dict[tuple[int, int, str], int] = {}
    tree = {part: _describe(value, arrays, seen) for part, value in structures.items()}
    positions: list[tuple[str, int, int]] = []
    at = 0
    for array in arrays:
        positions.append((array.dtype.str, array.size, at))
        at += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    parts = [array.view(np.uint8) for array in arrays]
    found = _sum((start, part) for part, (_, _, start) in zip(parts, positions, strict=True))
    facts = {"stamp": stamp(), "key": key, "sum": found, "bytes": at, "arrays": positions, "tree": tree}
    head = json.dumps(facts).encode()
    front = MAGIC + len(head).to_bytes(8, "little") + blake2b(head, digest_size=32).digest() + head
    filled: list[bytes | memoryview] = []
    for part in parts:
        filled += [part.data, bytes(-part.size % ALIGNMENT)]
    _write(_place(key, name), front + bytes(-len(front) % ALIGNMENT), *filled)


def _place(key: str, name: str) -> str:
    return os.path.join(folder(), f"{key}-{name}{ENDING}")  # type: ignore[arg-type]  # without a folder there is no key


def _write(path: str, *parts: bytes | memoryview) -> None:
    try:
        trust.write_file(path, *parts)
    except OSError as error:
        not_kept(path, error)


def _describe(value: Any, arrays: list[NDArray[Any]], seen: dict[tuple[int, int, str], int]) -> Any:
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        path = (array.__array_interface__["data"][0], array.nbytes, array.dtype.str)
        if path not in seen:  # arrays that share memory still share it when loaded
            seen[path] = len(arrays)
            arrays.append(array)
        return {"array": seen[path]}
    if value is None or type(value) in (bool, int, str, float):
        return value
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    if isinstance(value, frozenset):
        return {"set": sorted(value)}
    if type(value) is tuple:
        return {"tuple": [_describe(item, arrays, seen) for item in value]}
    home = f"{type(value).__module__}:{type(value).__qualname__.rsplit('.', 1)[-1]}"
    return {"type": home, "fields": {name: _describe(item, arrays, seen) for name, item in value._asdict().items()}}


def _sum(parts: Iterable[tuple[int, NDArray[np.uint8]]]) -> str:
    """A digest of all words of a block: of the column sums of the words in rows of ROW. Reads 10 GB a second.

    parts: (offset in the block, a multiple of 8; the bytes there), with zeros between them
    """
    columns = np.zeros(ROW, np.uint64)
    for start, part in parts:
        whole, at = part.size // 8, start // 8 % ROW
        words = part[: 8 * whole].view(np.uint64)
        first = min(-at % ROW, whole)
        last = first + (whole - first) // ROW * ROW
        columns[at : at + first] += words[:first]
        columns += np.add.reduce(words[first:last].reshape(-1, ROW), axis=0)
        columns[: whole - last] += words[last:]
        rest = (at + whole) % ROW  # as an array of one: NumPy warns when a scalar wraps around
        columns[rest : rest + 1] += np.uint64(int.from_bytes(part[8 * whole :].tobytes(), "little"))
    return blake2b(columns.data, digest_size=16).hexdigest()


# ---- and back


class CachedArrays:
    """The structures of one checked file; each is built, and its module imported, when it is needed."""

    def __init__(self, path: str, tree: dict[str, Any], arrays: list[NDArray[Any]]) -> None:
        self._place, self._tree, self._arrays = path, tree, arrays

    def part(self, *names: str) -> dict[str, Any] | None:
        """Structures by name; None, and a log line, if they cannot be built."""
        try:
            return {name: _build(self._tree[name], self._arrays) for name in names}
        except _NOT_WRITTEN as error:
            log.warning("compiled vocabulary ignored: %s: %s", self._place, error)
            return None


def load_arrays(key: str, name: str) -> CachedArrays | None:
    """The structures cached under a key by this version of the package, their arrays mapped; None: a miss."""
    path = _place(key, name)
    try:
        with open(trust.open_file(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < len(MAGIC) + 40:
                raise Damaged("too short")
            mapped = _map(file.fileno())
        found = _tree_and_arrays(memoryview(mapped), key)
        _let_go(mapped)
        return found and CachedArrays(path, *found)
    except FileNotFoundError:
        return None
    except trust.Distrusted as error:
        trust.tell_once(os.path.dirname(os.path.dirname(path)), "vocabulary cache not used: %s", error)
        return None
    except _NOT_WRITTEN as error:
        log.warning("compiled vocabulary ignored: %s: %s", path, error)
        return None


def _map(handle: int) -> mmap.mmap:
    if hasattr(
        mmap, "MAP_POPULATE"
    ):  # all pages are read at once for the sum: one call instead of a fault for every 16 pages
        return mmap.mmap(handle, 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, prot=mmap.PROT_READ)
    return mmap.mmap(handle, 0, access=mmap.ACCESS_READ)


def _let_go(mapped: mmap.mmap) -> None:
    """Release the pages that were read for the sum. They stay in the system's cache, and the first texts read few of
    them: with Llama 3 the process is 25 MB smaller."""
    if sys.platform == "linux":
        mapped.madvise(mmap.MADV_DONTNEED)


def _tree_and_arrays(view: memoryview, key: str) -> tuple[dict[str, Any], list[NDArray[Any]]] | None:
    at = len(MAGIC) + 40
    if view[: len(MAGIC)] != MAGIC:
        raise Damaged("another beginning")
    length = int.from_bytes(view[len(MAGIC) : len(MAGIC) + 8], "little")
    if not LEAST_HEAD <= length <= min(MOST_HEAD, len(view) - at):
        raise Damaged(f"a head of {length} bytes")
    head = view[at : at + length]
    if blake2b(head, digest_size=32).digest() != view[at - 32 : at]:
        raise Damaged("the head has another digest")
    facts = json.loads(bytes(head))
    if facts["stamp"] != stamp() or facts["key"] != key:
        return None
    start = -(-(at + length) // ALIGNMENT) * ALIGNMENT
    if len(view) - start != facts["bytes"] or facts["bytes"] % ALIGNMENT:
        raise Damaged(f"{len(view) - start} bytes of arrays, expected {facts['bytes']}")
    block = np.frombuffer(view, np.uint8, facts["bytes"], start)
    if _sum([(0, block)]) != facts["sum"]:
        raise Damaged("the arrays have another sum")
    arrays = []
    for kind, count, path in facts["arrays"]:
        dtype = np.dtype(kind)
        if dtype.kind not in "iuf" or count < 0 or path < 0 or path + count * dtype.itemsize > facts["bytes"]:
            raise Damaged("an array outside the file")
        arrays.append(np.frombuffer(block, dtype, count, path) if count else np.zeros(0, dtype))
        arrays[-1].flags.writeable = False
    return facts["tree"], arrays


def _build(value: Any, arrays: list[NDArray[Any]]) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "set" in value:
        return frozenset(value["set"])
    if "tuple" in value:
        return tuple(_build(item, arrays) for item in value["tuple"])
    module, name = value["type"].split(":")
    if not module.startswith("jittok."):
        raise Damaged(f"a structure of {module}")
    kind: Any = getattr(importlib.import_module(module), name)
    if not isinstance(kind, type) or not issubclass(kind, tuple | Record):
        raise Damaged(f"{name} is no structure")
    return kind(**{field: _build(item, arrays) for field, item in value["fields"].items()})


# ---- the folder


class CacheEntry(NamedTuple):
    """A file of the cache."""

    path: str
    bytes: int
    kind: str  # "vocabulary", "kernel", "path", "sources", "other"
    of: str  # what it is of, in words


def entries() -> list[CacheEntry]:
    """Every file of the cache, machine code too, by name."""
    root, found = cache_dir(), []
    if root is None:
        return []
    kinds = {".o": "kernel", ENDING: "vocabulary", LINK_ENDING: "path", MEMO_ENDING: "sources"}
    parts = [os.path.join(root, part) for part in ("kernels", "vocabularies")]
    for part in parts:
        if os.path.isdir(part) and not os.path.islink(part):
            for path in sorted(os.path.join(part, name) for name in os.listdir(part)):
                kind = kinds.get(os.path.splitext(path)[1], "other")
                found.append(CacheEntry(path, os.lstat(path).st_size, kind, _describe_file(path, kind)))
    return found


def _describe_file(path: str, kind: str) -> str:
    """What a file is of; damage is no failure."""
    if kind in ("kernel", "sources"):
        return os.path.splitext(os.path.basename(path))[0]
    try:
        with open(path, "rb") as file:
            if kind == "path":
                return str(json.load(file)["path"])
            start = file.read(len(MAGIC) + 40)
            length = int.from_bytes(start[len(MAGIC) : len(MAGIC) + 8], "little")
            facts = json.loads(file.read(min(length, MOST_HEAD)))
        vocab = facts["tree"].get("vocab", {}).get("fields", {})
        if not vocab:
            return f"{', '.join(facts['tree'])} of {facts['key'][:8]}"
        what = " ".join(filter(None, (vocab["type"], vocab["pre"], vocab["name"])))
        return what + ("" if facts["stamp"] == stamp() else " (of another version)")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return "damaged"


def clear() -> tuple[int, int]:
    """Delete every file of the cache; how many, and their bytes. OSError where that is not allowed."""
    gone = entries()
    for entry in gone:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(entry.path)
    return len(gone), sum(entry.bytes for entry in gone)
