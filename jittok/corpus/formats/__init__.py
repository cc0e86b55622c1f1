"""The layouts that a corpus can be written in, by name; each in a folder of its own name below the corpus directory.

A layout is one class (see `base.Format`) and its line in FORMATS. Each is imported on demand: the
command line names all layouts in its help.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jittok.errors import CorpusError

if TYPE_CHECKING:
    from jittok.corpus.formats.base import Facts, Format

FORMATS = {
    "arrow": "jittok.corpus.formats.tables:Arrow",
    "parquet": "jittok.corpus.formats.tables:Parquet",
    "npy": "jittok.corpus.formats.bare_ids:Npy",
    "nanogpt": "jittok.corpus.formats.bare_ids:NanoGPT",
    "llmc": "jittok.corpus.formats.bare_ids:LlmC",
    "megatron": "jittok.corpus.formats.megatron:Megatron",
    "datatrove": "jittok.corpus.formats.bare_ids:Datatrove",
    "olmo": "jittok.corpus.formats.olmo:Olmo",
}
"""The module and class of each."""


def format_class(name: str) -> type[Format]:
    """The class of a format. CorpusError for an unknown one."""
    if name not in FORMATS:
        raise CorpusError("--format", name, f"one or more of {', '.join(FORMATS)}")
    module, _, found = FORMATS[name].partition(":")
    return getattr(importlib.import_module(module), found)  # type: ignore[no-any-return]


KEPT = "kept"
"""The folder of the fields beside the ids, where a format does not hold them."""


def make_formats(names: Sequence[str], facts: Facts) -> list[Format]:
    """The formats of these names, a table of the fields and a file of the mask that one of them does not hold.
    CorpusError for an unknown
    one, and for one that cannot hold the ids."""
    found = [form(facts) for form in [format_class(name) for name in names]]
    if facts.keep and not all(form.keeps_fields for form in found):
        from jittok.corpus.formats.fields import Fields

        found.append(Fields(facts))
    if facts.learn and not all(form.keeps_mask for form in found if form.name != KEPT):
        from jittok.corpus.formats.loss_mask import LossMask

        found.append(LossMask(facts))
    return found
