"""Makes libraries.npz by asking `tokenizers` about every code point; Python's `unicodedata` is asked about characters
that both know, the module `regex` about grapheme clusters:

python tools/library_tables.py libraries.npz t5.charsmap
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.libraries import CLASSES, Form
from jittok.common.unicode.properties import SCRIPTS

POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
ALL = "".join(map(chr, POINTS))
PATTERNS = {"space": r"\s", "digit": r"\d", "word": r"[\w]", "Han": r"\p{Han}"}


def runs(members: set[int]) -> NDArray[np.uint32]:
    """uint32[n, 2]: (first, after the last) of runs of code points."""
    points = np.array(sorted(members), np.int64)
    cuts = np.flatnonzero(np.diff(points) != 1)
    firsts, lasts = np.append(points[:1], points[cuts + 1]), np.append(points[cuts], points[-1:])
    return np.stack([firsts, lasts + 1], 1).astype(np.uint32)


def removed_by(normalizer: Any, text: str = ALL) -> set[int]:
    """Code points that a normalizer takes away."""
    return {ord(c) for c in text} - {ord(c) for c in normalizer.normalize_str(text)}


def cut_by(splitter: Any) -> set[int]:
    """Code points that a pre-tokenizer cuts from letters beside them."""
    return {c for c in POINTS if len(splitter.pre_tokenize_str(f"a{chr(c)}a")) > 1}


def tables(charsmap: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of libraries.npz (see `libraries`). charsmap: T5's `precompiled_charsmap`."""
    from tokenizers import Regex, normalizers, pre_tokenizers

    found: dict[str, NDArray[Any]] = {}
    for name in CLASSES:
        if name != "word_crate":
            pattern = PATTERNS.get(name, rf"\p{{{name}}}")
            found[f"class_{name}"] = runs(removed_by(normalizers.Replace(Regex(pattern), "")))
    found.update(property_tables(lambda name: runs(removed_by(normalizers.Replace(Regex(rf"\p{{{name}}}"), "")))))
    word = {c for c in POINTS if len(pre_tokenizers.Whitespace().pre_tokenize_str(f"a{chr(c)}a")) == 1}
    found["class_word_crate"] = runs(word)
    found["whitespace"] = runs(cut_by(pre_tokenizers.WhitespaceSplit()))
    found["numeric"] = runs(cut_by(pre_tokenizers.Digits(individual_digits=True)))
    found["punctuation"] = runs(cut_by(pre_tokenizers.Punctuation("isolated")))
    clean: dict[str, Any] = {"handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    kept = set(map(ord, normalizers.BertNormalizer(clean_text=True, **clean).normalize_str(ALL)))
    white = {c for first, stop in found["whitespace"].tolist() for c in range(first, stop)}
    cleaned = {c for c in set(POINTS) - kept if c not in white}
    cleaned |= {c for c in white if not normalizers.BertNormalizer(clean_text=True, **clean).normalize_str(chr(c))}
    found["bert_removed"] = runs(cleaned)
    marks = {**clean, "strip_accents": True}
    alone = "".join(c for c in ALL if unicodedata.normalize("NFD", c) == c)
    found["bert_nonspacing"] = runs(removed_by(normalizers.BertNormalizer(clean_text=False, **marks), alone))
    found["combining"] = runs(removed_by(normalizers.StripAccents()))
    lower = [(c, normalizers.Lowercase().normalize_str(chr(c))) for c in POINTS]
    pairs = [(c, text) for c, text in lower if text != chr(c)]
    found["lower_from"] = np.array([c for c, _ in pairs], np.uint32)
    found["lower_to"] = np.array([ord(text[0]) for _, text in pairs], np.uint32)
    found["lower_then"] = np.array([ord(text[1]) if len(text) > 1 else 0 for _, text in pairs], np.uint32)
    forms: dict[Form, Callable[[str], str]] = {
        "NFD": normalizers.NFD().normalize_str,
        "NFKD": normalizers.NFKD().normalize_str,
    }
    goes_on = extending(normalizers.Precompiled(charsmap))
    found["extending"] = runs(goes_on)
    found.update(cluster_sets(goes_on))
    found.update(script_tables(pre_tokenizers.UnicodeScripts()))
    found["newer"] = runs(newer_than_forms(forms, found["class_M"], found["class_L"], found["class_Han"]))
    return found


def property_tables(named: Callable[[str], NDArray[np.uint32]]) -> dict[str, NDArray[Any]]:
    """Scripts, and the properties that no other table gives (see `properties`)."""
    rows = [(*row, k) for k, names in enumerate(SCRIPTS) for row in named(names[0]).tolist()]
    first, stop, number = np.array(sorted(rows), np.uint32).T
    found: dict[str, NDArray[Any]] = {"script_first": first, "script_stop": stop}
    found["script_number"] = number.astype(np.uint8)
    names = ("other_alphabetic", "other_uppercase", "other_lowercase", "emoji", "emoji_presentation", "ideographic")
    return found | {name: named(name) for name in (*names, "extended_pictographic")}


def script_tables(splitter: Any) -> dict[str, NDArray[Any]]:
    """The scripts of UnicodeScripts, numbered from 1 on as they come, as runs of code points."""
    known = [chr(c) for c in POINTS if splitter.pre_tokenize_str(chr(c))]  # nothing is left of one of any script
    of, firsts = dict[str, int](), list[str]()
    for word, _ in splitter.pre_tokenize_str("".join(known)):
        alike = (k for k, first in enumerate(firsts) if len(splitter.pre_tokenize_str(first + word[0])) == 1)
        number = next(alike, len(firsts))
        firsts += [word[0]] * (number == len(firsts))
        of.update(dict.fromkeys(word, number + 1))
    numbers = np.array([of.get(chr(c), 0) for c in range(0x110000)], np.uint8)
    starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    return {"words_script_first": starts.astype(np.uint32), "words_script_number": numbers[starts]}


def cluster_sets(goes_on: set[int]) -> dict[str, NDArray[np.uint32]]:
    """What the rules of grapheme clusters tell apart beside what continues with a cluster."""
    import regex

    patterns = {
        "cluster_control": r"[\p{GCB=Control}\p{GCB=CR}\p{GCB=LF}]",
        "cluster_prepend": r"\p{GCB=Prepend}",
        "cluster_hangul": r"[\p{GCB=L}\p{GCB=V}\p{GCB=T}\p{GCB=LV}\p{GCB=LVT}]",
        "pictographic": r"\p{Extended_Pictographic}",
        "cluster_consonant": r"\p{InCB=Consonant}",
        "cluster_linker": r"\p{InCB=Linker}",
        "cluster_apart": r"[^\p{InCB=Extend}\p{InCB=Linker}]",
    }
    found = {name: {ord(c) for c in regex.findall(pattern, ALL)} for name, pattern in patterns.items()}
    for name in ("cluster_linker", "cluster_apart"):
        found[name] &= goes_on
    return {name: runs(members) for name, members in found.items()}


def extending(charsmap: Any) -> set[int]:
    """Characters that belong to the grapheme cluster of what is before them, as T5's character map shows. A cluster
    that begins with "a" and an acute accent becomes one character if it has fewer than 6 bytes. A longer one stays."""
    short = {c for c in POINTS if 0x80 <= c < 0x800 and charsmap.normalize_str(f"a\u0301{chr(c)}") == "\xe1"}
    short -= {c for c in short if not charsmap.normalize_str(chr(c))}  # nothing is left of these in any case
    long = {c for c in POINTS if c >= 0x800 and not charsmap.normalize_str(f"a\u0301{chr(c)}").startswith("\xe1")}
    return short | long


def newer_than_forms(
    forms: dict[Form, Callable[[str], str]], marks: NDArray[Any], letters: NDArray[Any], han: NDArray[Any]
) -> set[int]:
    """What the normal forms leave alone though this Python's know it, and letters and marks that this Python does not
    know, which a later one may."""
    found = set()
    for c in POINTS:
        text = chr(c)
        other = any(unicodedata.normalize(form, text) != normalize(text) for form, normalize in forms.items())
        if other or (unicodedata.combining(text) and not _is_mark(text, forms["NFD"])):
            found.add(c)
    inside = {c for table in (marks, letters) for first, stop in table.tolist() for c in range(first, stop)}
    inside -= {c for first, stop in han.tolist() for c in range(first, stop)}
    return found | {c for c in inside if unicodedata.category(chr(c)) == "Cn"}


def _is_mark(text: str, decompose: Callable[[str], str]) -> bool:
    """Whether a form puts a mark in order: after one of a higher class it moves, or lets one of a lower class pass."""
    own = unicodedata.combining(text)
    other = "\u0334" if own > 1 else "\u0301"  # classes 1 and 230
    pair = other + text if own < unicodedata.combining(other) else text + other
    return decompose("a" + pair) != "a" + pair or own == unicodedata.combining(other)


if __name__ == "__main__":
    made: dict[str, Any] = tables(Path(sys.argv[2]).read_bytes())
    np.savez_compressed(sys.argv[1], **made)
