"""What a format is to the compiler: streams that grow range by range, and files made of them when a shard is full.

A stream is only ever appended to. What cannot be appended to (headers, indexes) is made from streams at the end of a
shard; a table is written as it grows by a `Sink`.

Files are read back with `pread`, not mapped: truncating a mapped file kills the process that reads it, and anyone may
truncate a corpus.
"""

from __future__ import annotations

import io
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.errors import CorpusError, InWords

CHUNK = 1 << 18
"""Documents whose lengths are in memory at once."""
INT32_MAX = 2**31 - 1
UINT16_SIZE = 1 << 16
"""Vocabularies of up to this many tokens have ids of 16 bits."""
NPY_HEADER = 128
MASK = "loss_mask"
"""The folder of what is to be learned, where a format does not hold it."""


@dataclass(frozen=True)
class Facts:
    """What formats know of the vocabulary and the inputs."""

    vocab_size: int
    vocab_name: str
    fingerprint: str
    dtype: str  # of options.DTYPES
    sources: Sequence[str]
    keep: Sequence[str] = ()  # the fields beside the ids
    learn: bool = False  # whether there is a mask of what is to be learned


@dataclass
class Rows:
    """The documents of one range on their way to disk."""

    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]
    sources: NDArray[np.int64]
    places: NDArray[np.int64] | None = None  # where each is in its file (see `ranges.places`), where a layout says so
    kept: tuple[Any, ...] = ()  # the fields beside the ids: of each a pyarrow array of large_string
    mask: NDArray[np.uint8] | None = None  # [ids] 1 for what is to be learned
    text_bytes: int = 0

    def kept_bytes(self) -> int:
        """Of the kept fields."""
        return sum(column.nbytes for column in self.kept)


class Stream(NamedTuple):
    """A file of a shard that grows: `header` bytes are left free at its start, `data` is what a range adds."""

    key: str
    header: int
    data: Callable[[Rows], Any]
    final: bool = False  # it becomes a file of the corpus as it is, so its digest is kept while it grows


class Output(NamedTuple):
    """A finished file: where it lies now, and its name below the corpus directory, with {} for the shard's label."""

    path: Path
    name: str
    sha256: str = ""  # where it is known


class Sink(ABC):
    """A file of a shard that is written as it grows, by a library of its own."""

    @abstractmethod
    def append(self, rows: Rows) -> None:
        """Add the documents of one range."""

    @abstractmethod
    def finish(self) -> list[Output]:
        """Write what is left, and close the file."""

    @abstractmethod
    def close(self) -> None:
        """Close the file, unfinished."""


@dataclass
class Shard:
    """A shard, in a folder of its own on this machine; in the end with its counts."""

    folder: Path
    documents: int = 0
    tokens: int = 0

    def path(self, key: str) -> Path:
        """Where a stream, or a file that is being made, lies."""
        return self.folder / key

    def lengths(self) -> Iterator[NDArray[np.int64]]:
        """int64 lengths of the documents, CHUNK at a time. The format must have LENGTHS among its streams."""
        with self.path(LENGTHS.key).open("rb") as file:
            while raw := file.read(CHUNK * 8):
                yield np.frombuffer(raw, np.int64)

    def ends(self) -> Iterator[NDArray[np.int64]]:
        """Where the documents end, in tokens."""
        total = 0
        for lengths in self.lengths():
            ends = np.cumsum(lengths) + total
            total = int(ends[-1])
            yield ends


LENGTHS = Stream("lengths", 0, lambda rows: np.ascontiguousarray(rows.lengths, "<i8"))


class Block(NamedTuple):
    """Documents that lie one after the other: row k is ids[offsets[k]:offsets[k + 1]]."""

    ids: NDArray[Any] | DiskIds
    offsets: NDArray[np.int64]


class Lazy(NamedTuple):
    """A Block that is not open yet."""

    documents: int
    load: Callable[[], Block]


class Format(ABC):
    """One layout. Subclasses define which streams they need and which files they make of them."""

    name: ClassVar[str]
    small: ClassVar[str] = "uint16"  # ids of vocabularies of up to `small_size` tokens
    small_size: ClassVar[int] = UINT16_SIZE
    large: ClassVar[str] = "uint32"
    per_document: ClassVar[float] = 8  # bytes on disk beside the ids
    per_token: ClassVar[float | None] = None  # bytes of an id, where it is not its width
    slowness: ClassVar[int] = 1  # of several layouts of a corpus, one of the lowest is read
    layout: ClassVar[int] = 1  # to increment with every change to the bytes of its files or streams
    keeps_fields: ClassVar[bool] = False  # whether the fields beside the ids are in its own files
    keeps_mask: ClassVar[bool] = False  # whether the mask of what is to be learned is
    writer: ClassVar[str] = ""  # the package whose version decides the bytes on disk, if one does

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.dtype = self._dtype()

    def _dtype(self) -> np.dtype[Any]:
        """The width of ids, by the size of the vocabulary. CorpusError when the requested one cannot hold them."""
        if self.facts.dtype == "auto":
            return np.dtype(self.small if self.facts.vocab_size <= self.small_size else self.large).newbyteorder("<")
        if self.facts.dtype not in (self.small, self.large):
            capacity = (self.small,) if self.facts.vocab_size <= self.small_size else ()
            widths = ", ".join(dict.fromkeys(("auto", *capacity, self.large)))
            raise CorpusError(f"--dtype, format {self.name}", self.facts.dtype, f"one of {widths}")
        if self.facts.vocab_size > np.iinfo(self.facts.dtype).max + 1:
            raise CorpusError(
                f"--dtype, format {self.name}", self.facts.dtype,
                f"a type that holds the {self.facts.vocab_size} ids of the vocabulary",
            )  # fmt: skip
        if self.facts.dtype == self.small and self.facts.vocab_size > self.small_size:
            raise CorpusError(f"--dtype, format {self.name}", self.facts.dtype, f"{self.large}, as its readers do")
        return np.dtype(self.facts.dtype).newbyteorder("<")

    def streams(self) -> list[Stream]:
        """What grows. Streams of equal key are written once for all formats."""
        return []

    def sink(self, shard: Shard) -> Sink | None:  # noqa: ARG002  most layouts are made of streams
        """What writes a file as it grows, None for layouts that are made of streams."""
        return None

    def check(self, rows: Rows, tokens: int) -> None:  # noqa: B027  most layouts can hold any rows
        """CorpusError when this layout cannot hold the rows; `tokens`: of the shard with them."""

    def finish(self, shard: Shard) -> list[Output]:  # noqa: ARG002  those of a sink are its own
        """Make the files of a full shard of its streams."""
        return []

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the files of a shard below the corpus directory, with {} for its label."""
        return (f"{cls.name}/{{}}.{cls.name}",)

    def blocks(self, folder: Path, label: str, documents: int) -> list[Lazy]:
        """The documents of a shard in a finished corpus directory: one block, unless a subclass has more. `label`: the
        digits that are in the names of its files."""
        return [Lazy(documents, partial(self.block, folder / self.name / self.ids_file(label)))]

    def masks(self, folder: Path, label: str, documents: int) -> list[Lazy]:
        """The mask of what is to be learned, in blocks as those of `blocks`: uint8, an id each."""
        (block,) = self.blocks(folder, label, documents)
        return [Lazy(documents, partial(_with_mask, block.load, folder / MASK / f"{label}.bin"))]

    def ids_file(self, label: str) -> str:
        """The name of the file of a shard that has the ids."""
        raise NotImplementedError

    def block(self, path: Path) -> Block:
        """The documents of that file."""
        raise NotImplementedError

    def predict(self, documents: float, tokens: float) -> float:
        """About how many bytes so many documents and tokens take."""
        width = self.dtype.itemsize if self.per_token is None else self.per_token
        return documents * self.per_document + tokens * width

    def ids_stream(self, key: str, header: int = 0) -> Stream:
        """A stream of ids in this format's width."""
        return Stream(key, header, lambda rows: rows.ids.astype(self.dtype), final=not header)

    def ids_of(self, path: Path, header: int = 0) -> DiskIds:
        """The ids of a file, read on demand."""
        return DiskIds(path, self.dtype, header)


def _with_mask(load: Callable[[], Block], path: Path) -> Block:
    """The documents of a block with the bytes of a mask in place of their ids."""
    offsets = load().offsets
    return Block(DiskIds(path, np.uint8, 0, int(offsets[-1])), offsets)


def npy_header(dtype: np.dtype[Any], count: int) -> bytes:
    """The header of a one-dimensional .npy file; 128 bytes for every count."""
    buffer = io.BytesIO()
    write: Callable[[io.BytesIO, dict[str, Any]], None] = np.lib.format.write_array_header_1_0
    write(buffer, {"descr": dtype.str, "fortran_order": False, "shape": (count,)})
    assert buffer.tell() == NPY_HEADER, "NumPy leaves room for 21 digits"
    return buffer.getvalue()


def write_offsets(path: Path, shard: Shard) -> None:
    """A .npy file of int64: 0, then the end of each document in tokens."""
    with path.open("wb") as file:
        file.write(npy_header(np.dtype("<i8"), shard.documents + 1))
        file.write(bytes(8))
        for ends in shard.ends():
            file.write(ends.astype("<i8").data)


def put_header(path: Path, header: bytes) -> None:
    """Fill the room that was left at the start of a stream."""
    with path.open("r+b") as file:
        file.write(header)


def too_long(name: str, rows: Rows, limit: int, sources: Sequence[str]) -> None:
    """CorpusError for a document of more than `limit` ids."""
    if rows.lengths.size and int(rows.lengths.max()) > limit:
        row = int(rows.lengths.argmax())
        where = f"{sources[rows.sources[row]]}, format {name}"
        raise CorpusError(where, InWords(f"a document of {rows.lengths[row]} tokens"), f"at most {limit}")


def read_array(path: Path, dtype: Any, header: int = 0, count: int | None = None) -> NDArray[Any]:
    """Numbers of a file after `header` bytes, all that there are or `count`. CorpusError if it is too short."""
    there = max(path.stat().st_size - header, 0) // np.dtype(dtype).itemsize
    if count is None:
        count = there
    elif not 0 <= count <= there:
        raise CorpusError(str(path), InWords(f"a file for {there} numbers"), f"{count}, as it was written with")
    found = np.fromfile(path, dtype, count, offset=header)
    if found.size != count:
        raise CorpusError(str(path), InWords(f"{found.size} numbers"), f"{count}: the file has been cut")
    return found


class DiskIds:
    """Ids of a file: `size`, `dtype`, and slices of step 1, each read again into a read-only array of its own."""

    def __init__(self, path: Path, dtype: Any, header: int = 0, size: int | None = None) -> None:
        self.path, self.dtype, self.header = Path(path), np.dtype(dtype), header
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(path, flags)
        weakref.finalize(self, os.close, self._descriptor)
        there = max(os.fstat(self._descriptor).st_size - header, 0) // self.dtype.itemsize
        self.size = there if size is None else size
        if not 0 <= self.size <= there:
            raise CorpusError(str(path), InWords(f"a file for {there} ids"), f"{self.size}, as it was written with")
        self._turn = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return DiskIds, (self.path, self.dtype, self.header, self.size)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> NDArray[Any]:
        start, stop, step = part.indices(self.size)
        if step != 1:
            raise ValueError(f"found a step of {step}, expected 1")
        width = self.dtype.itemsize
        raw = self._read(max(stop - start, 0) * width, self.header + start * width)
        if len(raw) != max(stop - start, 0) * width:
            raise CorpusError(
                str(self.path), InWords(f"its end before id {stop}"), f"{self.size} ids: the file has been cut"
            )
        return np.frombuffer(raw, self.dtype)

    def _read(self, count: int, position: int) -> bytes:
        if hasattr(os, "pread"):
            raw = os.pread(self._descriptor, count, position)
            while len(raw) < count and (more := os.pread(self._descriptor, count - len(raw), position + len(raw))):
                raw += more  # one call reads 2 GB at most
            return raw
        with self._turn:
            os.lseek(self._descriptor, position, os.SEEK_SET)
            return os.read(self._descriptor, count)
