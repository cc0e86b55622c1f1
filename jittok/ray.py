"""Ray Data: a column of texts to a column of ids, on an actor pool with one tokenizer a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jittok.arrow import Vocabulary, encode_table, table_options, tokenizer_of
from jittok.errors import missing

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset

BATCH_ROWS = 1024


class _Encoder:
    """Lives in an actor: the vocabulary is read once for each."""

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
    **options: Any,
) -> Dataset:
    """The dataset with a column `output` of ids (`list<int32>`); nothing runs before it is consumed.

    `vocab`: a Tokenizer, a bundled name, or a GGUF file that every worker can read. `workers`: actors of one CPU,
    by default as many as Ray finds room for; other steps of the dataset need CPUs as well. `options`: `add_special`,
    `parse_special`, `errors`, as for `encode_batch`.
    """
    try:
        import ray.data
    except ImportError:
        raise missing("jittok.ray", "Ray", "ray") from None
    options = {"threads": 1, **table_options(options)}
    pool = ray.data.ActorPoolStrategy(size=workers) if workers else ray.data.ActorPoolStrategy(min_size=1)
    return ds.map_batches(
        _Encoder,
        fn_constructor_args=(vocab, column, output, options),
        batch_format="pyarrow",
        batch_size=batch_size,
        zero_copy_batch=True,
        compute=pool,
        num_cpus=1,
    )
