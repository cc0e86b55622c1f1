"""Polars: `import jittok.polars` adds `.jittok.encode(tok)` and `.jittok.count(tok)` to every expression and series."""

from __future__ import annotations

from typing import Any

from jittok.errors import missing

try:
    import polars as pl
except ImportError:
    raise missing("jittok.polars", "polars", "polars") from None

from jittok.arrow import encode_column, table_options
from jittok.tokenizer import Tokenizer

IDS = pl.List(pl.Int32)
COUNT = pl.Int64


def _ids(texts: pl.Series, tok: Tokenizer, options: dict[str, Any]) -> pl.Series:
    found = pl.from_arrow(encode_column(texts.to_arrow(), tok, **options))
    assert isinstance(found, pl.Series)
    return found.alias(texts.name).cast(IDS)


def _counts(texts: pl.Series, tok: Tokenizer, options: dict[str, Any]) -> pl.Series:
    counts = pl.Series(texts.name, tok.count_batch(texts, **options), COUNT)
    return counts.set(texts.is_null(), None) if texts.null_count() else counts


@pl.api.register_expr_namespace("jittok")
class JittokExpressions:
    """`pl.col("text").jittok`."""

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def encode(self, tok: Tokenizer, **options: object) -> pl.Expr:
        """`list[i32]`: the ids of each text; nulls stay null. `options`: as for `encode_batch`."""
        options = table_options(options)
        return self._expression.map_batches(
            lambda texts: _ids(texts, tok, options), return_dtype=IDS, is_elementwise=True
        )

    def count(self, tok: Tokenizer, **options: object) -> pl.Expr:
        """`i64`: the number of ids of each text; nulls stay null."""
        options = table_options(options)
        return self._expression.map_batches(
            lambda texts: _counts(texts, tok, options), return_dtype=COUNT, is_elementwise=True
        )


@pl.api.register_series_namespace("jittok")
class JittokSeries:
    """`series.jittok`."""

    def __init__(self, series: pl.Series) -> None:
        self._series = series

    def encode(self, tok: Tokenizer, **options: object) -> pl.Series:
        """`list[i32]`: the ids of each text; nulls stay null."""
        return _ids(self._series, tok, table_options(options))

    def count(self, tok: Tokenizer, **options: object) -> pl.Series:
        """`i64`: the number of ids of each text; nulls stay null."""
        return _counts(self._series, tok, table_options(options))
