"""Counted words as characters: what WordPiece and sentencepiece's trainers begin with."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.train.counts import Counts
from jittok.train.pairs import LOW, SAME


class CharacterWords(NamedTuple):
    """Words as code points."""

    points: NDArray[np.int64]  # int64[characters] of all words
    starts: NDArray[np.int64]  # int64[words + 1]
    counts: NDArray[np.int64]  # int64[words]

    def weights(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(distinct code points, rising; how often each occurs)."""
        distinct = np.flatnonzero(np.bincount(self.points))
        each = np.repeat(self.counts, np.diff(self.starts))
        low, high = (np.bincount(self.points, weights=part) for part in (each & LOW, each >> 32))  # exact as floats
        return distinct, low[distinct].astype(np.int64) + (high[distinct].astype(np.int64) << 32)

    def rows(self, characters: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[characters]: the place of each in `characters`, -1 for others."""
        table = np.full(0x110000, -1, np.int32)
        table[characters] = np.arange(characters.size)
        return table[self.points]


def characters_of(counts: Counts) -> CharacterWords:
    """The words of `counts` as code points; what is no UTF-8 is U+FFFD."""
    words = counts.words
    heads = (words & 0xC0) != 0x80
    text = words.tobytes()
    try:
        points = np.frombuffer(text.decode().encode("utf-32-le"), np.uint32).astype(np.int64)
    except UnicodeDecodeError:
        return characters_of_texts([word.decode("utf-8", "replace") for word, _ in counts.items()], counts.counts)
    ends = np.concatenate([[0], np.cumsum(heads)])
    return CharacterWords(points, ends[counts.starts], counts.counts)


def characters_of_texts(texts: list[str], counts: NDArray[np.int64]) -> CharacterWords:
    """The same of words that are texts already."""
    points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=starts[1:])
    return CharacterWords(points, starts, counts)


@cache
def _script_pattern() -> Any:
    import regex

    known = [name for name in _SCRIPTS if _is_script(name)]
    return regex.compile("|".join(rf"(?P<s{k}>\p{{Script={name}}})" for k, name in enumerate(known, 1)))


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
    numbers = {name: k for k, name in enumerate((name for name in _SCRIPTS if _is_script(name)), 1)}
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
