"""Finished corpora as tokens: which files of a shard have its ids, and where documents begin in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jittok.corpus.formats import FORMATS, format_class, make_formats
from jittok.corpus.formats.bare_ids import WithOffsets
from jittok.corpus.formats.base import NPY_HEADER, Facts, Format
from jittok.corpus.formats.megatron import ARRAYS_AT, Megatron
from jittok.corpus.reading.files import Files, Listed, Numbers
from jittok.corpus.reading.parts import BlocksPart, FilePart, Keeper, Part
from jittok.corpus.reading.tokens import Tokens
from jittok.corpus.shards.manifest import Manifest, label_of, read_manifest
from jittok.errors import CorpusError, InWords

if TYPE_CHECKING:
    from jittok.corpus.shards.readback import Corpus

INT64 = np.dtype("<i8")
HELD_BLOCKS = 3
"""Row groups of Parquet that are kept, 64 MB each."""


class Shard(NamedTuple):
    """A shard as the manifest has it; files by their ending."""

    folder: Path
    form: Format
    label: str
    documents: int
    tokens: int
    files: Mapping[str, Listed]

    def file(self, ending: str) -> Listed:
        """The file of the format with this ending."""
        found = [file for name, file in self.files.items() if name.endswith(ending)]
        if len(found) != 1:
            raise CorpusError(
                f"{self.folder}, {self.form.name}, shard {self.label}", InWords(f"{len(found)} files {ending}"), "one"
            )
        return found[0]

    def ids(self, ending: str, header: int) -> Numbers:
        """The ids of a file, all of which are there."""
        file = self.file(ending)
        size = header + self.tokens * self.form.dtype.itemsize
        if file.size != size:
            raise CorpusError(str(file.path), InWords(f"{file.size} bytes in the manifest"), f"{size}, for its ids")
        return Numbers(file, self.form.dtype, header, self.tokens)


def opened(given: Sequence[Any], format: str | None, check: str, shuffle: str | None) -> Tokens:  # noqa: A002
    """Corpora one after the other."""
    files = Files(check)
    found = [_tokens(corpus, format, files, shuffle) for corpus in given]
    first = found[0]
    for other in found[1:]:
        other.same_vocabulary(first)
        if other.dtype != first.dtype and other.total and first.total:
            raise CorpusError(
                other.name, InWords(f"ids as {other.dtype.name}"), f"{first.dtype.name}, as in {first.name}: one format"
            )
    if len(found) == 1:
        return first
    digest = hashlib.sha256("".join(each.digest for each in found).encode()).hexdigest()
    parts = [part for each in found for part in each.parts]
    return Tokens(f"{first.name} and {len(found) - 1} more", parts, first.vocab_size, first.fingerprint, digest)


def _tokens(corpus: str | PathLike[str] | Corpus, format: str | None, files: Files, shuffle: str | None) -> Tokens:  # noqa: A002
    where = getattr(corpus, "where", corpus)  # an open corpus: the folder, and the format that was chosen
    if isinstance(where, tuple):
        where, format = where[0], format or where[1]  # noqa: A001
    folder = Path(where)  # type: ignore[arg-type]
    manifest = read_manifest(folder)
    form = _format(manifest, folder, format, shuffle)
    shards = _shards(manifest, folder, form)
    parts = [part for shard in shards if shard.tokens for part in _parts(shard, files)]
    facts = [manifest["vocab"]["fingerprint"], form.name]
    facts += [[file.size, file.sha256] for shard in shards for file in shard.files.values()]
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    return Tokens(str(folder), parts, manifest["vocab"]["tokens"], manifest["vocab"]["fingerprint"], digest)


def _format(manifest: Manifest, folder: Path, name: str | None, shuffle: str | None) -> Format:
    written = [form for form in FORMATS if form in manifest["options"]["formats"]]
    if name is not None and name not in written:
        raise CorpusError(str(folder), InWords(f"formats {', '.join(written)}"), f"{name}, or one of these")
    if not written:
        found = InWords(f"formats {', '.join(manifest['options']['formats'])}")
        raise CorpusError(str(folder), found, f"one or more of {', '.join(FORMATS)}")
    name = name or min(written, key=lambda form: format_class(form).slowness)
    if name == "parquet" and shuffle is not None:
        raise CorpusError(
            str(folder), InWords(f"format parquet, shuffle={shuffle!r}"),
            "another format (npy, nanogpt, megatron, arrow ...), as row groups of Parquet have to be unpacked as a "
            "whole for each sequence; or shuffle=None",
        )  # fmt: skip
    vocab = manifest["vocab"]
    facts = Facts(vocab["tokens"], vocab["name"] or "", vocab["fingerprint"], manifest["options"]["dtype"], ())
    return make_formats([name], facts)[0]


def _shards(manifest: Manifest, folder: Path, form: Format) -> list[Shard]:
    found = []
    for number, shard in enumerate(manifest["shards"]):
        files = {
            file["name"]: Listed(folder / file["name"], file["bytes"], file["sha256"])
            for file in shard["files"]
            if file["name"].startswith(f"{form.name}/")
        }
        found.append(Shard(folder, form, label_of(shard, number), shard["documents"], shard["tokens"], files))
    return found


def _parts(shard: Shard, files: Files) -> Sequence[Part]:
    if isinstance(shard.form, WithOffsets):
        return [_with_offsets(shard, files)]
    if isinstance(shard.form, Megatron):
        return [_megatron(shard, files)]
    how: dict[str, Callable[[Shard, Files], Sequence[Part]]] = {"datatrove": _datatrove, "arrow": _arrow}
    return how.get(shard.form.name, _blocks)(shard, files)


def _with_offsets(shard: Shard, files: Files) -> FilePart:
    form = shard.form
    assert isinstance(form, WithOffsets)
    starts = Numbers(shard.file(".offsets.npy"), INT64, NPY_HEADER, shard.documents + 1)
    ids = shard.ids(f".{form.ending}", form.header)
    return FilePart(files, ids, _fitting(starts))


def _megatron(shard: Shard, files: Files) -> FilePart:
    """Where sequences begin is said in bytes; an empty document has none."""
    index, form = shard.file(".idx"), shard.form
    assert isinstance(form, Megatron)
    head = bytearray(ARRAYS_AT)
    files.read_into(index, memoryview(head), 0)
    sequences, ends = form.counts(index.path, bytes(head))
    if ends != shard.documents + 1:
        raise CorpusError(str(index.path), InWords(f"{ends - 1} documents"), f"{shard.documents}, as the manifest says")
    starts = Numbers(index, INT64, ARRAYS_AT + 4 * sequences, sequences)
    return FilePart(files, shard.ids(".bin", 0), _fitting(starts), form.dtype.itemsize)


def _datatrove(shard: Shard, files: Files) -> list[Part]:
    ends = Numbers(shard.file(".ds.index"), INT64, 0, shard.documents)
    return [FilePart(files, shard.ids(".ds", 0), _fitting(ends))]


def _arrow(shard: Shard, files: Files) -> list[Part]:
    """A part a record batch, read where its buffers lie."""
    from jittok.corpus.formats.tables import batches_of

    file = shard.file(".arrow")
    files.opened(file)  # its size is that of the manifest
    parts: list[Part] = []
    for batch in batches_of(file.path):
        starts = Numbers(file, np.dtype("<i4"), batch.offsets, batch.documents + 1 if batch.documents else 0)
        ids = Numbers(file, np.dtype("<i4"), batch.ids, batch.tokens)
        parts.append(FilePart(files, _fitting(ids), _fitting(starts)))
    found = sum(part.tokens for part in parts)
    if found != shard.tokens:
        raise CorpusError(str(file.path), InWords(f"{found} ids"), f"{shard.tokens}, as the manifest says")
    return parts


def _fitting(numbers: Numbers) -> Numbers:
    """CorpusError unless all of them lie in their file."""
    end = numbers.at + numbers.size * numbers.dtype.itemsize
    if numbers.at < 0 or numbers.size < 0 or end > numbers.file.size:
        raise CorpusError(
            str(numbers.file.path), InWords(f"{numbers.size} numbers from byte {numbers.at} on"),
            f"no more than {numbers.file.size} bytes, its size",
        )  # fmt: skip
    return numbers


def _blocks(shard: Shard, files: Files) -> list[Part]:
    for file in shard.files.values():
        files.opened(file)
    blocks = shard.form.blocks(shard.folder, shard.label, shard.documents)
    return [BlocksPart(blocks, Keeper(HELD_BLOCKS), shard.tokens)]
