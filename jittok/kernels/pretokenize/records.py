"""Each pre-tokenizer is one record of `pre_types.json`: its names, patterns, fast splitter, flags and notes.

A record:

    number, name    llama.cpp's llama_vocab_pre_type
    byte_encode     whether pre-tokens are byte-level before they are looked up
    patterns        {"engine", "regex"} in the order of application, as llama.cpp writes them (see `definition`)
    family          the fast splitter that cuts at the same offsets, with its settings (see `SplitterFamily`); most
                    have none
    newlines_whole  a pre-token of newlines that is a token becomes that token, without merging
    always_bos      BOS is added, whatever the file's settings are
    begin_lines     U+2581 is added before each line that does not begin with it
    names           the values of tokenizer.ggml.pre that select this record, each with
                    since             the first release of llama.cpp that knows it; without it, all do
                    sets              the fields of `Vocab` that llama.cpp sets for it
                    merges_optional   whether a file may lack the list of merges
                    notes             where the ids differ from those of the model's own tokenizer; {word} is replaced
                                      by one of the `sentences` that several notes share
    comment         for readers of the file

This module holds data only, so every package may import it: `vocab` reads the names, `definition` the patterns, the BPE
kernels the families, the command line the notes.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any

from jittok.common.record import Record

FILE = os.path.join(os.path.dirname(__file__), "pre_types.json")


class SplitterFamily(Record):
    """A fast splitter that cuts where the patterns do, and its settings. The last two are those of other files only."""

    splitter: str  # "gpt2", "llama3", or "lines" where words are whole lines of characters
    digits_alone: bool = False  # gpt2: every digit is a word
    group: int = 0  # llama3: so many digits are a word
    cased: bool = False  # llama3: words are split where the case changes
    contractions: str = "prefix"  # llama3: "prefix" ('s is a word), "suffix" (a part of its word), "without"
    marks: bool = False  # combining marks are letters
    folded: bool = False  # llama3: `(?i:'s)` matches U+017F, too
    ends: bool = False  # white space that ends a text is one word; see `families.crosses`


class PreType(Record):
    """How a text is split into pre-tokens, for some values of tokenizer.ggml.pre."""

    number: int  # llama.cpp's llama_vocab_pre_type
    name: str  # its name there, without the prefix
    regexes: tuple[str, ...]  # as llama.cpp writes them, in the order of their application
    engines: tuple[str, ...]  # what runs each of them
    byte_encode: bool  # pre-tokens are byte-level before they are looked up
    names: dict[str, dict[str, Any]] = {}  # noqa: RUF012  values of tokenizer.ggml.pre, each with its entry
    family: SplitterFamily | None = None
    newlines_whole: bool = False
    always_bos: bool = False
    begin_lines: bool = False

    @property
    def patterns(self) -> tuple[tuple[str, str], ...]:
        """(pattern, engine) in the order of application."""
        return tuple(zip(self.regexes, self.engines, strict=True))


@cache
def _data() -> dict[str, Any]:
    with open(FILE, "rb") as file:
        data: dict[str, Any] = json.load(file)
    return data


@cache
def _all() -> dict[int, PreType]:
    return {record["number"]: read_record(record) for record in _data()["pre_types"]}


def read_record(record: dict[str, Any]) -> PreType:
    """One record of the file. TypeError for a field that no record has, KeyError for one that is missing."""
    fields = {name: value for name, value in record.items() if name != "comment"}
    patterns = fields.pop("patterns")
    if "family" in fields:
        fields["family"] = SplitterFamily(**fields["family"])
    regexes, engines = (tuple(pattern[part] for pattern in patterns) for part in ("regex", "engine"))
    return PreType(**fields, regexes=regexes, engines=engines)


def pre_types() -> tuple[PreType, ...]:
    """All of them, in the order of their numbers."""
    return tuple(_all()[number] for number in sorted(_all()))


def pre_type(number: int) -> PreType:
    """The pre type that llama.cpp gives this number. Raises KeyError when there is none."""
    return _all()[number]


@cache
def families() -> dict[tuple[tuple[str, str], ...], SplitterFamily]:
    """(pattern, engine) in the order of application -> the fast splitter that cuts at the same offsets."""
    return {pre.patterns: pre.family for pre in pre_types() if pre.family}


@cache
def pre_names() -> dict[str, dict[str, Any]]:
    """tokenizer.ggml.pre -> {"pre_type": number, "pre_type_name": name, "sets": flags, ..}, "" when the key is absent.

    The other fields of a name's entry are next to these (see above).
    """
    return {
        name: {"pre_type": pre.number, "pre_type_name": pre.name, "sets": {}, **entry}
        for pre in pre_types()
        for name, entry in pre.names.items()
    }


def notes(name: str) -> list[str]:
    """Sentences about a value of tokenizer.ggml.pre: where the ids differ from those of the model's own tokenizer."""
    found: list[str] = pre_names().get(name, {}).get("notes", [])
    return [note.format_map(_data()["sentences"]) for note in found]
