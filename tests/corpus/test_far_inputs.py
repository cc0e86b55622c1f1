"""Inputs on servers: the same bytes as from this disk, each byte fetched once, and nothing passed over in silence."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import far
import numpy as np
import pytest
from conftest import make_texts, write_jsonl

from jittok.corpus import Options, compile_corpus
from jittok.corpus.inputs.finding import find_sources
from jittok.corpus.inputs.remote import Fetched, open_far
from jittok.corpus.inputs.servers import matcher
from jittok.corpus.store import blocks, open_store
from jittok.errors import CorpusError

pa = pytest.importorskip("pyarrow")
pytest.importorskip("obstore")
pytest.importorskip("filelock")
KINDS = ("jsonl", "jsonl.gz", "jsonl.zst", "txt", "one.parquet", "many.parquet", "arrow")
OPTIONS = Options(formats=("npy",), range_bytes=200_000)


def write(path: Path, kind: str, texts: list[str]) -> Path:
    """A file of these texts."""
    import pyarrow.parquet as pq

    lines = "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)).encode()
    table = pa.table({"id": range(len(texts)), "text": texts})
    if kind == "jsonl":
        path.write_bytes(lines)
    elif kind == "jsonl.gz":
        path.write_bytes(gzip.compress(lines, 1, mtime=0))
    elif kind == "jsonl.zst":
        path.write_bytes(pytest.importorskip("zstandard").compress(lines))
    elif kind == "txt":
        path.write_text("\n".join(texts))
    elif kind == "arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=100)
    else:
        pq.write_table(table, path, row_group_size=len(texts) if kind == "one.parquet" else len(texts) // 20)
    return path


def texts_of(count: int, seed: int) -> list[str]:
    """Texts that do not pack well."""
    rng = np.random.default_rng(seed)
    return [bytes(rng.integers(33, 126, 700)).decode() for _ in range(count)]


def shards(folder: Path) -> dict[str, bytes]:
    """All files but the manifest, which names the inputs."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {path.name: path.read_bytes() for path in files if path.name != "manifest.json"}


@pytest.fixture
def web(tmp_path: Path) -> Any:
    (tmp_path / "web").mkdir()
    server = far.Files(tmp_path / "web")
    yield server
    server.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_url_gives_the_same_bytes_and_is_fetched_once(web: far.Files, tmp_path: Path, tok: Any, kind: str) -> None:
    path = write(web.folder / f"a b.{kind}", kind, texts_of(3000, 1))
    compile_corpus([path], tok, tmp_path / "near", OPTIONS)
    compile_corpus([f"{web.url}/a%20b.{kind}"], tok, tmp_path / "far", OPTIONS)
    assert shards(tmp_path / "far") == shards(tmp_path / "near")
    assert sum(web.sent.values()) <= 1.05 * path.stat().st_size


@pytest.mark.parametrize("kind", ["jsonl", "one.parquet", "jsonl.gz"])
def test_a_server_without_ranges_is_asked_for_the_whole_file(tmp_path: Path, tok: Any, kind: str) -> None:
    (tmp_path / "web").mkdir()
    path = write(tmp_path / "web" / f"a.{kind}", kind, texts_of(1500, 2))
    server = far.Files(tmp_path / "web", ranges=False)
    compile_corpus([path], tok, tmp_path / "near", OPTIONS)
    compile_corpus([f"{server.url}/a.{kind}"], tok, tmp_path / "far", OPTIONS)
    server.close()
    assert shards(tmp_path / "far") == shards(tmp_path / "near")


def test_the_memory_that_is_kept_is_bounded_and_what_is_read_is_right(
    web: far.Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = os.urandom(5_000_000)
    (web.folder / "a").write_bytes(data)
    monkeypatch.setattr(blocks, "MOST_BLOCKS", 3)
    rng = np.random.default_rng(0)
    with open_far(f"{web.url}/a") as file:
        for _ in range(200):
            start, size = int(rng.integers(0, 5_100_000)), int(rng.choice([0, 1, 5000, 300_000, 1_500_000]))
            file.seek(start)
            assert file.read(size) == data[start : start + size]
            assert len(blocks._now().blocks) <= 3 + -(-max(size, 128 << 10) // blocks.BLOCK) + 1
        file.seek(0)
        while piece := file.read(100_000):
            assert piece == data[file.tell() - len(piece) : file.tell()]
        assert file.tell() == len(data)


def test_large_parts_of_a_table_lie_on_this_disk(web: far.Files, monkeypatch: pytest.MonkeyPatch) -> None:
    from jittok.corpus.inputs import remote

    data = os.urandom(3_000_000)
    (web.folder / "a").write_bytes(data)
    monkeypatch.setattr(remote, "IN_MEMORY", 1_000_000)
    with open_far(f"{web.url}/a") as file:
        fetched = Fetched(file, len(data), [(0, 500_000), (600_000, 2_900_000)])
        fetched.seek(700_000)
        assert fetched.read(10) == data[700_000:700_010]
        fetched.seek(10)
        assert fetched.read(5) == data[10:15]
        fetched.seek(2_899_995)
        assert fetched.read(20) == data[2_899_995:2_900_015]


def test_a_file_that_changes_while_it_is_read_is_no_longer_that_file(web: far.Files) -> None:
    path = write(web.folder / "a.jsonl", "jsonl", texts_of(3000, 3))
    file = open_far(f"{web.url}/a.jsonl")
    assert file.read(10) == path.read_bytes()[:10]
    blocks._now().blocks.clear()
    path.write_bytes(b"other")
    file.seek(1_000_000)
    with pytest.raises(CorpusError, match="another state"):
        file.read(10)


@pytest.mark.parametrize(
    "url",
    [
        "https://me:SECRET@host/a.jsonl",
        "https://host/a.jsonl?X-Amz-Date=1&X-Amz-Signature=SECRET",
        "https://host/a.jsonl?sv=1&sig=SECRET",
        "https://host/a.jsonl?token=SECRET",
        "s3://KEY:SECRET@bucket/a.jsonl",
        "https://SECRET@host/a.jsonl",
        "HTTPS://SECRET@host/a.jsonl",
        "https://me:SE CRET@host/a.jsonl",
        *(
            f"https://host/a.jsonl?x=1&{name}=SECRET"
            for name in ("auth", "jwt", "X-Amz-Credential", "passwd", "api_key")
        ),
        *(f"https://host/a.jsonl#{name}=SECRET,SECRET" for name in ("token", "secret", "signature")),
    ],
)
def test_a_url_with_a_secret_is_refused_and_the_secret_is_not_said(tmp_path: Path, tok: Any, url: str) -> None:
    with pytest.raises(CorpusError, match="signature or a password") as error:
        compile_corpus([url], tok, tmp_path / "out", OPTIONS)
    assert "CRET" not in str(error.value) + str(error.value.on_command_line) + repr(error.value.args)
    assert not (tmp_path / "out").exists()
    with pytest.raises(CorpusError, match="signature or a password") as error:
        find_sources([url], OPTIONS, any_name=True)
    with pytest.raises(CorpusError, match="signature or a password") as error:
        compile_corpus([tmp_path], tok, url, OPTIONS)
    assert "CRET" not in str(error.value)


def test_messages_leave_out_queries_and_passwords(web: far.Files, capsys: Any) -> None:
    from jittok.cli import main

    write(web.folder / "a.jsonl", "jsonl", ["x"])
    host = web.url.removeprefix("http://")
    for url in (
        f"{web.url}/a.jsonl?X-Amz-Signature=SECRET",
        f"http://SECRET@{host}/a.jsonl",
        f"{web.url}/b?page=SECRET",
    ):
        assert main(["count", url, "--vocab", "gpt-2"]) == 2
        said = capsys.readouterr()
        assert host in said.err
        assert "SECRET" not in said.out + said.err


@pytest.mark.parametrize("by", ["obstore", "fsspec"])
def test_a_file_of_a_server_without_ranges_is_never_in_memory_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    import tracemalloc

    from jittok.corpus.inputs import remote, servers

    if by == "fsspec":
        pytest.importorskip("fsspec")
        pytest.importorskip("aiohttp")
        monkeypatch.setattr(remote, "server_of", lambda _: servers.Others())
    monkeypatch.setattr(servers, "PIECE", 1 << 20)
    data = os.urandom(12 << 20)
    (tmp_path / "a").write_bytes(data)
    server = far.Files(tmp_path, ranges=False)
    far_source = remote.FarSource(f"{server.url}/a", *remote.facts_of(f"{server.url}/a"))
    with (tmp_path / "b").open("w+b") as target:
        target.write(b"of a first try")
        monkeypatch.setattr(Path, "read_bytes", lambda _: data)  # of the server, in this process
        tracemalloc.start()
        far_source.save(target)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        monkeypatch.undo()
        target.seek(0)
        assert target.read() == data
    if by == "fsspec":
        monkeypatch.setattr(remote, "server_of", lambda _: servers.Others())
    assert most < 8 << 20
    os.utime(tmp_path / "a", ns=(1, 1))
    with (tmp_path / "b").open("w+b") as target, pytest.raises(CorpusError, match="another state of it"):
        far_source.save(target)
    server.close()


def test_a_pattern_with_a_range_that_ends_before_it_begins_is_named() -> None:
    with pytest.raises(CorpusError, match=r"s3://b/\[z-a\]\.jsonl: found a pattern with a bad character range"):
        find_sources(["s3://b/[z-a].jsonl"], OPTIONS)


def test_small_files_are_fetched_several_at_a_time_and_each_once(
    web: far.Files, tmp_path: Path, tok: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although others may have read as many blocks meanwhile as are kept."""
    monkeypatch.setattr(blocks, "MOST_BLOCKS", 1)
    names = [f"{k:02d}.jsonl" for k in range(20)]
    for k, name in enumerate(names):
        write(web.folder / name, "jsonl", texts_of(5, k))
    compile_corpus([web.folder], tok, tmp_path / "near", OPTIONS)
    urls = [f"{web.url}/{name}" for name in names]
    compile_corpus(urls, tok, tmp_path / "far", OPTIONS, check_space=False)
    assert shards(tmp_path / "far") == shards(tmp_path / "near")
    assert [web.asked[f"GET {name}"] for name in names] == [1] * 20


def test_what_is_not_there_is_named(web: far.Files, tmp_path: Path, tok: Any) -> None:
    with pytest.raises(CorpusError, match=r"none\.jsonl.*no such file"):
        compile_corpus([f"{web.url}/none.jsonl"], tok, tmp_path / "out", OPTIONS)


def test_a_server_that_is_not_there_is_said_and_is_no_damage_of_a_file(
    tmp_path: Path, tok: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jittok.corpus.store import client

    monkeypatch.setattr(client, "OWN_TRIES", 2)
    url = f"http://127.0.0.1:{far.free_port()}/a.jsonl"
    with pytest.raises(CorpusError, match="a server that answers"):
        compile_corpus([url], tok, tmp_path / "out", Options(formats=("npy",), on_error="skip"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_bucket_gives_the_same_bytes_and_is_fetched_once(s3: far.Proxy, tmp_path: Path, tok: Any, kind: str) -> None:
    path = write(tmp_path / f"a.{kind}", kind, texts_of(1500, 4))
    store = open_store(f"s3://{far.BUCKET}/in/{tmp_path.name}-{kind}")
    store.put(f"a.{kind}", path.read_bytes())
    compile_corpus([path], tok, tmp_path / "near", OPTIONS)
    s3.counts.clear()
    compile_corpus([f"{store.place}/a.{kind}"], tok, tmp_path / "far", OPTIONS)
    assert shards(tmp_path / "far") == shards(tmp_path / "near")
    assert s3.counts["sent"] <= 1.05 * path.stat().st_size


def test_folders_and_patterns_of_a_bucket_are_inputs(s3: far.Proxy, tmp_path: Path, tok: Any) -> None:
    store = open_store(f"s3://{far.BUCKET}/{tmp_path.name}/in")
    local = tmp_path / "in"
    for k, name in enumerate(("b/1.jsonl", "b/2.jsonl", "a.jsonl", "c.txt", "b/deep/er/3.jsonl")):
        (local / name).parent.mkdir(parents=True, exist_ok=True)
        write(local / name, name.rpartition(".")[2], make_texts(20, k))
        store.put(name, (local / name).read_bytes())
    store.put("notes.md", b"of no known kind")
    store.put(".hidden/x.jsonl", b"{")
    store.put("b/.part.jsonl", b"{")
    options = Options(formats=("npy",))

    def names(pattern: str) -> list[str]:
        sources, left = find_sources([f"{store.place}{pattern}"], options)
        left_out.append(left)
        return [source.path.removeprefix(f"{store.place}/") for source in sources]

    left_out: list[list[str]] = []
    all_of_them = ["a.jsonl", "b/1.jsonl", "b/2.jsonl", "b/deep/er/3.jsonl", "c.txt"]
    assert names("") == names("/") == all_of_them
    assert {name.removeprefix(f"{store.place}/") for name in left_out[0]} == {
        "notes.md", ".hidden/x.jsonl", "b/.part.jsonl"
    }  # fmt: skip
    assert names("/b") == ["b/1.jsonl", "b/2.jsonl", "b/deep/er/3.jsonl"]
    assert names("/b/*.jsonl") == ["b/1.jsonl", "b/2.jsonl"]
    assert names("/**/*.jsonl") == [name for name in all_of_them if name.endswith("jsonl")]
    assert names("/b/[2-9].jsonl") == ["b/2.jsonl"]
    for nothing in ("/none", "/none/", "/*.zst"):
        with pytest.raises(CorpusError, match=r"no such file|no match"):
            names(nothing)
    s3.counts.clear()
    compile_corpus([store.place], tok, tmp_path / "far", options)
    compile_corpus([local], tok, tmp_path / "near", options)
    assert shards(tmp_path / "far") == shards(tmp_path / "near")


def test_memory_is_what_this_process_has_written_or_fsspec_s(tmp_path: Path, tok: Any) -> None:
    import fsspec

    texts = make_texts(50)
    path = write_jsonl(tmp_path / "a.jsonl", texts)
    store = open_store(f"memory://{tmp_path.name}/in")
    store.put("a.jsonl", path.read_bytes())
    with fsspec.open(f"memory://{tmp_path.name}-other/a.jsonl", "wb") as file:
        file.write(path.read_bytes())
    options = Options(formats=("npy",))
    compile_corpus([path], tok, tmp_path / "near", options)
    for number, url in enumerate((store.place, f"{store.place}/a.jsonl", f"memory://{tmp_path.name}-other/a.jsonl")):
        compile_corpus([url], tok, tmp_path / str(number), options)
        assert shards(tmp_path / str(number)) == shards(tmp_path / "near")


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("s3://b/*.gz", ["s3://b/a.gz"], ["s3://b/.gz", "s3://b/a/b.gz", "s3://b/a.gzz", "s3://bb/a.gz"]),
        ("s3://b/**", ["s3://b/a", "s3://b/a/b"], ["s3://c/a", "s3://b/.a/b", "s3://b/a/.b"]),
        ("s3://b/**/x", ["s3://b/x", "s3://b/a/c/x"], ["s3://b/ax", "s3://b/x/y"]),
        ("s3://b/[!a]?", ["s3://b/bx"], ["s3://b/ax", "s3://b//x", "s3://b/b"]),
        ("s3://b/[]a].+", ["s3://b/].+", "s3://b/a.+"], ["s3://b/b.+", "s3://b/a.++"]),
        ("s3://b/[a", ["s3://b/[a"], ["s3://b/a"]),
        ("s3://b/[\\^]", ["s3://b/^", "s3://b/\\"], ["s3://b/a"]),
    ],
)
def test_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    accepted = matcher(pattern)
    assert [url for url in yes + no if accepted.fullmatch(url)] == yes
