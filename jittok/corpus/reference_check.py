"""The second check of `verify`: the plain reference tokenizes some documents of each shard.

Kernels that were wrong when a corpus was written give the same ids when they run again. The reference shares no code
with them. It takes ten seconds for what they do in a hundredth of one, so it reads few bytes of each shard.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.corpus.cancellation import NEVER_CANCELLED, Cancellation
from jittok.corpus.options import Options
from jittok.corpus.range_encoder import Encoded, RangeEncoder
from jittok.corpus.ranges import Key, RawRange
from jittok.corpus.reader import read_texts
from jittok.corpus.sources import Source
from jittok.errors import EncodingFailed, UnsupportedVocab

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

BYTES = 1 << 15
"""Of each shard, together, unless all its documents are longer;"""
LONGEST_DOCUMENT = 1 << 18
"""then the shortest of them, if it is no longer than this."""
DOCUMENTS = 16
"""Of each shard, at most, spread over one of its ranges."""


@dataclass
class WithTexts(Encoded):
    """A range as ids, and some of its documents: (row, text)."""

    some: list[tuple[int, bytes]] = field(default_factory=list)


class ReferenceRangeEncoder(RangeEncoder):
    """A RangeEncoder that keeps some documents of the ranges with these keys."""

    def __init__(self, tok: Tokenizer, sources: Sequence[Source], options: Options, keys: Collection[Key]) -> None:
        super().__init__(tok, sources, options)
        self.keys = frozenset(keys)

    def __call__(self, raw: RawRange, stop: Cancellation = NEVER_CANCELLED) -> Encoded:
        """Read and encode one range on this thread."""
        encoded = super().__call__(replace(raw), stop)  # which releases what it has read
        if raw.key not in self.keys:
            return encoded
        # read again: few ranges are asked for, and all others need not keep their texts
        kind = self.sources[raw.key.source].kind
        texts, _, _ = self.encode(read_texts(raw, kind, self.options, stop=stop), stop)
        docs = texts.docs
        rows = chosen(docs.stops - docs.starts)
        some = [(row, docs.between(int(docs.starts[row]), int(docs.stops[row]))) for row in rows]
        return WithTexts(**vars(encoded), some=some)

    def says(self, some: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, bytes, list[int]]]:
        """(row, text, ids that the reference gives it) of each document that the witness can judge. It cannot judge
        documents that only `--on-error replace` lets pass, nor those of a vocabulary that it does not know."""
        from jittok.reference.pipeline import runner
        from jittok.reference.tokenize import tokenize

        vocab = self.tok.vocab
        for row, text in some:
            try:
                if isinstance(vocab, Pipeline):
                    run = runner(vocab)
                    found = run.encode(text.decode("utf-8", "replace"), self._special["parse_special"])
                    ids = run.around(found, None, self._special["add_special"])
                else:
                    ids = tokenize(vocab, text, **self._special)
            except (EncodingFailed, UnsupportedVocab):
                continue
            yield row, text, ids if self.eos is None else [*ids, self.eos]


def chosen(sizes: NDArray[np.int64]) -> list[int]:
    """Which documents of these sizes the reference reads; none where all are empty or too long."""
    full = np.flatnonzero(sizes)
    if not full.size:
        return []
    rows, left = [], BYTES
    for row in dict.fromkeys(full[np.linspace(0, full.size - 1, DOCUMENTS).astype(int)].tolist()):
        if sizes[row] <= left:
            rows.append(row)
            left -= int(sizes[row])
    shortest = int(full[sizes[full].argmin()])
    return rows or ([shortest] if sizes[shortest] <= LONGEST_DOCUMENT else [])
