"""Ray Data: encodes a column of texts to a column of ids, or counts its words, on a pool of actors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jittok.arrow import Vocabulary, encode_table, table_options, tokenizer_of
from jittok.errors import CorpusError, InWords, missing

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset

    from jittok.train import Counts

BATCH_ROWS = 1024
COUNTED_ROWS = 64 * BATCH_ROWS
"""Documents that are counted together: words repeat, so larger batches give fewer rows of counts."""
ARRAYS = {"words": "u1", "starts": "i8", "counts": "i8"}
"""Fields of `Counts` that travel as bytes."""


class _Encoder:
    """The encoder in an actor, which loads the vocabulary once."""

    def __init__(self, vocab: Vocabulary, column: str, output: str, options: dict[str, Any]) -> None:
        self.tok, self.column, self.output, self.options = tokenizer_of(vocab), column, output, options

    def __call__(self, batch: pa.Table) -> pa.Table:
        return encode_table(batch, self.tok, self.column, self.output, **self.options)


def encode(
    ds: Dataset,
    column: str = "text",
    *,
    vocab: Vocabulary,
    output: str = "input_ids",
    workers: int | None = None,
    batch_size: int = BATCH_ROWS,
    **options: object,
) -> Dataset:
    """The dataset with a column `output` of ids (`list<int32>`); nothing runs before it is consumed.

    `vocab`: a Tokenizer, a bundled name, or a tokenizer file that every worker can read. `workers`: actors of one CPU,
    by default as many as Ray finds capacity for; other steps of the dataset need CPUs as well. `options`:
    `add_special`, `parse_special`, `errors`, as for `encode_batch`.
    """
    options = {"threads": 1, **table_options(options)}
    return _mapped(ds, _Encoder, (vocab, column, output, options), workers, batch_size)


class _Counter:
    """The counter in an actor: one row for each batch, with its words and their counts."""

    def __init__(self, column: str, options: dict[str, Any]) -> None:
        self.column, self.options = column, options

    def __call__(self, batch: pa.Table) -> pa.Table:
        import pyarrow as pa

        from jittok.train import count

        found = count(batch.column(self.column), **self.options)
        arrays = {name: pa.array([getattr(found, name).tobytes()], pa.large_binary()) for name in ARRAYS}
        return pa.table({**arrays, "documents": [found.documents], "text_bytes": [found.text_bytes]})


def count(
    ds: Dataset, column: str = "text", *, workers: int | None = None, batch_size: int = COUNTED_ROWS, **options: object
) -> Counts:
    """The words of a column with their counts, as `jittok.train.count` gives them: for `jittok.train(words=...)`.

    Only counts travel to this process, not texts. `workers`: as for `encode`. `options`: fields of `jittok.train.How`
    that say how words are cut, such as `pre`, `special`, `by`, `sample`. Lines (`lines`, `runs`) cannot be counted so,
    because the order of documents matters there.
    """
    import numpy as np

    from jittok.train import How
    from jittok.train.counting.counts import Counts, summed

    given: dict[str, Any] = {"threads": 1, **options}
    how = How(**given)
    if how.lines is not None or how.runs is not None:
        raise CorpusError("jittok.ray.count", InWords("lines, runs"), "words of a pre type or of a pattern")
    same: dict[str, Any] = {"pre": how.name, "special": how.special, "once": how.by == "documents"}
    empty = Counts(np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int64), **same)

    def parts() -> Iterator[Counts]:
        yield empty
        found = _mapped(ds, _Counter, (column, {"threads": 1, **options}), workers, batch_size)
        for row in found.iter_rows():
            arrays: dict[str, Any] = {name: np.frombuffer(row[name], kind) for name, kind in ARRAYS.items()}
            yield Counts(**arrays, documents=row["documents"], text_bytes=row["text_bytes"], **same)

    return summed(parts())


def _mapped(ds: Dataset, actor: type, arguments: tuple[Any, ...], workers: int | None, batch_size: int) -> Dataset:
    """The dataset through a pool of actors."""
    try:
        import ray.data
    except ImportError:
        raise missing("jittok.ray", "Ray", "ray") from None
    pool = ray.data.ActorPoolStrategy(size=workers) if workers else ray.data.ActorPoolStrategy(min_size=1)
    return ds.map_batches(
        actor,
        fn_constructor_args=arguments,
        batch_format="pyarrow",
        batch_size=batch_size,
        zero_copy_batch=True,
        compute=pool,
        num_cpus=1,
    )
