"""Rules by vocabulary type for loading and describing: one record per type.

`jittok.kernels.models.vocab_types` defines how a type encodes and decodes. Files are read before that, so this table
is here.
"""

from __future__ import annotations

from collections.abc import Mapping

from jittok.common.record import Record


class TypeRules(Record):
    """One type of llama.cpp's."""

    flags: Mapping[str, bool] = {}
    """Flags that are not False before the file's keys are read."""
    has_merges: bool = False
    """The file has a list of merges, and `tokenizer.ggml.pre` names the pre-tokenizer."""
    has_charsmap: bool = False
    """The file may have a character map, and require NFC."""
    has_tokens: bool = True
    """False: the type cannot encode."""
    may_be_empty: bool = True
    """An empty list of tokens loads."""
    compares_scores: bool = False
    """Scores order merges, so each must be a number."""
    reads_characters: bool = False
    """Text is read as code points: bytes that are invalid UTF-8 become U+FFFD."""
    makes_pieces: bool = False
    """llama.cpp computes all pieces while loading, and crashes on some tokens."""
    byte_tokens: bool = True
    """A byte token is one that is written <0x0A>; False: there must be none."""


RULES: dict[str, TypeRules] = {
    "spm": TypeRules({"add_space_prefix": True, "add_bos": True}, compares_scores=True, makes_pieces=True),
    "bpe": TypeRules(
        {"escape_whitespaces": False, "clean_spaces": True}, has_merges=True, reads_characters=True, makes_pieces=True
    ),
    "wpm": TypeRules(
        {"clean_spaces": True, "add_bos": True, "add_sep": True},
        may_be_empty=False,
        reads_characters=True,
        makes_pieces=True,
        byte_tokens=False,
    ),
    "ugm": TypeRules(
        {"add_eos": True}, has_charsmap=True, may_be_empty=False, reads_characters=True, makes_pieces=True
    ),
    "rwkv": TypeRules(),
    "plamo2": TypeRules(reads_characters=True),
    "plamo3": TypeRules(reads_characters=True),
    "test": TypeRules(may_be_empty=False),
    "none": TypeRules(has_tokens=False),
}
"""By `Vocab.type`."""


def rules_of(kind: str) -> TypeRules:
    """The rules of a type; for a type that no file has, those of a plain list of tokens."""
    return RULES.get(kind, TypeRules())
