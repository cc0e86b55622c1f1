"""Counted words as characters: what WordPiece and sentencepiece's trainers begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.tables import UNICODE_SIZE
from jittok.kernels.jit import I64, U8, OutI32, OutI64, OutU8, as_int64, helper, kernel
from jittok.kernels.structures.utf8 import decode, encode
from jittok.train.counting.counter import Counter, flat_words
from jittok.train.counting.counts import Counts, of_table
from jittok.train.pairs import LOW

EXACT = 1 << 20
"""So many numbers of 32 bits are summed exactly as floats."""
BLOCK = 1 << 18
"""Bytes of the words that are cut at once."""
CLASS_SHIFT = 21
CODE = (1 << CLASS_SHIFT) - 1
ANY, GONE, ENDS, BEGINS, ALONE, SAME = 0, 251, 252, 253, 254, 255
"""Classes of characters: one that stays with all others, one that is left out, one that ends a word and is left out,
one before which a word begins, one that is a word of its own, and again one that stays with all others. Characters
of two other classes are cut apart."""
UNSEEN, MET = -1, -2
Classify = Callable[[NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""(the class of each code point, the code point that it becomes)."""


class CharacterWords(NamedTuple):
    """Words as code points."""

    points: NDArray[np.int32]  # int32[characters] of all words
    starts: NDArray[np.int64]  # int64[words + 1]
    counts: NDArray[np.int64]  # int64[words]

    def weights(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(distinct code points, rising; how often each occurs)."""
        sums = np.zeros(int(self.points.max(initial=-1)) + 1, np.int64)
        for first, last in blocks(self.starts, EXACT):
            points = self.points[self.starts[first] : self.starts[last]]
            for begin in range(0, points.size, EXACT):  # one word may be as long as all others
                lengths = np.diff(np.clip(self.starts[first : last + 1] - self.starts[first] - begin, 0, EXACT))
                each, part = np.repeat(self.counts[first:last], lengths), points[begin : begin + EXACT]
                for shift in (0, 32):
                    found = np.bincount(part, weights=each >> shift & LOW)
                    sums[: found.size] += found.astype(np.int64) << shift
        distinct = np.flatnonzero(sums)
        return distinct, sums[distinct]

    def rows(self, characters: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[characters]: the index of each in `characters`, -1 for others."""
        table = np.full(0x110000, -1, np.int32)
        table[characters] = np.arange(characters.size)
        return table[self.points]


def characters_of(counts: Counts) -> CharacterWords:
    """The words of `counts` as code points; invalid UTF-8 is U+FFFD."""
    words, starts = counts.words, counts.starts
    if not all_text(words, starts):
        return characters_of_texts(texts_of(words, starts), counts.counts)
    points = np.frombuffer(words.tobytes().decode().encode("utf-32-le"), np.int32)
    ends = np.concatenate([[0], np.cumsum((words & 0xC0) != 0x80)])
    return CharacterWords(points, ends[starts], counts.counts)


def blocks(starts: NDArray[np.int64], size: int) -> Iterator[tuple[int, int]]:
    """(first, last + 1) of words that are some `size` long together, one at least."""
    first, end = 0, starts.size - 1
    while first < end:
        last = int(np.searchsorted(starts, starts[first] + size, "right")) - 1
        last = max(min(last, end), first + 1)
        yield first, last
        first = last


def all_text(words: NDArray[np.uint8], starts: NDArray[np.int64]) -> bool:
    """Whether each word is UTF-8: all of them together are, and none begins within a character."""
    heads = words[starts[:-1][np.diff(starts) > 0]]
    if ((heads & 0xC0) == 0x80).any():
        return False
    try:
        words.tobytes().decode()
    except UnicodeDecodeError:
        return False
    return True


def texts_of(words: NDArray[np.uint8], starts: NDArray[np.int64]) -> list[str]:
    """The words as text, with U+FFFD for invalid UTF-8."""
    raw, ends = words.tobytes(), starts.tolist()
    return [raw[i:j].decode("utf-8", "replace") for i, j in pairwise(ends)]


def characters_of_texts(texts: list[str], counts: NDArray[np.int64]) -> CharacterWords:
    """The same of words that are texts already."""
    points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.int32)
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=starts[1:])
    return CharacterWords(points, starts, counts)


@cache
def _script_pattern() -> Any:
    import regex

    known = _script_numbers().items()
    return regex.compile("|".join(rf"(?P<s{k}>\p{{Script={name}}})" for name, k in known))


@cache
def _script_numbers() -> dict[str, int]:
    return {name: k for k, name in enumerate(filter(_is_script, _SCRIPTS), 1)}


def _is_script(name: str) -> bool:
    import regex

    try:
        regex.compile(rf"\p{{Script={name}}}")
    except regex.error:
        return False
    return True


def scripts_of(points: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n]: a number for the script of each code point, as sentencepiece tells them apart: Hiragana, Katakana and
    U+30FC are Han, Inherited is SAME, what has no script is like Common."""
    numbers = _script_numbers()
    han = numbers["Han"]
    alike = {numbers["Hiragana"]: han, numbers["Katakana"]: han, numbers["Inherited"]: SAME}
    out = np.full(points.size, numbers["Common"], np.int64)
    pattern = _script_pattern()
    for k, c in enumerate(points.tolist()):
        found = pattern.match(chr(c))
        if found is not None:
            number = int(found.lastgroup[1:])
            out[k] = alike.get(number, number)
        if c == 0x30FC:
            out[k] = han
    for part in _UNKNOWN_THERE:
        first, _, last = part.partition("-")
        out[(points >= int(first, 16)) & (points <= int(last or first, 16))] = numbers["Common"]
    out[np.isin(points, _DEVANAGARI_THERE)] = numbers["Devanagari"]
    return out


_SCRIPTS = """
    Latin Common Han Hiragana Katakana Inherited Cyrillic Arabic Greek Hebrew Devanagari Hangul Thai Bengali Tamil
    Telugu Kannada Malayalam Gujarati Gurmukhi Oriya Sinhala Lao Tibetan Myanmar Georgian Armenian Ethiopic Khmer
    Mongolian Cherokee Canadian_Aboriginal Ogham Runic Tagalog Hanunoo Buhid Tagbanwa Limbu Tai_Le New_Tai_Lue
    Buginese Tai_Tham Balinese Sundanese Batak Lepcha Ol_Chiki Vedic Glagolitic Coptic Tifinagh Yi Lisu Vai Bamum
    Syloti_Nagri Phags_Pa Saurashtra Kayah_Li Rejang Javanese Cham Tai_Viet Meetei_Mayek Syriac Thaana Nko Samaritan
    Mandaic Bopomofo Braille Linear_B Lycian Carian Old_Italic Gothic Old_Permic Ugaritic Old_Persian Deseret
    Shavian Osmanya Osage Elbasan Caucasian_Albanian Linear_A Cypriot Imperial_Aramaic Palmyrene Nabataean Hatran
    Phoenician Lydian Meroitic_Hieroglyphs Meroitic_Cursive Kharoshthi Old_South_Arabian Old_North_Arabian
    Manichaean Avestan Inscriptional_Parthian Inscriptional_Pahlavi Psalter_Pahlavi Old_Turkic Old_Hungarian Brahmi
    Kaithi Sora_Sompeng Chakma Mahajani Sharada Khojki Multani Khudawadi Grantha Newa Tirhuta Siddham Modi Takri
    Ahom Warang_Citi Pau_Cin_Hau Bhaiksuki Marchen Cuneiform Egyptian_Hieroglyphs Anatolian_Hieroglyphs Mro
    Bassa_Vah Pahawh_Hmong Miao Tangut Nushu Duployan SignWriting Mende_Kikakui Adlam
""".split()  # noqa: SIM905  a list of 150 quoted names is no easier to read
"""Fewer than 255, the most frequent first."""

_UNKNOWN_THERE = """
    558 560 588-589 58B-58C 5C8-5C9 5EF 61C-61D 7FD-7FF 860-89F 8B5 8BE-8D3 9FC-9FE A76 AFA-AFF B53-B55 C04 C3C
    C5C-C5D C77 C84 CDC-CDD CF3-D00 D04 D3B-D3C D81 E86 E89 E8C E8E-E93 E98 EA0 EA8-EA9 EAC EBA ECE 1401-167F 170D
    1715-171F 180F 1878 18B0-18F5 1ABF-1AF0 1B4C-1B4F 1B7D-1B7F 1C89-1CBF 1DF6-1DFA 209D-209F 2C2F 2C5F 312E-312F
    31BB-31BF 4DB6-4DBF 9FD6-9FFF A7AF A7B8-A7F6 A82C A8FE-A8FF AB66-AB6D FBC2-FBD2 FD40-FD4F FD90-FD91 FDC8-FDCF
    FDFE-FDFF 1032D-1032F 10530-10563 10780-107BF 10980-1099F 10A34-10A35 10A48 10A60-10A7E 10A80-10A9F 10B40-10B7F
    10EC2-10EFF 11070-11075 110C2-110CD 11144-11147 111CE-111CF 1123F-11241 1133B 1145A 1145E-11461 116B8-116B9
    116D0-116E3 1171A 11740-11746 11AB0-11ABF 11B00-11B67 11DF0-11FFF 1246F 12475-1247F 12550-14646 16F45-16F4F
    16F7F-16F87 16FE1-16FF6 187ED-187FF 18AF3-1AFFE 1B002-1B2FB 1CF00-1D128 1D25B-1D25C 1DF00-1DFFF 1E030-1E7FE
    1E94B 2A6D7-2A6DF 2B735-2B73F 2B81E 2CEA2-2EE5D 30000-33479
""".split()  # noqa: SIM905
"""Code points whose script is newer than sentencepiece's table, which takes them for Common."""
_DEVANAGARI_THERE = (0x953, 0x954)
"""Inherited since then."""


@helper
def _is_open(kind: int) -> bool:
    """Whether a character of this class stays with those of all others."""
    return kind == ANY or kind == SAME  # noqa: PLR1714  kernels have no tuples of these


@kernel
def cut_words(
    table: OutI32, words: U8, starts: I64, counts: I64, state: OutI64, new: OutI32, out: OutU8, out_starts: OutI64,
    out_counts: OutI64,
) -> int:  # fmt: skip
    """Cut words, which are UTF-8. Returns how many characters are missing in the table; what is written counts only if
    there are none.

    table: int32[code points] class << CLASS_SHIFT | what the character becomes, or UNSEEN; state: int64[1] the parts
    new, out_counts: [bytes of the words]; out_starts: one more, from 0 on; out: four times as many
    """
    parts, unseen = 0, 0
    for k in range(counts.size):
        begin = out_starts[parts]
        at, last, i = begin, SAME, starts[k]
        while i < starts[k + 1]:
            c, size = decode(words, i, starts[k + 1], 0)
            i += size
            found = as_int64(table[c])
            if found < 0:
                if found == UNSEEN:
                    table[c], new[unseen] = MET, c
                    unseen += 1
                continue
            kind = found >> CLASS_SHIFT
            if kind == GONE:
                continue
            apart = last != kind and not (_is_open(last) or _is_open(kind) or last == BEGINS)
            if (apart or last == ALONE or ENDS <= kind <= ALONE) and at > begin:
                parts += 1
                out_starts[parts], out_counts[parts - 1] = at, counts[k]
                begin = at
            last = SAME
            if kind != ENDS:
                at, last = encode(found & CODE, out, at), kind
        if at > begin:
            parts += 1
            out_starts[parts], out_counts[parts - 1] = at, counts[k]
    state[0] = parts
    return unseen


class _Buffers(NamedTuple):
    """What the parts of words are written to; see `cut_words`."""

    new: NDArray[np.int32]
    out: NDArray[np.uint8]
    out_starts: NDArray[np.int64]
    out_counts: NDArray[np.int64]


class WordParts:
    """Counts the parts of words."""

    def __init__(self, classify: Classify) -> None:
        self._classify = classify
        self._table = np.full(UNICODE_SIZE, UNSEEN, np.int32)
        self._counter = Counter()
        self._written = _buffers(BLOCK)

    def add(self, words: NDArray[np.uint8], starts: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Word k is words[starts[k]:starts[k + 1]]; invalid UTF-8 is U+FFFD."""
        for first, last in blocks(starts, BLOCK):
            low = int(starts[first])
            self._add(words[low : int(starts[last])], starts[first : last + 1] - low, counts[first:last])

    def _add(self, words: NDArray[np.uint8], starts: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        if not all_text(words, starts):
            words, starts = flat_words(text.encode() for text in texts_of(words, starts))
        if self._written.out_counts.size < words.size:
            self._written = _buffers(words.size)
        written, state = self._written, np.zeros(1, np.int64)
        while unseen := cut_words(self._table, words, starts, counts, state, *written):
            points = written.new[:unseen].astype(np.int64)
            kinds, others = self._classify(points)
            self._table[points] = kinds << CLASS_SHIFT | others
        number = int(state[0])
        starts = written.out_starts[: number + 1]
        self._counter.add_words(written.out[: int(starts[-1])], starts, written.out_counts[:number])

    def points(self) -> NDArray[np.int64]:
        """The characters that words have."""
        return np.flatnonzero(self._table >= 0)

    def found(self) -> Counts:
        """All parts."""
        return of_table(self._counter.table)

    def characters(self) -> CharacterWords:
        """All parts as code points."""
        return characters_of(self.found())


def _buffers(size: int) -> _Buffers:
    """For words of so many bytes."""
    ends = np.zeros(size + 1, np.int64)
    return _Buffers(np.empty(size, np.int32), np.empty(4 * size, np.uint8), ends, np.empty(size, np.int64))
