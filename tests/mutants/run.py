"""Small changes to the package, one at a time, each of which some test must notice.

    python tests/mutants/run.py [--again] [--threads N] [WORD ...]

The changes stand in the files `*.txt` beside this one (see `read`). WORDs choose those whose file or list has one of
them in its name. Each change is made in a temporary copy of the package, never in the checkout. The tests of its list
run there until one fails. Those that failed run once more at the end without a change, and must pass. They run without
the compiler, which takes seconds where compiling takes minutes. Answers are kept in `.venv/mutants.json`, so a run that
was stopped goes on. A change of the source, of the tests or of the list asks again, and so does --again. Prints what
survived and the score. Status 1 where a change survives without a reason. Nothing is run while one of any list names a
line or a test that is not there.
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
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = ROOT / ".venv" / "mutants.json"
LEAST = 90
"""Percent of changes that are to be noticed."""
TIMES, SECONDS = 4, 60
"""Tests that take so many times as long as without a change, and so many seconds of the processor, have noticed it."""
ENDLESS = "it does not end"


class Mutant(NamedTuple):
    """One change: a line of a source file, and what stands there instead."""

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
            # byte code that is taken where the source's bytes are the same: a time of writing would not tell a change
            compileall.compile_dir(home, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
            self.free.put(home)

    def tested(self, home: Path, tests: Iterable[str], seconds: int) -> tuple[str, float]:
        """("" if all pass, else what failed; seconds that the processor took) in this copy."""
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
            _, status, used = os.wait4(started.pid, 0)
            started.returncode = os.waitstatus_to_exitcode(status)
            shown.seek(0)
            failed = [line for line in shown if line.startswith(("FAILED ", "ERROR "))]
        took = used.ru_utime + used.ru_stime
        if started.returncode == 0:
            return "", took
        stopped = started.returncode in (-signal.SIGKILL, -signal.SIGXCPU)
        return (failed or [ENDLESS if stopped else f"pytest: status {started.returncode}"])[0].strip(), took

    def unchanged(self, tests: Iterable[str]) -> float:
        """Seconds that these tests take as the sources are. Ends where one fails."""
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
    noticed: set[str] = set()

    def answer(mutant: Mutant) -> str:
        key = keys[mutant]
        if key in kept:
            return kept[key]
        found = copies.change(mutant, SECONDS)
        if found == ENDLESS and (needed := int(TIMES * copies.unchanged(mutant.tests))) > SECONDS:
            found = copies.change(mutant, needed)
        kept[key] = found
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(dict(kept)), encoding="utf-8")
        shown = found or ("argued" if mutant.reason else "SURVIVED")
        print(f"{mutant.source}  {mutant.new[:70]}  {shown[:110]}", flush=True)
        if "::" in found:
            noticed.add(found.split(" ", 1)[1].partition("[")[0].partition(" - ")[0])
        return found

    drawn = random.Random(0).sample(chosen, len(chosen))  # a run that is stopped has seen something of each list
    with ThreadPoolExecutor(threads) as pool:
        answers = dict(zip(drawn, pool.map(answer, drawn), strict=True))
    if noticed:
        copies.unchanged(sorted(noticed))
    return [answers[mutant] for mutant in chosen]


if __name__ == "__main__":
    sys.exit(main())
