"""Differences between llama.cpp releases for one vocabulary: loads it as each of them does, and compares."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from jittok.errors import JittokError
from jittok.vocab import gguf
from jittok.vocab.describe import attribute_names, shown
from jittok.vocab.gguf import Source
from jittok.vocab.keys import ID_KEYS
from jittok.vocab.load import from_header
from jittok.vocab.releases import RELEASES, Release
from jittok.vocab.types import type_named
from jittok.vocab.vocab import Vocab

MOST_TOKENS = 20
"""Limit of tokens that are listed one by one."""


def release_differences(source: Source, pre: str | None = None) -> list[str]:
    """One sentence for each difference between a release and the one before, the newest first; none if all agree.

    Raises the error of reading the file if every release fails.
    """
    header = gguf.read_header(source)
    found: list[tuple[Release, Vocab | JittokError]] = []
    for release in RELEASES:
        try:
            found.append((release, from_header(header, release, pre)))
        except JittokError as error:  # noqa: PERF203
            found.append((release, error))
    if isinstance(found[-1][1], JittokError):
        raise found[-1][1]
    notes = [[f"{later.name}: {note}" for note in _notes(old, new)] for (_, old), (later, new) in pairwise(found)]
    return [note for part in reversed(notes) for note in part]


def _notes(old: Vocab | JittokError, new: Vocab | JittokError) -> list[str]:
    if isinstance(old, JittokError) or isinstance(new, JittokError):
        return [] if isinstance(new, JittokError) else [f"the first that reads this file; before, {old}"]
    notes = []
    if old.shortest_utf8 != new.shortest_utf8 and type_named(new.type).reads_characters:
        notes.append(
            "each byte of an overlong form or of a value above U+10FFFF is U+FFFD; before, the first passed and the "
            "second was fatal (EncodingFailed). Texts that are UTF-8 are the same"
        )
    if old.adds_around != new.adds_around and (new.add_bos or new.add_eos):
        notes.append("add_special obeys add_bos and add_eos; before, it added nothing")
    if old.nfc != new.nfc:
        notes.append(
            "text is normalized to NFC (Unicode 16.0), as the file's normalizer.nfc requires; earlier releases do not"
        )
    for name in dict.fromkeys(field for _, field in ID_KEYS):
        was, now = getattr(old, name), getattr(new, name)
        if was != now:
            notes.append(f"{name} is {now}; before, {'none' if was < 0 else was}")
    return notes + _token_notes(old, new)


def _token_notes(old: Vocab, new: Vocab) -> list[str]:
    """Tokens that are treated differently."""
    changed = np.flatnonzero(old.attributes != new.attributes).tolist()
    ends = old.eog_ids ^ new.eog_ids
    tokens, notes = sorted({*changed, *ends}), []
    for token in tokens[:MOST_TOKENS]:
        said = []
        if token in changed:
            kinds = (" ".join(attribute_names(int(vocab.attributes[token]))) for vocab in (new, old))
            said.append("is {}, before {}".format(*kinds))
        if token in ends:
            said.append("ends generation" if token in new.eog_ids else "no longer ends generation")
        notes.append(f"token {token} {shown(new.tokens[token])!r} {' and '.join(said)}")
    return notes + ([f"and {len(tokens) - MOST_TOKENS} tokens more"] if len(tokens) > MOST_TOKENS else [])
