"""Distinct words with their counts: all that training needs of a corpus, as arrays and as a file.

The file is text with one word a line: its count, a tab, and the word in GPT-2's byte-level alphabet. There every
byte is a printable character, so no word contains a space, a tab or a line end. The first line is a comment that
records how the words were cut. Lines are sorted by descending count and then by the bytes of the word, so equal
counts give equal files.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from jittok.common.rows.checks import is_held, own
from jittok.common.rows.ragged import fixed_offsets, read_only_array
from jittok.common.unicode.tables import BYTE_OF_CHARACTER, CHARACTER_OF_BYTE
from jittok.corpus.options import MAX_DOCUMENT_BYTES
from jittok.errors import CorpusError, InWords
from jittok.train.counting.counter import Counter, flat_words
from jittok.train.counting.table import WordTable, words_of

MAGIC = "#jittok words 1 "
UNIT = 1 << 16
"""The count of a word in a document of weight 1 where documents have weights."""
MOST_COUNT = 1 << 62
"""Limit of the sum of all counts of a corpus: sums have 64 bits."""
MOST_NUMBER = 1 << 40
"""Limit of an option: in units of weights it has 64 bits."""
MOST_IDS = 1 << 23
"""Limit of a vocabulary: a file of more tokens is not read."""
DEFAULT_FACTS: dict[str, Any] = {
    "pre": "", "unit": 1, "documents": 0, "bytes": 0, "special": [], "once": False, "like": "jittok", "last": "",
    "left_out": 0,
}  # fmt: skip
"""Of the first line, and what holds without it."""
EXPECTED = "a count, a tab and a word in the alphabet of bytes"
"""Of a line."""
COUNT = re.compile("[0-9]{1,19}")
BEGINNING = 1 << 16
"""Bytes of a line that decide whether it may be one."""
_TO_TEXT = {byte: chr(c) for byte, c in enumerate(CHARACTER_OF_BYTE)}
_TO_BYTES = {c: chr(byte) for c, byte in BYTE_OF_CHARACTER.items()}


@dataclass(frozen=True, eq=False)
class Counts:
    """Words and how often each occurs. `a + b` are the counts of both corpora.

    Kernels follow the offsets in the arrays, so they are checked and copied to memory that nothing else can change.
    """

    words: NDArray[np.uint8]  # uint8[bytes] all words one after the other
    starts: NDArray[np.int64]  # int64[words + 1] from 0 to the end of the words, never falling
    counts: NDArray[np.int64]  # int64[words], in units of 1 / unit, fewer than MOST together
    pre: str = ""  # what cut them; "" when unknown, "regex:..." for a pattern of one's own
    unit: int = 1
    documents: int = 0
    text_bytes: int = 0
    special: tuple[str, ...] = field(default=())  # texts that were cut out first
    once: bool = False  # a word counts once a document
    like: str = "jittok"  # whose tables of characters cut them: "hf" for those of tokenizers
    last: bytes = b""  # of lines: the last run of the last one
    left_out: int = 0  # lines that were too long

    def __post_init__(self) -> None:
        words = read_only_array(self.words, np.uint8, "words")
        words = words if is_held(words) else own(words)
        starts = fixed_offsets(self.starts, words.size, "bytes of words")
        counts = own(read_only_array(self.counts, np.int64, "counts"))
        if counts.size != starts.size - 1:
            raise ValueError(f"counts: found {counts.size}, expected {starts.size - 1}, one a word")
        total = (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())  # which int64 may not hold
        if counts.min(initial=0) < 0 or total >= MOST_COUNT:
            found = f"{total} occurrences, the least of a word {counts.min()}"
            raise ValueError(f"counts: found {found}, expected 0 or more of each, and fewer than {MOST_COUNT}")
        check_bytes(starts, counts)
        for name, least in (("unit", 1), ("documents", 0), ("text_bytes", 0), ("left_out", 0)):
            check_number(name, getattr(self, name), MOST_COUNT, least)
        for name, array in (("words", words), ("starts", starts), ("counts", counts)):
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return self.counts.size

    def __repr__(self) -> str:
        return f"Counts({len(self)} words, {self.total} occurrences, pre={self.pre!r})"

    @property
    def total(self) -> int:
        """Occurrences of all words."""
        return int(self.counts.sum()) // self.unit

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64[words]: bytes of each."""
        return np.diff(self.starts)

    def items(self) -> Iterable[tuple[bytes, int]]:
        """(word, count) of each word, in no order of its own."""
        raw = self.words.tobytes()
        ends = self.starts.tolist()
        return ((raw[ends[k] : ends[k + 1]], count) for k, count in enumerate(self.counts.tolist()))

    def to_dict(self) -> dict[bytes, int]:
        """word -> count, the most frequent first, then by the bytes of the word."""
        return dict(self._rows())

    def _rows(self) -> list[tuple[bytes, int]]:
        # the order of the table depends on a secret of the process
        return sorted(self.items(), key=lambda item: (-item[1], item[0]))

    def __add__(self, other: Counts) -> Counts:
        return summed((self, other)) if isinstance(other, Counts) else NotImplemented

    def without_bytes(self, dropped: NDArray[np.bool_]) -> Counts:
        """The words less the bytes for which `dropped` (bool[256]) is true; what was around them is neighbors."""
        kept = ~dropped[self.words]
        ends = np.concatenate([[0], np.cumsum(kept)])
        return changed(self, words=self.words[kept], starts=ends[self.starts])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file."""
        from jittok.common.writers.atomic_files import atomic_file

        facts = {"pre": self.pre, "unit": self.unit, "documents": self.documents, "bytes": self.text_bytes}
        facts |= {"special": list(self.special), "once": self.once}
        facts |= {"like": self.like} if self.like != Counts.like else {}
        facts |= {"last": to_text(self.last)} if self.last else {}
        facts |= {"left_out": self.left_out} if self.left_out else {}
        with atomic_file(path) as new, new.open("w", encoding="utf-8", newline="\n") as file:
            file.write(f"{MAGIC}{json.dumps(facts)}\n")
            file.writelines(f"{count}\t{to_text(word)}\n" for word, count in self._rows())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Counts:
        """Read a file that `save` wrote, or lines of a count, a tab and a word. CorpusError for anything else."""
        words: list[bytes] = []
        counts: list[int] = []
        facts = "{}"
        with Path(path).open("rb") as file:
            for number, line in enumerate(_lines(file, path), 1):
                try:
                    text = line.decode().rstrip("\r\n")
                    if text.startswith("#"):
                        if number == 1 and text.startswith(MAGIC):
                            facts = text[len(MAGIC) :]
                        continue
                    count, word = text.split("\t")
                    words.append(to_bytes(word))
                    counts.append(int(count) if COUNT.fullmatch(count) else -1)
                    if not 0 <= counts[-1] < MOST_COUNT:
                        raise ValueError
                except ValueError:
                    raise CorpusError(f"{path}, line {number}", line[:80], EXPECTED) from None
        if sum(counts) >= MOST_COUNT:
            raise CorpusError(str(path), InWords(f"{sum(counts)} occurrences"), f"fewer than {MOST_COUNT}")
        known = _facts(path, facts)
        try:
            return cls(*flat_words(words), np.array(counts, np.int64), **known)
        except ValueError as error:
            raise CorpusError(str(path), InWords(str(error)), "counts that fit in 64 bits") from None

    @classmethod
    def of(cls, words: Mapping[bytes, int] | Mapping[str, int], **facts: Any) -> Counts:
        """Counts of a dictionary."""
        parts = [word.encode() if isinstance(word, str) else word for word in words]
        return cls(*flat_words(parts), np.array([*words.values()]), **facts)


def _lines(file: BinaryIO, path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The lines of a file. CorpusError for one that is too long, or whose beginning is none: a device has no end."""
    number = 0
    while line := file.readline(BEGINNING):
        number += 1
        if len(line) == BEGINNING:
            if re.match(rb"#|[0-9]+\t", line) is None:
                raise CorpusError(f"{path}, line {number}", line[:80], EXPECTED)
            line += file.readline(MAX_DOCUMENT_BYTES)
            if len(line) > MAX_DOCUMENT_BYTES:
                found = InWords(f"a line of {len(line)} bytes or more")
                raise CorpusError(f"{path}, line {number}", found, f"up to {MAX_DOCUMENT_BYTES} bytes")
        yield line


def _facts(path: str | os.PathLike[str], line: str) -> dict[str, Any]:
    """The fields of Counts in the first line of a file. CorpusError for what `save` would not have written."""
    try:
        facts = json.loads(line)
        given = dict(facts) if isinstance(facts, dict) else {"": facts}
        fields = {key: given.pop(key, default) for key, default in DEFAULT_FACTS.items()}
        for key, value in fields.items():
            if type(value) is not type(DEFAULT_FACTS[key]):
                raise ValueError(f"{key}: {value!r}")
        if given or not all(isinstance(text, str) for text in fields["special"]):
            raise ValueError(json.dumps(facts))
        if fields["unit"] not in (1, UNIT) or min(fields[key] for key in ("documents", "bytes", "left_out")) < 0:
            raise ValueError(json.dumps(facts))
        special, last = tuple(fields.pop("special")), to_bytes(fields.pop("last"))
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{path}, line 1", str(error), "the header that --save-words writes") from None
    return {"text_bytes": fields.pop("bytes"), "special": special, "last": last, **fields}


def check_number(option: str, value: Any, most: int = MOST_NUMBER, least: int = 0, expected: str = "") -> None:
    """CorpusError for anything but a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise CorpusError(option, value, expected or f"a whole number from {least} to {most}")


def to_text(word: bytes) -> str:
    """A word in the alphabet of bytes."""
    return word.decode("latin-1").translate(_TO_TEXT)


def to_bytes(text: str) -> bytes:
    """The bytes of a text in the alphabet of bytes. ValueError where it is in no such alphabet."""
    return text.translate(_TO_BYTES).encode("latin-1") if all(ord(c) in BYTE_OF_CHARACTER for c in text) else _wrong()


def _wrong() -> bytes:
    raise ValueError("a character that encodes no byte")


def summed(parts: Iterable[Counts]) -> Counts:
    """The counts of all corpora together; one part at least. CorpusError where words are cut in different ways."""
    counter = Counter()
    whole: Counts | None = None
    occurrences = 0.0
    for part in parts:
        if whole is None:
            whole = changed(part, documents=0, text_bytes=0, last=b"", left_out=0)
        elif _cut(whole) != _cut(part):
            found, expected = _cut(part), f"words cut as the others: {_cut(whole)}"
            raise CorpusError("counts", found, expected)
        if part.unit > whole.unit:
            table = of_table(counter.table)
            counter.clear()
            counter.add_words(table.words, table.starts, table.counts * (part.unit // whole.unit))
        unit = max(whole.unit, part.unit)
        occurrences += float(part.counts.sum()) / part.unit
        if occurrences * unit >= MOST_COUNT:
            raise CorpusError("counts", InWords(f"{occurrences:.0f} occurrences"), f"fewer than {MOST_COUNT // unit}")
        counter.add_words(part.words, part.starts, part.counts * (unit // part.unit))
        whole = changed(
            whole, unit=unit, documents=whole.documents + part.documents, text_bytes=whole.text_bytes + part.text_bytes,
            last=part.last or whole.last, left_out=whole.left_out + part.left_out,
        )  # fmt: skip
    assert whole is not None, "there is a part"
    found_table = of_table(counter.table)
    try:
        check_bytes(found_table.starts, found_table.counts)
    except ValueError as error:
        raise CorpusError("counts", InWords(str(error)), "fewer, or weights that are smaller") from None
    return changed(whole, words=found_table.words, starts=found_table.starts, counts=found_table.counts)


def check_bytes(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """ValueError where words have too many bytes together, each as often as it occurs: pairs of neighbors, of which a
    word has nearly as many as bytes, are summed in 64 bits as well."""
    lengths = np.diff(starts)
    occurring = float(lengths.astype(np.float64) @ counts.astype(np.float64))
    if occurring >= MOST_COUNT // 2:  # so many that floats may round to MOST
        occurring = int(lengths.astype(object) @ counts.astype(object))
    if occurring >= MOST_COUNT:
        found = f"{occurring:.3g} bytes in all occurrences together"
        raise ValueError(f"counts: found {found}, expected fewer than {MOST_COUNT}")


def _cut(counts: Counts) -> str:
    """A description of how words were cut."""
    like = f", like {counts.like}" if counts.like != Counts.like else ""
    return f"{counts.pre!r}, special {list(counts.special)}, once {counts.once}{like}"


def of_table(*tables: WordTable, threads: int = 1) -> Counts:
    """The words of a table; of several, which are given up."""
    return made_counts(*words_of(tables, threads))


def made_counts(words: NDArray[np.uint8], starts: NDArray[np.int64], counts: NDArray[np.int64]) -> Counts:
    """Counts of arrays that this package has made and nothing else holds: neither checked nor copied."""
    return changed(_NOTHING, words=words, starts=starts, counts=counts)


def changed(first: Counts, /, **fields: Any) -> Counts:
    """The same with other fields, which this package has made, as `dataclasses.replace`, which would copy all words."""
    made = object.__new__(Counts)
    for name, value in {**vars(first), **fields}.items():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        object.__setattr__(made, name, value)
    return made


_NOTHING = Counts(np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int64))
