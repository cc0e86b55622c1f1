"""Scripts of texts, by their Unicode names."""

from __future__ import annotations

from functools import cache
from typing import Any

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
