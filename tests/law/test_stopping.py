"""Ctrl-C where threads of the corpus compiler are in the middle of a range: it is left soon, and goes on afterwards."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jittok
from jittok.corpus import Options, compile_corpus, verify
from jittok.corpus.inputs.finding import find_sources
from jittok.corpus.ranges.documents import PARSED_AT_ONCE, read_texts
from jittok.corpus.ranges.encoder import RangeEncoder
from jittok.corpus.ranges.units import Key, RawRange
from jittok.kernels.jit.pool import Cancellation, stoppable_pool

SOON = 0.5
"""Seconds of CPU time; what is measured takes several times as long where no one stops it."""


@pytest.fixture(scope="module")
def tok():
    return jittok.bundled("gpt-2")


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    """Three documents that take seconds each, in one call of a kernel, and what makes a corpus of them."""
    folder = tmp_path_factory.mktemp("letters")
    for k in range(3):
        text = np.random.default_rng(k).integers(97, 123, 24 << 20, np.uint8).tobytes()
        (folder / f"{k}.txt").write_bytes(text)
    return folder


def block_of(lines):
    return b"".join(json.dumps({"text": f"line {k}"}).encode() + b"\n" for k in range(lines))


def test_parsing_of_a_range_ends_at_the_next_step(monkeypatch):
    parsed, stop = [], Cancellation()

    def loads(line):
        parsed.append(line)
        if len(parsed) == 10:
            stop.set()
        return json.loads(line)

    monkeypatch.setattr("jittok.corpus.ranges.documents._json", lambda: loads)
    monkeypatch.setattr("jittok.corpus.inputs.json_lines.usable", lambda _: False)  # no kernel: line by line
    raw = RawRange(Key(0, 0, 0), 0, block_of(8 * PARSED_AT_ONCE), 0, 0)
    with pytest.raises(CancelledError):
        read_texts(raw, "jsonl", Options(), stop=stop)
    assert len(parsed) == PARSED_AT_ONCE


def test_what_has_not_begun_is_not_done_once_something_fails():
    begun, gate, stop = threading.Event(), threading.Event(), Cancellation()

    def work():
        begun.set()
        gate.wait(100)

    with pytest.raises(ZeroDivisionError), stoppable_pool(1, stop) as pool:  # noqa: PT012
        first, *others = [pool.submit(work) for _ in range(3)]
        begun.wait(100)
        raise ZeroDivisionError
    assert stop.is_set()
    assert not first.done()  # no one waits for it
    gate.set()
    first.result(100)
    assert [each.cancelled() for each in others] == [True, True]


def test_encoding_of_a_range_ends_at_the_next_step(tok, tmp_path, monkeypatch):
    (tmp_path / "a.jsonl").write_bytes(b"")
    sources, _ = find_sources([tmp_path / "a.jsonl"], Options())
    encoder, stop, calls = RangeEncoder(tok, sources, Options()), Cancellation(), []
    encode = tok.encode_batch
    raw = RawRange(Key(0, 0, 0), 0, block_of(5000), 0, 0)
    whole = encoder(replace(raw))
    monkeypatch.setattr("jittok.corpus.ranges.encoder.STEP", 10_000)
    parts = encoder(replace(raw))
    assert np.array_equal(parts.ids, whole.ids)
    assert np.array_equal(parts.lengths, whole.lengths)

    def counted(docs, **how):
        calls.append(docs.starts.size)
        stop.set()
        return encode(docs, **how)

    monkeypatch.setattr(type(tok), "encode_batch", lambda _, docs, **how: counted(docs, **how))
    with pytest.raises(CancelledError):
        encoder(raw, stop)
    assert len(calls) == 1
    assert calls[0] < 5000


def test_steps_keep_every_document_where_many_are_empty_or_none_is_there(tok, tmp_path, monkeypatch):
    monkeypatch.setattr("jittok.corpus.ranges.encoder.STEP", 8)
    texts = ["", "", "a long text, longer than a step", "", "b", "c" * 8, "", "d", "", ""]
    for some in (texts, texts[:1], texts[:3], []):
        path = tmp_path / "a.jsonl"
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in some))
        sources, _ = find_sources([path], Options())
        encoded = RangeEncoder(tok, sources, Options())(RawRange(Key(0, 0, 0), 0, path.read_bytes(), 0, 0))
        assert encoded.lengths.tolist() == [len(tok.encode(text)) for text in some]
        assert encoded.ids.tolist() == [token for text in some for token in tok.encode(text).tolist()]


@pytest.mark.process  # without the compiler nothing runs that Python could not leave alone
def test_a_corpus_is_left_while_a_kernel_runs_and_goes_on(tok, letters, tmp_path):
    begun, working, ended = threading.Event(), [], []
    encode = RangeEncoder.__call__

    def watched(self, *given):
        working.append(self)
        begun.set()
        try:
            return encode(self, *given)
        finally:
            ended.append(self)

    before = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    tok.encode("a" * 10_000)
    options = Options(range_bytes=1 << 20)
    RangeEncoder.__call__ = watched
    try:
        threading.Thread(target=lambda: (begun.wait(100), signal.setitimer(signal.ITIMER_REAL, 0.1))).start()
        with pytest.raises(KeyboardInterrupt):
            compile_corpus([letters], tok, tmp_path / "out", options, threads=2, check_space=False)
    finally:
        RangeEncoder.__call__ = encode
        signal.signal(signal.SIGALRM, before)
        begun.set()
    assert len(working) > len(ended), "the kernel was still at work when the call was left"
    patience = time.monotonic() + 100
    while len(working) > len(ended) and time.monotonic() < patience:
        time.sleep(0.01)
    assert len(working) == len(ended)
    small = tmp_path / "small.txt"
    small.write_text("one text")
    compile_corpus([small], tok, tmp_path / "other", threads=2)
    assert verify(tmp_path / "other", tok, all=True).ok


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_command_ends_while_a_kernel_runs(letters, tmp_path):
    out = tmp_path / "out"
    child = subprocess.Popen(
        [sys.executable, "-m", "jittok", "corpus", str(letters), "--vocab", "gpt-2", "--out", str(out),
         "--range-bytes", "1M", "--no-space-check"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # whoever runs the tests may ignore it; there is one thread here
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 100
        while not (out / ".jittok" / "plan.json").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
        used = cpu_of(child.pid)
        child.send_signal(signal.SIGINT)
        _, status, facts = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    finally:
        child.kill()
    with child.stdout, child.stderr:
        assert (child.stdout.read(), child.stderr.read()) == (b"", b"jittok corpus: interrupted\n")
    assert child.returncode == 130
    assert facts.ru_utime + facts.ru_stime - used < SOON
    assert not (out / "manifest.json").exists()


def cpu_of(pid):
    facts = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK")


LOST = """
import signal, sys, time, weakref
from jittok import __main__
from jittok.cli.inside import info

class Lock:
    pass

def run(_):
    lock = Lock()
    watched = weakref.ref(lock, lambda _: signal.raise_signal(signal.SIGINT))
    del lock  # what the callback raises is dropped
    time.sleep(5)
    return 0

info.run = run
sys.argv = ["jittok", "info", "gpt-2"]
sys.exit(__main__.run())
"""


@pytest.mark.process
def test_an_interrupt_that_python_drops_comes_again():
    found = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, timeout=100, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "jittok info: interrupted\n")
