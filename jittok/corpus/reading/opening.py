"""Finished corpora as tokens: which files of a shard have its ids, and where documents begin in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jittok.corpus.formats import FORMATS, format_class, make_formats
from jittok.corpus.formats.bare_ids import WithOffsets
from jittok.corpus.formats.base import MASK, NPY_HEADER, Format
from jittok.corpus.formats.megatron import ARRAYS_AT, Megatron
from jittok.corpus.options import MASKS
from jittok.corpus.reading.far import CACHE_BYTES, PIECE, FarFile, PieceCache
from jittok.corpus.reading.files import Files, Listed, Numbers
from jittok.corpus.reading.parts import WIDE, BlocksPart, FilePart, Keeper, LatePart, ListedPart, MaskPart, Part
from jittok.corpus.reading.tokens import Tokens
from jittok.corpus.shards.manifest import Manifest, label_of, read_manifest
from jittok.corpus.shards.readback import facts_of
from jittok.corpus.store import Store, is_far, open_store
from jittok.errors import CorpusError, InWords
from jittok.kernels.jit import cache_dir

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
    mask: Listed | None = None  # the file of what is to be learned, where the format does not hold it

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


class How(NamedTuple):
    """How corpora are opened."""

    format: str | None = None
    check: str = "size"
    shuffle: str | None = None
    within: int | None = None
    cache: PieceCache | None = None


def cache_of(folder: str | PathLike[str] | None, limit: int | None) -> PieceCache | None:
    """Where pieces of far shards are kept; None if nothing is said and there is no cache folder."""
    if limit is not None and limit < PIECE:
        raise ValueError(f"cache_bytes: found {limit}, expected {PIECE} or more")
    if folder is None:
        kept = cache_dir()
        if kept is None:
            return None
        folder = Path(kept) / "shards"
    return PieceCache(Path(folder), CACHE_BYTES if limit is None else limit)


def opened(given: Sequence[Any], how: How) -> Tokens:
    """Corpora one after the other."""
    files = Files(how.check)
    found = [_tokens(corpus, how, files) for corpus in given]
    first = found[0]
    for other in found[1:]:
        other.same_vocabulary(first)
        if other.dtype != first.dtype and other.total and first.total:
            raise CorpusError(
                other.name, InWords(f"ids as {other.dtype.name}"), f"{first.dtype.name}, as in {first.name}: one format"
            )
    if len(found) == 1:
        return first
    masks = None
    if any(each.learned is not None for each in found):
        for each in found:
            each.learns_all()
        masks = Tokens(first.name, [part for each in found if each.learned for part in each.learned.parts], 2)
    digest = hashlib.sha256("".join(each.digest for each in found).encode()).hexdigest()
    parts = [part for each in found for part in each.parts]
    name = f"{first.name} and {len(found) - 1} more"
    return Tokens(name, parts, first.vocab_size, first.fingerprint, digest, masks)


def _tokens(corpus: str | PathLike[str] | Corpus, how: How, files: Files) -> Tokens:
    where = getattr(corpus, "where", corpus)  # an open corpus: the folder, and the format that was chosen
    name = how.format
    if where is None:
        raise CorpusError(
            repr(corpus), InWords("some of the documents of an open corpus"),
            "a whole corpus, as it was opened; jittok.corpus.batches reads some documents too",
        )  # fmt: skip
    if isinstance(where, tuple):
        where, name = where[0], name or where[1]
    store = open_store(where) if is_far(where) else None  # type: ignore[arg-type]
    folder = Path(store.place if store else where)  # type: ignore[arg-type]
    manifest = read_manifest(store or folder)
    form = _format(manifest, folder, name, how.shuffle)
    shards = _shards(manifest, folder, form, (lambda file: _far(file, store, how.cache)) if store else _near(folder))
    parts = [part for shard in shards if shard.tokens for part in _parts(shard, files)]
    masks = None
    if manifest["options"].get("learn") is not None:
        masks = Tokens(str(where), [part for shard in shards if shard.tokens for part in _masks(shard, files)], 2)
    facts = [manifest["vocab"]["fingerprint"], form.name]
    every = [file for shard in shards for file in (*shard.files.values(), shard.mask) if file is not None]
    facts += [[file.size, file.sha256] for file in every]
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    place = store.place if store else str(folder)
    found = Tokens(place, parts, manifest["vocab"]["tokens"], manifest["vocab"]["fingerprint"], digest, masks)
    if found.far:
        _check_cache(found, how)
    return found


def _near(folder: Path) -> Callable[[dict[str, Any]], Listed]:
    return lambda file: Listed(folder / file["name"], file["bytes"], file["sha256"])


def _far(file: dict[str, Any], store: Store, cache: PieceCache | None) -> Listed:
    if cache is None:
        raise CorpusError(store.place, InWords("no cache folder"), "cache=FOLDER, for pieces of its shards")
    far = FarFile(store, file["name"], file["bytes"], file["sha256"], cache)
    return Listed(store.where(file["name"]), file["bytes"], file["sha256"], far)


def _check_cache(tokens: Tokens, how: How) -> None:
    """CorpusError where each sequence would fetch a piece of its own, again and again."""
    size = tokens.total * tokens.dtype.itemsize
    if how.shuffle is not None and how.within is None and how.cache is not None and size > how.cache.limit:
        raise CorpusError(
            tokens.name, InWords(f"{size} bytes of ids, shuffled as a whole, and cache_bytes={how.cache.limit}"),
            "within=N (sequences that are shuffled with each other), or a larger cache",
        )  # fmt: skip


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
    return make_formats([name], facts_of(manifest))[0]


def _shards(manifest: Manifest, folder: Path, form: Format, listed: Callable[[dict[str, Any]], Listed]) -> list[Shard]:
    found = []
    for number, shard in enumerate(manifest["shards"]):
        files = {file["name"]: listed(file) for file in shard["files"] if file["name"].startswith(f"{form.name}/")}
        mask = next((listed(file) for file in shard["files"] if file["name"].startswith(f"{MASK}/")), None)
        if form.keeps_mask:
            mask = None
        found.append(Shard(folder, form, label_of(shard, number), shard["documents"], shard["tokens"], files, mask))
    return found


def _masks(shard: Shard, files: Files) -> Sequence[Part]:
    """What is to be learned of a shard: a byte for each of its ids."""
    uint8 = np.dtype(np.uint8)
    if shard.form.keeps_mask:
        make = partial(_arrow_masks if shard.form.name == "arrow" else _parquet_masks, shard, files)
        file = shard.file(f".{shard.form.name}")
        return list(make()) if file.far is None else [LatePart(shard.tokens, uint8, file, make)]
    if shard.mask is None or shard.mask.size != shard.tokens:
        found = "no file" if shard.mask is None else f"{shard.mask.size} bytes"
        raise CorpusError(
            f"{shard.folder}, {MASK}, shard {shard.label}", InWords(found), f"{shard.tokens} bytes, one an id"
        )
    return [MaskPart(files, Numbers(shard.mask, uint8, 0, shard.tokens), shard.tokens)]


def _parts(shard: Shard, files: Files) -> Sequence[Part]:
    if isinstance(shard.form, WithOffsets):
        return [_with_offsets(shard, files)]
    if isinstance(shard.form, Megatron):
        return [_megatron(shard, files)]
    how: dict[str, Callable[[Shard, Files], Sequence[Part]]] = {
        "datatrove": _datatrove, "arrow": _arrow, "parquet": _parquet, "olmo": _olmo,
    }  # fmt: skip
    return how[shard.form.name](shard, files)


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
    sequences, ends = form.counts(Path(index.path), bytes(head))
    if ends != shard.documents + 1:
        raise CorpusError(str(index.path), InWords(f"{ends - 1} documents"), f"{shard.documents}, as the manifest says")
    starts = Numbers(index, INT64, ARRAYS_AT + 4 * sequences, sequences)
    return FilePart(files, shard.ids(".bin", 0), _fitting(starts), form.dtype.itemsize)


def _datatrove(shard: Shard, files: Files) -> list[Part]:
    ends = Numbers(shard.file(".ds.index"), INT64, 0, shard.documents)
    return [FilePart(files, shard.ids(".ds", 0), _fitting(ends))]


def _arrow(shard: Shard, files: Files) -> list[Part]:
    """A part a record batch, read where its buffers lie."""
    file = shard.file(".arrow")
    if file.far is not None:
        return [LatePart(shard.tokens, WIDE, file, partial(_arrow_parts, shard, files))]
    files.open(file)  # its size is that of the manifest
    parts = list(_arrow_parts(shard, files))
    found = sum(part.tokens for part in parts)
    if found != shard.tokens:
        raise CorpusError(str(file.path), InWords(f"{found} ids"), f"{shard.tokens}, as the manifest says")
    return parts


def _arrow_masks(shard: Shard, files: Files) -> Iterator[Part]:
    from jittok.corpus.formats.tables import batches_in

    file = shard.file(".arrow")
    for batch in batches_in(files.reader(file), str(file.path), masked=True):
        yield MaskPart(files, _fitting(Numbers(file, np.dtype(np.uint8), batch.mask, batch.tokens)), batch.tokens)


def _parquet_masks(shard: Shard, files: Files) -> Iterator[Part]:
    from jittok.corpus.formats.tables import groups_of

    file = shard.file(".parquet")
    blocks = groups_of(partial(files.reader, file), str(file.path), MASKS)
    yield BlocksPart(blocks, Keeper(HELD_BLOCKS), shard.tokens, np.dtype(np.uint8))


def _arrow_parts(shard: Shard, files: Files) -> Iterator[Part]:
    from jittok.corpus.formats.tables import batches_in

    file = shard.file(".arrow")
    for batch in batches_in(files.reader(file), str(file.path)):
        starts = Numbers(file, WIDE, batch.offsets, batch.documents + 1 if batch.documents else 0)
        yield FilePart(files, _fitting(Numbers(file, WIDE, batch.ids, batch.tokens)), _fitting(starts))


def _fitting(numbers: Numbers) -> Numbers:
    """CorpusError unless all of them lie in their file."""
    end = numbers.at + numbers.size * numbers.dtype.itemsize
    if numbers.at < 0 or numbers.size < 0 or end > numbers.file.size:
        raise CorpusError(
            str(numbers.file.path), InWords(f"{numbers.size} numbers from byte {numbers.at} on"),
            f"no more than {numbers.file.size} bytes, its size",
        )  # fmt: skip
    return numbers


def _parquet(shard: Shard, files: Files) -> list[Part]:
    """Row groups, each read as a whole when it is first used."""
    file = shard.file(".parquet")
    if file.far is not None:
        return [LatePart(shard.tokens, WIDE, file, partial(_parquet_parts, shard, files))]
    files.open(file)
    return list(_parquet_parts(shard, files))


def _parquet_parts(shard: Shard, files: Files) -> Iterator[Part]:
    from jittok.corpus.formats.tables import groups_of

    file = shard.file(".parquet")
    blocks = groups_of(partial(files.reader, file), str(file.path))
    yield BlocksPart(blocks, Keeper(HELD_BLOCKS), shard.tokens)


def _olmo(shard: Shard, files: Files) -> list[Part]:
    """Ids in a file, and rows that say where documents end, in a packed one."""
    ids = shard.ids(".npy", 0)
    for file in shard.files.values():
        if file.far is None:
            files.open(file)
    return [LatePart(shard.tokens, shard.form.dtype, ids.file, partial(_olmo_parts, shard, files))]


def _olmo_parts(shard: Shard, files: Files) -> Iterator[Part]:
    from jittok.corpus.formats.olmo import ends_in

    rows = shard.file(".csv.gz")
    ends = ends_in(files.reader(rows), str(rows.path))
    if ends.size != shard.documents:
        raise CorpusError(str(rows.path), InWords(f"{ends.size} rows"), f"{shard.documents}, as the manifest says")
    yield ListedPart(files, shard.ids(".npy", 0), ends)
