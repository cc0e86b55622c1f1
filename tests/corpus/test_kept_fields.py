"""Documents keep the fields that are asked for, whatever they are written in and wherever they are from."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from jittok.corpus import Options, compile_corpus, fields, verify
from jittok.corpus import open as open_corpus
from jittok.corpus.inputs.json_rows import kept_value
from jittok.corpus.inputs.json_scan import GIVEN, NO_CAPACITY, NULL_VALUE, ODD_VALUE, gather_values
from jittok.corpus.ranges.documents import read_texts
from jittok.corpus.ranges.kept import Kept
from jittok.corpus.ranges.units import Key, RawRange
from jittok.corpus.shards.fields import fields_of
from jittok.corpus.store import open_store
from jittok.errors import CorpusError
from jittok.kernels.jit import JIT, frozen

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("orjson")


@pytest.fixture(params=["kernel", "parser"])
def by(request, monkeypatch):
    """By the kernel, or by a parser alone."""
    monkeypatch.setattr("jittok.corpus.inputs.json_lines.usable", lambda _: request.param == "kernel")


class Lines:
    """What Kept asks of a source."""

    kind = "jsonl"


def kept(block: bytes, *names: str, **options):
    chosen = Options(keep=names, **options)
    raw = RawRange(Key(0, 0, 0), 0, block, 0, 0)
    fields = Kept(raw, [Lines()], chosen)
    return [column.to_pylist() for column in fields(read_texts(raw, "jsonl", chosen))]


VALUES = {
    '"a"': "a", '"a\\n\\u00e9\\ud83d\\ude00"': "a\n\u00e9\U0001f600", "7": "7", "-1.50e3": "-1.50e3", "1e400": "1e400",
    "12345678901234567890123": "12345678901234567890123", "NaN": "NaN", "true": "true", "null": None, '""': "",
    '[1, {"a":"b"}]': '[1, {"a":"b"}]', "{}": "{}", '"null"': "null", '"\\ud800x"': "\ufffdx",
    '["\\ud800"]': '["\\ud800"]',
}  # fmt: skip


@pytest.mark.usefixtures("by")
@pytest.mark.parametrize("written", VALUES)
def test_a_value_is_its_text_or_as_it_is_written(written):
    line = b'{"a": {"b": %b}, "text": "t", "id": %b}' % (written.encode(), written.encode())
    assert kept(line, "id", "a.b", "none", "a.none") == [[VALUES[written]], [VALUES[written]], [None], [None]]


@pytest.mark.usefixtures("by")
def test_what_is_no_utf8_costs_neither_document_nor_field():
    lines = b'{"text": "t", "id": "a\xffb"}\n{"text": "u", "id": ["\xff"]}\n{"id": 3, "text": "v"}'
    assert kept(lines, "id") == [["a\ufffdb", '["\ufffd"]', "3"]]


@pytest.mark.usefixtures("by")
def test_fields_stay_with_their_documents_where_others_are_left_out():
    lines = [
        b'{"text": "a", "id": 1}',
        b"",
        b'{"id": 2}',
        b'{"te\\u0078t": "b", "id": 3}',
        b"{",
        b'{"text": "c", "id": 4}',
    ]
    for _ in range(20):  # whatever was in the memory before
        assert kept(b"\n".join(lines), "id", on_error="skip") == [["1", "3", "4"]]
        assert kept(b"\n".join([*lines, b"", b" "] * 9), "id", "a.b", on_error="skip")[0] == ["1", "3", "4"] * 9
    assert kept(b"\n".join(lines), "id", on_error="replace") == [["1", "2", "3", None, "4"]]


@pytest.mark.usefixtures("by")
def test_the_last_of_equal_names_and_the_very_name_are_kept():
    lines = b'{"text": "a", "a": {"b": 1}, "a.b": 2, "a.b": 3}\n{"text": "b", "a": {"b": 4}}'
    assert kept(lines, "a.b") == [["3", "4"]]


def drawn_rows(draw: random.Random, count: int) -> list[dict[str, object]]:
    def value(depth: int) -> object:
        if depth > 2 or draw.random() < 0.6:
            return draw.choice(["x", "y\n\u4e2d", "", 1, 2.5, None, True, "\U0001f600"])
        return {draw.choice("abc"): value(depth + 1) for _ in range(2)} if draw.random() < 0.5 else [value(depth + 1)]

    return [
        {"text": f"{k}", **{draw.choice(["id", "m", "m.a", "x"]): value(0) for _ in range(3)}} for k in range(count)
    ]


def test_drawn_rows_keep_what_plain_python_finds(monkeypatch):
    rows = drawn_rows(random.Random(3), 400 if JIT else 60)

    def expected(row, name):
        found = row.get(name)
        if name not in row and "." in name:
            found = row.get("m")
            found = found.get("a") if isinstance(found, dict) else None
        return found if isinstance(found, str) or found is None else json.dumps(found, ensure_ascii=False)

    for ascii_only in (True, False):
        lines = [json.dumps(row, ensure_ascii=ascii_only).encode() for row in rows]
        for usable in (True, False):
            monkeypatch.setattr("jittok.corpus.inputs.json_lines.usable", lambda _, usable=usable: usable)
            for name in ("id", "m", "m.a"):
                found = [None if f is None else f for f in kept(b"\n".join(lines), name)[0]]
                wanted = [expected(row, name) for row in rows]
                if ascii_only:  # values other than strings stand as they are written
                    found = [
                        f
                        if f is None or not f.startswith(("[", "{"))
                        else json.dumps(json.loads(f), ensure_ascii=False)
                        for f in found
                    ]
                assert found == wanted
    assert kept_value(b"{", "id") is None
    assert kept_value(b'{"id": 1} x', "id") is None


def test_a_gathered_value_never_leaves_its_arrays():
    data = frozen(np.frombuffer(b'"a\\n" null 17 "\xff" \xff', np.uint8), np.uint8)
    spans = frozen([0, 5, 6, 10, -1, -1, 11, 13, 14, 17, 18, 19], np.int64)
    out, ends, codes = np.zeros(20, np.uint8), np.zeros(6, np.int64), np.zeros(6, np.uint8)
    assert gather_values(data, spans, 0, 2, out, ends, codes) == 4
    assert codes.tolist() == [GIVEN, NULL_VALUE, NULL_VALUE, GIVEN, ODD_VALUE, ODD_VALUE]
    assert (out[:4].tobytes(), ends.tolist()) == (b"a\n17", [2, 2, 2, 4, 4, 4])
    assert gather_values(data, spans, 0, 2, out[:3], ends, codes) == NO_CAPACITY
    assert gather_values(data, spans, 2, 2, out, ends, codes) == NO_CAPACITY
    assert gather_values(data, spans, 0, 2, out, ends, codes[:5]) == NO_CAPACITY
    assert gather_values(data, frozen([0, 99], np.int64), 0, 2, out, ends[:1], codes) == NO_CAPACITY


@pytest.fixture
def inputs(tmp_path):
    """Lines, two kinds of tables and a text, and what is to be kept of their documents."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_text("".join(json.dumps({"id": k, "text": f"line {k}", "m": {"url": f"u{k}\n"}}) + "\n"
                                            for k in range(40)))  # fmt: skip
    table = pa.table({
        "text": ["a", "b", None, "d"], "id": pa.array([1, None, 3, 4]),
        "m": pa.array([{"url": "x"}, None, {"url": "y"}, {"url": None}]),
    })  # fmt: skip
    pq.write_table(table, folder / "b.parquet", row_group_size=3)
    with pa.ipc.new_file(folder / "c.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=3)
    (folder / "d.txt").write_text("plain")
    rows = [(str(k), f"u{k}\n") for k in range(40)]
    return folder, [*rows, *[("1", "x"), (None, None), ("4", None)] * 2, (None, None)]


def tables_of(out, formats):
    found = {}
    if "arrow" in formats:
        found["arrow"] = pa.concat_tables(pa.ipc.open_file(path).read_all() for path in sorted(out.glob("arrow/*")))
    if "parquet" in formats:
        found["parquet"] = pa.concat_tables(map(pq.read_table, sorted(out.glob("parquet/*"))))
    if (out / "kept").exists():
        found["kept"] = pa.concat_tables(pa.ipc.open_file(path).read_all() for path in sorted(out.glob("kept/*")))
    return found


@pytest.mark.parametrize("formats", [("arrow",), ("npy",), ("parquet", "megatron")])
@pytest.mark.parametrize("ranges", [1 << 23, 90])
def test_every_format_keeps_the_fields_of_its_documents(tmp_path, tok, inputs, formats, ranges):
    folder, expected = inputs
    out = tmp_path / "out"
    options = Options(formats=formats, keep=("id", "m.url"), on_error="skip", range_bytes=ranges, shard_bytes=200)
    summary = compile_corpus([folder], tok, out, options, check_space=False)
    assert summary.documents == len(expected)
    tables = tables_of(out, formats)
    assert set(tables) == {*({"arrow", "parquet"} & set(formats)), *({"kept"} if formats != ("arrow",) else ())}
    for table in tables.values():
        assert list(zip(table["id"].to_pylist(), table["m.url"].to_pylist(), strict=True)) == expected
    read = fields(out)
    assert list(zip(read["id"].to_pylist(), read["m.url"].to_pylist(), strict=True)) == expected
    assert verify(out, tok, all=True).ok
    assert len(open_corpus(out, tok)) == len(expected)


def test_a_corpus_without_fields_is_as_before(tmp_path, tok, inputs):
    out = tmp_path / "out"
    compile_corpus([inputs[0]], tok, out, Options(on_error="skip"), check_space=False)
    with pytest.raises(CorpusError, match="found a corpus without fields beside its ids, expected one made with"):
        fields(out)
    assert "keep" not in json.loads((out / "manifest.json").read_text())["options"]
    assert set(tables_of(out, ("arrow",))["arrow"].column_names) == {"input_ids"}


def test_fields_that_cannot_be_kept_are_refused(tmp_path, tok, inputs):
    for keep in (("id", "id"), ("input_ids",)):
        with pytest.raises(CorpusError, match="up to 50 fields, each once, and none named input_ids"):
            Options(keep=keep)
    with pytest.raises(TypeError, match="keep: found a text, expected a tuple"):
        Options(keep="id")
    with pytest.raises(CorpusError, match="JSON Lines or a table among the inputs, or no keep"):
        compile_corpus([inputs[0] / "d.txt"], tok, tmp_path / "out", Options(keep=("id",)))
    with pytest.raises(CorpusError, match=r"b.parquet: found columns text, id, m, expected a column 'url' \(keep\)"):
        compile_corpus([inputs[0] / "b.parquet"], tok, tmp_path / "out", Options(keep=("url",)))


def test_verify_names_the_document_whose_field_is_another(tmp_path, tok):
    path, out = tmp_path / "a.jsonl", tmp_path / "out"
    path.write_text('{"text": "a", "id": "x"}\n{"text": "b", "id": "y"}\n')
    compile_corpus([path], tok, out, Options(formats=("npy",), keep=("id",)), check_space=False)
    path.write_text('{"text": "a", "id": "x"}\n{"text": "b", "id": "z"}\n')
    (found,) = verify(out, tok).differences
    assert (found["field"], found["document"], found["what"]) == ("id", 1, "found 'y', expected 'z'")


@pytest.mark.parametrize("formats", [("arrow",), ("npy",), ("parquet",)])
def test_columns_of_another_type_are_named(tmp_path, tok, inputs, formats):
    out = tmp_path / "out"
    compile_corpus([inputs[0]], tok, out, Options(formats=formats, keep=("id",), on_error="skip"), check_space=False)
    folder = "kept" if formats == ("npy",) else formats[0]
    path = next((out / folder).iterdir())
    count = fields(out).num_rows
    table = pa.table({"id": pa.array(range(count), pa.int64())})
    if folder == "parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    manifest = json.loads((out / "manifest.json").read_text())
    with pytest.raises(CorpusError, match="found columns id of int64, expected large_string"):
        fields_of(open_store(out), {**manifest["shards"][0], "documents": count}, ["id"])
