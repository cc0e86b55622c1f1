"""Law: importing jittok never makes another library's fork, import or lock wait.

Each test runs a program of its own, with a time limit: what must not happen is that it hangs.
"""

import os
import subprocess
import sys

import pytest

from jittok.common import locks

pytestmark = pytest.mark.process

STORM = """
import concurrent.futures.thread, faulthandler, importlib, logging, multiprocessing
import os, signal, subprocess, sys, threading, time
import jittok
SECONDS, failed = float(sys.argv[1]), []
faulthandler.dump_traceback_later(SECONDS + 100, exit=True)
end = time.monotonic() + SECONDS
counts = dict.fromkeys(["forks", "imports", "calls", "programs", "processes"], 0)
threading.excepthook = sys.unraisablehook = lambda told: failed.append(repr(told.exc_value))  # also of hooks

def all_the_while(what):
    def run():
        while time.monotonic() < end:
            counts[what.__name__] += 1
            what()
    return run

def forks():
    pid = os.fork()
    if not pid:
        signal.alarm(60)
        import json, logging, wave
        logging.getLogger("child").debug("locks are free")
        os._exit(0 if json.loads("[1]") == [1] else 1)
    if os.waitpid(pid, 0)[1]:
        failed.append("a child")

def imports():
    sys.modules.pop("colorsys", None)
    importlib.import_module("colorsys")

def calls():
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        if list(executor.map(abs, [-1, -2])) != [1, 2]:
            failed.append("an executor")
    with logging._lock:
        pass

def programs():
    if subprocess.run(["true"], check=False, preexec_fn=int).returncode:
        failed.append("a program")

def nothing():
    pass

def processes():
    process = multiprocessing.get_context("fork").Process(target=nothing)
    process.start()
    process.join()
    if process.exitcode:
        failed.append("a process")

work = [forks] * 3 + [imports] + [calls] * 6 + [programs, processes]
threads = [threading.Thread(target=all_the_while(each)) for each in work]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
free = [logging._lock.acquire(blocking=False), not __import__("_imp").lock_held()]
print(sorted(set(failed)), min(counts.values()) > 0, free)
"""

ENCODES = """
import faulthandler, os, signal, sys, threading, time
import jittok
faulthandler.dump_traceback_later(100, exit=True)
failed, end = [], time.monotonic() + float(sys.argv[1])
threading.excepthook = lambda told: failed.append(repr(told.exc_value))
texts = [f"text {k}, and more of it" * 40 for k in range(60)]

def encodes():
    while time.monotonic() < end:
        tok = jittok.bundled("gpt-2")
        if tok.decode_batch(tok.encode_batch(texts, threads=2)) != texts:
            failed.append("a text")

def forks():
    while time.monotonic() < end:
        pid = os.fork()
        if not pid:
            signal.alarm(60)
            tok = jittok.bundled("gpt-2")
            os._exit(0 if tok.decode(tok.encode(texts[0])) == texts[0] else 1)
        if os.waitpid(pid, 0)[1]:
            failed.append("a child")

threads = [threading.Thread(target=each) for each in [encodes] * 2 + [forks] * 3]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(set(failed)))
"""

FORK_AMID = """
import logging, os, signal, sys, threading, time
import jittok
inside, go = threading.Event(), threading.Event()

def stop():
    inside.set()
    assert go.wait(60)

def holds():
    if sys.argv[1] == "import":
        import decimal  # of the folder, which stops
    elif sys.argv[1] == "logging":
        with logging._lock:
            inside.set()
            time.sleep(0.2)  # Python's own hook waits for this one
    else:
        import llvmlite.binding.ffi as ffi
        with ffi.lib._lock:
            stop()

sys.stop = stop
sys.path.insert(0, sys.argv[2])
thread = threading.Thread(target=holds)
thread.start()
assert inside.wait(60)
started = time.monotonic()
pid = os.fork()
if not pid:
    signal.alarm(30)
    sys.path.pop(0)
    import decimal
    os._exit(0 if decimal.Decimal else 1)
took = time.monotonic() - started
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
go.set()
thread.join()
print(code, took < 0.4)
"""

HALF_A_PACKAGE = """
import os, pathlib, signal, sys, threading
import jittok
from jittok.common import locks
home = pathlib.Path(sys.argv[1], "half")
home.mkdir()
(home / "__init__.py").write_text("import half.done; import half.stops; complete = half.done.value + half.stops.value")
(home / "done.py").write_text("value = 1")
(home / "stops.py").write_text("import sys; sys.stop(); value = 2")
sys.path.insert(0, sys.argv[1])
locks.OURS |= {"half"}
inside, go = threading.Event(), threading.Event()

def stop():
    if threading.current_thread() is thread:
        inside.set()
        assert go.wait(60)

def imports():
    import half

sys.stop = stop
thread = threading.Thread(target=imports)
thread.start()
assert inside.wait(60)
pid = os.fork()
if not pid:
    signal.alarm(30)
    import half
    right = half.complete == 3 and half.done.value == 1 and half.__file__ == str(home / "__init__.py")
    os._exit(0 if right and not any(type(each).__module__ == "jittok.common.locks" for each in sys.meta_path) else 1)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
go.set()
thread.join()
print(code, sys.modules["half"].complete)
"""


def run(program, *args):
    """What a program prints."""
    ended = subprocess.run(
        [sys.executable, "-c", program, *map(str, args)],
        text=True, capture_output=True, timeout=300, check=False, env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@pytest.mark.parametrize("seconds", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_importing_jittok_never_makes_another_librarys_fork_import_or_lock_wait(seconds):
    assert run(STORM, seconds) == "[] True [True, True]"


def test_a_parent_encodes_while_others_fork_and_so_do_the_children():
    assert run(ENCODES, 4) == "[]"


@pytest.mark.parametrize("held", ["import", "logging", "llvm"])
def test_a_fork_does_not_wait_for_what_another_thread_holds(held, tmp_path):
    (tmp_path / "decimal.py").write_text("import sys; sys.stop()")
    assert run(FORK_AMID, held, tmp_path) == "0 True"


def test_a_child_imports_a_package_anew_whose_import_a_fork_cut_short(tmp_path):
    assert run(HALF_A_PACKAGE, tmp_path) == "0 3"


def test_what_a_users_own_module_imports_is_left_as_python_leaves_it():
    assert locks.is_needed("numpy._core.multiarray")
    assert locks.is_needed("json.decoder")
    assert not locks.is_needed("the_program_of_a_user")
