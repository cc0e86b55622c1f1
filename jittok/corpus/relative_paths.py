"""Paths of the inputs and the vocabulary relative to the corpus, so that it can be verified from any directory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.corpus.far import is_url
from jittok.corpus.sources import STDIN, Source
from jittok.errors import CorpusError, InWords

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

INPUTS_FROM = "inputs_from"
"""Key of the manifest: the directory that relative input names start from, relative to the corpus."""
VOCAB_FILE = "file"
"""Key of its vocabulary: the file, relative to the corpus; absent for a bundled one."""


class RelativePaths:
    """Paths relative to a directory that is to be written; empty without one."""

    def __init__(self, out: Path | None) -> None:
        self._out = out

    def _relative(self, path: str) -> str:
        try:
            return Path(os.path.relpath(os.path.realpath(path), os.path.realpath(self._out or ""))).as_posix()
        except ValueError:  # another drive
            return Path(os.path.realpath(path)).as_posix()

    def inputs(self, sources: Sequence[Source]) -> dict[str, str]:
        """The directory that relative input names start from, if there are any."""
        relative = (s.path != STDIN and not is_url(s.path) and not os.path.isabs(s.path) for s in sources)  # noqa: PTH117
        return {INPUTS_FROM: self._relative("")} if self._out is not None and any(relative) else {}

    def vocabulary(self, tok: Tokenizer) -> dict[str, str]:
        """The file of a vocabulary that was loaded from a file."""
        source = tok.vocab.source
        return {VOCAB_FILE: self._relative(source)} if self._out is not None and os.path.exists(source) else {}  # noqa: PTH110


def input_path(path: str, manifest: Mapping[str, Any], folder: Path) -> str:
    """The path of an input: relative to where the corpus was made if it exists there, else unchanged."""
    base = manifest.get(INPUTS_FROM)
    if isinstance(base, str) and not is_url(path):
        seen = os.path.normpath(os.path.join(os.path.realpath(folder), base, path))  # noqa: PTH118
        if os.path.exists(seen):  # noqa: PTH110
            return seen
    return path


def tokenizer_of(vocab: Mapping[str, Any], folder: Path) -> Tokenizer:
    """The tokenizer that a manifest names. CorpusError if its file is missing or has changed."""
    from jittok.tokenizer.loading import bundled, load
    from jittok.vocab.bundled import bundled_names

    name, file, pre = vocab.get("name"), vocab.get(VOCAB_FILE), vocab.get("asked_pre")
    tok = None
    if isinstance(file, str):
        path = os.path.normpath(os.path.join(os.path.realpath(folder), file))  # noqa: PTH118
        tok = load(path, pre=pre) if os.path.exists(path) else None  # noqa: PTH110
    elif name in bundled_names():
        tok = bundled(str(name), pre=pre)
    if tok is None:
        shown = f"{name or 'without a name'} {str(vocab.get('fingerprint'))[:12]}"
        raise CorpusError(
            "--vocab", InWords(f"none, and the vocabulary {shown} is no longer where it was"), "its file or name"
        )
    return tok
