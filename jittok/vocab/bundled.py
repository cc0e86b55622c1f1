"""The vocabularies that are shipped in the wheel: packed GGUF headers under `jittok/data`; sources in its README."""

from __future__ import annotations

from pathlib import Path

from jittok.vocab.vocab import Vocab

_DATA = Path(__file__).parent.parent / "data"
_ENDING = ".gguf.xz"


def bundled_names() -> list[str]:
    """Names for `jittok.bundled` and `--vocab`."""
    return sorted(path.name.removesuffix(_ENDING) for path in _DATA.glob(f"*{_ENDING}"))


def bundled_path(name: str) -> Path:
    """The packed file of a bundled vocabulary. ValueError for a name that is none."""
    if name not in bundled_names():
        raise ValueError(f"bundled vocabulary: found {name!r}, expected one of {', '.join(bundled_names())}")
    return _DATA / f"{name}{_ENDING}"


def bundled_source(name: str) -> bytes:
    """The GGUF header of a bundled vocabulary. ValueError for a name that is none."""
    import lzma

    return lzma.decompress(bundled_path(name).read_bytes())


def bundled_vocab(name: str, *, llama_cpp: str | None = None, pre: str | None = None) -> Vocab:
    """The Vocab of a bundled vocabulary, read as `read_vocab` does. ValueError for a name that is none."""
    from jittok.vocab.load import read_vocab

    return read_vocab(bundled_source(name), llama_cpp=llama_cpp, pre=pre)
