"""The header of a GGUF file: key-value pairs, parsed from untrusted bytes.

Only the pairs are read, never tensors. A file is read in blocks that grow with the pairs read so far; the last block
may reach a little after them (`LARGEST_BLOCK`). Every count and length is compared with the bytes that remain, and with
limits of our own, before it is used. So a file cannot cause more memory to be allocated than it has bytes, and a large
file not more than any vocabulary needs. Arrays are not read until they are needed: `NumberArray` and `StringArray` hold
their offsets. Strings in arrays do not become objects: a vocabulary has hundreds of thousands.

Source: the GGUF specification (versions 2 and 3, which have one layout) and llama.cpp's gguf.cpp for what is refused.

Bytes are read on demand at given offsets (`FileBytes`; `HeldBytes` caches them). The file is not memory-mapped:
truncating a mapped file kills its readers (SIGBUS), and other processes may truncate a model at any time. A file that
is truncated after it was opened raises MalformedVocab.

Strings of an array (`walk_strings`) are an 8-byte length, the text, the next length, the next text. Each offset depends
on the one before it, so the array must be walked. But nearly all lengths are below 256, and nearly no text has seven
NULs in a row. So lengths are recognized by their upper bytes, and all candidates in a window are found at once. A run
of candidates in which each leads to the next one is part of the walk. Where it ends, the walk continues string by
string.
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.errors import InWords, MalformedVocab, UnsupportedVocab
from jittok.vocab.keys import MAGIC, ValueType

_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""Non-blocking: opening a pipe would wait for a writer. This has no effect on a regular file."""


class FileBytes:
    """`size` when the file was opened, and slices of step 1, each read into a new array.

    Opening raises OSError, and MalformedVocab for anything but a regular file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        self._descriptor = os.open(path, _FLAGS)
        weakref.finalize(self, os.close, self._descriptor)
        self.opened = self.facts()
        if not stat.S_ISREG(self.opened.st_mode):
            found = "a directory" if stat.S_ISDIR(self.opened.st_mode) else "a device or pipe"
            raise MalformedVocab(self.name, "file", InWords(found), "a GGUF file")
        self.size = self.opened.st_size

    def facts(self) -> os.stat_result:
        """The current status of the open file; `opened` is that at opening."""
        return os.fstat(self._descriptor)

    def __getitem__(self, part: slice) -> NDArray[np.uint8]:
        start, stop, _ = part.indices(self.size)
        out = np.empty(max(stop - start, 0), np.uint8)
        at = 0
        while at < out.size:
            count = self._read_into(out[at:].data, start + at)
            if count == 0:
                raise MalformedVocab(
                    self.name,
                    f"byte {start + at}",
                    InWords("the end"),
                    f"{self.size} bytes (was it truncated while being read?)",
                )
            at += count  # one call reads 2 GB at most
        return out

    def _read_into(self, out: memoryview, location: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._descriptor, [out], location)
        os.lseek(self._descriptor, location, os.SEEK_SET)
        found = os.read(self._descriptor, len(out))
        out[: len(found)] = found
        return len(found)


class HeldBytes:
    """The bytes of a source up to the last one that was requested, each read once and cached: the parsed bytes are
    those that are hashed, even if the file or the memory changes in the meantime.

    When more than `most` bytes are requested, `complete` becomes False, and nothing is cached any more.
    """

    def __init__(self, source: FileBytes | NDArray[np.uint8], most: int) -> None:
        self.size, self.complete = source.size, True
        self._source, self._most = source, most
        self._held, self._count = np.empty(0, np.uint8), 0

    def __getitem__(self, part: slice) -> NDArray[np.uint8]:
        start, stop, _ = part.indices(self.size)
        if stop > self._most:
            self.complete, self._most, self._held, self._count = False, 0, np.empty(0, np.uint8), 0
            return self._source[start:stop].copy()
        if stop > self._count:
            self._read_up_to(stop)
        return self._held[start:stop]

    def _read_up_to(self, stop: int) -> None:
        if stop > self._held.size:
            capacity = np.empty(min(max(stop, 2 * self._held.size), self.size), np.uint8)
            capacity[: self._count] = self._held[: self._count]  # slices returned earlier keep the old bytes
            self._held = capacity
        self._held[self._count : stop] = self._source[self._count : stop]
        self._count = stop


WINDOW = 1 << 14
"""Bytes that are searched at once: if all are zeros, each is a candidate, of eight bytes in two arrays."""
LEAST_RUN, ALONE = 16, 256
"""After a run of fewer, so many strings are walked one by one, so that texts with many NULs are no slower than without
this search."""
_LENGTH = struct.Struct("<Q")


def walk_strings(view: memoryview, at: int, count: int) -> tuple[NDArray[np.int64], int, int]:
    """(where the texts of up to `count` strings begin, the offset after the last one, its length). The first length
    is at `at`; it ends before a length that is not in view."""
    parts, length = [np.zeros(0, np.int64)], 0
    while count and at <= len(view) - 8:
        window = view[at : at + WINDOW]
        last = len(window) - 8
        lengths, follows, ends = _candidates(np.frombuffer(window, np.uint8))
        here = 0
        while count and here <= last:
            k = int(np.searchsorted(lengths, here))
            run = 0
            if k < lengths.size and lengths[k] == here:
                run = min(int(ends[np.searchsorted(ends, k)]) + 1 - k, count)
                parts.append(lengths[k : k + run] + (at + 8))
                after = int(follows[k + run - 1])
                here, length, count = after, after - int(lengths[k + run - 1]) - 8, count - run
            if run < LEAST_RUN:
                starts: list[int] = []
                while here <= last and len(starts) < min(count, ALONE):
                    (length,) = _LENGTH.unpack_from(window, here)
                    starts.append(at + here + 8)
                    here += 8 + length
                count -= len(starts)
                parts.append(np.array(starts, np.int64))
        at += here
    return np.concatenate(parts), at, length


def _candidates(window: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(offsets that may hold a length, the offset of the next length after each, which of these are not candidates)."""
    zero = window == 0
    two = zero[:-1] & zero[1:]
    four = two[:-2] & two[2:]
    seven = four[:-3] & four[3:]  # and the six after it
    positions = np.flatnonzero(seven[1:])
    follows = positions + 8 + window[positions]
    leads = np.zeros(positions.size, bool)
    leads[:-1] = follows[:-1] == positions[1:]
    return positions, follows, np.flatnonzero(~leads)


U8, I8, U16, I16 = int(ValueType.UINT8), int(ValueType.INT8), int(ValueType.UINT16), int(ValueType.INT16)
U32, I32, U64, I64 = int(ValueType.UINT32), int(ValueType.INT32), int(ValueType.UINT64), int(ValueType.INT64)
F32, F64, BOOL = int(ValueType.FLOAT32), int(ValueType.FLOAT64), int(ValueType.BOOL)
STRING, ARRAY = int(ValueType.STRING), int(ValueType.ARRAY)
"""Types of values."""
TYPE_NAMES = {
    U8: "u8", I8: "i8", U16: "u16", I16: "i16", U32: "u32", I32: "i32", F32: "f32", BOOL: "bool", STRING: "string",
    ARRAY: "array", U64: "u64", I64: "i64", F64: "f64",
}  # fmt: skip
_FORMATS = {
    U8: "<B",
    I8: "<b",
    U16: "<H",
    I16: "<h",
    U32: "<I",
    I32: "<i",
    F32: "<f",
    BOOL: "<b",
    U64: "<Q",
    I64: "<q",
    F64: "<d",
}
_DTYPES = {kind: np.dtype(code.replace("b", "i1").replace("B", "u1")) for kind, code in _FORMATS.items()}

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | mmap.mmap | NDArray[Any]
"""A path, or an object with the bytes of a file; also any other bytes-like object."""

VERSIONS = (2, 3)
MOST_KEYS = 1 << 16
LONGEST_STRING = 16 << 20
LONGEST_ARRAY = 1 << 30
"""Elements; llama.cpp's limit."""
MOST_NUMBERS = 1 << 24
"""Limit of elements of an array that is read; other arrays are skipped and may be longer."""
MOST_STRINGS, MOST_STRING_BYTES = 1 << 23, 1 << 28
"""Of one array; Gemma 4 has 514,906 merges in 5 MB."""
LEAST_PAIR = 8 + 1 + 4 + 1
"""Bytes of the shortest pair: an empty value under a key of one byte."""
FIRST_BLOCK, LARGEST_BLOCK = 1 << 16, 1 << 20
"""Bytes of a file that are read at a time: each block is twice as large as the one before, up to the largest."""

Bytes = NDArray[np.uint8] | FileBytes | HeldBytes
"""All bytes of a source: those of `bytes` in place, those of a file or of other memory read on demand."""


@dataclass(frozen=True)
class NumberArray:
    """Numbers of one array, at `start` in the source."""

    data: Bytes
    dtype: np.dtype[Any]
    start: int
    count: int

    def __len__(self) -> int:
        return self.count

    def copied(self) -> NDArray[Any]:
        """The numbers, in an array of their own."""
        raw = self.data[self.start : self.start + self.count * self.dtype.itemsize]
        return raw.view(self.dtype).copy()


@dataclass(frozen=True)
class StringArray:
    """Strings of one array: string k is data[starts[k]:starts[k] + lengths[k]] of the source."""

    data: Bytes
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return self.starts.size

    def packed(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """(bytes, offsets: int64[n + 1]) of the concatenated strings, each cut at its first NUL (a C string)."""
        lengths = self.lengths
        offsets = np.zeros(len(self) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        packed = self._bytes()
        zeros = np.flatnonzero(packed == 0)
        if zeros.size == 0:
            return packed, offsets
        owners = np.searchsorted(offsets, zeros, "right") - 1
        first = np.unique(owners, return_index=True)
        cut = lengths.copy()
        cut[first[0]] = zeros[first[1]] - offsets[first[0]]
        return StringArray(packed, offsets[:-1], cut).packed()

    def _bytes(self) -> NDArray[np.uint8]:
        """The bytes of all strings, one after another: those after as many starts as ends are in none."""
        filled = self.lengths > 0
        if not filled.any():
            return np.zeros(0, np.uint8)
        starts = self.starts[filled]
        ends = starts + self.lengths[filled]
        first, last = int(starts[0]), int(ends[-1])
        steps = np.zeros(last - first + 1, np.int8)
        steps[starts - first] += 1  # no two non-empty strings start, or end, at one place
        steps[ends - first] -= 1
        inside = np.cumsum(steps[:-1], dtype=np.int8).view(np.bool_)
        return self.data[first:last][inside]


@dataclass(frozen=True)
class Header:
    """The pairs of a file. `values[key]` is (type, value); an array has type (ARRAY, element type).

    Arrays are offsets into the source: callers that keep one use `array` or `StringArray.packed`, which copy.
    """

    file: str
    version: int
    values: dict[str, tuple[Any, Any]]
    stop: int  # the offset after the last pair

    def scalar(self, key: str, kind: int, default: Any) -> Any:
        """The value of a key, or the default if it is absent. Another type raises MalformedVocab: llama.cpp converts
        nothing."""
        if key not in self.values:
            return default
        found, value = self.values[key]
        if found != kind:
            raise MalformedVocab(self.file, key, _type_name(found), f"a value of type {TYPE_NAMES[kind]}")
        return value

    def array(self, key: str, *kinds: int) -> Any:
        """The array of a key (StringArray, or a NumPy array of its own), or None if it is absent."""
        if key not in self.values:
            return None
        found, value = self.values[key]
        if found not in [(ARRAY, kind) for kind in kinds]:
            expected = " or ".join(TYPE_NAMES[kind] for kind in kinds)
            raise MalformedVocab(self.file, key, _type_name(found), f"an array of {expected}")
        if isinstance(value, StringArray):
            return value
        if len(value) > MOST_NUMBERS:
            raise MalformedVocab(self.file, key, InWords(f"{len(value)} elements"), f"at most {MOST_NUMBERS}")
        return value.copied()


def _type_name(found: Any) -> str:
    return InWords(f"an array of {TYPE_NAMES[found[1]]}" if isinstance(found, tuple) else TYPE_NAMES[found])


def read_header(source: Source) -> Header:
    """The header of a file, or of the bytes of one. MalformedVocab, UnsupportedVocab, OSError, TypeError."""
    return header_of(*opened(source))


def opened(source: Source) -> tuple[Bytes, str]:
    """(bytes, name) of a source. Writable memory is copied as far as it is read, so that the bytes that were checked
    are those that are used."""
    if not isinstance(source, (str, os.PathLike)):
        view = _view(source)
        data = np.frombuffer(view, np.uint8)
        return data if type(view.obj) is bytes else HeldBytes(data, data.size), "vocabulary in memory"
    file = FileBytes(source)
    if file.size == 0:
        raise MalformedVocab(file.name, "file", InWords("an empty file"), "a GGUF file or another tokenizer file")
    return file, file.name


def header_of(data: Bytes, name: str) -> Header:
    """The header in these bytes. MalformedVocab, UnsupportedVocab."""
    return _Walker(data, name, data.size).header()


def _view(source: Any) -> memoryview:
    """The bytes of a bytes-like object, in place if they are contiguous."""
    try:
        view = memoryview(source)
    except TypeError:
        message = f"source: found {type(source).__name__}, expected a path or a bytes-like object"
        raise TypeError(message) from None
    return view.cast("B") if view.c_contiguous and view.ndim == 1 else memoryview(view.tobytes())


class _Walker:
    """A position in the bytes; every read checks the remaining length, and that the bytes are loaded."""

    def __init__(self, data: Bytes, file: str, size: int) -> None:
        self.data, self.file, self.size, self.at, self.key = data, file, size, 0, "header"
        # the loaded bytes: view[k] is byte base + k of the source; all of it if that is in memory
        self.view, self.base = data.data if isinstance(data, np.ndarray) else memoryview(b""), 0
        self.block = FIRST_BLOCK

    def bad(self, found: str, expected: str) -> MalformedVocab:
        return MalformedVocab(self.file, f"{self.key} (byte {self.at})", InWords(found), expected)

    def need(self, count: int, what: str) -> int:
        """Where the next `count` bytes are in the view."""
        if count > self.size - self.at:
            raise self.bad(f"the end of the file after {self.size - self.at} bytes", f"{count} bytes for {what}")
        if not self.base <= self.at <= self.base + len(self.view) - count:
            self.view = self.data[self.at : self.at + max(count, self.block)].data
            self.base, self.block = self.at, min(2 * self.block, LARGEST_BLOCK)
        return self.at - self.base

    def number(self, kind: int) -> Any:
        code = _FORMATS[kind]
        size = struct.calcsize(code)
        location = self.need(size, f"a {TYPE_NAMES[kind]}")
        (value,) = struct.unpack_from(code, self.view, location)
        self.at += size
        return value

    def string(self) -> bytes:
        length = self.number(U64)
        if length > LONGEST_STRING:
            raise self.bad(f"a string of {length} bytes", f"at most {LONGEST_STRING}")
        location = self.need(length, "a string")
        self.at += length
        return bytes(self.view[location : location + length])

    def header(self) -> Header:
        magic = self.data[:4].tobytes()
        if magic != MAGIC:
            raise MalformedVocab(self.file, "magic", magic, "the bytes 'GGUF'")
        self.at = 4
        version = self.number(U32)
        if version & 0xFFFF == 0 and version:
            raise UnsupportedVocab(self.file, "version", version, "a little-endian file (this one is big-endian)")
        if version not in VERSIONS:
            raise UnsupportedVocab(self.file, "version", version, "GGUF version 2 or 3")
        tensors, pairs = self.number(I64), self.number(I64)
        if tensors < 0:
            raise MalformedVocab(self.file, "tensor count", tensors, "0 or more")
        if not 0 <= pairs <= min(MOST_KEYS, (self.size - self.at) // LEAST_PAIR):
            most = min(MOST_KEYS, (self.size - self.at) // LEAST_PAIR)
            raise MalformedVocab(self.file, "key count", pairs, f"0 to {most} keys in {self.size} bytes")
        seen: set[bytes] = set()
        values: dict[str, tuple[Any, Any]] = {}
        for _ in range(pairs):
            self.key = f"key {len(seen)}"
            raw = self.string()
            if not raw:
                raise self.bad("an empty key", "a name")
            if raw in seen:
                raise self.bad(f"{raw.decode('utf-8', 'replace')!r} twice", "each key once")
            seen.add(raw)
            # keys are compared as C strings, and the first match counts; no one asks for one that is invalid UTF-8
            self.key = raw.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")
            values.setdefault(self.key, self.value())
        return Header(self.file, version, values, self.at)

    def value(self) -> tuple[Any, Any]:
        kind = self.number(I32)
        if kind == ARRAY:
            return self.array()
        if kind == STRING:
            return STRING, self.string().split(b"\0", 1)[0]
        if kind not in _FORMATS:
            raise self.bad(f"value type {kind}", "a type from 0 (u8) to 12 (f64)")
        value = self.number(kind)
        return kind, value != 0 if kind == BOOL else value

    def array(self) -> tuple[Any, Any]:
        kind, count = self.number(I32), self.number(U64)
        if kind == ARRAY:
            raise self.bad("a nested array", "an array of numbers or strings")
        if kind != STRING and kind not in _DTYPES:
            raise self.bad(f"an array of type {kind}", "a type from 0 (u8) to 12 (f64)")
        size = 8 if kind == STRING else _DTYPES[kind].itemsize
        if count > LONGEST_ARRAY or count * size > self.size - self.at:
            raise self.bad(
                f"{count} elements in {self.size - self.at} bytes before the end of the file",
                "fewer elements, or a complete file",
            )
        if kind == STRING:
            if count > MOST_STRINGS:
                raise self.bad(f"{count} strings", f"at most {MOST_STRINGS}")
            return (ARRAY, STRING), self.strings(count)
        start, self.at = self.at, self.at + count * size
        return (ARRAY, kind), NumberArray(self.data, _DTYPES[kind], start, count)

    def strings(self, count: int) -> StringArray:
        """The offsets and lengths of the strings."""
        begin, parts, left = self.at, [np.zeros(0, np.int64)], count
        while left:  # as many as have their lengths at hand, then the next ones
            if self.size - self.at < 8:
                raise self.behind_the_file(count - left, count)
            at = self.need(8, "a length")
            starts, at, length = walk_strings(self.view, at, left)
            left -= starts.size
            if self.base + at > self.size:
                raise self.behind_the_file(count - left - 1, count)
            if length > LONGEST_STRING:
                self.at = self.base + int(starts[-1])
                raise self.bad(f"a string of {length} bytes", f"at most {LONGEST_STRING}")
            parts.append(starts + self.base)
            self.at = self.base + at
        positions = np.concatenate(parts)
        lengths = np.diff(positions, append=self.at + 8) - 8
        if lengths.size and int(lengths.max()) > LONGEST_STRING:
            raise self.bad(f"a string of {int(lengths.max())} bytes", f"at most {LONGEST_STRING}")
        if self.at - begin > MOST_STRING_BYTES + 8 * count:
            found = self.at - begin - 8 * count
            raise self.bad(f"strings of {found} bytes", f"at most {MOST_STRING_BYTES} in one array")
        return StringArray(self.data, positions, lengths)

    def behind_the_file(self, k: int, count: int) -> MalformedVocab:
        self.at = self.size
        return self.bad(
            f"string {k} of {count} past the end of the file", f"a complete file, not one cut at {self.size} bytes"
        )
