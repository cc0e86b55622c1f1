"""A corpus continues with the release of llama.cpp that it was begun with, unless another was asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.corpus.folders import open_regular
from jittok.corpus.ledger import NAME as LEDGER
from jittok.corpus.manifest import NAME as MANIFEST
from jittok.corpus.manifest import WORK
from jittok.corpus.options import CUTS, FIRST_CUTS
from jittok.errors import CorpusError, InWords
from jittok.tokenizer.loading import of_release
from jittok.vocab.releases import RELEASES

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

LONGEST_LINE = 1 << 26
"""Bytes that are read of the ledger's first line, which names all inputs."""
FIRST_RELEASE = RELEASES[0].name
"""Corpora that do not say their release are older than this was written down."""


def with_recorded_release(tok: Tokenizer, folder: Path) -> Tokenizer:
    """The tokenizer, or the one of the release that the corpus in `folder` was begun with.

    The same if there is no corpus, if a release was asked for, or if nothing differs. CorpusError where the vocabulary
    cannot be read again.
    """
    begun = _begun(folder).get("vocab")
    if not isinstance(begun, dict) or tok.asked_llama_cpp is not None or begun.get("fingerprint") == tok.fingerprint:
        return tok
    release = begun.get("llama_cpp", FIRST_RELEASE)
    if release == tok.llama_cpp or not isinstance(release, str):  # who reads the manifest says what is wrong
        return tok
    try:
        return of_release(tok, release)
    except ValueError as error:
        raise CorpusError(
            str(folder), InWords(f"a corpus begun with llama.cpp {release} ({error})"),
            f"a vocabulary loaded for that release: --llama-cpp {release}",
        ) from None  # fmt: skip


def cuts_of(folder: Path) -> int:
    """The rule that cuts the inputs of the corpus in `folder`; today's where there is none."""
    options = _begun(folder).get("options")
    cuts = options.get("cuts", FIRST_CUTS) if isinstance(options, dict) else CUTS
    return cuts if type(cuts) is int else CUTS


def _begun(folder: Path) -> dict[str, Any]:
    """What the manifest or the ledger of a corpus says of its beginning; nothing where there is none to be read."""
    try:
        manifest = folder / MANIFEST
        if manifest.is_file():
            found = json.loads(manifest.read_bytes())
        else:
            descriptor = open_regular(folder / WORK / LEDGER, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            with open(descriptor, "rb") as ledger:  # noqa: PTH123  a descriptor
                first = ledger.readline(LONGEST_LINE)
            found = json.loads(first.partition(b" ")[2])["plan"]  # after its checksum
    except (CorpusError, OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}  # whoever opens the corpus says what is wrong with it
    return found if isinstance(found, dict) else {}
