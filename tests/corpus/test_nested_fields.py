"""The text may be a member of an object or a struct, a list of texts, or of an extension type."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from jittok.corpus import Options, compile_corpus
from jittok.corpus import open as open_corpus
from jittok.corpus.inputs.json_lines import OTHER, lines_of_block
from jittok.corpus.ranges.columns import text_column
from jittok.corpus.ranges.documents import read_documents, read_texts
from jittok.corpus.ranges.units import Key, RawRange
from jittok.errors import CorpusError
from jittok.kernels.jit import JIT

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("orjson")


@pytest.fixture(params=["kernel", "parser"])
def by(request, monkeypatch):
    """By the kernel, or by a parser alone."""
    monkeypatch.setattr("jittok.corpus.inputs.json_lines.usable", lambda _: request.param == "kernel")


def read(payload: bytes, **options):
    found = read_texts(RawRange(Key(0, 3, 0), 0, payload, 0, 0), "jsonl", Options(**options))
    data, starts, stops, *_ = found.docs
    texts = [data[i:j].tobytes() for i, j in zip(starts.tolist(), stops.tolist(), strict=True)]
    return texts, found.lines.tolist(), [(bad.line, bad.found, bad.expected) for bad in found.bad]


@pytest.mark.usefixtures("by")
def test_a_name_with_dots_is_a_member_of_an_object():
    lines = [
        {"a": {"b": {"c": "one"}}, "c": "x", "b": {"c": "y"}},
        {"id": 1, "a": {"x": [{"b": {"c": "y"}}], "b": {"n": 1, "c": "two\n\u00e9"}}},
    ]
    block = b"\n".join(json.dumps(line).encode() for line in lines)
    assert read(block, field="a.b.c") == ([b"one", "two\n\u00e9".encode()], [1, 2], [])


@pytest.mark.usefixtures("by")
def test_a_field_of_the_very_name_comes_before_a_member():
    lines = [
        b'{"a": {"b": "inner"}}', b'{"a.b": "whole", "a": {"b": "inner"}}',
        b'{"a": {"b": "inner"}, "a\\u002eb": "whole"}',
        b'{"a": {"b": "inner"}, "x": {"a.b": "y"}}', b'{"a": {"b": "inner", "c": "\\"a.b\\""}}',
    ]  # fmt: skip
    expected = [b"inner", b"whole", b"whole", b"inner", b"inner"]
    assert read(b"\n".join(lines), field="a.b") == (expected, [1, 2, 3, 4, 5], [])
    for line, text in zip(lines, expected, strict=True):
        assert read(line, field="a.b") == ([text], [1], [])


@pytest.mark.usefixtures("by")
def test_what_has_no_such_member_is_an_error_of_its_line():
    lines = [b'{"a": "b"}', b'{"a": {"c": 1}}', b'{"a": {"b": ["x"]}}', b'{"b": "x"}', b'{"a": {"b": "x"}, "a": {}}']
    texts, _, bad = read(b"\n".join(lines), field="a.b", on_error="skip")
    assert texts == []
    assert bad == [
        (1, "fields a", "a text in 'a.b' (--field)"),
        (2, "fields a", "a text in 'a.b' (--field)"),
        (3, "list in 'a.b'", "a text (--join for a list of texts)"),
        (4, "fields b", "a text in 'a.b' (--field)"),
        (5, "fields a", "a text in 'a.b' (--field)"),
    ]


@pytest.mark.usefixtures("by")
def test_a_list_of_texts_is_joined_on_request():
    lines = [
        b'{"text": ["a", "b\\n"]}',
        b'{"text": "c"}',
        b'{"text": []}',
        b'{"text": ["d", null]}',
        b'{"text": ["\\ud800"]}',
    ]
    texts, numbers, bad = read(b"\n".join(lines), join="\n\n", on_error="skip")
    assert (texts, numbers) == ([b"a\n\nb\n", b"c", b""], [1, 2, 3])
    assert [line for line, *_ in bad] == [4, 5]
    assert read(b"\n".join(lines), join="\n\n", on_error="replace")[0][3:] == [b"", "\ufffd".encode()]


@pytest.mark.skipif(not JIT, reason="kernels are not compiled")
def test_plain_lines_with_a_member_are_read_by_the_kernel():
    block = b'{"meta": {"text": "a"}}\n' * 5
    assert OTHER not in lines_of_block(block * 50_000, "meta.text").codes
    assert lines_of_block(block * 50_000, "meta.none").codes.tolist() == [OTHER] * 250_000


def test_drawn_rows_have_the_member_that_plain_python_finds(monkeypatch):
    draw = random.Random(5)

    def value(depth: int):
        if depth > 3 or draw.random() < 0.4:
            return draw.choice(["x", "y\n", 1, None, ["z"]])
        return {draw.choice("abc"): value(depth + 1) for _ in range(draw.randint(0, 3))}

    rows = [{draw.choice(["a", "b", "a.b", "a.b.c"]): value(0) for _ in range(3)} for _ in range(500)]
    expected = []
    for row in rows:
        found = row.get("a.b")
        if "a.b" not in row:
            found = row.get("a")
            found = found.get("b") if isinstance(found, dict) else None
        expected += [found.encode()] if isinstance(found, str) else []
    for usable in (True, False):
        monkeypatch.setattr("jittok.corpus.inputs.json_lines.usable", lambda _, usable=usable: usable)
        block = b"\n".join(json.dumps(row).encode() for row in rows)
        assert read(block, field="a.b", on_error="skip")[0] == expected
        one_by_one = [read(json.dumps(row).encode(), field="a.b", on_error="skip")[0] for row in rows]
        assert [text for texts in one_by_one for text in texts] == expected


# ---- tables

TEXTS = ["one", "", "zwei \u00e9", None, "four"]
LISTS = [["a", "b"], [], ["c"], None, ["d", None]]
JOINED = ["a\n\nb", "", "c", None, None]


def struct(values, kind, nulls=()):
    members = [pa.array(range(len(values))), values.cast(kind)]
    mask = pa.array([k in nulls for k in range(len(values))])
    return pa.StructArray.from_arrays(members, ["n", "text"], mask=mask)


def json_type(values):
    if not hasattr(pa, "json_"):
        pytest.skip("this pyarrow has no JSON type")
    return pa.ExtensionArray.from_storage(pa.json_(pa.string()), values)


texts, lists = pa.array(TEXTS), pa.array(LISTS, pa.list_(pa.string()))
COLUMNS = {
    "a struct": (lambda: {"meta": struct(texts, pa.string())}, "meta.text", TEXTS),
    "a null struct": (lambda: {"meta": struct(texts, pa.large_string(), nulls=(0,))}, "meta.text", [None, *TEXTS[1:]]),
    "a struct in a struct": (
        lambda: {"a": pa.StructArray.from_arrays([struct(texts, pa.string(), (1,))], ["meta"])},
        "a.meta.text", [TEXTS[0], None, *TEXTS[2:]],
    ),
    "a dictionary in a struct": (
        lambda: {"meta": pa.StructArray.from_arrays([texts.dictionary_encode()], ["text"])}, "meta.text", TEXTS,
    ),
    "a name with a dot": (lambda: {"meta.text": texts, "meta": struct(lists, lists.type)}, "meta.text", TEXTS),
    "lists": (lambda: {"text": lists}, "text", JOINED),
    "large lists": (lambda: {"text": lists.cast(pa.large_list(pa.large_string()))}, "text", JOINED),
    "lists of one size": (
        lambda: {"text": pa.array([["a", "b"], ["c", "d"]], pa.list_(pa.string(), 2))}, "text", ["a\n\nb", "c\n\nd"],
    ),
    "lists in a struct": (lambda: {"meta": struct(lists, lists.type)}, "meta.text", JOINED),
    "JSON": (lambda: {"text": json_type(pa.array(['{"a": 1}', "[]", None]))}, "text", ['{"a": 1}', "[]", None]),
}  # fmt: skip


def write(table, path):
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=2)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table, max_chunksize=2)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("name", COLUMNS)
def test_the_texts_of_a_table_are_in_any_column(tmp_path, tok, name, suffix):
    if (name, suffix) == ("a dictionary in a struct", ".parquet"):
        pytest.skip("pyarrow does not read that")
    make, column, expected = COLUMNS[name]
    table = pa.table({"before": pa.array(range(len(expected))), **make()})
    write(table, tmp_path / f"t{suffix}")
    options = Options(formats=("npy",), column=column, join="\n\n", on_error="skip")
    summary = compile_corpus([tmp_path / f"t{suffix}"], tok, tmp_path / "out", options, check_space=False)
    there = [text for text in expected if text is not None]
    assert (summary.documents, summary.bad_documents) == (len(there), len(expected) - len(there))
    corpus = open_corpus(tmp_path / "out", tok)
    for k, text in enumerate(there):
        np.testing.assert_array_equal(corpus[k], tok.encode(text))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_bytes_in_lists_that_are_no_utf8_are_an_error_of_their_document(tmp_path, suffix):
    from jittok.corpus.inputs.finding import find_sources

    table = pa.table({"text": pa.array([[b"a", b"b"], [b"\xff"]], pa.list_(pa.binary()))})
    write(table, tmp_path / f"t{suffix}")
    options = Options(join="-")
    sources, _ = find_sources([tmp_path / f"t{suffix}"], options)
    (found,) = read_documents(sources, options)
    docs = found.docs
    assert [docs.between(i, j) for i, j in zip(docs.starts, docs.stops, strict=True)] == [b"a-b", b"\xff"]


WRONG = {
    "no member": ("meta.body", "members n, text in 'meta'", "a column 'meta.body' (column)"),
    "no struct": ("id.text", "column 'id' of int64", "a struct with a member 'text'"),
    "no column": ("other.text", "columns id, meta, text, twice", "a column 'other.text' (column)"),
    "a struct itself": (
        "meta", "column 'meta' of struct<n: int64, text: string>", "texts (string, large_string, binary)",
    ),
    "no list of texts": ("text.x", "column 'text' of list<item: string>", "a struct with a member 'x'"),
    "numbers": ("meta.n", "column 'meta.n' of int64", "texts (string, large_string, binary)"),
    "two members of a name": ("twice.a", "2 columns 'twice.a'", "exactly one column of that name (column)"),
    "lists without a join": (
        "text", "column 'text' of list<item: string>", "one text a row, or what is between those of a list (join)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_column_without_texts_is_named(name):
    column, found, expected = WRONG[name]
    twice = pa.struct([pa.field("a", pa.string()), pa.field("a", pa.string())])
    schema = pa.schema([
        ("id", pa.int64()), ("meta", pa.struct({"n": pa.int64(), "text": pa.string()})),
        ("text", pa.list_(pa.string())), ("twice", twice),
    ])  # fmt: skip
    with pytest.raises(CorpusError) as raised:
        text_column(schema, column, "t.parquet")
    assert str(raised.value) == f"t.parquet: found {found}, expected {expected}"


def test_join_without_rows_is_refused(tmp_path, tok):
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(CorpusError, match="JSON Lines or a table among the inputs, or no join"):
        compile_corpus([tmp_path / "a.txt"], tok, tmp_path / "out", Options(join="\n"))
