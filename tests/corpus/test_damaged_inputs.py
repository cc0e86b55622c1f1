"""A damaged or vanished input is left out where --on-error says so: told in errors/ and the manifest, never silent."""

from __future__ import annotations

import gc
import gzip
import json
import resource
import sys
from pathlib import Path

import pytest
from conftest import dies_after, make_texts

from jittok.corpus import Options, compile_corpus, verify
from jittok.corpus import open as open_corpus
from jittok.corpus.inputs.finding import find_sources
from jittok.corpus.inputs.sources import Source
from jittok.corpus.ranges import units
from jittok.errors import CorpusError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("filelock")
TEXTS = make_texts(40, seed=3)


def lines(texts):
    return "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()


def table(path, texts, **more):
    pq.write_table(pa.table({"text": texts}), path, **more)
    return path.read_bytes()


def stream(texts):
    sink = pa.BufferOutputStream()
    found = pa.table({"text": texts})
    with pa.ipc.new_stream(sink, found.schema) as writer:
        writer.write_table(found)
    return sink.getvalue().to_pybytes()


def damaged(folder):
    """Name -> bytes of a file that ends early or is none."""
    whole = table(folder.parent / "whole.parquet", TEXTS)
    return {
        "b.jsonl.gz": gzip.compress(lines(TEXTS))[:-20], "c.jsonl.gz": b"", "d.txt.gz": b"\x1f\x8bnothing",
        "e.parquet": whole[: len(whole) // 2], "f.parquet": b"", "g.arrow": stream(TEXTS)[:-200],
        "h.jsonl.zst": b"\x28\xb5\x2f\xfdxx",
    }  # fmt: skip


def account(out):
    rows = [json.loads(line) for path in sorted((out / "errors").glob("*")) for line in path.read_text().splitlines()]
    inputs = json.loads((out / "manifest.json").read_text())["inputs"]
    return rows, {Path(row["path"]).name: row["lost"] for row in inputs if "lost" in row}


@pytest.mark.parametrize("on_error", ["skip", "replace"])
@pytest.mark.parametrize("range_bytes", [100, 8 << 20])
def test_damaged_inputs_are_left_out_and_told(tmp_path, tok, on_error, range_bytes):
    data, options = tmp_path / "data", Options(formats=("npy",), on_error=on_error, range_bytes=range_bytes)
    data.mkdir()
    (data / "a.jsonl").write_bytes(lines(TEXTS))
    (data / "z.jsonl").write_bytes(lines(TEXTS[::-1]))
    for name, content in damaged(data).items():
        (data / name).write_bytes(content)
        with pytest.raises(CorpusError, match=name):
            compile_corpus([data / "a.jsonl", data / name], tok, tmp_path / f"fails {name}", Options(formats=("npy",)))
    found = compile_corpus([data], tok, tmp_path / "out", options)
    assert found.lost_inputs == len(damaged(data))
    rows, told = account(tmp_path / "out")
    assert sorted(Path(row["file"]).name for row in rows) == sorted(told) == sorted(damaged(data))
    assert all(row["found"] and row["expected"] and row["line"] >= 1 for row in rows)
    corpus = open_corpus(tmp_path / "out", tok)
    assert [corpus.decode(k) for k in range(len(TEXTS))] == [tok.decode(tok.encode(text)) for text in TEXTS]
    assert [corpus.decode(k - len(TEXTS)) for k in range(len(TEXTS))] == [corpus.decode(k) for k in range(len(TEXTS))][
        ::-1
    ]
    assert verify(tmp_path / "out", tok, all=True).ok
    again = compile_corpus([data], tok, tmp_path / "out", options)
    assert again.resumed == again.documents


def test_what_was_read_before_the_damage_stays_and_is_counted(tmp_path, tok):
    path, options = tmp_path / "a.jsonl.gz", Options(formats=("npy",), on_error="skip", range_bytes=1000)
    packed = gzip.compress(lines(TEXTS * 40), 1)
    path.write_bytes(packed[: len(packed) * 3 // 4])
    found = compile_corpus([path], tok, tmp_path / "out", options)
    assert 0 < found.documents < 40 * len(TEXTS)
    rows, told = account(tmp_path / "out")
    assert told["a.jsonl.gz"][0]["lines_before"] == found.documents == rows[0]["line"] - 1
    assert verify(tmp_path / "out", tok, all=True).ok


def test_a_damaged_row_group_costs_no_other(tmp_path, tok):
    path = tmp_path / "a.parquet"
    content = bytearray(table(path, TEXTS * 3, row_group_size=len(TEXTS), use_dictionary=False, compression="gzip"))
    place = pq.read_metadata(path).row_group(1).column(0)
    content[place.data_page_offset : place.data_page_offset + 20] = b"\xff" * 20
    path.write_bytes(content)
    options = Options(formats=("npy",), on_error="skip", range_bytes=100)
    found = compile_corpus([path], tok, tmp_path / "out", options)
    assert (found.documents, found.lost_inputs) == (2 * len(TEXTS), 1)


def test_an_input_that_vanishes_is_told_and_the_run_goes_on(tmp_path, tok, monkeypatch):
    """Before it is read; after its documents were read, it is not needed any more."""
    for when in ("before", "after"):
        data, out = tmp_path / when, tmp_path / f"out {when}"
        data.mkdir()
        for name in "abc":
            (data / f"{name}.jsonl").write_bytes(lines(TEXTS))
        options = Options(formats=("npy",), on_error="skip", range_bytes=len(lines(TEXTS)))
        opened = Source.open

        def gone(source, opened=opened, when=when, seen=[]):  # noqa: B006  one a test
            if source.path.endswith("b.jsonl"):
                seen.append(source)
                if when == "before" or len(seen) > 1:
                    raise FileNotFoundError(2, "No such file or directory", source.path)
            return opened(source)

        monkeypatch.setattr(Source, "open", gone)
        found = compile_corpus([data], tok, out, options, check_space=False)
        monkeypatch.setattr(Source, "open", opened)
        assert found.lost_inputs == (when == "before")
        assert found.documents == (2 if when == "before" else 3) * len(TEXTS)
        assert list(account(out)[1]) == (["b.jsonl"] if when == "before" else [])
        again = compile_corpus([data], tok, out, options)
        assert again.resumed == again.documents


def test_a_name_found_in_a_folder_may_have_vanished_before_it_is_looked_at(tmp_path, tok, monkeypatch):
    (tmp_path / "a.jsonl").write_bytes(lines(TEXTS))
    monkeypatch.setattr(
        "jittok.corpus.inputs.finding.without_copies", lambda paths, _: [*paths, str(tmp_path / "gone.jsonl")]
    )
    monkeypatch.setattr("pathlib.Path.is_file", lambda path: path.name in ("gone.jsonl", "a.jsonl"))
    with pytest.raises(CorpusError, match="no such file or directory"):
        find_sources([tmp_path], Options())
    monkeypatch.undo()
    with pytest.raises(CorpusError, match="no such file or directory"):  # who names a file means it
        compile_corpus([tmp_path / "gone.jsonl"], tok, tmp_path / "out", Options(on_error="skip"))


def test_a_run_that_dies_at_a_damaged_input_goes_on_to_the_same_bytes(tmp_path, tok, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    for name in "acz":
        (data / f"{name}.jsonl").write_bytes(lines(TEXTS))
    for name, content in damaged(data).items():
        (data / name).write_bytes(content)
    options = Options(formats=("npy",), on_error="skip", range_bytes=300, shard_bytes=1000)
    compile_corpus([data], tok, tmp_path / "whole", options)
    want = {path.name: path.read_bytes() for path in (tmp_path / "whole").rglob("*.*") if path.is_file()}
    for stop in range(1, 200, 3):
        out = tmp_path / f"out{stop}"
        try:
            with monkeypatch.context() as patch:
                dies_after(patch, stop)
                compile_corpus([data], tok, out, options, check_space=False)
        except KeyboardInterrupt:
            compile_corpus([data], tok, out, options, check_space=False)
            assert {path.name: path.read_bytes() for path in out.rglob("*.*") if path.is_file()} == want
        else:
            break
    assert stop > 3


def test_too_long_a_document_stops_a_run_whatever_is_asked(tmp_path, tok):
    (tmp_path / "a.jsonl").write_bytes(lines(["x" * 5000]))
    (tmp_path / "b.jsonl").write_bytes(lines(["x"]))
    with pytest.raises(CorpusError, match="max_document_bytes"):
        compile_corpus([tmp_path], tok, tmp_path / "out", Options(on_error="skip", max_document_bytes=1000))


def test_all_inputs_damaged_is_an_error_of_the_run(tmp_path, tok):
    (tmp_path / "a.jsonl.gz").write_bytes(b"\x1f\x8bnothing")
    with pytest.raises(CorpusError, match=r"a\.jsonl\.gz"):
        compile_corpus([tmp_path], tok, tmp_path / "out", Options(on_error="skip"))


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="no limit of descriptors")
@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_descriptors_that_run_out_name_a_file_and_are_no_damage(tmp_path, tok, on_error):
    """At any number of descriptors: an error that names a file of the user, or a whole corpus."""
    data = tmp_path / "data"
    data.mkdir()
    for k in range(3):
        (data / f"{k}.jsonl").write_bytes(lines(TEXTS))
        table(data / f"{k}.parquet", TEXTS)
    options = Options(formats=("npy", "megatron", "arrow"), on_error=on_error, range_bytes=100)
    gc.collect()  # what other tests have left open would be closed meanwhile
    before, open_now = resource.getrlimit(resource.RLIMIT_NOFILE), len(list(Path("/proc/self/fd").iterdir()))
    refused = 0
    for spare in range(14):
        out = tmp_path / f"out{spare}"
        out.mkdir()
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + spare, before[1]))
            found = compile_corpus([data], tok, out, options, check_space=False, threads=1)
        except (OSError, CorpusError) as error:
            said = str(error)
            refused += 1
            assert "Too many open files" in said
            assert str(tmp_path) in said
            assert "/proc/self/fd" not in said
        else:
            assert (found.documents, found.lost_inputs) == (6 * len(TEXTS), 0)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert refused


def encrypt(path, column, plain_footer):
    pe = pytest.importorskip("pyarrow.parquet.encryption")
    import base64

    class Keys(pe.KmsClient):
        def wrap_key(self, key, _):
            return base64.b64encode(key)

        def unwrap_key(self, key, _):
            return base64.b64decode(key)

    how = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": [column]}, plaintext_footer=plain_footer)
    factory = pe.CryptoFactory(lambda _: Keys())
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), how)
    found = pa.table({"text": TEXTS, "other": TEXTS})
    with pq.ParquetWriter(path, found.schema, encryption_properties=properties) as writer:
        writer.write_table(found, row_group_size=10)


@pytest.mark.parametrize("range_bytes", [100, 8 << 20])
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(("column", "plain"), [("text", True), ("text", False), ("other", False), ("other", True)])
def test_encrypted_parquet_is_an_error_that_names_the_file(tmp_path, tok, column, plain, alone, range_bytes):
    data = tmp_path / "data"
    data.mkdir()
    encrypt(data / "a.parquet", column, plain)
    if not alone:
        table(data / "b.parquet", TEXTS)
    options = Options(formats=("npy",), range_bytes=range_bytes)
    if column == "other" and plain:  # the column that is read needs no key
        assert compile_corpus([data], tok, tmp_path / "out", options).documents == (2 - alone) * len(TEXTS)
        return
    with pytest.raises(CorpusError, match=r"a\.parquet: found .*encrypted .*, expected an unencrypted table"):
        compile_corpus([data], tok, tmp_path / "out", options)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_columns_of_one_name(tmp_path, tok, suffix):
    def write(path, names):
        found = pa.Table.from_arrays([pa.array([name + "1"]) for name in "abc"], names=names)
        if suffix == ".parquet":
            pq.write_table(found, path)
        else:
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, found.schema) as writer:
                writer.write_table(found)

    write(tmp_path / f"a{suffix}", ["text", "x", "text"])
    with pytest.raises(CorpusError, match=rf"a{suffix}: found 2 columns 'text', expected exactly one column"):
        compile_corpus([tmp_path / f"a{suffix}"], tok, tmp_path / "out", Options(formats=("npy",)))
    write(tmp_path / f"b{suffix}", ["x", "text", "x"])
    compile_corpus([tmp_path / f"b{suffix}"], tok, tmp_path / "other", Options(formats=("npy",)))
    assert open_corpus(tmp_path / "other", tok).decode(0) == "b1"


@pytest.mark.parametrize("error", [RuntimeError("no network"), ConnectionError(), OSError("Name or service not known")])
def test_a_url_that_cannot_be_reached_is_named(tmp_path, tok, monkeypatch, error):
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").pipe("/far/a.jsonl", lines(TEXTS))

    def fails(*_, **__):
        raise error

    monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.info", fails)
    with pytest.raises(CorpusError, match=f"memory://far/a.jsonl: found {type(error).__name__}"):
        compile_corpus(["memory://far/a.jsonl"], tok, tmp_path / "out")
    with pytest.raises(CorpusError, match=r"nosuch://x/a\.txt"):
        compile_corpus(["nosuch://x/a.txt"], tok, tmp_path / "out")


def test_groups_end_by_the_bytes_that_are_read(tmp_path, tok):
    """Small packed files may hold much more than they seem to: their ranges stay of one size."""
    for k in range(3):
        (tmp_path / f"{k}.jsonl.gz").write_bytes(gzip.compress(lines(["word " * 200] * 50)))
    sources, _ = find_sources([tmp_path], Options())
    options = Options(range_bytes=4000)
    (unit,) = units.units(sources, options)
    raws = list(units.read_unit(unit, sources, options))
    assert [raw.key.at for raw in raws] == list(range(len(raws)))
    assert max(sum(len(piece.payload) for piece in raw.payload) for raw in raws) < 3 * 4000
    assert [raw.key for raw in units.read_unit(unit, sources, options, first=5)] == [raw.key for raw in raws[5:]]
    found = compile_corpus([tmp_path], tok, tmp_path / "out", Options(formats=("olmo",), range_bytes=4000))
    assert found.documents == 150
    import csv

    with gzip.open(tmp_path / "out" / "olmo" / "part-00000.csv.gz", "rt", newline="") as rows:
        size = len(lines(["word " * 200]))
        assert [row[4] for row in csv.reader(rows)] == [str(k * size) for _ in range(3) for k in range(50)]
