"""Detects what the first bytes of an input look like: a name may not tell, and standard input has none."""

from __future__ import annotations

import json
import re
from typing import IO

from jittok.errors import CorpusError, InWords

SNIFFED_BYTES = 1 << 16
"""Bytes that are looked at, at most."""
LEAST_WIDE = 4
"""Characters of a text that is judged by its NUL bytes."""
FIRST_BYTES = (
    (b"\x1f\x8b", "gzip data", "unpack it first (zcat)"),
    (b"\x28\xb5\x2f\xfd", "zstandard data", "unpack it first (zstdcat)"),
    (b"BZh", "bzip2 data", "unpack it first (bzcat)"),
    (b"\xfd7zXZ\x00", "xz data", "unpack it first (xzcat)"),
    (b"PK\x03\x04", "a zip archive", "unpack it first (unzip -p)"),
    (b"\x04\x22\x4d\x18", "lz4 data", "unpack it first (lz4cat)"),
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


def other_kind(start: bytes) -> tuple[str, str] | None:
    """(what these first bytes look like, what would be right) unless they look like plain text."""
    for magic, name, right in FIRST_BYTES:
        if start.startswith(magic):
            return name, right
    if _is_json_line(start):
        return "JSON Lines", f"--input-format jsonl for a document a line, or {TEXT_ANYHOW}"
    if OBJECTS.match(start.removeprefix(b"\xef\xbb\xbf")):
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
    start = start.removeprefix(b"\xef\xbb\xbf").lstrip()
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
    start = start.removeprefix(b"\xef\xbb\xbf").strip()
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
        """The first line that says something, or as much as is looked at; what follows where it has come already."""
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
    """CorpusError where something is taken for plain text and looks like another kind. `any_text`: like none of text,
    where the name says that it is text: JSON is. `nameless`: standard input, where JSON of any form was not meant."""
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
