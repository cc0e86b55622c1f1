"""Vocabularies of every kind."""

import functools
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from made_up import MADE_UP, made_up_tokenizer
from recorded_files import HERE, SHARED
from texts_to_cut import BUNDLED

import jittok
from jittok.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def any_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Tokenizer]:
    """any_tokenizer(name): bundled, made up, or a file, made once."""
    to = tmp_path_factory.mktemp("files")

    def find(name: str) -> Tokenizer:
        if name in BUNDLED:
            return jittok.bundled(name)
        if name in MADE_UP:
            return made_up_tokenizer(name)
        vocab, packed = SHARED / "vocabs" / f"{name}.gguf.xz", HERE / f"{name}.tar.xz"
        if vocab.is_file() and not packed.is_file():
            return jittok.load(lzma.decompress(vocab.read_bytes()), cache=False)
        packed = packed if packed.is_file() else SHARED / "tokenizer-files" / packed.name
        with tarfile.open(packed) as archive:
            archive.extractall(to, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(to)
        folder = to / name
        files = [folder / "tokenizer.json", folder, *sorted(folder.iterdir())]
        return next(tok for path in files if path.exists() for tok in _loaded(path))

    return functools.cache(find)


def _loaded(path: Path) -> list[Tokenizer]:
    try:
        return [jittok.load(path)]
    except (jittok.JittokError, OSError, ValueError):
        return []
