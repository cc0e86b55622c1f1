"""The same bytes for any number of threads and any packing; refused where it is not the same call."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import shutil
from pathlib import Path

import pytest
import victim
from conftest import make_texts, write_jsonl

import jittok.corpus
from jittok.corpus import Options, compile_corpus
from jittok.corpus.shards.manifest import read_manifest
from jittok.errors import CorpusError, UnsupportedVocab

pa = pytest.importorskip("pyarrow")
pytest.importorskip("filelock")
pytest.importorskip("orjson")
zstandard = pytest.importorskip("zstandard")


SMALL = {"range_bytes": 20_000, "shard_bytes": 60_000}


def ids_of(out, **options):
    return [row.tolist() for row in jittok.corpus.open(out, **options)]


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_do_not_change_a_byte(jsonl, tmp_path, tok, threads):
    path, texts = jsonl
    options = Options(formats=("arrow", "parquet", "npy", "olmo"), **SMALL)
    summary = compile_corpus([path], tok, tmp_path / "out", options, threads=threads)
    compile_corpus([path], tok, tmp_path / "one", options, threads=1)
    assert victim.snapshot(tmp_path / "out") == victim.snapshot(tmp_path / "one")
    assert ids_of(tmp_path / "out") == tok.encode_batch(texts).to_list()
    assert (summary.documents, summary.tokens) == (300, tok.encode_batch(texts).ids.size)
    assert summary.text_bytes == sum(len(text.encode()) for text in texts)
    assert summary.shards == len(read_manifest(tmp_path / "out")["shards"]) > 2


def packed(path, text):
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
    path.write_bytes(pack[path.suffix](text))
    return path


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2", ".xz"])
def test_packed_lines_make_the_ranges_of_plain_ones(jsonl, tmp_path, tok, suffix):
    """A packed file is one task, whose shards are cut by its text."""
    path, _ = jsonl
    other = packed(tmp_path / f"b.jsonl{suffix}", path.read_bytes())
    compile_corpus([path], tok, tmp_path / "plain", Options(formats=("npy", "olmo"), **SMALL))
    compile_corpus([other], tok, tmp_path / "packed", Options(formats=("npy", "olmo"), **SMALL), threads=2)
    plain, unpacked = read_manifest(tmp_path / "plain"), read_manifest(tmp_path / "packed")
    assert ids_of(tmp_path / "plain") == ids_of(tmp_path / "packed")
    counts = [[row[3:] for shard in made["shards"] for row in shard["ranges"] if row[3]] for made in (plain, unpacked)]
    assert counts[0] == counts[1]
    assert [shard["shard"] for shard in plain["shards"]] == [f"{k:05d}" for k in range(len(plain["shards"]))]
    assert [shard["shard"] for shard in unpacked["shards"]] == [
        f"00000-{k:03d}" for k in range(len(unpacked["shards"]))
    ]
    assert len(unpacked["shards"]) > 2


def test_tables(tmp_path, tok):
    import pyarrow.parquet as pq

    texts = make_texts(300)
    table = pa.table({"n": range(300), "content": texts})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=70)
    with pa.OSFile(str(tmp_path / "b.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=50)
    dictionary = pa.table({"content": table["content"].combine_chunks().dictionary_encode()})
    with pa.OSFile(str(tmp_path / "c.arrow"), "wb") as sink, pa.ipc.new_stream(sink, dictionary.schema) as writer:
        writer.write_table(dictionary)
    inputs = [tmp_path / name for name in ("a.parquet", "b.arrow", "c.arrow")]
    for threads in (1, 2):
        compile_corpus(inputs, tok, tmp_path / f"o{threads}", Options(column="content", **SMALL), threads=threads)
    assert victim.snapshot(tmp_path / "o1") == victim.snapshot(tmp_path / "o2")
    assert ids_of(tmp_path / "o1") == 3 * tok.encode_batch(texts).to_list()
    with pytest.raises(CorpusError, match="a column 'text'"):
        compile_corpus(inputs, tok, tmp_path / "o3")


def test_texts(tmp_path, tok):
    folder = tmp_path / "in" / "deep"
    folder.mkdir(parents=True)
    (folder / "b.txt").write_text("one\ntwo\n")
    (folder / "a.txt.gz").write_bytes(gzip.compress(b"three\nfour"))
    (folder / "c.md").write_text("left out")
    (folder / ".hidden.txt").write_text("hidden")
    found = compile_corpus([tmp_path / "in"], tok, tmp_path / "files")
    assert ids_of(tmp_path / "files") == tok.encode_batch(["three\nfour", "one\ntwo\n"]).to_list()
    assert [Path(path).name for path in found.left_out] == [".hidden.txt", "c.md"]
    compile_corpus([tmp_path / "in"], tok, tmp_path / "lines", Options(lines=True))
    assert ids_of(tmp_path / "lines") == tok.encode_batch(["three", "four", "one", "two"]).to_list()
    compile_corpus([tmp_path / "in"], tok, tmp_path / "parts", Options(separator="o"))
    expected = ["three\nf", "ur", "", "ne\ntw", "\n"]
    assert ids_of(tmp_path / "parts") == tok.encode_batch(expected).to_list()


def test_standard_input(jsonl, tmp_path, tok, monkeypatch):
    path, texts = jsonl
    options = Options(kind="jsonl", formats=("npy",), **SMALL)
    for threads in (1, 2):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        compile_corpus(["-"], tok, tmp_path / f"out{threads}", options, threads=threads)
    assert victim.snapshot(tmp_path / "out1") == victim.snapshot(tmp_path / "out2")
    assert ids_of(tmp_path / "out1") == tok.encode_batch(texts).to_list()
    (entry,) = read_manifest(tmp_path / "out1")["inputs"]
    assert (entry["path"], entry["bytes"]) == ("-", path.stat().st_size)
    assert entry["sha256"] == victim.snapshot(path.parent)["a.jsonl"]


def test_standard_input_that_is_interrupted_starts_anew(jsonl, tmp_path, tok, monkeypatch):
    path, _ = jsonl
    options = Options(kind="jsonl", formats=("npy",), **SMALL)

    def run(out, data, stop_after=None):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        return compile_corpus(["-"], tok, out, options, threads=1, progress=stop(stop_after))

    run(tmp_path / "whole", path.read_bytes())
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "out", path.read_bytes().replace(b"the", b"The"), 4)
    assert run(tmp_path / "out", path.read_bytes()).resumed == 0
    assert victim.snapshot(tmp_path / "out") == victim.snapshot(tmp_path / "whole")


def stop(after):
    """A report that interrupts."""
    left = after

    def report(_):
        nonlocal left
        if left is not None:
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

    return report


def begin(path, tok, out, options, ranges=5):
    with pytest.raises(KeyboardInterrupt):
        compile_corpus([path], tok, out, options, threads=1, progress=stop(ranges))
    return out


def test_another_call_on_a_begun_directory_is_refused(jsonl, tmp_path, tok):
    path, texts = jsonl
    out = begin(path, tok, tmp_path / "out", Options(**SMALL))
    other = write_jsonl(tmp_path / "b.jsonl", texts)
    with pytest.raises(CorpusError, match=r"append_eos True \(begun with False\)"):
        compile_corpus([path], tok, out, Options(append_eos=True, **SMALL))
    with pytest.raises(CorpusError, match=r"a new input .*b.jsonl"):
        compile_corpus([path, other], tok, out, Options(**SMALL))
    with pytest.raises(CorpusError, match="begun with gpt-2 8161"):
        compile_corpus([path], jittok.bundled("mistral"), out, Options(**SMALL))
    compile_corpus([path], tok, out, Options(**SMALL))
    with pytest.raises(CorpusError, match="formats \\['npy'\\]"):
        compile_corpus([path], tok, out, Options(formats=("npy",), **SMALL))
    assert compile_corpus([path], tok, out, Options(**SMALL)).resumed == 300


@pytest.mark.parametrize("finished", [False, True])
def test_changed_inputs_are_refused_and_touched_ones_are_not(jsonl, tmp_path, tok, finished):
    path, _ = jsonl
    out = tmp_path / "out"
    if finished:
        compile_corpus([path], tok, out, Options(**SMALL))
    else:
        begin(path, tok, out, Options(**SMALL))
    data = path.read_bytes()
    path.write_bytes(data + b'{"text": "more"}\n')
    with pytest.raises(CorpusError, match=f"bytes {path.stat().st_size}"):
        compile_corpus([path], tok, out, Options(**SMALL))
    path.write_bytes(data.replace(b"tokens", b"nekots", 1))
    with pytest.raises(CorpusError, match="other content"):
        compile_corpus([path], tok, out, Options(**SMALL))
    path.write_bytes(data)
    os.utime(path, (1, 1))
    assert compile_corpus([path], tok, out, Options(**SMALL)).documents == 300


def test_a_file_that_changes_while_it_is_read_is_an_error(jsonl, tmp_path, tok):
    path, _ = jsonl

    def report(_):
        path.touch()

    with pytest.raises(CorpusError, match="as when reading began"):
        compile_corpus([path], tok, tmp_path / "out", Options(**SMALL), progress=report, threads=1)


def test_a_second_process_is_refused(jsonl, tmp_path, tok):
    from filelock import FileLock

    (tmp_path / "out").mkdir()
    with FileLock(tmp_path / "out" / ".jittok.lock"), pytest.raises(CorpusError, match="another process"):
        compile_corpus([jsonl[0]], tok, tmp_path / "out")


def test_a_directory_with_other_files_is_refused(jsonl, tmp_path, tok):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").touch()
    with pytest.raises(CorpusError, match=r"thesis.tex"):
        compile_corpus([jsonl[0]], tok, tmp_path / "out")


def bad_lines(tmp_path):
    texts = make_texts(200)
    path = write_jsonl(tmp_path / "bad.jsonl", texts)
    lines = path.read_bytes().split(b"\n")
    lines[20], lines[150], lines[160] = b'{"text": 1}', b"{", b""
    path.write_bytes(b"\n".join(lines))
    return path, texts


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_bad_line_stops_a_run_by_name(tmp_path, tok, threads):
    path, _ = bad_lines(tmp_path)
    with pytest.raises(CorpusError, match=r"bad.jsonl, line 21: found .*int in 'text'"):
        compile_corpus([path], tok, tmp_path / "out", Options(range_bytes=3000), threads=threads)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_bad_lines_are_counted_and_listed(tmp_path, tok, on_error):
    path, texts = bad_lines(tmp_path)
    options = Options(on_error=on_error, formats=("npy", "olmo"), range_bytes=3000)
    found = compile_corpus([path], tok, tmp_path / "out", options, threads=2)
    assert (found.bad_documents, found.blank_lines) == (2, 1)
    reports = [json.loads(line) for line in (tmp_path / "out/errors/00000.jsonl").read_text().splitlines()]
    assert [(row["file"], row["line"]) for row in reports] == [(str(path), 21), (str(path), 151)]
    kept = [i for i in range(200) if i != 160 and (on_error == "replace" or i not in (20, 150))]
    expected = ["" if i in (20, 150) else texts[i] for i in kept]
    assert ids_of(tmp_path / "out") == tok.encode_batch(expected).to_list()


def test_a_run_that_failed_may_go_on_more_leniently(tmp_path, tok):
    path, _ = bad_lines(tmp_path)
    strict, lenient = (Options(on_error=how, range_bytes=3000) for how in ("fail", "skip"))
    with pytest.raises(CorpusError, match="line 21"):
        compile_corpus([path], tok, tmp_path / "out", strict)
    compile_corpus([path], tok, tmp_path / "out", lenient)
    compile_corpus([path], tok, tmp_path / "whole", lenient)
    assert victim.snapshot(tmp_path / "out") == victim.snapshot(tmp_path / "whole")
    with pytest.raises(CorpusError, match="on_error 'fail'"):
        compile_corpus([path], tok, tmp_path / "out", strict)


def test_special_tokens(tmp_path, tok):
    path = write_jsonl(tmp_path / "a.jsonl", ["a<|endoftext|>b", ""])
    bert, mistral = jittok.bundled("bert"), jittok.bundled("mistral")
    cases = [
        (tok, {}, tok.encode_batch(["a<|endoftext|>b", ""]).to_list()),
        (tok, {"parse_special": True}, [[64, 50256, 65], []]),
        (tok, {"append_eos": True, "parse_special": True}, [[64, 50256, 65, 50256], [50256]]),
        (bert, {"add_special": True}, bert.encode_batch(["a<|endoftext|>b", ""], add_special=True).to_list()),
        (mistral, {"add_special": True}, mistral.encode_batch(["a<|endoftext|>b", ""], add_special=True).to_list()),
    ]
    for number, (vocab, options, expected) in enumerate(cases):
        compile_corpus([path], vocab, tmp_path / str(number), Options(**options))
        assert ids_of(tmp_path / str(number)) == expected


def test_eos_does_not_come_twice(tmp_path):
    t5 = jittok.bundled("t5")
    assert t5.add_eos
    path = write_jsonl(tmp_path / "a.jsonl", ["a b", ""])
    compile_corpus([path], t5, tmp_path / "out", Options(add_special=True, append_eos=True))
    assert ids_of(tmp_path / "out") == t5.encode_batch(["a b", ""], add_special=True).to_list()


def test_a_vocabulary_that_lacks_what_is_asked_for_is_refused_before_any_work(jsonl, tmp_path):
    bert = jittok.bundled("bert")
    if bert.eos_id is not None:
        pytest.skip("it has one")
    with pytest.raises((CorpusError, UnsupportedVocab)):
        compile_corpus([jsonl[0]], bert, tmp_path / "out", Options(append_eos=True))
    assert not (tmp_path / "out").exists()


def test_empty_inputs(tmp_path, tok):
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "b.txt").touch()
    found = compile_corpus(
        [tmp_path / "a.jsonl"], tok, tmp_path / "none", Options(formats=("arrow", "npy", "megatron"))
    )
    assert (found.documents, found.shards) == (0, 1)
    for name in ("arrow", "npy", "megatron"):
        assert ids_of(tmp_path / "none", format=name) == []
    compile_corpus([tmp_path / "a.jsonl", tmp_path / "b.txt"], tok, tmp_path / "one")
    assert ids_of(tmp_path / "one") == [[]]


def test_a_document_of_many_ranges(tmp_path, tok):
    texts = ["short", "word " * 400_000, "short again"]
    path = write_jsonl(tmp_path / "a.jsonl", texts)
    compile_corpus([path], tok, tmp_path / "out", Options(range_bytes=50_000, formats=("npy", "arrow")), threads=2)
    assert ids_of(tmp_path / "out") == tok.encode_batch(texts).to_list()


def test_inputs_that_cannot_be(tmp_path, tok):
    (tmp_path / "a.csv").touch()
    (tmp_path / "a.parquet").write_bytes(b"PAR1 not really")
    (tmp_path / "b.arrow").write_bytes(b"ARROW1 not really")
    (tmp_path / "a.parquet.gz").write_bytes(b"anything")
    for inputs, message in [
        ([tmp_path / "a.csv"], "or kind"),
        ([tmp_path / "none.txt"], "no such file or directory"),
        ([tmp_path / "*.jsonl"], "no match"),
        ([], "INPUT"),
        ([tmp_path / "a.parquet"], "a whole Parquet file"),
        ([tmp_path / "b.arrow"], "a whole Arrow IPC file"),
        ([tmp_path / "a.parquet.gz"], "unpack it first"),
    ]:
        with pytest.raises(CorpusError, match=message):
            compile_corpus(inputs, tok, tmp_path / "out")
    (tmp_path / "a.txt").touch()
    with pytest.raises(CorpusError, match="the same input twice"):
        compile_corpus([tmp_path / "a.txt", tmp_path / "*.txt"], tok, tmp_path / "out")


def test_urls(jsonl, tmp_path, tok):
    fsspec = pytest.importorskip("fsspec")
    path, texts = jsonl
    memory = fsspec.filesystem("memory")
    memory.pipe("/corpus/a.jsonl", path.read_bytes())
    memory.pipe("/corpus/b.jsonl.gz", gzip.compress(path.read_bytes()))
    compile_corpus(["memory://corpus/a.jsonl", "memory://corpus/*.gz"], tok, tmp_path / "out", Options(**SMALL))
    assert ids_of(tmp_path / "out") == 2 * tok.encode_batch(texts).to_list()


def test_too_little_disk_is_told_before_any_work(jsonl, tmp_path, tok, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr("jittok.corpus.prediction.shutil.disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(CorpusError, match="check_space=False"):
        compile_corpus([jsonl[0]], tok, tmp_path / "out")
    compile_corpus([jsonl[0]], tok, tmp_path / "out", check_space=False)
