"""The llama.cpp releases whose ids are recorded, and the changes in each of them, as data.

A release has the name of a package that ships it, or llama.cpp's own number. Rules that depend on the release are
applied while a vocabulary is read (`load`); other packages only read the fields of `Vocab`.
A `tokenizer.ggml.pre` string has its release in its own record (`kernels/pretokenize/pre_types.json`, "since").
"""

from __future__ import annotations

from jittok.common.record import Record


class Release(Record):
    """One release of llama.cpp, and flags for its rules that are not names."""

    name: str
    about: str
    shortest_utf8: bool  # overlong forms and values above U+10FFFF are bad bytes; before, they passed or were fatal
    nfc: bool  # tokenizer.ggml.normalizer.nfc is read, and used by Unigram


RELEASES = (
    Release("0.3.36", "llama-cpp-python 0.3.36, about 1 October 2026", False, False),
    Release("b11739", "llama.cpp b11739, 19 October 2026", True, True),
)
"""Oldest first. Each gives its own recorded answers; of those, only what differs is a flag or a name below."""
NEWEST = RELEASES[-1].name

MODELS_SINCE = {"plamo3": "b11739"}
"""tokenizer.ggml.model -> the first release that knows it; all others are as old as the first one here."""
FLAGS_SINCE = {"plamo2": "b11739"}
"""tokenizer.ggml.model -> the first release in which it obeys add_bos_token and add_eos_token; before, `add_special`
added nothing. All others obey them in every release, if their type does."""
TEXTS_SINCE = {
    "<|plamo:fim_prefix|>": "b11739",
    "<|plamo:fim_suffix|>": "b11739",
    "<|plamo:fim_middle|>": "b11739",
    "<|plamo:file_separator|>": "b11739",
    "<|ifm|im_end|>": "b11739",
    "<|eot|>": "b11739",
}
"""Texts of tokens with special treatment (`attributes`) -> the first release that knows them."""


def release_named(name: str | None) -> Release:
    """The release of a name, the newest for None. ValueError, listing all, for an unknown name."""
    for release in RELEASES:
        if release.name == (NEWEST if name is None else name):
            return release
    raise ValueError(f"llama_cpp: found {name!r}, expected one of {release_names()}")


def release_names() -> str:
    """The names of all releases, newest first, comma-separated."""
    return ", ".join(release.name for release in reversed(RELEASES))


def has(release: Release, since: str | None) -> bool:
    """Whether a release is at least the one named `since`; always if that is None."""
    return since is None or RELEASES.index(release_named(since)) <= RELEASES.index(release)
