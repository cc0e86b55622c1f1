"""Shards in a bucket: the same sequences, each byte fetched once, a bound on disk, and clear errors."""

from __future__ import annotations

import os
import pickle
import threading
import time
from pathlib import Path

import pytest

import jittok.corpus
from jittok.corpus import batches, sequences
from jittok.corpus.formats import FORMATS
from jittok.corpus.reading import far, opening
from jittok.corpus.store import open_store
from jittok.corpus.store.local import LocalStore
from jittok.errors import CorpusError

PAD = 50256
PIECE = 256


class Far(LocalStore):
    """A store that counts what is read of it, and by which threads."""

    def __init__(self, folder):
        super().__init__(folder)
        self.store, self.place = LocalStore(folder), f"s3://bucket{folder}"
        self.reads, self.cut = [], {}

    def read(self, name, start=0, stop=None):
        content = self.store.read(name, start, stop)
        content = content[: self.cut.get(name, len(content))]
        self.reads.append((name, start, len(content), threading.current_thread() is threading.main_thread()))
        return content


@pytest.fixture
def bucket(corpora, monkeypatch):
    store = Far(corpora["short"][0])
    monkeypatch.setattr(opening, "is_far", lambda name: str(name).startswith("s3://"))
    monkeypatch.setattr(opening, "open_store", lambda _name: store)
    monkeypatch.setattr(far, "PIECE", PIECE)
    monkeypatch.setattr(opening, "PIECE", PIECE)
    return store


def lists(found):
    return [tuple(array.tolist() for array in row) for row in found]


@pytest.mark.parametrize("format", [*FORMATS])
@pytest.mark.parametrize("how", [{}, {"shuffle": "sequences"}, {"pack": "best", "pad_id": PAD, "shuffle": "documents"}])
def test_far_sequences_are_those_of_a_local_copy_and_each_byte_is_fetched_once(corpora, bucket, tmp_path, format, how):
    if format == "parquet" and "shuffle" in how:
        how = {**how, "shuffle": None}
    found = sequences("s3://x", 16, cache=tmp_path / "cache", format=format, **how)
    assert lists(found) == lists(sequences(corpora["short"][0], 16, format=format, **how))
    pieces = [read[:2] for read in bucket.reads]
    assert len(pieces) == len(set(pieces))
    before = len(bucket.reads)
    assert lists(sequences("s3://x", 16, cache=tmp_path / "cache", format=format, **how)) == lists(found)
    assert {name for name, *_ in bucket.reads[before:]} == {"manifest.json"}  # what another reader has fetched is used


@pytest.mark.usefixtures("bucket")
def test_the_cache_has_a_bound(corpora, tmp_path, monkeypatch):
    monkeypatch.setattr(far, "OPEN_PIECES", 2)
    found = sequences("s3://x", 16, cache=tmp_path / "cache", cache_bytes=4 * PIECE)
    want = lists(sequences(corpora["short"][0], 16))
    for k, row in enumerate(want):
        assert lists([found[k]]) == [row]
        assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= 4 * PIECE
    assert not list((tmp_path / "cache").glob("*.new"))


@pytest.mark.usefixtures("bucket")
def test_what_another_process_removes_or_cuts_is_fetched_again(corpora, tmp_path, monkeypatch):
    monkeypatch.setattr(far, "OPEN_PIECES", 1)
    found = sequences("s3://x", 16, cache=tmp_path / "cache")
    want = lists(sequences(corpora["short"][0], 16))
    for turn in range(2):
        assert lists(found) == want
        for path in (tmp_path / "cache").iterdir():
            if turn:
                path.unlink()
            else:
                os.truncate(path, 3)
    other = sequences("s3://x", 16, cache=tmp_path / "cache")
    assert lists(other) == want


def test_a_loader_fetches_ahead_in_other_threads(corpora, bucket, tmp_path):
    found = sequences("s3://x", 16, cache=tmp_path / "cache", shuffle="sequences", seed=1)
    want = lists(sequences(corpora["short"][0], 16, shuffle="sequences", seed=1))
    loader = found.loader(2)
    batches = iter(loader)
    had = [*zip(*(array.tolist() for array in next(batches)), strict=True)]
    for _ in range(200):
        time.sleep(0.01)
        if not found._source.tokens.parts[0].ids.file.far.cache._ahead._known:
            break
    bucket.reads.clear()
    for _ in range(far.FETCHERS):
        had += [*zip(*(array.tolist() for array in next(batches)), strict=True)]
    assert not [name for name, _, _, main in bucket.reads if main and name.endswith("ids.npy")]
    assert had == want[: len(had)]


@pytest.mark.parametrize("format", ["arrow", "olmo", "parquet"])
def test_tables_are_fetched_ahead_too_once_they_were_begun(corpora, bucket, tmp_path, format):
    """Though no one knows yet where in a far file of Parquet an id is."""
    folder, documents = corpora["long"]
    bucket.store = LocalStore(folder)
    found = sequences("s3://x", 16, cache=tmp_path / "cache", format=format)
    part, wanted = found._source.tokens.parts[0], []
    memory = bytearray(part.dtype.itemsize)
    part.read(0, memoryview(memory))
    part.file.far.ahead = lambda at, count: wanted.append((at, count))
    count = sum(map(len, documents))
    part.ahead(count // 2, count // 4)
    ((at, size),) = wanted
    assert 0.3 * part.file.size < at < 0.7 * part.file.size
    assert 0.1 * part.file.size < size < 0.4 * part.file.size


@pytest.mark.usefixtures("bucket")
def test_a_pickle_reads_the_same(corpora, tmp_path, monkeypatch):
    monkeypatch.setattr(Far, "__reduce__", lambda self: (Far, (self.store.local,)))
    found = pickle.loads(pickle.dumps(sequences("s3://x", 16, cache=tmp_path / "cache")))
    assert lists(found) == lists(sequences(corpora["short"][0], 16))


def test_an_object_of_another_size_or_none_is_refused(bucket, tmp_path):
    found = sequences("s3://x", 16, cache=tmp_path / "cache")
    bucket.cut["npy/00000.ids.npy"] = 10
    with pytest.raises(CorpusError, match=r"npy/00000\.ids\.npy: found \d+ bytes, expected \d+, as the manifest says"):
        found[0]
    bucket.store = LocalStore(tmp_path)
    with pytest.raises(CorpusError, match=r"found no such object, expected a shard that the manifest lists"):
        found[0]
    with pytest.raises(CorpusError, match=r"found no such file, expected the manifest of a finished corpus"):
        sequences("s3://x", 16, cache=tmp_path / "cache")


@pytest.mark.usefixtures("bucket")
def test_digests_of_far_shards_are_compared_on_request(tmp_path, monkeypatch):
    assert len(lists(sequences("s3://x", 16, cache=tmp_path / "cache", check="sha256"))) > 10
    real = Far.read

    def changed(self, name, start=0, stop=None):
        content = real(self, name, start, stop)
        return content[:-1] + bytes([content[-1] ^ 1]) if name.endswith("ids.npy") else content

    monkeypatch.setattr(Far, "read", changed)
    with pytest.raises(CorpusError, match="found SHA-256"):
        sequences("s3://x", 16, cache=tmp_path / "other", check="sha256")[0]


@pytest.mark.usefixtures("bucket")
def test_a_shuffle_that_would_fetch_again_and_again_is_refused(corpora, tmp_path):
    how = {"shuffle": "sequences", "cache": tmp_path / "cache", "cache_bytes": 4 * PIECE}
    with pytest.raises(CorpusError, match=r"shuffled as a whole, and cache_bytes=1024, expected within=N"):
        sequences("s3://x", 16, **how)
    near = sequences("s3://x", 16, within=32, **how)
    assert sorted(lists(near)) == sorted(lists(sequences(corpora["short"][0], 16)))


@pytest.mark.usefixtures("bucket")
def test_row_groups_of_parquet_are_read_in_order_only(tmp_path):
    with pytest.raises(CorpusError, match="found format parquet, shuffle='sequences', expected another format"):
        sequences("s3://x", 16, cache=tmp_path / "cache", format="parquet", shuffle="sequences")


@pytest.mark.parametrize("format", ["arrow", "olmo", "parquet"])
def test_only_what_is_used_of_a_far_shard_is_opened(corpora, bucket, tmp_path, format):
    found = sequences("s3://x", 16, cache=tmp_path / "cache", format=format)
    assert {name for name, *_ in bucket.reads} == {"manifest.json"}
    before = lists([found[0]])
    assert {name.partition(".")[0].removeprefix("olmo/part-") for name, *_ in bucket.reads[1:]} <= {
        f"{format}/00000", "00000"
    }  # fmt: skip
    assert before == lists([sequences(corpora["short"][0], 16, format=format)[0]])


@pytest.mark.parametrize("format", ["arrow", "olmo", "parquet"])
def test_what_is_not_as_written_in_a_far_shard_is_named(bucket, tmp_path, monkeypatch, format):
    name = {"arrow": "arrow/00000.arrow", "olmo": "olmo/part-00000.csv.gz", "parquet": "parquet/00000.parquet"}[format]
    found = sequences("s3://x", 16, cache=tmp_path / "cache", format=format)
    bucket.cut[name] = 30
    with pytest.raises(CorpusError, match=rf"{name}: found \d+ bytes, expected \d+, as the manifest says"):
        found[0]
    bucket.cut.clear()
    real = Far.read

    def changed(self, name, start=0, stop=None):
        content = real(self, name, start, stop)
        return content if name == "manifest.json" else bytes(len(content))

    monkeypatch.setattr(Far, "read", changed)
    with pytest.raises(CorpusError, match=name):
        sequences("s3://x", 16, cache=tmp_path / "other", format=format)[0]


def test_impossible_arguments_say_what_was_found(corpora):
    folder = corpora["short"][0]
    with pytest.raises(ValueError, match="cache_bytes: found 5"):
        sequences(folder, 16, cache_bytes=5)
    with pytest.raises(ValueError, match="within: found 3"):
        sequences(folder, 16, within=3, shuffle="sequences")
    with pytest.raises(ValueError, match="within: found 99 with shuffle=None"):
        sequences(folder, 16, within=99)


@pytest.mark.usefixtures("bucket")
def test_only_pieces_are_counted_and_removed(corpora, tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir(0o700)
    (folder / "own.bin").write_bytes(bytes(8 * PIECE))
    (folder / "more").mkdir()
    piece = f"{'a' * 40}-000000-{PIECE}"
    (folder / f"{piece}.txt").write_bytes(b"1")
    (folder / f"{'b' * 40}-000000-7").mkdir()
    for name in (piece, f"{'1' * 16}.new", f"{'2' * 16}.new", "mine.new"):
        (folder / name).write_bytes(b"1")
        if not name.startswith("2"):
            os.utime(folder / name, (1, 1))
    before = {path.name for path in folder.iterdir()}
    found = sequences("s3://x", 16, cache=folder, cache_bytes=4 * PIECE)
    assert lists(found) == lists(sequences(corpora["short"][0], 16))
    left = {path.name for path in folder.iterdir()}
    assert before - left == {piece, f"{'1' * 16}.new"}
    taken = sum((folder / name).stat().st_size for name in left - before)
    assert 2 * PIECE < taken <= 4 * PIECE  # other files take nothing of the bound


@pytest.mark.usefixtures("bucket")
def test_a_file_that_vanishes_while_the_folder_is_listed_is_left_out(tmp_path, monkeypatch):
    found = sequences("s3://x", 16, cache=tmp_path / "cache")
    assert found[0] is not None
    real = os.scandir

    class Entries(list):
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    def scandir(path):
        with real(path) as entries:
            listed = Entries(entries)
        for entry in listed:
            Path(entry.path).unlink()
        return listed

    monkeypatch.setattr(far.os, "scandir", scandir)
    assert found._source.tokens.parts[0].ids.file.far.cache._remove_oldest("") is None


@pytest.mark.parametrize("damage", ["zeros", "one bit"])
def test_a_piece_that_was_damaged_is_fetched_again(corpora, bucket, tmp_path, damage):
    want = lists(sequences(corpora["short"][0], 16))
    assert lists(sequences("s3://x", 16, cache=tmp_path / "cache")) == want
    bucket.reads.clear()
    pieces = list((tmp_path / "cache").iterdir())
    for path in pieces:
        content = bytearray(path.read_bytes())
        assert len(content) == int(path.name.rpartition("-")[2]) + far.DIGEST
        content[3] ^= 1
        path.write_bytes(bytes(len(content)) if damage == "zeros" else content)
    assert lists(sequences("s3://x", 16, cache=tmp_path / "cache")) == want
    assert len([name for name, *_ in bucket.reads if name != "manifest.json"]) == len(pieces)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no users")
@pytest.mark.usefixtures("bucket")
def test_a_folder_or_piece_that_others_may_write_to_is_not_believed(corpora, tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    found = sequences("s3://x", 16, cache=folder)
    with pytest.raises(CorpusError, match=r"cache: found a cache folder that may be written by others \(mode 777\)"):
        found[0]
    want = lists(sequences(corpora["short"][0], 16))
    umask = os.umask(0)
    try:
        assert lists(sequences("s3://x", 16, cache=folder / "own")) == want
    finally:
        os.umask(umask)
    for path in (folder / "own").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o666)
    assert lists(sequences("s3://x", 16, cache=folder / "own")) == want
    assert not [path for path in (folder / "own").iterdir() if path.stat().st_mode & 0o022]


def test_an_open_corpus_of_a_bucket_is_read_there_and_a_part_of_one_is_refused(corpora, tmp_path):
    pytest.importorskip("obstore")
    local = jittok.corpus.open(corpora["short"][0], format="npy")
    want = lists(sequences(local, 16))
    assert lists(sequences(local[:], 16)) == want
    for some in (local[:10], local[::-1]):
        with pytest.raises(
            CorpusError, match=r"found some of the documents of an open corpus, expected a whole corpus"
        ):
            sequences(some, 16)
    store = open_store(f"memory://{tmp_path.name}/shards")
    for path in corpora["short"][0].rglob("*"):
        if path.is_file():
            store.put(str(path.relative_to(corpora["short"][0]).as_posix()), path.read_bytes())
    opened = jittok.corpus.open(store.place, format="megatron")
    for given in (opened, opened[:]):
        assert lists(sequences(given, 16, cache=tmp_path / "cache")) == want
    with pytest.raises(CorpusError, match="found some of the documents"):
        sequences(opened[:9], 16, cache=tmp_path / "cache")
    assert [ids.tolist() for ids, _ in batches(opened, 16)] == [ids.tolist() for ids, _ in batches(local, 16)]
    assert [ids.tolist() for ids, _ in batches(opened[:9], 8)] == [ids.tolist() for ids, _ in batches(local[:9], 8)]
