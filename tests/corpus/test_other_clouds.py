"""What SeaweedFS is asked elsewhere, asked of other services: moto's S3, Google's and Azure's interfaces. Each runs
where its server is at hand."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import far
import pytest
from conftest import make_texts, write_jsonl
from google_storage import Google

from jittok.corpus import (
    Options,
    compile_corpus,
    corpus_status,
    finish_corpus,
    plan_corpus,
    run_corpus,
    sequences,
    verify,
)
from jittok.corpus.store import bucket, client, open_store
from jittok.errors import CorpusError

pytest.importorskip("obstore")
OPTIONS = Options(formats=("npy", "megatron"), range_bytes=5_000, shard_bytes=15_000)
SCHEMES = {"moto": "s3", "google": "gs", "azurite": "az"}
pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def google() -> Iterator[Google]:
    made = Google()
    yield made
    made.close()


@pytest.fixture(scope="module", params=SCHEMES)
def service(request: Any, tmp_path_factory: Any, google: Google) -> Iterator[tuple[str, dict[str, str]]]:
    """A scheme, and the variables that lead to its server."""
    if request.param == "google":
        yield "gs", google.environment
        return
    name = {"moto": "moto_server", "azurite": "azurite-blob"}[request.param]
    if far.program(name) is None:
        pytest.skip(f"needs {name}")
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "moto":
        with far.moto(folder) as port:
            yield "s3", far.environment(port)
    else:
        with far.azurite(folder) as environ:
            yield "az", environ


@pytest.fixture
def place(service: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty folder there; uploads are of small pieces."""
    scheme, environ = service
    for name, text in environ.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setattr(bucket, "PIECE", 3_000)
    client._clients.clear()
    yield f"{scheme}://{far.BUCKET}/{time.time_ns()}"
    client._clients.clear()


def test_all_that_a_store_can_do(place: str) -> None:
    store = open_store(place)
    far.everything(store, os.urandom(20_000))
    folder = store.scratch("w")
    (folder / "part").write_bytes(b"")
    store.publish(folder / "part", "empty")
    assert store.read("empty") == b""
    with pytest.raises(FileNotFoundError):
        store.read("none")
    store.delete("none")
    data, tag = store.read_tagged("plan.json")
    assert (data, store.replace("plan.json", b"1", tag), store.replace("plan.json", b"2", tag)) == (b"[]", True, False)
    assert store.read("plan.json") == b"1"
    assert store.discard_unfinished() == 0


def test_a_corpus_is_planned_made_in_parts_finished_verified_and_read(
    place: str, google: Google, tmp_path: Path, tok: Any
) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", make_texts(80, 3))
    compile_corpus([source], tok, tmp_path / "near", OPTIONS)
    inputs, out = open_store(f"{place}/in"), f"{place}/out"
    inputs.put("a.jsonl", source.read_bytes())
    planned = plan_corpus([inputs.place], tok, out, OPTIONS, parts=3)
    assert planned.tasks > 3
    assert [run_corpus(out, tok, part=part).failed for part in ("2", "0")] == [{}, {}]
    with pytest.raises(CorpusError, match="tasks not done"):
        finish_corpus(out)
    run_corpus(out, tok, claim=True)
    status = corpus_status(out)
    assert status is not None
    assert (status.missing, status.claimed) == ((), ())
    finish_corpus(out)
    near = open_store(tmp_path / "near")
    names = {each.name for each in near.objects()} - {".jittok.lock"}
    distant = open_store(out)
    assert {each.name for each in distant.objects()} == names
    assert all(distant.read(name) == near.read(name) for name in names - {"manifest.json"})
    assert verify(out, tok, all=True).ok
    here, there = (sequences(each, 64, shuffle="sequences", cache=tmp_path / "c")[:].ids for each in (near.place, out))
    assert (here == there).all()
    assert compile_corpus([inputs.place], tok, out, OPTIONS).resumed == 80
    assert not google.uploads


@pytest.fixture
def at_google(google: Google, monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    for name, text in google.environment.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setattr(bucket, "PIECE", 3_000)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.01)
    client._clients.clear()
    yield google
    client._clients.clear()


@pytest.mark.parametrize("when", ["piece", "complete"])
def test_an_upload_that_another_ends_is_made_again(at_google: Google, when: str) -> None:
    """Who finishes a corpus ends the uploads of the dead, and may hit one of the living."""
    store = open_store(f"gs://{far.BUCKET}/{time.time_ns()}")
    folder, data = store.scratch("w"), os.urandom(30_000)
    (folder / "part").write_bytes(data)
    at_google.ends[when] = 2
    store.publish(folder / "part", "x", "mark")
    assert at_google.ends[when] == 0
    assert store.read("x") == data
    assert not at_google.uploads


@pytest.mark.parametrize("size", [10, 30_000])
def test_a_bucket_that_is_not_there_is_said_at_once(at_google: Google, size: int) -> None:
    store = open_store(f"gs://nobucket/{time.time_ns()}")
    folder = store.scratch("w")
    (folder / "part").write_bytes(bytes(size))
    begun = time.monotonic()
    with pytest.raises((CorpusError, FileNotFoundError), match="nobucket"):
        store.publish(folder / "part", "x", "mark")
    assert time.monotonic() - begun < 5, at_google.url
