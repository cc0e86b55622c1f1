"""A signal's handler may make any call, whatever call it interrupts: none waits for what the handler holds up."""

import os
import signal
import subprocess
import sys

import pytest

from jittok.kernels.jit.pool import Pool

pytestmark = pytest.mark.process

HANDLER = """
import faulthandler, signal, sys, time
faulthandler.dump_traceback_later(100, exit=True)
import jittok
tok = jittok.bundled("gpt-2")
big = [f"some text number {k} and more words of it " * 300 for k in range(300)]
few, long = big[:20], big[0] * 400
right, count = tok.encode_batch(few), 0
of_long = tok.encode(long, threads=2)

def handler(*_):
    global count
    count += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert tok.encode_batch(few, threads=2) == right
    assert tok.decode_batch(right) == few
    if count % 4 == 0:
        assert (tok.encode(long, threads=2) == of_long).all()
        assert (jittok.bundled("gpt-2").encode(few[0]) == right[0]).all()
    signal.setitimer(signal.ITIMER_REAL, 0.005)

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.002)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end or count < 10:
    again = jittok.bundled("gpt-2")
    assert again.encode_batch(big, threads=2)[:20] == right
    assert sum(len(part) for part in again.encode_parts(long)) == len(of_long)
    assert (again.encode(long, threads=2) == of_long).all()
signal.setitimer(signal.ITIMER_REAL, 0)
print("done")
"""

TRAINING = """
import faulthandler, signal, sys, tempfile, time
faulthandler.dump_traceback_later(100, exit=True)
import jittok
from jittok.corpus import compile_corpus
from jittok.train.unigram import train_unigram
tok, folder = jittok.bundled("gpt-2"), tempfile.TemporaryDirectory()
texts = [f"some text number {k} and more words of it " * 30 for k in range(300)]
file, count, corpora = folder.name + "/a.txt", 0, 0
with open(file, "w") as out:
    out.write("\\n".join(texts))

def work():
    global corpora
    corpora += 1
    merges = jittok.train(texts, 300, pre="gpt-2", threads=2).merges
    pieces = train_unigram(texts[:20], 40, threads=2, byte_fallback=False).pieces
    compile_corpus([file], tok, f"{folder.name}/{corpora}", threads=2, check_space=False)
    return merges, pieces

right = work()

def handler(*_):
    global count
    count += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert work() == right
    signal.setitimer(signal.ITIMER_REAL, 0.003)

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.002)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end or count < 10:
    assert work() == right
signal.setitimer(signal.ITIMER_REAL, 0)
print("done")
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize("script", [HANDLER, TRAINING], ids=["batches", "training and corpora"])
def test_a_handler_of_a_signal_may_make_the_call_that_it_interrupts(script):
    ended = subprocess.run(
        [sys.executable, "-c", script, "4"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ},
    )
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr


def test_a_pool_does_all_its_work_and_ends():
    pool = Pool(3)
    assert list(pool.map(divmod, [7, 8, 9], [2, 3, 4])) == [(3, 1), (2, 2), (2, 1)]
    failing = pool.submit(divmod, 1, 0)
    with pytest.raises(ZeroDivisionError):
        failing.result()
    assert len([pool.submit(int) for _ in range(99)]) == 99
    pool.shutdown()
    assert all(end.acquire(blocking=False) for end in pool._ends)
    assert len(pool._ends) == 3


def test_work_that_has_not_begun_is_cancelled():
    pool, hold = Pool(1), __import__("threading").Event()
    first, second = pool.submit(hold.wait), pool.submit(int)
    while not first.running():
        pass
    pool.shutdown(wait=False, cancel_futures=True)
    hold.set()
    assert first.result()
    assert second.cancelled()
