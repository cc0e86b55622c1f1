"""The call."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, overload

from jittok.compare.result import Comparison, of_tally
from jittok.compare.tally import PartingTally
from jittok.inputs import Errors, check_errors, documents
from jittok.tokenizer import Tokenizer

if TYPE_CHECKING:
    from jittok.compare.machines import Machines
    from jittok.inputs import Texts

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
) -> Comparison | Machines:
    """Two tokenizers beside each other.

    a, b: a Tokenizer, or the path of any file that `load` takes. texts: as for `encode_batch`.

    With texts a `Comparison`: documents that differ, tokens, the most frequent partings with their cause, by script.
    Without them `Machines`: what the two are made of, and the shortest text found on which they part, or what was
    proved.

    by_id: compare ids; else what tokens stand for. The rest is as for `encode_batch`.
    """
    toks = [each if isinstance(each, Tokenizer) else _loaded(each) for each in (a, b)]
    if texts is None:
        from jittok.compare.machines import machines

        return machines(toks[0], toks[1], by_id=by_id)
    tally = tally_of(toks[0], toks[1], by_id, add_special, parse_special, errors, threads)
    for docs in documents(texts, check_errors(errors)):
        tally.add(docs)
    return of_tally(tally)


def tally_of(
    a: Tokenizer, b: Tokenizer, by_id: bool, add_special: bool, parse_special: bool, errors: Errors, threads: int | None
) -> PartingTally:
    """A tally to which documents are added."""
    options = {"add_special": add_special, "parse_special": parse_special, "errors": errors, "threads": threads}
    return PartingTally(a, b, by_id, options)


def _loaded(path: str | os.PathLike[str]) -> Tokenizer:
    from jittok.loading import load

    return load(path)


__all__ = ["Comparison", "Named", "compare", "tally_of"]
