"""The law of stores under faults: whatever a server or a network does at every k-th request, what was written is what
is read, no object is there in part, and nothing hangs."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import far
import pytest

from jittok.corpus.store import bucket, client, open_store, uploads
from jittok.corpus.store.base import Store, Unreachable

pytest.importorskip("obstore")
SMALL_PIECE = 5 << 20
"""S3 takes no smaller one but the last."""


@pytest.fixture
def impatient(s3: far.Proxy, monkeypatch: pytest.MonkeyPatch) -> far.Proxy:
    """The proxy, with requests that may take a second and tries that follow soon."""
    monkeypatch.setenv("JITTOK_CLOUD_TIMEOUT", "1")
    monkeypatch.setattr(client, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(client, "LONGEST_WAIT", 0.05)
    monkeypatch.setattr(bucket, "PIECE", SMALL_PIECE)
    client._clients.clear()
    return s3


def place(tmp_path: Path) -> Store:
    return open_store(f"s3://{far.BUCKET}/{tmp_path.name}-{time.time_ns()}")


@pytest.mark.parametrize(
    ("mode", "every"),  # a stalled request takes a second
    [(mode, every) for mode in (*far.MODES, "all") for every in (2, 3, 5) if mode != "stall" or every == 5],
)
def test_whatever_fails_at_every_kth_request_all_is_right_at_last(
    impatient: far.Proxy, tmp_path: Path, mode: str, every: int
) -> None:
    store = place(tmp_path)
    impatient.spoil(mode, every)
    far.everything(store, os.urandom(SMALL_PIECE + 1_000_000))
    assert impatient.counts["faults"] > 0
    impatient.spoil("", 0)


def test_a_lost_answer_to_the_completion_of_an_upload_is_decided_by_what_is_there(
    impatient: far.Proxy, tmp_path: Path
) -> None:
    store, data = place(tmp_path), os.urandom(SMALL_PIECE + 10)
    for every in (1, 2, 3, 4):  # the request that begins it, those of its pieces, the one that completes it
        folder = store.scratch("w")
        (folder / "part").write_bytes(data)
        impatient.spoil("lost", every)
        if every == 1:
            with pytest.raises(Unreachable):  # no answer ever: nobody can know
                store.publish(folder / "part", "x", "mark")
        else:
            store.publish(folder / "part", "x", "mark")
            impatient.spoil("", 0)
            assert store.read("x") == data
    impatient.spoil("", 0)
    assert store.discard_unfinished() >= 0
    assert store.discard_unfinished() == 0  # none is left
    assert store.read("x") == data


@pytest.mark.parametrize("mode", far.MODES)
def test_uploads_of_the_dead_are_ended_whatever_fails_meanwhile(
    impatient: far.Proxy, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JITTOK_CLOUD_TIMEOUT", "0.3")
    store = place(tmp_path)
    keys, key = uploads._keys(), store.place.removeprefix(f"s3://{far.BUCKET}/")
    assert keys is not None
    for k in range(3):
        assert uploads._ask("POST", far.BUCKET, f"{key}/npy/{k}", {"uploads": ""}, keys)[0] == 200
    impatient.spoil(mode, 2)
    assert len(uploads._listed(far.BUCKET, key, keys)) == 3
    ended = store.discard_unfinished()
    assert impatient.counts["faults"] > 0
    impatient.spoil("", 0)
    assert ended >= 2  # of one, the answer may be lost
    assert uploads._listed(far.BUCKET, key, keys) == []


def test_uploads_that_may_not_be_listed_are_a_warning_at_once(
    impatient: far.Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = place(tmp_path)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "notthesecret")
    assert store.discard_unfinished() == 0
    assert "are not removed: status 403" in caplog.text
    assert impatient.counts["requests"] == 1


@pytest.mark.parametrize(
    ("kind", "environ", "plain"),
    [
        ("s3", {"AWS_ENDPOINT": "http://h"}, True), ("s3", {"AWS_ENDPOINT": "https://h"}, False),
        ("az", {"AZURE_STORAGE_ENDPOINT": "http://h/a"}, True), ("az", {"AZURE_STORAGE_USE_EMULATOR": "true"}, True),
        ("az", {}, False), ("gs", {"GOOGLE_BASE_URL": "http://h"}, True), ("gs", {"GOOGLE_ALLOW_HTTP": "TRUE"}, True),
        ("gs", {"GOOGLE_ALLOW_HTTP": "false"}, False), ("s3", {"AZURE_ALLOW_HTTP": "true"}, False),
    ],
)  # fmt: skip
def test_servers_without_tls_are_those_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, kind: str, environ: dict[str, str], plain: bool
) -> None:
    for names in (*client.ENDPOINTS.values(), *client.WITHOUT_TLS.values()):
        for name in names:
            monkeypatch.delenv(name, raising=False)
    for name, text in environ.items():
        monkeypatch.setenv(name, text)
    assert client._is_plain(kind) == plain


def test_a_server_that_is_gone_is_said_in_a_bounded_time(
    impatient: far.Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "OWN_TRIES", 3)
    store = place(tmp_path)
    impatient.spoil("reset", 1)
    start = time.monotonic()
    with pytest.raises(Unreachable, match="3 times"):
        store.read("x")
    assert time.monotonic() - start < 30


def test_wrong_credentials_are_said_at_once_and_no_secret_is(
    impatient: far.Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "notthesecret")
    client._clients.clear()
    with pytest.raises(PermissionError) as error:
        place(tmp_path).put("x", b"")
    text = str(error.value)
    assert "403" in text
    assert "notthesecret" not in text
    assert "AWS4" not in text
    assert impatient.counts["PUT"] == 1


@pytest.mark.parametrize(
    "text",
    [
        "cannot open https://user:pass@host/a?X-Amz-Signature=abc&sig=def in 2s",
        "bad https://host/a?sv=1&sig=SECRET%2B, after 3 retries",
    ],
)
def test_messages_hold_no_queries_and_no_passwords(text: str) -> None:
    said = client.said(ValueError(text))
    assert not any(secret in said for secret in ("pass", "abc", "def", "SECRET"))
    assert "https://" in said


def test_messages_say_what_happened_first() -> None:
    tail = "in 2.9ms, after 2 retries, max_retries: 2, retry_timeout: 20s  - HTTP error: error sending request"
    more = f"http://127.0.0.1:1/b/x/hello {tail}\n\nDebug source: secrets"
    error = ValueError(f"Generic S3 error: Error performing PUT {more}")
    assert client.said(error) == "PUT: HTTP error: error sending request"


UPLOADER = """
import sys
from pathlib import Path
from jittok.corpus.store import bucket, open_store
bucket.PIECE = 5 << 20
store = open_store(sys.argv[1])
print("ready", flush=True)
for k in range(100):
    part = store.scratch(f"w{k}") / "part"
    part.write_bytes(bytes([k]) * (12 << 20))
    store.publish(part, f"npy/{k:05d}.bin", f"run {k}")
"""


@pytest.mark.process
@pytest.mark.parametrize("seed", [1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 30))])
def test_a_process_that_is_killed_leaves_whole_objects_and_uploads_that_can_be_ended(
    s3: far.Proxy, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    store = place(tmp_path)
    process = subprocess.Popen([sys.executable, "-c", UPLOADER, store.place], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(rng.uniform(0.05, 1.0))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    for found in store.objects():
        number = int(Path(found.name).stem)
        assert store.read(found.name) == bytes([number]) * (12 << 20)
    ended = store.discard_unfinished()
    assert 0 <= ended <= 1
    assert store.discard_unfinished() == 0
    assert s3.counts["requests"] > 0


CHILD = """
import json, os, sys
from jittok.corpus.store import open_store
store = open_store(sys.argv[1])
store.put("parent", b"1")
answers = []
for k in range(2):
    reader, writer = os.pipe()
    if os.fork() == 0:
        store.put(f"child{k}", b"2")
        if os.fork() == 0:
            store.put(f"grandchild{k}", b"3")
            os._exit(0)
        os.wait()
        os.write(writer, json.dumps(sorted(each.name for each in store.objects())).encode())
        os._exit(0)
    os.wait()
    answers.append(json.loads(os.read(reader, 10000)))
store.put("after", b"4")
print(json.dumps(answers[-1]))
"""


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_the_child_of_a_fork_has_clients_of_its_own(s3: far.Proxy, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, place(tmp_path).place], capture_output=True, timeout=60, check=True, text=True
    )
    assert json.loads(done.stdout) == ["child0", "child1", "grandchild0", "grandchild1", "parent"]
    assert s3.counts["requests"] > 0
