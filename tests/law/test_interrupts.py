"""Ctrl-C: every call is left soon, whatever it is at, and all that it worked with stays right.

A timer stands for the key: its signal is handled by the same rules.
"""

import json
import signal
import threading
import time

import numpy as np
import pytest

import jittok
from jittok.encode import buffers
from jittok.kernels.jit import LONG_WORK_BYTES, run_interruptible
from jittok.vocab.bundled import bundled_source

pytestmark = pytest.mark.process  # without the compiler nothing runs that Python could not leave alone

AFTER, SOON = 0.04, 0.3
"""Seconds until the signal, and until the call must be left: three times what is promised, as machines are busy."""
SIZE = 8 << 20


@pytest.fixture(scope="module")
def letters():
    """One word that takes most of a second to merge, in one call of a kernel."""
    return np.random.default_rng(0).integers(97, 123, SIZE, np.uint8).tobytes()


@pytest.fixture(scope="module")
def tok(letters):
    found = jittok.bundled("gpt-2")
    found.encode(letters[:10000])  # compiles, and makes what long words need
    found.align(letters[:10000])
    found.decode(np.zeros(LONG_WORK_BYTES, np.int32))
    return found


@pytest.fixture(scope="module")
def ids(tok, letters):
    return tok.encode(letters[: 1 << 20])


def left(call, after=AFTER):
    """Seconds that `call` went on after the signal; None if it ended before."""

    def press(_, frame):
        if frame is not None and frame.f_code.co_name == "gc_callback":
            signal.setitimer(signal.ITIMER_REAL, 0.001)  # Hypothesis runs it; Python loses what it raises
            return
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, press)
    start = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        call()
    except KeyboardInterrupt:
        return time.monotonic() - start - after
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return None


def soon(call, after=AFTER):
    """Whether `call` is left soon after the signal. Another program may have had the processor meanwhile, or Python
    lost the signal in a callback of a test tool: one time of three is enough, as what cannot be left is never left
    soon."""
    for _ in range(3):
        seconds = left(call, after)
        if seconds is not None and seconds < SOON:
            return True
    return False


CALLS = {
    "encode": lambda tok, text: tok.encode(text),
    "count": lambda tok, text: tok.count(text),
    "encode_batch": lambda tok, text: tok.encode_batch([text], threads=1),
    "encode_batch, two threads": lambda tok, text: tok.encode_batch([text, text], threads=2),
    "encode_batch, many texts": lambda tok, text: tok.encode_batch([text[i::99] for i in range(99)], threads=1),
    "count_batch": lambda tok, text: tok.count_batch([text], threads=1),
    "encode_stream": lambda tok, text: list(tok.encode_stream([text], threads=1)),
    "align": lambda tok, text: tok.align(text),
    "align_batch": lambda tok, text: tok.align_batch([text], threads=1),
    "trace": lambda tok, text: tok.trace(text),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_encoding_call_is_left_soon_and_gives_the_same_ids_afterwards(tok, letters, ids, call):
    assert soon(lambda: call(tok, letters))
    assert np.array_equal(tok.encode(letters[: 1 << 20]), ids)
    assert tok.encode_batch([b"one text", b"another"]).to_list() == [[505, 2420], [29214]]


def test_decoding_is_left_soon(tok, ids):
    many = np.tile(ids, 200)
    assert soon(lambda: tok.decode_bytes(many), 0.01)
    assert tok.decode_bytes(ids) == tok.decode_bytes(np.tile(ids, 2))[: len(tok.decode_bytes(ids))]


@pytest.mark.parametrize("after", [0.002, 0.02, 0.05])
def test_loading_is_left_soon_and_works_the_next_time(after):
    header = bundled_source("gpt-2")
    assert soon(lambda: jittok.load(header, cache=False), after)
    assert jittok.load(header, cache=False).encode("Hello, world").tolist() == [15496, 11, 995]


def test_interrupts_at_any_moment_leave_the_right_ids(tok, ids, letters):
    text = letters[: 1 << 20]
    for after in np.linspace(0.0005, 0.06, 12):
        left(lambda: tok.encode_batch([text], threads=1), float(after))
        assert np.array_equal(tok.encode(text), ids)


def test_what_a_handler_raises_may_be_any_exception(tok, letters, ids):
    def expire(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, AFTER)
    try:
        with pytest.raises(TimeoutError):
            tok.encode(letters)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert np.array_equal(tok.encode(letters[: 1 << 20]), ids)


def test_patient_work_returns_and_raises_as_if_it_were_done_here():
    assert run_interruptible(lambda a, b: (a, b), 1, b=2) == (1, 2)
    with pytest.raises(ZeroDivisionError):
        run_interruptible(lambda: 1 // 0)
    assert run_interruptible(threading.current_thread) is not threading.main_thread()
    inside = []
    other = threading.Thread(target=lambda: inside.append(run_interruptible(threading.get_ident)))
    other.start()
    other.join()
    assert inside == [other.ident]


@pytest.fixture(scope="module")
def general():
    """A file that no kernel runs: its unknown token is missing."""
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [], "unk_token": "missing"}
    found = jittok.load(json.dumps({"model": model}).encode())
    assert found.runs.startswith("general path")
    return found


IN_PYTHON = {
    "encode_batch": lambda tok, texts: tok.encode_batch(texts, threads=2),
    "encode_stream": lambda tok, texts: list(tok.encode_stream(texts, threads=2)),
    "count_batch": lambda tok, texts: tok.count_batch(texts, threads=2),
    "align_batch": lambda tok, texts: tok.align_batch(texts, threads=2),
    "align": lambda tok, texts: tok.align(texts[0]),
}


@pytest.mark.parametrize("call", IN_PYTHON.values(), ids=IN_PYTHON)
@pytest.mark.parametrize("size", [1 << 9, 1 << 18], ids=["many texts", "long texts"])
def test_plain_python_is_left_soon_and_no_thread_goes_on(general, call, size):
    texts = [b"ab" * (size // 2)] * (4 + (1 << 21) // size)
    assert soon(lambda: call(general, [b"ab" * (1 << 17)] if call is IN_PYTHON["align"] else texts), 0.1)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("jittok")]
    assert general.encode("abba").tolist() == [0, 1, 1, 0]


def test_a_short_text_that_may_take_long_is_one_that_can_be_left():
    """One of beginnings of a long token, and one that steps make long."""
    long = "a" * 2000 + "b"
    vocab = {"?": 0, "a": 1, "##a": 2, long: 3, "##" + long: 4}
    model = {"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "##", "vocab": vocab}
    model["max_input_chars_per_word"] = 1 << 30
    double = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 60}
    for steps, size in [([], LONG_WORK_BYTES - 1), ([double], LONG_WORK_BYTES // 20)]:
        file = {"normalizer": {"type": "Sequence", "normalizers": steps}, "model": model}
        slow = jittok.load(json.dumps(file).encode(), cache=False)
        slow.encode("a" * 1000)
        asked = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                buffers, "run_interruptible", lambda work, *args, asked=asked: asked.append(work) or work(*args)
            )
            slow.encode("a" * size)
        assert asked
