"""A fork while another thread makes its first call: parent and child continue, and encode alike.

Each test runs a program of its own, with a time limit. The program stops a thread inside each step of a first call in
turn, forks there, and lets the child make the same call.
"""

import lzma
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from write_gguf import T, write_gguf

import jittok
from jittok.common import locks

pytestmark = pytest.mark.process

SECONDS = 240
"""For one program on a busy machine; a child that hangs takes all of them."""

PROGRAM = """
import os, sys, threading, time
import jittok
from jittok.common import locks
from jittok.kernels.jit import kernel, object_code, store

def child_encodes(first=lambda: None, seconds=100):
    "Fork; whether the child can do what is first, encode and decode within its time."
    pid = os.fork()
    if not pid:
        import signal
        signal.alarm(seconds)
        try:
            first()
            tok = jittok.load(sys.argv[1], cache=False)
            ids = tok.encode("Hello, world 2 x")
            os._exit(0 if len(ids) and tok.decode(ids) else 3)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def json_file():
    "A small tokenizer.json."
    import json
    tokens = {chr(97 + k): k for k in range(26)}
    model = {"type": "WordLevel", "vocab": tokens, "unk_token": "a"}
    return json.dumps({"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
                       "post_processor": None, "decoder": None, "model": model}).encode()

def first_call():
    tok = jittok.load(sys.argv[1], cache=False)
    assert tok.decode(tok.encode("Hello, world 2 x"))
"""

AT_EACH_LOAD = """
inside, go, codes = threading.Semaphore(0), threading.Semaphore(0), []
original = object_code.load

def stopped(code):
    inside.release()
    go.acquire()
    return original(code)

object_code.load = stopped
thread = threading.Thread(target=first_call)
thread.start()
while True:
    if inside.acquire(timeout=0.02):
        object_code.load = original  # for the child
        codes.append(child_encodes())
        object_code.load = stopped
        go.release()
    elif not thread.is_alive():
        break
print(len(codes) > 3, set(codes))
"""

ALL_LOCKS = """
held, go = threading.Event(), threading.Event()
first_call()

def hold():
    import contextlib
    with contextlib.ExitStack() as stack:
        for lock in list(locks._locks):
            if lock is not locks.COMPILER:
                stack.enter_context(lock)
        held.set()
        go.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
print(len(locks._locks) > 20, child_encodes())
go.set()
thread.join()
print(child_encodes())
"""

COLD = """
import jittok.kernels.jit.compiler as compiler
inside, go = threading.Event(), threading.Event()
original = compiler.compile_kernel

def stopped(function):
    inside.set()
    with compiler.one_kernel("nothing", None, []):  # Numba amid a kernel, without what it could do about a fork
        with __import__("numba").core.compiler_lock.global_compiler_lock:
            go.wait()
    return original(function)

compiler.compile_kernel = stopped
thread = threading.Thread(target=first_call)
thread.start()
inside.wait(100)
time.sleep(0.1)
code = child_encodes()
go.set()
compiler.compile_kernel = original
thread.join()
print(code, child_encodes())
"""

WHILE_IT_IMPORTS = """
import importlib.util
name = sys.argv[2]
inside = threading.Event()

def imports_it():
    if name == "concurrent.futures._base":  # threads need it
        jittok.load(sys.argv[1], cache=False).encode_batch(["a" * 3000] * 1000, threads=2)
    else:
        first_call()

class Slow:
    "Stops the import of one module for a moment, after it has begun."
    def find_spec(self, wanted, path=None, target=None):
        if wanted != name or threading.current_thread() is threading.main_thread():
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(wanted)
        original = spec.loader.exec_module

        def slow(module):
            inside.set()
            time.sleep(0.3)
            __import__("logging").getLogger("as modules do that are imported")
            original(module)

        spec.loader.exec_module = slow
        return spec

sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=imports_it)
thread.start()
assert inside.wait(100)
print(child_encodes(imports_it, seconds=60))
thread.join()
"""

AMID_THE_FIRST_NAME = """
import importlib.util, os, signal, sys, threading
import jittok
inside, go = threading.Event(), threading.Event()

class Slow:
    "Stops the import of NumPy until the fork is made: a fork waits while a module is searched for, so after that."
    def find_spec(self, wanted, path=None, target=None):
        if wanted != "numpy":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(wanted)
        original = spec.loader.exec_module

        def slow(module):
            inside.set()
            go.wait(100)
            original(module)

        spec.loader.exec_module = slow
        return spec

sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=lambda: jittok.bundled)
thread.start()
assert inside.wait(100)
pid = os.fork()
if not pid:
    signal.alarm(60)
    os._exit(0 if jittok.bundled else 1)
go.set()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
thread.join()
"""

BEHIND_THE_IMPORT_LOCK = """
import _imp, importlib, os, signal, sys, threading, time
import jittok
inside = threading.Event()

def begins():
    "As Python begins an import: it owns the module when it gives the import lock back, or just behind."
    _imp.acquire_lock()
    inside.set()
    time.sleep(0.1)
    with importlib._bootstrap._ModuleLockManager("wave"):
        _imp.release_lock()
        time.sleep(0.5)

thread = threading.Thread(target=begins)
thread.start()
inside.wait(100)
pid = os.fork()
if not pid:
    signal.alarm(5)
    import wave, logging
    logging.getLogger("any")
    free = threading.Thread(target=lambda: __import__("mailbox"))
    free.start()
    free.join(4)
    os._exit(0 if wave.open and not free.is_alive() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
thread.join()
logging = __import__("logging")
taken = []
other = threading.Thread(target=lambda: logging._lock.acquire(timeout=9) and taken.append(logging._lock.release()))
other.start()
other.join(9)
print(len(taken), _imp.lock_held())
"""

WITH_THE_LOCK_OF_LOGGING = """
import logging, os, sys, threading, time
import jittok
inside = threading.Event()

def configures():
    "As logging.config does: it imports with the lock of logging held."
    with logging._lock:
        inside.set()
        time.sleep(0.1)
        import wave

thread = threading.Thread(target=configures, daemon=True)
thread.start()
inside.wait(100)
pid = os.fork()
if not pid:
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""

AMID_A_PROPERTY = """
from jittok.common.pipeline import pipeline
inside, go = threading.Event(), threading.Event()
tok = jittok.load(json_file(), cache=False)
pipe, original = tok.vocab, pipeline.ragged_bytes
pipe.__dict__.pop("model_tokens", None)

def stopped(*args):
    if threading.current_thread() is thread:
        inside.set()
        go.wait()
    return original(*args)

pipeline.ragged_bytes = stopped
thread = threading.Thread(target=lambda: pipe.model_tokens)
thread.start()
inside.wait(100)
print(child_encodes(lambda: pipe.model_tokens, seconds=60))
go.set()
thread.join()
"""

AMID_A_TABLE = """
import io
from jittok.common.unicode import libraries
inside, go = threading.Event(), threading.Event()
thread = threading.Thread(target=libraries.ranges, args=("whitespace",))

class Stopping(io.BytesIO):
    "Whoever reads holds the lock that an open archive has."
    def read(self, size=-1):
        if threading.current_thread() is thread:
            inside.set()
            go.wait()
        return super().read(size)

libraries.BytesIO = Stopping
assert libraries.ranges("newer")
thread.start()
assert inside.wait(100)
pid = os.fork()
if not pid:
    import signal
    signal.alarm(20)
    os._exit(not libraries.ranges("punctuation"))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
go.set()
thread.join()
"""


@pytest.fixture(scope="module")
def vocab(tmp_path_factory):
    """A file with a BPE vocabulary."""
    path = tmp_path_factory.mktemp("forks") / "bpe.gguf"
    path.write_bytes(lzma.decompress((Path(__file__).parents[1] / "data/vocabs/syn-bpe-lstrip.gguf.xz").read_bytes()))
    return path


def run(program, *args, begin=PROGRAM, **environment):
    """What a program prints."""
    ended = subprocess.run(
        [sys.executable, "-c", begin + program, *map(str, args)],
        env={**os.environ, "JITTOK_SHIPPED": "0", **environment}, text=True,
        capture_output=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip(), ended.stderr


def test_a_fork_at_each_load_of_a_kernel_leaves_a_child_that_encodes(vocab):
    jittok.load(vocab).decode(jittok.load(vocab).encode("Hello, world 2 x"))  # now kernels are kept
    assert run(AT_EACH_LOAD, vocab) == ("True {0}", "")


def test_a_fork_while_every_lock_is_held_leaves_a_child_that_encodes(vocab):
    assert run(ALL_LOCKS, vocab) == ("True 0\n0", "")


def test_a_fork_amid_compiling_leaves_a_child_that_compiles(tmp_path):
    """The smallest kernels there are, as parent and child both compile them."""
    path = tmp_path / "test.gguf"
    path.write_bytes(write_gguf({T + "model": "test", T + "tokens": [str(k) for k in range(50)]}))
    assert run(COLD, path, JITTOK_CACHE_DIR=str(tmp_path / "cache")) == ("0 0", "")


@pytest.mark.parametrize("name", ["jittok.encode.encoder", "concurrent.futures._base"])
def test_a_child_imports_anew_what_a_thread_was_importing_at_the_fork(vocab, name):
    assert run(WHILE_IT_IMPORTS, vocab, name)[0] == "0"  # Python tells of locks that are made amid a fork


def test_a_child_has_the_first_name_of_the_package_that_a_thread_was_asking_for():
    assert run(AMID_THE_FIRST_NAME, begin="")[0] == "0"


def test_a_fork_at_the_moment_when_an_import_begins_leaves_all_locks_free():
    assert run(BEHIND_THE_IMPORT_LOCK, begin="") == ("0\n1 False", "")


def test_a_fork_ends_while_a_thread_imports_with_the_lock_of_logging_held():
    assert run(WITH_THE_LOCK_OF_LOGGING, begin="") == ("0", "")


def test_all_that_is_imported_when_it_is_needed_is_imported_anew_in_a_child():
    late = re.compile(r"^ +(?:import|from) ([a-z_]\w*)[\w.]*(?: import| as|$)", re.MULTILINE)
    sources = (path.read_text(encoding="utf-8") for path in Path(jittok.__file__).parent.rglob("*.py"))
    found = {name for text in sources for name in late.findall(text)}
    assert {"lzma", "pyarrow", "orjson", "jittok"} <= found
    others = {"llama_cpp", "mistral_common", "pyrwkv_tokenizer", "sentencepiece", "tiktoken", "tokenizers", "torch",
              "transformers"}  # fmt: skip  # what jittok is compared with, or passes rows to
    assert {name for name in found if not locks.is_needed(name)} <= others | {"typing_extensions"}


def test_a_fork_amid_a_property_of_a_file_leaves_a_child_that_has_it(vocab):
    """Python 3.11 and older lock a `cached_property`."""
    assert run(AMID_A_PROPERTY, vocab) == ("0", "")


def test_a_fork_amid_reading_a_table_of_characters_leaves_a_child_that_reads_others():
    assert run(AMID_A_TABLE) == ("0", "")


def test_no_lock_is_made_that_a_fork_does_not_renew():
    """Those of one call may be any: a child begins calls of its own."""
    of_a_call = {"corpus/formats/base.py", "train/counting/counter.py", "train/counting/count.py",
                 "train/counting/files.py", "encode/threads/long_document.py", "kernels/jit/interruptible.py",
                 "kernels/jit/pool.py", "common/locks.py", "corpus/tasks/crew.py", "corpus/tasks/run.py",
                 "corpus/tasks/shares.py", "corpus/tasks/plan.py"}  # fmt: skip
    words = re.compile(r"cached_property|\b(?:R?Lock|Condition|Semaphore|Event)\(\)|allocate_lock")
    home = Path(jittok.__file__).parent
    found = {str(path.relative_to(home)) for path in home.rglob("*.py")
             if words.search(path.read_text(encoding="utf-8").replace("locks.Lock()", ""))
             and "from jittok.common.locks import" not in path.read_text(encoding="utf-8")}  # fmt: skip
    assert found == of_a_call


def test_whoever_forks_keeps_the_locks_that_it_holds():
    lock = locks.Lock()
    with lock:
        pid = os.fork()
        if not pid:
            with lock:
                mine = not lock.renew()
            os._exit(0 if mine else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    free = threading.Thread(target=lock.__enter__)
    free.start()
    free.join(60)
    assert not free.is_alive()


def test_a_property_is_made_once_and_its_lock_can_be_renewed():
    class Thing:
        @locks.once
        def made(self):
            """What it says."""
            return object()

    thing = Thing()
    assert thing.made is thing.made
    assert Thing.made.__doc__ == "What it says."
    assert isinstance(getattr(Thing.__dict__["made"], "lock", locks.COMPILER), locks.Lock)
