"""Arrow tables and Polars: a column of texts to a column of ids."""

from __future__ import annotations

import pytest

import jittok

pa = pytest.importorskip("pyarrow")

from conftest import make_texts  # noqa: E402

TEXTS = ["hello world", None, "", "naïve 日本語"]


def expected(tok):
    return [None if text is None else tok.encode(text).tolist() for text in TEXTS]


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "binary"])
def test_a_column_of_ids_stands_beside_the_texts(tok, kind):
    from jittok.arrow import encode_table

    table = pa.table({"text": pa.array(TEXTS).cast(getattr(pa, kind)()), "n": range(4)})
    found = encode_table(table, tok)
    assert found.column_names == ["text", "n", "input_ids"]
    assert found.schema.field("input_ids").type == pa.list_(pa.int32())
    assert found.column("input_ids").to_pylist() == expected(tok)
    chunked = pa.concat_tables([table.slice(0, 2), table.slice(2)])
    assert encode_table(chunked, tok).column("input_ids").to_pylist() == expected(tok)
    again = encode_table(found, tok, output="n", threads=1)
    assert again.column_names == ["text", "n", "input_ids"]
    assert again.column("n").to_pylist() == expected(tok)
    (batch,) = table.to_batches()
    assert encode_table(batch, tok).column("input_ids").to_pylist() == expected(tok)


def test_an_entry_of_a_dictionary_that_is_null_stays_null(tok):
    from jittok.arrow import encode_column

    texts = pa.DictionaryArray.from_arrays(pa.array([9, 0, 1, None, 0], pa.int8())[1:], pa.array(["a", None]))
    a = tok.encode("a").tolist()
    assert encode_column(texts, tok).to_pylist() == [a, None, None, a]
    chunks = pa.chunked_array([texts[:2], pa.array(["a"]).dictionary_encode().cast(texts.type), texts[2:]])
    assert encode_column(chunks, tok).to_pylist() == [a, None, a, None, a]
    assert encode_column(texts[:0], tok).to_pylist() == []


def test_what_is_no_arrow_array_is_told(tok):
    from jittok.arrow import encode_column

    for texts in (["a"], "a", None, pa.scalar("a"), pa.table({"text": ["a"]})):
        with pytest.raises(TypeError, match="expected an Arrow array"):
            encode_column(texts, tok)


def test_ids_are_not_copied(tok):
    from jittok.arrow import encode_column

    rows = tok.encode_batch(make_texts(10))
    assert rows.to_arrow().values.buffers()[1].address == rows.ids.ctypes.data
    assert encode_column(pa.array(make_texts(10)), tok).to_pylist() == rows.to_list()


def test_tables_that_cannot_be(tok):
    from jittok.arrow import encode_table, tokenizer_of

    with pytest.raises(KeyError, match="'text' among them"):
        encode_table(pa.table({"a": ["x"]}), tok)
    with pytest.raises(TypeError):
        encode_table(pa.table({"text": [1]}), tok)
    assert tokenizer_of("gpt-2") == tokenizer_of(tok) == jittok.bundled("gpt-2")


def test_polars_expressions(tok):
    pl = pytest.importorskip("polars")
    import jittok.polars

    frame = pl.DataFrame({"text": TEXTS, "n": range(4)})
    found = frame.with_columns(ids=pl.col("text").jittok.encode(tok), count=pl.col("text").jittok.count(tok))
    assert found.schema["ids"] == jittok.polars.IDS
    assert found["ids"].to_list() == expected(tok)
    assert found["count"].to_list() == [None if row is None else len(row) for row in expected(tok)]
    lazy = frame.lazy().filter(pl.col("n") > 0).select(pl.col("text").jittok.encode(tok, threads=1))
    assert lazy.collect()["text"].to_list() == expected(tok)[1:]
    assert lazy.collect_schema() == {"text": jittok.polars.IDS}
    assert frame["text"].jittok.encode(tok).to_list() == expected(tok)
    assert frame["text"].jittok.count(tok).null_count() == 1
    with pytest.raises(TypeError, match="add_special"):
        pl.col("text").jittok.encode(tok, special=True)


def test_datasets_map_is_one_line(tok):
    """`datasets.map` hands over a dict of lists and takes one back; the line is in docs/corpus.md."""
    line = lambda rows: {"input_ids": tok.encode_batch(rows["text"]).to_list()}  # noqa: E731
    assert line({"text": ["a b", ""]}) == {"input_ids": [[64, 275], []]}
