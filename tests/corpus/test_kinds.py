"""Of which kind inputs are: JSON is judged by its first line, and no documents are left out unnoticed."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma

import pytest

from jittok.corpus import Options, compile_corpus
from jittok.corpus.inputs.finding import find_sources
from jittok.errors import CorpusError

pa = pytest.importorskip("pyarrow")
zstandard = pytest.importorskip("zstandard")
pytest.importorskip("filelock")

LINES = b'{"text": "one", "n": 1}\n{"text": "two"}\n'
ONE = b'{"text": "one"}'
ARRAY = b'[{"text": "one"}, {"text": "two"}]\n'
INDENTED = json.dumps({"id": 1, "text": "one"}, indent=2).encode()
SETTINGS = json.dumps({"model": "a", "size": 3}, indent=2).encode()


def lz4(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


PACK = {
    ".gz": gzip.compress, ".gzip": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".lz4": lz4,
    ".zst": zstandard.ZstdCompressor().compress, ".zstd": zstandard.ZstdCompressor().compress,
}  # fmt: skip


def compiled(inputs, tok, out, **options):
    return compile_corpus(inputs, tok, out, Options(formats=("npy",), **options))


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "c4-train.00000-of-01024.json", "a.ndjson"])
def test_packed_json_lines_are_read_under_any_of_their_names(tmp_path, tok, name, suffix):
    data = tmp_path / "data"
    data.mkdir()
    (data / f"{name}{suffix}").write_bytes(PACK[suffix](LINES))
    (data / "b.jsonl").write_bytes(LINES)
    for k, given in enumerate(([data], [data / f"{name}{suffix}", data / "b.jsonl"], [f"{data}/*"])):
        assert compiled(given, tok, tmp_path / str(k)).documents == 4


@pytest.mark.parametrize("content", [LINES, ONE, ONE + b"\r\n", b"\xef\xbb\xbf" + LINES, b"\n" + ONE, LINES[:-1]])
def test_json_whose_first_line_is_an_object_is_json_lines(tmp_path, tok, content):
    (tmp_path / "a.json").write_bytes(content)
    expected = content.count(b'"text"')
    assert compiled([tmp_path / "a.json"], tok, tmp_path / "one").documents == expected
    (tmp_path / "data").mkdir()
    (tmp_path / "a.json").rename(tmp_path / "data" / "a.json")
    assert compiled([tmp_path / "data"], tok, tmp_path / "two").documents == expected


def test_the_first_line_may_be_longer_than_what_is_looked_at(tmp_path, tok):
    text = "word " * 100_000
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "a.json"
    for k, row in enumerate(({"text": text}, {"n": text, "text": "a"}, {"text": "a", "n": text})):
        path.write_text(json.dumps(row) + "\n")
        assert compiled([tmp_path / "data"], tok, tmp_path / str(k)).documents == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [(ARRAY, "a JSON array of objects"), (INDENTED, "objects are not a line each"), (b"text\n", "no JSON Lines")],
)
def test_named_json_of_another_form_is_refused_with_what_to_do(tmp_path, content, said):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=f"{said}.*expected a document a line"):
        find_sources([path], Options())
    assert find_sources([path], Options(kind="txt"))[0][0].kind == "txt"
    path.with_suffix(".json.gz").write_bytes(gzip.compress(content))
    with pytest.raises(CorpusError, match=f"{said}.*expected a document a line"):
        find_sources([path.with_suffix(".json.gz")], Options())


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("b.json", ARRAY, "a JSON array of objects"),
        ("b.json", INDENTED, "objects are not a line each"),
        ("b.json.gz", gzip.compress(ARRAY), "a JSON array of objects"),
        ("part-00000", LINES, "JSON Lines"),
        ("part-00000.gz", gzip.compress(LINES), "JSON Lines, packed as .gz"),
        ("b.data", PACK[".zst"](LINES), "JSON Lines, packed as .zst"),
        ("b.log", LINES, "JSON Lines"),
        ("b.jsonl.1", LINES, "JSON Lines"),
        ("b.jsonl.br", b"\x0b\x02\x80", "documents packed in a way that is not known (.br)"),
        ("b.txt.zip", b"PK\x03\x04", "documents packed in a way that is not known (.zip)"),
        ("b.bin", b"PAR1....PAR1", "a Parquet file"),
        ("b", b"ARROW1\0\0....ARROW1", "an Arrow file"),
    ],
)
def test_documents_are_not_left_out_unless_told(tmp_path, tok, name, content, said):
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.jsonl").write_bytes(LINES)
    (data / name).write_bytes(content)
    with pytest.raises(CorpusError) as caught:
        compiled([data], tok, tmp_path / "out")
    assert caught.value.where == str(data / name)
    assert said in str(caught.value)
    assert "on_error='skip' leaves others out" in str(caught.value)
    assert not (tmp_path / "out").exists()
    told = compiled([data], tok, tmp_path / "out", on_error="skip")
    assert (told.documents, told.left_out) == (2, (str(data / name),))
    assert compiled([data / "a.jsonl"], tok, tmp_path / "named").documents == 2


def test_several_files_that_would_be_left_out_are_one_error(tmp_path):
    for name in "cab":
        (tmp_path / f"{name}.log").write_bytes(LINES)
    with pytest.raises(CorpusError, match=r"a\.log: .*\(and 2 more such files\)"):
        find_sources([tmp_path], Options())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("README.md", b"# text\n"), ("LICENSE", b""), ("config.json", SETTINGS), ("empty.json", b""),
        ("vocab.json", b'{"!": 0, "text": 5239}'), ("data.jsonl.sha256", b"0123  data.jsonl\n"), ("a.bin", b"\0" * 99),
        ("tokenizer.json", b'{\n "model": {\n "text": 5\n}}'), ("list.json", b'["text"]'), ("cut.gz", b"\x1f\x8b\x08"),
    ],
)  # fmt: skip
def test_what_is_no_document_is_left_out_and_told(tmp_path, name, content):
    (tmp_path / "a.jsonl").write_bytes(LINES)
    (tmp_path / name).write_bytes(content)
    sources, left_out = find_sources([tmp_path], Options())
    assert ([source.path for source in sources], left_out) == ([str(tmp_path / "a.jsonl")], [str(tmp_path / name)])


def test_another_field_decides_what_looks_like_documents(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "b.log").write_bytes(b'{"content": "x"}\n')
    assert find_sources([tmp_path], Options())[1] == [str(tmp_path / "b.log")]
    with pytest.raises(CorpusError, match="JSON Lines"):
        find_sources([tmp_path], Options(field="content"))


@pytest.mark.parametrize("cut", [1, 4, 20])
def test_lz4_that_is_damaged_or_cut_off_is_an_error(tmp_path, tok, cut):
    path = tmp_path / "a.jsonl.lz4"
    whole = lz4(LINES * 1000)
    for content in (whole[:-cut], whole + b"xxxx"):
        path.write_bytes(content)
        with pytest.raises(CorpusError, match=r"a\.jsonl\.lz4: .*whole \.lz4 data"):
            compiled([path], tok, tmp_path / "out")
    path.write_bytes(whole + whole)  # several frames are one text
    assert compiled([path], tok, tmp_path / "out").documents == 4000
