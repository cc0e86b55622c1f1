"""`compare`: the entry point of the package."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, overload

from jittok.common.display.progress import Bar, Show, count_of
from jittok.compare.result import Comparison, of_tally
from jittok.compare.tally import PartingTally
from jittok.kernels.inputs import Errors, check_errors, documents
from jittok.tokenizer import Tokenizer

if TYPE_CHECKING:
    from jittok.compare.machines import Machines
    from jittok.kernels.inputs import Texts

Named = Tokenizer | str | os.PathLike[str]


@overload
def compare(
    a: Named,
    b: Named,
    texts: None = None,
    *,
    by_id: bool = False,
    add_special: bool = False,
    parse_special: bool = False,
    errors: Errors = "strict",
    threads: int | None = None,
    progress: Show = "auto",
) -> Machines: ...
@overload
def compare(
    a: Named,
    b: Named,
    texts: Texts,
    *,
    by_id: bool = False,
    add_special: bool = False,
    parse_special: bool = False,
    errors: Errors = "strict",
    threads: int | None = None,
    progress: Show = "auto",
) -> Comparison: ...
def compare(
    a: Named,
    b: Named,
    texts: Texts | None = None,
    *,
    by_id: bool = False,
    add_special: bool = False,
    parse_special: bool = False,
    errors: Errors = "strict",
    threads: int | None = None,
    progress: Show = "auto",
) -> Comparison | Machines:
    """Compare two tokenizers.

    a, b: a Tokenizer, or the path of any file that `load` takes. texts: as for `encode_batch`.

    With texts, returns a `Comparison`: documents that differ, tokens, the most frequent differences with their causes,
    by script. Without texts, returns `Machines`: the components of the two, and the shortest text found on which they
    differ, or a proof that there is none.

    by_id: compare ids; else the texts of tokens. progress: "auto" shows how far it is when it lasts. Other arguments
    are those of `encode_batch`.
    """
    toks = [each if isinstance(each, Tokenizer) else _loaded(each) for each in (a, b)]
    if texts is None:
        from jittok.compare.machines import machines

        return machines(toks[0], toks[1], by_id=by_id)
    tally = tally_of(toks[0], toks[1], by_id, add_special, parse_special, errors, threads)
    with Bar("compare", count_of(texts), "documents", progress) as bar:
        for docs in documents(texts, check_errors(errors)):
            tally.add(docs)
            bar.update(docs.starts.size)
    return of_tally(tally)


def tally_of(
    a: Tokenizer, b: Tokenizer, by_id: bool, add_special: bool, parse_special: bool, errors: Errors, threads: int | None
) -> PartingTally:
    """An empty tally to which documents are added."""
    options = {"add_special": add_special, "parse_special": parse_special, "errors": errors, "threads": threads}
    return PartingTally(a, b, by_id, options)


def _loaded(path: str | os.PathLike[str]) -> Tokenizer:
    from jittok.tokenizer.loading import load

    return load(path)


__all__ = ["Comparison", "Named", "compare", "tally_of"]
