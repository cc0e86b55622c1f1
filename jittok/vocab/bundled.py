"""The bundled vocabularies: compressed GGUF headers under `jittok/vocab/data`; sources in its README."""

from __future__ import annotations

import os

from jittok.vocab.vocab import Vocab

_DATA = os.path.join(os.path.dirname(__file__), "data")
_ENDING = ".gguf.xz"


def bundled_names() -> list[str]:
    """Names for `jittok.bundled` and `--vocab`."""
    return sorted(name.removesuffix(_ENDING) for name in os.listdir(_DATA) if name.endswith(_ENDING))


def bundled_path(name: str) -> str:
    """The compressed file of a bundled vocabulary. ValueError for an unknown name."""
    if name not in bundled_names():
        from jittok.common.hints import nearest

        near = nearest(str(name), bundled_names())
        said = f"; did you mean {near!r}?" if near else " (jittok.load(path) reads other vocabularies from files)"
        raise ValueError(f"bundled vocabulary: found {name!r}, expected one of {', '.join(bundled_names())}{said}")
    return os.path.join(_DATA, f"{name}{_ENDING}")


def bundled_source(name: str) -> bytes:
    """The GGUF header of a bundled vocabulary. ValueError for an unknown name."""
    import lzma

    with open(bundled_path(name), "rb") as file:
        return lzma.decompress(file.read())


def bundled_vocab(name: str, *, llama_cpp: str | None = None, pre: str | None = None) -> Vocab:
    """The Vocab of a bundled vocabulary, read as by `read_vocab`. ValueError for an unknown name."""
    with open(bundled_path(name), "rb") as file:
        return packed_vocab(file.read(), llama_cpp=llama_cpp, pre=pre)


def packed_vocab(packed: bytes, *, llama_cpp: str | None = None, pre: str | None = None) -> Vocab:
    """The same for the bytes of its compressed file."""
    import lzma

    from jittok.vocab.load import read_vocab

    return read_vocab(lzma.decompress(packed), llama_cpp=llama_cpp, pre=pre)
