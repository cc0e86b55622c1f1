"""The layouts that a corpus can be written in, by name; each in a folder of its own name below the corpus directory."""

from __future__ import annotations

from collections.abc import Sequence

from jittok.corpus.formats.base import Facts, Format
from jittok.corpus.formats.datatrove import Datatrove
from jittok.corpus.formats.llmc import LlmC
from jittok.corpus.formats.megatron import Megatron
from jittok.corpus.formats.nanogpt import NanoGPT
from jittok.corpus.formats.npy import Npy
from jittok.corpus.formats.olmo import Olmo
from jittok.corpus.formats.tables import Arrow, Parquet
from jittok.errors import CorpusError

FORMATS: dict[str, type[Format]] = {
    form.name: form for form in (Arrow, Parquet, Npy, NanoGPT, LlmC, Megatron, Datatrove, Olmo)
}


def make_formats(names: Sequence[str], facts: Facts) -> list[Format]:
    """The formats of these names. CorpusError for an unknown one, and for one that cannot hold the ids."""
    for name in names:
        if name not in FORMATS:
            raise CorpusError("--format", name, f"one or more of {', '.join(FORMATS)}")
    return [FORMATS[name](facts) for name in names]
