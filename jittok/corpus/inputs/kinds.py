"""The kind of an input, by its name and, where that is ambiguous or missing, by its first bytes.

`.json` may be anything; it is read as JSON Lines where its first line is an object. A file with an unknown extension
in a directory is left out, which must not happen to documents unnoticed: so its first bytes are examined. Standard
input has no name: it is refused as plain text if it looks like another kind.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from jittok.corpus.inputs.decompression import open_unpacked
from jittok.corpus.inputs.json_rows import member, row_of
from jittok.corpus.options import Options
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
"""The extension of files whose lines may or may not be documents."""
TABLES = ("parquet", "arrow")
TEXTS = ("txt", "lines", "separated")
READ_AS = (*TEXTS, "jsonl", *TABLES)
"""The kinds that an input can be read as."""
UNKNOWN_PACKINGS = (".br", ".snappy", ".sz", ".lzo", ".zip", ".7z", ".rar", ".tar", ".lz", ".lzma", ".z", ".tgz")
COMPRESSED = (
    (b"\x1f\x8b", "gz", "gzip data", "zcat"),
    (b"\x28\xb5\x2f\xfd", "zst", "zstandard data", "zstdcat"),
    (b"BZh", "bz2", "bzip2 data", "bzcat"),
    (b"\xfd7zXZ\0", "xz", "xz data", "xzcat"),
    (b"\x04\x22M\x18", "lz4", "lz4 data", "lz4cat"),
)
"""How compressed files begin, their compression, its name, and what unpacks it."""
TABLE_MAGIC = ((b"PAR1", "a Parquet file"), (b"ARROW1\0\0", "an Arrow file"))
MARK = b"\xef\xbb\xbf"
UNPACK_AT_ONCE = 1 << 16
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
SNIFFED_BYTES = 1 << 16
"""Bytes that are looked at, at most."""
LEAST_WIDE = 4
"""Characters of a text that is judged by its NUL bytes."""
FIRST_BYTES = (
    *((magic, name, f"unpack it first ({tool})") for magic, _, name, tool in COMPRESSED),
    (b"PK\x03\x04", "a zip archive", "unpack it first (unzip -p)"),
    (b"\xff\x06\x00\x00sNaPpY", "snappy data", "unpack it first"),
    (b"LZIP", "lzip data", "unpack it first (lzip -dc)"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first (7z x)"),
    (b"Rar!\x1a\x07", "a RAR archive", "unpack it first"),
    (b"%PDF-", "a PDF", "its text (pdftotext)"),
    (b"PAR1", "a Parquet file", "a file whose name ends in .parquet, or --input-format parquet"),
    (b"ARROW1", "an Arrow file", "a file whose name ends in .arrow, or --input-format arrow"),
    (b"GGUF", "a GGUF file", "texts; a vocabulary is given by --vocab"),
    (b"\x93NUMPY", "a NumPy array", "texts; ids are read by jittok decode"),
    (b"\xff\xfe\0\0", "text in UTF-32", "text in UTF-8 (iconv -f utf-32 -t utf-8)"),
    (b"\xff\xfe", "text in UTF-16", "text in UTF-8 (iconv -f utf-16 -t utf-8)"),
    (b"\xfe\xff", "text in UTF-16", "text in UTF-8 (iconv -f utf-16 -t utf-8)"),
)
"""How a file that is no text begins, what it is, and what to do."""
TEXT_ANYHOW = "--input-format txt for text as it is"
OBJECTS = re.compile(rb'\s*\[\s*\{\s*"')
"""How a JSON array of objects begins."""
OBJECT = re.compile(rb'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:')
"""How a line of JSON Lines begins."""
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
            return "lines", _has_text(row, field) or OBJECT.match(after) is not None
    if OBJECTS.match(start):
        return "array", _has(start, field)
    if OBJECT.match(start):
        return "object", _has(start, field)
    return "", False


def _has_text(row: Any, field: str) -> bool:
    """Whether a text, or a list of texts, is in this field."""
    try:
        return isinstance(member(row, field, ""), str)
    except (KeyError, TypeError):
        return False


def _has(start: bytes, field: str) -> bool:
    """Whether a text in this field is among the first bytes."""
    names = (re.escape(name.encode("utf-8", "surrogateescape")) for name in {field, field.rpartition(".")[2]})
    return re.search(rb'"(?:' + b"|".join(names) + rb')"\s*:\s*"', start) is not None


def check_json(path: str, start: bytes, options: Options) -> None:
    """CorpusError for a named .json whose first line is no object."""
    shape, _ = json_shape(start, options.of_lines)
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
        packed_as = next((known for magic, known, *_ in COMPRESSED if start.startswith(magic)), "")
        if packed_as:
            packing, start = packed_as, start_of(opened, packed_as, path)
    for magic, said in TABLE_MAGIC:
        if start.startswith(magic) and not packing:
            return said
    shape, documents = json_shape(start, options.of_lines)
    if not documents:
        return ""
    kind = "JSON Lines" if shape == "lines" else NOT_LINES[shape]
    return f"{kind}, packed as .{packing}" if packing and suffix != JSON else kind


def other_kind(start: bytes) -> tuple[str, str] | None:
    """(what these first bytes look like, what would be right) unless they look like plain text."""
    for magic, name, right in FIRST_BYTES:
        if start.startswith(magic):
            return name, right
    if _is_json_line(start):
        return "JSON Lines", f"--input-format jsonl for a document a line, or {TEXT_ANYHOW}"
    if OBJECTS.match(start.removeprefix(MARK)):
        return "a JSON array of objects", f"a document a line (jq -c '.[]' makes JSON Lines), or {TEXT_ANYHOW}"
    if b"\0" in start:
        return "binary data (NUL bytes)", f"texts, or {TEXT_ANYHOW}"
    return None


def is_wide(start: bytes) -> bool:
    """Whether a text looks like UTF-16 or UTF-32 without a mark before: then it has a NUL at every second place, and
    is UTF-8 all the same."""
    positions = min(len(start), SNIFFED_BYTES) // 2
    even, odd = start[: 2 * positions : 2].count(0), start[1 : 2 * positions : 2].count(0)
    return positions >= LEAST_WIDE and 2 * max(even, odd) >= positions and 2 * min(even, odd) <= max(even, odd) + 1


def _is_json_line(start: bytes) -> bool:
    """Whether the first line that is not blank is a JSON object, as far as it has been read."""
    start = start.removeprefix(MARK).lstrip()
    line, newline, _ = start.partition(b"\n")
    if OBJECT.match(line) is None:
        return False
    if not newline and len(start) >= SNIFFED_BYTES // 2:
        return True
    try:
        json.loads(line)
    except ValueError:
        return False
    except RecursionError:  # no one but JSON opens so many braces
        return True
    return True


def _is_json(start: bytes) -> bool:
    """Whether these bytes begin with a JSON object, which may go on after them: over several lines, as jq prints, or
    with another object after it on the line."""
    start = start.removeprefix(MARK).strip()
    if OBJECT.match(start) is None:
        return False
    text = start.decode("utf-8", "replace")
    try:
        json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text) or error.msg.startswith("Unterminated string")
    except ValueError:  # an integer of thousands of digits
        return False
    except RecursionError:
        return True
    return True


class Peeked:
    """A stream that can be read once, and whose first bytes may be looked at before."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw, self._start = raw, b""

    def start(self) -> bytes:
        """The first line that is not blank, up to SNIFFED_BYTES, and what has arrived after it."""
        read = getattr(self._raw, "read1", self._raw.read)
        while len(self._start) < SNIFFED_BYTES and b"\n" not in self._start.lstrip(b" \t\r\n[{"):
            piece = read(SNIFFED_BYTES - len(self._start))
            if not piece:
                break
            self._start += piece
        return self._start

    def read(self, count: int = -1) -> bytes:
        """Up to `count` bytes, b"" at the end."""
        if not self._start:
            return self._raw.read(count)
        found, self._start = (self._start, b"") if count < 0 else (self._start[:count], self._start[count:])
        return found + self._raw.read(count if count < 0 else count - len(found))

    def close(self) -> None:
        """Standard input stays open."""


def refuse_other_kinds(path: str, start: bytes, lines: bool, any_text: bool = False, nameless: bool = False) -> None:
    """CorpusError where something is taken for plain text and looks like another kind. `any_text`: JSON is text
    too, as the name is that of a text. `nameless`: standard input, where JSON of any form was not meant."""
    found = other_kind(start)
    if found is None and nameless and _is_json(start):
        found = (
            "JSON whose objects are not a line each",
            f"a document a line (jq -c . makes JSON Lines), or {TEXT_ANYHOW}",
        )
    if any_text and found is not None and "JSON" in found[0]:
        found = None
    if found is not None:
        taken = "plain text, a document a line (--lines)" if lines else "plain text"
        raise CorpusError(path, InWords(found[0]), f"{taken}; {found[1]}")
