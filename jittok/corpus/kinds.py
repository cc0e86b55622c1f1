"""The kind of an input, by its name and, where that is ambiguous, by its first line.

`.json` may be anything; it is read as JSON Lines where its first line is an object. A file with an unknown extension
in a directory is left out, which must not happen to documents unnoticed: so its first bytes are examined.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO

from jittok.corpus.decompression import open_unpacked
from jittok.corpus.json_rows import row_of
from jittok.corpus.options import Options
from jittok.corpus.sniff import OBJECT, OBJECTS, SNIFFED_BYTES
from jittok.errors import CorpusError, InWords

PACKINGS = {".gz": "gz", ".gzip": "gz", ".zst": "zst", ".zstd": "zst", ".bz2": "bz2", ".xz": "xz", ".lz4": "lz4"}
KIND_OF = {
    ".txt": "txt",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
PROSE = (".md", ".markdown", ".rst", ".adoc", ".org", ".tex")
"""Extensions of text documents that commands such as `count` also read in directories; a corpus is made of KIND_OF
alone."""
JSON = ".json"
"""The extension that does not tell whether a line is a document."""
TABLES = ("parquet", "arrow")
TEXTS = ("txt", "lines", "separated")
READ_AS = (*TEXTS, "jsonl", *TABLES)
"""The kinds that an input can be read as."""
UNKNOWN_PACKINGS = (".br", ".snappy", ".sz", ".lzo", ".zip", ".7z", ".rar", ".tar", ".lz", ".lzma", ".z", ".tgz")
MAGIC = (
    (b"\x1f\x8b", "gz"),
    (b"\x28\xb5\x2f\xfd", "zst"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x04\x22M\x18", "lz4"),
)
"""Magic bytes of compressed files."""
TABLE_MAGIC = ((b"PAR1", "a Parquet file"), (b"ARROW1\0\0", "an Arrow file"))
MARK = b"\xef\xbb\xbf"
UNPACK_AT_ONCE = 1 << 16
Open = Callable[[], IO[bytes]]


def suffixes_of(path: str) -> tuple[str, str]:
    """(the extension of the kind, the compression)."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    packing = PACKINGS[suffixes.pop()] if suffixes and suffixes[-1] in PACKINGS else ""
    return suffixes[-1] if suffixes else "", packing


def start_of(opened: Open, packing: str, path: str) -> bytes:
    """The first bytes of an input, decompressed as far as possible."""
    with opened() as file:
        packed = io.BytesIO(file.read(SNIFFED_BYTES)) if packing else file
        read, found = open_unpacked(packed, packing, path), b""
        try:
            while len(found) < SNIFFED_BYTES and (piece := read(min(UNPACK_AT_ONCE, SNIFFED_BYTES - len(found)))):
                found += piece
        except CorpusError:  # damaged, or the rest was not read
            pass
    return found


def json_shape(start: bytes, field: str) -> tuple[str, bool]:
    """("lines", "array", "object" or "" for what is no JSON of objects; whether they look like
    documents: there is a text in `field`, or a second line that is an object too)."""
    start = start.removeprefix(MARK).lstrip()
    line, newline, after = start.partition(b"\n")
    if OBJECT.match(line):
        whole = bool(newline) or len(start) < SNIFFED_BYTES // 2
        try:
            row = row_of(line)
        except ValueError:
            if not whole:  # of a long line only the start is here
                return "lines", _has(start, field) or field.encode() not in start
        else:
            has = isinstance(row, dict) and isinstance(row.get(field), str)
            return "lines", has or OBJECT.match(after) is not None
    if OBJECTS.match(start):
        return "array", _has(start, field)
    if OBJECT.match(start):
        return "object", _has(start, field)
    return "", False


def _has(start: bytes, field: str) -> bool:
    """Whether a text in this field is among the first bytes."""
    return re.search(rb'"' + re.escape(field.encode("utf-8", "surrogateescape")) + rb'"\s*:\s*"', start) is not None


NOT_LINES = {
    "array": "a JSON array of objects",
    "object": "JSON whose objects are not a line each",
    "": "no JSON Lines",
}
REMEDIES = {
    "array": "a document a line (jq -c '.[]' makes JSON Lines)",
    "object": "a document a line (jq -c . makes JSON Lines)",
    "": "a document a line, or --input-format",
}


def check_json(path: str, start: bytes, options: Options) -> None:
    """CorpusError for a named .json whose first line is no object."""
    shape, _ = json_shape(start, options.field)
    if shape != "lines" and start.removeprefix(MARK).strip():
        raise CorpusError(path, InWords(NOT_LINES[shape]), REMEDIES[shape])


def documents_in(path: str, opened: Open, options: Options) -> str:
    """The kind of documents that a file to be left out seems to hold; empty if none."""
    suffix, packing = suffixes_of(path)
    name = Path(path)
    if name.suffix.lower() in UNKNOWN_PACKINGS and Path(name.stem).suffix.lower() in KIND_OF:
        return f"documents packed in a way that is not known ({name.suffix})"
    try:
        start = start_of(opened, packing, path)
    except OSError:
        return ""
    if not packing:
        packed_as = next((known for magic, known in MAGIC if start.startswith(magic)), "")
        if packed_as:
            packing, start = packed_as, start_of(opened, packed_as, path)
    for magic, said in TABLE_MAGIC:
        if start.startswith(magic) and not packing:
            return said
    shape, documents = json_shape(start, options.field)
    if not documents:
        return ""
    kind = "JSON Lines" if shape == "lines" else NOT_LINES[shape]
    return f"{kind}, packed as .{packing}" if packing and suffix != JSON else kind
