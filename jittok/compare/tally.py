"""Encodes documents with two tokenizers and counts the differences, grouped, with the first occurrence of each
group."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.compare.cells import DOCUMENT, FIRST_A, FIRST_B, KEY, LAST_A, LAST_B, START, STOP, Side, differing, partings
from jittok.compare.spelling import SpelledTokens, shared_numbers, spelled
from jittok.compare.token_offsets import placed, with_rest
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import frozen

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

MOST_GROUPS = 200_000
"""Limit of distinct differences in memory; beyond it the rarer half is dropped, except for the counts by script."""
AROUND = 100
"""Bytes on each side of a difference that are kept to find its cause."""
LONGEST_PARTING = 4096
"""Limit of bytes of a difference that is examined for its cause."""
MOST_ALIGNED = 1 << 20
"""Limit of bytes of documents that are aligned in Python. In further ones no differences are located."""


@dataclass(slots=True)
class Group:
    """Differences with the same text and the same tokens."""

    text: bytes
    a: list[int]  # ids
    b: list[int]
    script: str
    document: int  # where it occurred first
    position: int  # byte in there
    around: bytes  # the text with some context, empty for a very long one
    at: int  # where it begins in `around`
    whole: tuple[bool, bool]  # whether `around` begins and ends as the document does
    count: int = 0
    cause: str = ""


@dataclass
class PartingTally:
    """The counts over the documents so far."""

    a: Tokenizer
    b: Tokenizer
    by_id: bool = False
    options: dict[str, Any] = field(default_factory=dict)  # of encode_batch

    documents: int = 0
    size: int = 0  # bytes of the documents
    tokens: list[int] = field(default_factory=lambda: [0, 0])
    differing: int = 0
    first_documents: list[int] = field(default_factory=list)  # the first that differ
    partings: int = 0
    scripts: dict[str, int] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    forgotten: int = 0  # differences whose group was dropped
    aligned: int = 0  # bytes that were aligned in Python
    not_aligned: int = 0  # documents that would have needed it, and differ

    def __post_init__(self) -> None:
        self._spelled = spelled(self.a), spelled(self.b)
        if self.by_id:
            sizes = self.a.vocab_size, self.b.vocab_size
            self._numbers = tuple(np.arange(size, dtype=np.int32) for size in sizes)
        else:
            self._numbers = shared_numbers(*(side.texts for side in self._spelled))

    @property
    def both_spelled(self) -> tuple[SpelledTokens, SpelledTokens]:
        """The texts of all ids, on both sides."""
        return self._spelled

    def spelled(self, group: Group) -> tuple[list[bytes], list[bytes]]:
        """The texts of the tokens of a difference, on both sides."""
        a, b = self._spelled
        return [a.texts[token] for token in group.a], [b.texts[token] for token in group.b]

    def add(self, docs: Documents) -> None:
        """Count some documents."""
        rows = [tok.encode_batch(docs, **self.options) for tok in (self.a, self.b)]
        mapped = [frozen(number[row.ids], np.int32) for number, row in zip(self._numbers, rows, strict=True)]
        offsets = [frozen(row.offsets, np.int64) for row in rows]
        found = np.empty(docs.starts.size, np.int64)
        found = found[: differing(offsets[0], mapped[0], offsets[1], mapped[1], found)]
        if found.size:
            self._parted(docs, found)
        for k, row in enumerate(rows):
            self.tokens[k] += row.ids.size
        self.differing += found.size
        self.first_documents += (found[: 20 - len(self.first_documents)] + self.documents).tolist()
        self.documents += docs.starts.size
        self.size += int((docs.stops - docs.starts).sum())

    def _parted(self, docs: Documents, found: NDArray[np.int64]) -> None:
        part = Documents(docs.data, frozen(docs.starts[found], np.int64), frozen(docs.stops[found], np.int64))
        toks = self.a, self.b
        rows_of = [placed(tok, part, texts, self.options) for tok, texts in zip(toks, self._spelled, strict=True)]
        slow: NDArray[np.int64] = np.union1d(rows_of[0].left, rows_of[1].left).astype(np.int64)
        sizes = np.cumsum((part.stops - part.starts)[slow])
        most = int(np.searchsorted(sizes, MOST_ALIGNED - self.aligned, side="right"))
        if most < slow.size:
            self.not_aligned += slow.size - most
            found = np.delete(found, slow[most:])
            if found.size:
                self._parted(docs, found)
            return
        self.aligned += int(sizes[-1]) if slow.size else 0
        sides, ids = [], []
        for tok, numbers, known in zip(toks, self._numbers, rows_of, strict=True):
            whole = with_rest(tok, part, known, self.options)
            ids.append(whole.ids)
            spans = frozen(whole.spans.reshape(-1), np.int64)
            sides.append(Side(whole.offsets, frozen(numbers[whole.ids], np.int32), spans))
        rows = partings(part, *sides)
        self.partings += len(rows)
        keys, first, counts = np.unique(rows[:, KEY], return_index=True, return_counts=True)
        order = np.argsort(first)
        for key, at, count in zip(keys[order].tolist(), first[order].tolist(), counts[order].tolist(), strict=True):
            group = self.groups.get(key)
            if group is None:
                row = rows[at].tolist()
                group = self._group(part, row, ids, self.documents + int(found[row[DOCUMENT]]))
                self.groups[key] = group
            group.count += count
            self.scripts[group.script] = self.scripts.get(group.script, 0) + count
        if len(self.groups) > MOST_GROUPS:
            kept = sorted(self.groups.items(), key=lambda item: -item[1].count)[: MOST_GROUPS // 2]
            self.forgotten += sum(group.count for group in self.groups.values()) - sum(g.count for _, g in kept)
            self.groups = dict(kept)

    def _group(self, part: Documents, row: list[int], ids: list[NDArray[np.int32]], document: int) -> Group:
        origin, end = int(part.starts[row[DOCUMENT]]), int(part.stops[row[DOCUMENT]])
        start, stop = origin + row[START], origin + row[STOP]
        text = part.between(start, min(stop, start + LONGEST_PARTING))
        around, at, whole = b"", 0, (False, False)
        if stop - start <= LONGEST_PARTING:
            low, high = max(start - AROUND, origin), min(stop + AROUND, end)
            around, at = part.between(low, high), start - low
            cut = 0
            while cut < min(3, at) and low > origin and around[cut] & 0xC0 == 0x80:
                cut += 1
            tail = 0
            while tail < 3 and high < end and part.between(high - tail, high - tail + 1)[0] & 0xC0 == 0x80:
                tail += 1
            around, at = around[cut : len(around) - tail], at - cut
            whole = low == origin, high == end
        a, b = ids[0][row[FIRST_A] : row[LAST_A]], ids[1][row[FIRST_B] : row[LAST_B]]
        return Group(
            text,
            a[:LONGEST_PARTING].tolist(),
            b[:LONGEST_PARTING].tolist(),
            script_of(text),
            document,
            row[START],
            around,
            at,
            whole,
        )


# ---- scripts of texts, by their Unicode names

SCRIPTS = (
    "Latin", "Greek", "Cyrillic", "Armenian", "Hebrew", "Arabic", "Syriac", "Thaana", "Nko", "Devanagari", "Bengali",
    "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala", "Thai", "Lao", "Tibetan",
    "Myanmar", "Georgian", "Hangul", "Ethiopic", "Cherokee", "Canadian_Aboriginal", "Khmer", "Mongolian", "Hiragana",
    "Katakana", "Bopomofo", "Han", "Yi", "Javanese", "Balinese", "Tifinagh", "Coptic",
)  # fmt: skip
"""Scripts that are reported by name, in the order in which they are tried."""
OTHER = "other scripts"
KINDS = {"marks": r"\p{M}", "digits": r"\p{N}", "white space": r"\s", "symbols": r"\p{S}", "punctuation": r"\p{P}"}
"""Categories of texts without letters."""
NOTHING = "no text"


@cache
def _pattern() -> Any:
    import regex

    scripts = "|".join(rf"(?P<{name}>\p{{Script={name}}})" for name in SCRIPTS)
    kinds = "|".join(rf"(?P<k{k}>{text})" for k, text in enumerate(KINDS.values()))
    return regex.compile(rf"(?=\p{{L}})(?:{scripts}|(?P<other>[^\p{{Common}}\p{{Inherited}}]))|{kinds}")


@cache
def _script_of_character(c: str) -> str:
    found = _pattern().match(c)
    name = found.lastgroup if found is not None else None
    if name is None:
        return "controls" if ord(c) < 0x80 or c.isspace() or not c.isprintable() else "symbols"
    if name == "other":
        return OTHER
    return list(KINDS)[int(name[1:])] if name[0] == "k" and name[1:].isdigit() else name


def script_of(text: bytes) -> str:
    """The script of the first letter of a text; its category if it has no letter."""
    characters = text.decode("utf-8", "replace")
    first = None
    for c in characters:
        name = _script_of_character(c)
        if name in SCRIPTS or name == OTHER:
            return name
        if first is None or first == "white space":
            first = name
    return first or NOTHING
