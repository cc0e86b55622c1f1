"""Shards of a bucket as blocks: a shard is copied to this machine when one of its documents is first read."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jittok.corpus.formats.base import MASK, Block, Format, Lazy
from jittok.corpus.shards.manifest import Manifest, label_of
from jittok.corpus.store import Store
from jittok.errors import CorpusError, InWords

FETCHED_AT_ONCE = 8 << 20
Read = Callable[[Path, str, int], list[Lazy]]
"""read(folder, label, documents): the blocks of a shard."""


def far_blocks(store: Store, manifest: Manifest, form: Format, masks: bool = False) -> list[Lazy]:
    """A block for each shard, of its ids or its masks. Its files are compared with the manifest as they are copied; the
    copy goes with the block."""
    found = []
    for number, shard in enumerate(manifest["shards"]):
        label = label_of(shard, number)
        folders = f"{form.name}/", *([f"{MASK}/"] if masks else [])
        files = [file for file in shard["files"] if file["name"].startswith(folders)]
        read = form.masks if masks else form.blocks
        found.append(Lazy(shard["documents"], partial(_load, store, files, read, label, shard["documents"])))
    return found


def _load(store: Store, files: Sequence[dict[str, Any]], read: Read, label: str, documents: int) -> Block:
    folder = Path(tempfile.mkdtemp(prefix="jittok-"))
    try:
        for file in files:
            _copy(store, file, folder)
        parts = read(folder, label, documents)
        count = sum(part.documents for part in parts)
        if count != documents:
            where = store.where(files[0]["name"] if files else "")
            raise CorpusError(where, InWords(f"{count} documents"), f"{documents}")
        block = _joined([part.load() for part in parts])
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(block.ids, shutil.rmtree, folder, ignore_errors=True)
    return block


def _copy(store: Store, file: dict[str, Any], folder: Path) -> None:
    """Copy a file of the manifest, whose name was checked. CorpusError unless it is what was written."""
    path, digest = folder / file["name"], hashlib.sha256()
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as copy:
        for start in range(0, file["bytes"], FETCHED_AT_ONCE):
            piece = store.read(file["name"], start, min(start + FETCHED_AT_ONCE, file["bytes"]))
            digest.update(piece)
            copy.write(piece)
    if path.stat().st_size != file["bytes"] or digest.hexdigest() != file["sha256"]:
        raise CorpusError(store.where(file["name"]), InWords("other content than was written (SHA-256)"), "the shard")


def _joined(blocks: Sequence[Block]) -> Block:
    """The blocks of a shard as one."""
    if len(blocks) == 1:
        return blocks[0]
    if not blocks:
        return Block(np.zeros(0, np.int32), np.zeros(1, np.int64))
    ids = np.concatenate([np.asarray(block.ids[0 : len(block.ids)]) for block in blocks])
    lengths = np.concatenate([np.diff(np.asarray(block.offsets)) for block in blocks])
    return Block(ids, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
