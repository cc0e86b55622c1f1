"""Small changes to the package, one at a time, each of which some test must notice.

    python tests/mutants/run.py [--again] [--threads N] [WORD ...]

The changes are in the files `*.txt` beside this one (see `read`). WORDs choose those whose file or list has one of
them in its name. Each change is made in a temporary copy of the package, never in the checkout. The tests of its list
run there until one fails. At the end the tests that failed run once more without a change, and must pass. All run
without the compiler, which takes seconds where compiling takes minutes. Answers are kept in `.venv/mutants.json`, so
you may stop a run and start it again. A change is tried again if its source, its tests or its line of the list are
others, or with --again. Prints what survived and the score. Status 1 where a change survives without a reason. If any
list names a line or a test that is not there, nothing is run.
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import json
import os
import py_compile
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = ROOT / ".venv" / "mutants.json"
WRITING = threading.Lock()
LEAST = 90
"""Percent of changes that are to be noticed."""
TIMES, SECONDS = 4, 60
"""Tests have noticed a change if they take more than this many times as long as without it, and more than this many
seconds of the processor."""
WAITING = 20
"""They are stopped after so many times these seconds by the clock: a test that waits takes no time of the processor."""
ENDLESS = "it does not end"
PROVED = "proved"
"""Beside the answers: the changes whose tests have passed without a change since."""


class Mutant(NamedTuple):
    """One change: a line of a source file, and what is there instead."""

    list: str
    source: str
    tests: tuple[str, ...]
    old: str
    new: str
    which: int  # of the lines that read like `old`
    reason: str  # why no test can notice it; "" where one must

    def line(self, text: str) -> int | None:
        """Which line of the source is changed; None: there is none like this any more."""
        places = [k for k, line in enumerate(text.split("\n")) if line.strip() == self.old]
        return places[self.which - 1] if self.which <= len(places) else None

    def applied(self, text: str) -> str:
        """The source with the change."""
        lines, at = text.split("\n"), self.line(text)
        assert at is not None, self
        lines[at] = lines[at].replace(self.old, self.new)
        return "\n".join(lines)


def fits(mutant: Mutant) -> bool:
    """Whether the line that is changed and the tests that must notice are there."""
    path, tests = ROOT / mutant.source, (ROOT / name.partition("::")[0] for name in mutant.tests)
    known = path.is_file() and mutant.line(path.read_text(encoding="utf-8")) is not None
    return known and bool(mutant.tests) and all(test.exists() for test in tests)


def read(path: Path) -> list[Mutant]:
    """The changes of one list.

        == jittok/decode/rows.py: tests/decode/test_decode.py tests/test_golden.py
        - if frame.clean and dirty >= 0:
        + if frame.clean and dirty > 0:
        = why no test can notice this one

    A line without its indent, and what is put there. `-2 ` means the second line that reads like this.
    """
    mutants: list[Mutant] = []
    source, tests, old, which = "", (), "", 1
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        mark, _, rest = line.partition(" ")
        if mark == "==":
            source, _, after = rest.partition(":")
            tests = tuple(after.split())
        elif mark.startswith("-"):
            old, which = rest, int(mark[1:] or 1)
        elif mark == "+":
            mutants.append(Mutant(path.stem, source, tests, old, rest, which, ""))
        elif mark == "=":
            mutants[-1] = mutants[-1]._replace(reason=(mutants[-1].reason + " " + rest).strip())
        elif line.strip() and not line.startswith("#"):
            raise ValueError(f"{path.name}, line {number}: found {line!r}, expected ==, -, +, = or # in front")
    return mutants


class Copies:
    """Copies of the checkout, one for each thread."""

    def __init__(self, folder: Path, count: int) -> None:
        self.free: Queue[Path] = Queue()
        for k in range(count):
            home = folder / str(k)
            home.mkdir()
            for part in ("jittok", "tests"):
                shutil.copytree(ROOT / part, home / part, ignore=shutil.ignore_patterns("__pycache__"))
            for part in ("pyproject.toml", "README.md"):
                shutil.copy(ROOT / part, home / part)
            # checked by the source's bytes: two writes within a second have the same time
            compileall.compile_dir(home, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
            self.free.put(home)

    def tested(self, home: Path, tests: Iterable[str], seconds: int) -> tuple[str, float]:
        """("" if all tests pass in this copy, else what failed; seconds that the processor took)."""
        import resource  # not on Windows, where the lists alone are read

        clean = {name: value for name, value in os.environ.items() if not name.startswith(("JITTOK_", "NUMBA_"))}
        settings = {"NUMBA_DISABLE_JIT": "1", "HYPOTHESIS_PROFILE": "slow", "PYTHONDONTWRITEBYTECODE": "1"}
        settings |= {"PYTHONPATH": str(home), "JITTOK_CACHE_DIR": str(home / "cache")}
        left_out = [option for name in ("randomly", "cacheprovider", "nbmake") for option in ("-p", f"no:{name}")]
        command = [sys.executable, "-m", "pytest", "-x", "-q", *left_out, "-m", "not slow and not process", *tests]
        with tempfile.TemporaryFile("w+", encoding="utf-8") as shown:
            started = subprocess.Popen(
                command, cwd=home, env=clean | settings, stdout=shown, stderr=subprocess.STDOUT,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)),  # noqa: PLW1509
            )  # fmt: skip
            waiting = threading.Timer(WAITING * seconds, os.kill, (started.pid, signal.SIGKILL))
            waiting.daemon = True
            waiting.start()
            _, status, used = os.wait4(started.pid, 0)
            waiting.cancel()
            started.returncode = os.waitstatus_to_exitcode(status)
            shown.seek(0)
            failed = [line for line in shown if line.startswith(("FAILED ", "ERROR "))]
        took = used.ru_utime + used.ru_stime
        if started.returncode == 0:
            return "", took
        stopped = started.returncode in (-signal.SIGKILL, -signal.SIGXCPU)
        return (failed or [ENDLESS if stopped else f"pytest: status {started.returncode}"])[0].strip(), took

    def unchanged(self, tests: Iterable[str]) -> float:
        """Seconds that these tests take without any change. If one fails, the program ends."""
        home = self.free.get()
        try:
            found, took = self.tested(home, tests, 1 << 20)
        finally:
            self.free.put(home)
        if found:
            sys.exit(f"fails without any change: {found}")
        return took

    def change(self, mutant: Mutant, seconds: int) -> str:
        """What failed with this change, "" if nothing did."""
        home = self.free.get()
        path = home / mutant.source
        text = path.read_text(encoding="utf-8")
        try:
            path.write_text(mutant.applied(text), encoding="utf-8")
            return self.tested(home, mutant.tests, seconds)[0]
        finally:
            path.write_text(text, encoding="utf-8")
            self.free.put(home)


def digest(mutant: Mutant) -> str:
    """What an answer depends on: the change, its source and its tests."""
    found = hashlib.sha256(repr(mutant[1:6]).encode())
    for path in (ROOT / name.partition("::")[0] for name in (mutant.source, *mutant.tests)):
        for each in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found.update(each.read_bytes())
    return found.hexdigest()[:24]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    every = [mutant for path in sorted(HERE.glob("*.txt")) for mutant in read(path)]
    stale = [mutant for mutant in every if not fits(mutant)]  # of all lists: a line that moved is mended at once
    for mutant in stale:
        print(f"no such line, or no such test: {mutant.source}: {' '.join(mutant.tests)}\n  - {mutant.old}")
    if stale:
        sys.exit(f"{len(stale)} of {len(every)} changes no longer fit the sources")
    chosen = [m for m in every if not options.words or any(word in m.source + " " + m.list for word in options.words)]
    if not chosen:
        sys.exit(f"{' '.join(options.words)}: found no change with such a name, expected part of a source's or list's")
    kept: dict[str, str] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() and not options.again else {}
    with tempfile.TemporaryDirectory() as folder:
        answers = _answers(Copies(Path(folder), options.threads), chosen, kept, options.threads)
    survived = [mutant for mutant, found in zip(chosen, answers, strict=True) if not found and not mutant.reason]
    argued = [mutant for mutant, found in zip(chosen, answers, strict=True) if not found and mutant.reason]
    wrong = [mutant for mutant, found in zip(chosen, answers, strict=True) if found and mutant.reason]
    titles = ("survived", survived), ("noticed, though a reason says it cannot be", wrong)
    for title, some in titles:
        for mutant in some:
            print(f"{title}: {mutant.source}\n  - {mutant.old}\n  + {mutant.new}")
    noticed = len(chosen) - len(survived) - len(argued)
    print(f"{noticed} of {len(chosen)} changes noticed, {100 * noticed / len(chosen):.1f} %; {len(argued)} argued away")
    return int(bool(survived or wrong or noticed < LEAST / 100 * len(chosen)))


def _answers(copies: Copies, chosen: list[Mutant], kept: dict[str, str], threads: int) -> list[str]:
    """What failed with each change, "" where nothing did."""
    keys = {mutant: digest(mutant) for mutant in chosen}  # now: somebody may edit the tests meanwhile

    def answer(mutant: Mutant) -> str:
        key = keys[mutant]
        if key in kept:
            return kept[key]
        found = copies.change(mutant, SECONDS)
        if found == ENDLESS and (needed := int(TIMES * copies.unchanged(mutant.tests))) > SECONDS:
            found = copies.change(mutant, needed)
        kept[key] = found
        _keep(kept)
        shown = found or ("argued" if mutant.reason else "SURVIVED")
        print(f"{mutant.source}  {mutant.new[:70]}  {shown[:110]}", flush=True)
        return found

    drawn = random.Random(0).sample(chosen, len(chosen))  # a run that is stopped has seen something of each list
    with ThreadPoolExecutor(threads) as pool:
        answers = dict(zip(drawn, pool.map(answer, drawn), strict=True))
    proved = set(kept.get(PROVED, "").split())
    noticed = {keys[mutant]: _test_of(found) for mutant, found in answers.items() if keys[mutant] not in proved}
    if tests := {test for test in noticed.values() if test}:
        copies.unchanged(sorted(tests))
    kept[PROVED] = " ".join(sorted(proved | {*noticed}))
    _keep(kept)
    return [answers[mutant] for mutant in chosen]


def _test_of(found: str) -> str:
    """The test in a line of pytest's that says what failed; "" where it names none."""
    return found.split(" ", 1)[1].partition("[")[0].partition(" - ")[0] if "::" in found else ""


def _keep(kept: dict[str, str]) -> None:
    """Write the answers to the disk, whole or not at all."""
    with WRITING:
        KEPT.parent.mkdir(exist_ok=True)
        new = KEPT.with_suffix(".new")
        new.write_text(json.dumps(dict(kept)), encoding="utf-8")
        new.replace(KEPT)


if __name__ == "__main__":
    sys.exit(main())
