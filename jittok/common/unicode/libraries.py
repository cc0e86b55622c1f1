"""What the libraries of other tokenizer files know about characters, each by its own Unicode version.

These tables differ by library. The regular expressions of tokenizers and tiktoken know Unicode 16.0. Rust's own
predicates (white space, numbers, lower case) are newer. BertNormalizer's categories are of Unicode 8. The normal
forms change no character that Unicode 10 did not have. Every table in libraries.npz was read out of the library
itself over all code points.
"""

from __future__ import annotations

import os
import unicodedata
from functools import cache
from io import BytesIO
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.sets import Ranges
from jittok.common.unicode.tables import UNICODE_SIZE

SETS = (
    "whitespace", "numeric", "punctuation", "combining", "bert_nonspacing", "bert_removed", "newer", "extending",
    "cluster_control", "cluster_prepend", "cluster_hangul", "pictographic", "cluster_consonant", "cluster_linker",
    "cluster_apart", "other_alphabetic", "other_uppercase", "other_lowercase", "emoji", "emoji_presentation",
    "ideographic", "extended_pictographic",
)  # fmt: skip
"""Names of sets that are no classes of regular expressions. "newer": code points that the normal forms leave alone;
"extending": what grapheme clusters continue with, by which tokenizers reads character maps; the others after it: what
else the rules of grapheme clusters tell apart. "cluster_linker" joins two of "cluster_consonant", with what else
belongs to a cluster between them, but for "cluster_apart". What is after that is for `properties`."""
CLASSES = (
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "N", "Nd", "Nl", "No", "M", "Mn", "Mc", "Me", "P", "Pc", "Pd", "Ps", "Pe", "Pi",
    "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "C", "Cc", "Cf", "Han", "space", "digit", "word",
    "word_crate",
)  # fmt: skip
"""Names of classes of regular expressions. "word_crate": the regex crate's `\\w`, which has U+200C and U+200D."""
CHINESE = (
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F),
)  # fmt: skip
"""What BertNormalizer puts spaces around; that one block begins at 2B920 and not at 2B820 is so there."""
NMT_REMOVED = ((1, 8), (0xB, 0xB), (0xE, 0x1F), (0x7F, 0x7F), (0x8F, 0x8F), (0x9F, 0x9F))
NMT_SPACES = (
    (9, 10), (12, 13), (0x1680, 0x1680), (0x200B, 0x200F), (0x2028, 0x2029), (0x2581, 0x2581), (0xFEFF, 0xFEFF),
    (0xFFFD, 0xFFFD),
)  # fmt: skip

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]


@cache
def _file() -> bytes:
    with open(os.path.join(os.path.dirname(__file__), "libraries.npz"), "rb") as file:
        return file.read()


@cache
def table(name: str) -> NDArray[np.uint32]:
    """One array of the file: a tokenizer asks for few, and each takes longer to read than what is done with it.

    An open file is not kept: it has a lock of Python's own, which a fork amid another thread's reading leaves locked.
    """
    with np.load(BytesIO(_file())) as file:
        found: NDArray[np.uint32] = file[name]
    return found


@cache
def ranges(name: str) -> Ranges:
    """The code points of a set or class as rising (first, last), which do not touch."""
    rows = table(name if name in SETS else f"class_{name}")
    return tuple((first, stop - 1) for first, stop in rows.astype(np.int64).tolist())


def member_flags(name: str) -> NDArray[np.bool_]:
    """bool[0x110000]: the same for every code point."""
    found = np.zeros(UNICODE_SIZE, np.bool_)
    for first, last in ranges(name):
        found[first : last + 1] = True
    return found


def is_member(name: str, points: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[n]: the same for some code points."""
    rows = table(name if name in SETS else f"class_{name}").astype(np.int64)
    at = np.searchsorted(rows[:, 0], points, "right") - 1
    found: NDArray[np.bool_] = (at >= 0) & (points < rows[at, 1])
    return found


@cache
def scripts() -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """(starts: int64[runs] rising from 0; numbers: uint8[runs] from 1 on) of the scripts that the pre-tokenizer
    UnicodeScripts tells apart, of Unicode 9. Kana and ideographs are one. 0 is any script: spaces, unassigned ones."""
    return table("words_script_first").astype(np.int64), table("words_script_number").astype(np.uint8)


@cache
def characters(name: str) -> frozenset[str]:
    """The same as characters."""
    return frozenset(chr(c) for first, last in ranges(name) for c in range(first, last + 1))


def _points(parts: Ranges) -> frozenset[int]:
    return frozenset(c for first, last in parts for c in range(first, last + 1))


@cache
def lower_map() -> dict[int, str]:
    """Code point -> its lower case by Rust's table, each character alone; U+0130 alone has two characters."""
    columns = (table(name).tolist() for name in ("lower_from", "lower_to", "lower_then"))
    return {c: chr(to) + (chr(then) if then else "") for c, to, then in zip(*columns, strict=True)}


@cache
def mapping(name: str) -> dict[int, str]:
    """A map of characters as `str.translate` takes it, by the name that a `Map` step has.

    "bert_clean": BertNormalizer's clean_text; "bert_chinese": spaces around ideographs; "bert_accents" and "accents":
    marks removed; "lowercase"; "nmt".
    """
    if name == "lowercase":
        return lower_map()
    if name == "bert_clean":
        return {**{ord(c): " " for c in characters("whitespace")}, **{ord(c): "" for c in characters("bert_removed")}}
    if name == "bert_chinese":
        return {c: f" {chr(c)} " for c in _points(CHINESE)}
    if name in ("bert_accents", "accents"):
        return {ord(c): "" for c in characters("bert_nonspacing" if name == "bert_accents" else "combining")}
    if name == "nmt":
        return {**dict.fromkeys(_points(NMT_SPACES), " "), **dict.fromkeys(_points(NMT_REMOVED), "")}
    raise KeyError(name)


@cache
def _newer() -> Any:
    import re

    return re.compile("[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges("newer")) + "]")


STRIDE = 64
"""So many marks in a row, or more, are put in order here."""
MOST_BY_PYTHON = 1 << 12
"""So many are sorted by NumPy, so many at once."""


@cache
def non_starters(form: Form) -> frozenset[str]:
    """Characters that a normal form puts in order with their neighbors: those of a combining class, and those that
    become such. Without "newer" ones, which no text here has, and of which Python's table may know nothing."""
    from jittok.common.unicode.nfc import classed

    become = "\u0f73\u0f75\u0f81\uff9e\uff9f" if "K" in form else "\u0f73\u0f75\u0f81"
    return frozenset([*map(chr, classed()[0].tolist()), *become]) - characters("newer")


@cache
def _long_rows(form: Form) -> Any:
    import re

    return re.compile(f"[{''.join(sorted(non_starters(form)))}]{{{STRIDE},}}")


def _in_order(form: Form, marks: str) -> str:
    """Marks, decomposed each alone, by their combining classes."""
    if len(marks) < MOST_BY_PYTHON:
        parts = unicodedata.normalize("NFKD" if "K" in form else "NFD", " ".join(marks))
        return "".join(sorted(parts.replace(" ", ""), key=unicodedata.combining))
    return "".join(_by_classes(form, marks).values())


def _by_classes(form: Form, marks: str) -> dict[int, str]:
    """The same by class, classes rising. No mark becomes an object of its own, which would take eighty bytes."""
    from jittok.common.unicode.nfc import class_table

    whole: Form = "NFKD" if "K" in form else "NFD"
    found = dict[int, list[str]]()
    apart = {ord(c): unicodedata.normalize(whole, c) for c in set(marks)}
    for at in range(0, len(marks), MOST_BY_PYTHON):
        codes = np.frombuffer(marks[at : at + MOST_BY_PYTHON].translate(apart).encode("utf-32-le"), "<u4")
        classes = class_table()[codes]
        for each in np.flatnonzero(np.bincount(classes)).tolist():
            found.setdefault(each, []).append(codes[classes == each].tobytes().decode("utf-32-le"))
    return {each: "".join(found.pop(each)) for each in sorted(found)}


def _normalize(form: Form, text: str) -> str:
    """unicodedata.normalize in linear time. It sorts marks by exchanging neighbors: 64,000 in a row take seconds.

    A long row has a character at a multiple of the stride, so few characters are looked at where there is none.
    """
    if not non_starters(form).isdisjoint(text[::STRIDE]):
        text = _long_rows(form).sub(lambda row: _in_order(form, row[0]), text)
    return unicodedata.normalize(form, text)


def normal_form_of_row(form: Form, front: str, marks: str) -> str:
    """`normal_form` of a text that ends in a long row of marks, for which it takes hardly any memory.

    The first few marks of a class may be put together with what is before. The others of that class stay after
    them, so they are not shown to the normal form.
    """
    if not non_starters(form).issuperset(set(marks)):
        return normal_form(form, front + marks)
    parts = _by_classes(form, marks)
    short = normal_form(form, front + "".join(part[:STRIDE] for part in parts.values()))
    classes, out, done = [unicodedata.combining(c) for c in short], list[str](), 0
    for each, part in parts.items():
        if len(part) > STRIDE:
            end = len(short) - classes[::-1].index(each)
            out += [short[done:end], part[STRIDE:]]
            done = end
    return "".join([*out, short[done:]])


def normal_form(form: Form, text: str) -> str:
    """NFC, NFD, NFKC or NFKD as tokenizers' crate does it: what its tables do not know is a starter alone."""
    if text.isascii() or unicodedata.is_normalized(form, text):  # a part of a normal form is one
        return text
    if characters("newer").isdisjoint(text):
        return _normalize(form, text)
    parts, done = [], 0
    for found in _newer().finditer(text):
        parts += [_normalize(form, text[done : found.start()]), found[0]]
        done = found.end()
    return "".join([*parts, _normalize(form, text[done:])])
