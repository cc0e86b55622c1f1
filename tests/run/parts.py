"""The tests in parts, several at a time: python tests/run/parts.py test|test-all|PART ... [--jobs N] [--order SEED]

A line when a part begins and when it ends, and every half minute how far the parts are. What pytest prints is in
.venv/tests/PART.log, and here where a part fails. At the end: failed tests once more, alone; skips; the slowest ten;
what is left out.
Status 1 if any part failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / ".venv" / "tests"
COSTS = ROOT / "tests" / "run" / "costs.json"
EVERY = 30
"""Seconds between two lines about running parts."""
SLOWEST = 10
ASKED_AGAIN = 8
"""Failed tests of a part that are asked again, alone."""

ROOMS = ["tests/kernels/models", "tests/align", "tests/files", "tests/kernels/normalize"]
WORKS = ["tests/corpus", "tests/train"]
LAWS = ["tests/law"]
SURFACES = ["tests/cli", "tests/convert", "tests/kernels/jit", "tests/plot", "tests/trace", "tests/test_start.py"]
LESSONS = ["tests/notebooks"]
DOCUMENTS = ["tests/test_docs.py", "tests/test_documents.py"]
PLAIN = [
    *("-m", "not process and not slow"),
    *(
        f"tests/kernels/{name}"
        for name in ("memory", "merging", "models", "normalize", "pretoken_cache", "pretokenize")
    ),
    *(
        "tests/kernels/special",
        "tests/kernels/structures",
        "tests/align",
        "tests/decode",
        "tests/chunks/test_cutting.py",
    ),
]
"""Tests of kernels that also run without the compiler."""
KERNELS = [
    *PLAIN,
    *("tests/law/test_isolation.py", "tests/files/test_kernels.py"),
    *(f"tests/train/test_{name}.py" for name in ("bpe", "counting", "other_models", "unigram")),
]
"""Those that also run with every index checked."""
FROM_TEXT_TO_IDS = [
    *ROOMS,
    *(
        f"tests/kernels/{name}"
        for name in ("inputs", "memory", "merging", "pretoken_cache", "pretokenize", "special", "structures")
    ),
    *(f"tests/{name}" for name in ("common", "decode", "encode", "reference", "vocab")),
]
SETTINGS = {"PYTHONUNBUFFERED": "1", "LANG": "de_DE.UTF-8", "LANGUAGE": "de", "COLUMNS": "40"}


def all_but(*left: list[str]) -> list[str]:
    """The arguments for every test that is not in these lists."""
    return [f"--ignore={path}" for paths in left for path in paths]


@dataclass
class Part:
    """Some tests, run by one process of pytest."""

    about: str
    tests: list[str]
    settings: dict[str, str] = field(default_factory=dict)


SAMPLE = {"JITTOK_TESTS": "sample", "HYPOTHESIS_PROFILE": "sample"}
PARTS = {
    "sample-encoding": Part("a sample, from a text to its ids and back", FROM_TEXT_TO_IDS, SAMPLE),
    "sample-works": Part("a sample, corpora and training", WORKS, SAMPLE),
    "sample-others": Part(
        "a sample, commands, laws and all other tests", all_but(FROM_TEXT_TO_IDS, WORKS, LESSONS, DOCUMENTS[:1]), SAMPLE
    ),
    "works": Part("corpora, training", WORKS),
    "checked": Part(
        "kernels with every index checked", KERNELS,
        {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1", "HYPOTHESIS_PROFILE": "checked"},  # most of it is LLVM's time
    ),
    "rooms": Part("from a text to its ids and back", ROOMS),
    "laws": Part("the laws", LAWS),
    "others": Part("all other tests", all_but(ROOMS, WORKS, LAWS, SURFACES, LESSONS, DOCUMENTS)),
    "surfaces": Part("commands, starts, machine code, what is shown", SURFACES),
    "settings": Part("commands: unbuffered, German, 40 columns", ["tests/cli", "tests/test_start.py"], SETTINGS),
    "interpreted": Part(
        "kernels without the compiler", PLAIN, {"NUMBA_DISABLE_JIT": "1", "HYPOTHESIS_PROFILE": "slow"}
    ),
    "lessons": Part("each lesson shows what is saved in it", LESSONS),
    "documents": Part("each block of the documents", DOCUMENTS),
    "examples": Part(
        "kernels with every index checked, 50,000 examples of every property: hours", KERNELS,
        {"NUMBA_BOUNDSCHECK": "1", "HYPOTHESIS_PROFILE": "fuzz"},
    ),
}  # fmt: skip
"""In an order that leaves no long one for the end."""
WHOLE = {
    "test": [name for name in PARTS if name.startswith("sample-")],
    "test-all": [name for name in PARTS if not name.startswith("sample-") and name != "examples"],
}
REST = {
    "test": "`make test-all` asks the rest: all parameters and examples, every index checked, without the compiler, "
    "other settings, lessons, documents.",
    "test-all": "`make fuzz` asks the rest: what takes minutes (kills, worst inputs, whole recorded sets), new texts.",
}
"""What a run leaves out, and how to ask it."""


class Running:
    """A part that has begun."""

    def __init__(self, name: str, order: int) -> None:
        self.name, self.part = name, PARTS[name]
        self.begin = time.monotonic()
        self.log, self.report = LOGS / f"{name}.log", LOGS / f"{name}.jsonl"
        self.report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", f"--randomly-seed={order}", *self.part.tests]
        settings = os.environ | {"JITTOK_TESTS_REPORT": str(self.report)} | self.part.settings
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=settings, stdout=log, stderr=subprocess.STDOUT)

    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self.begin

    def rows(self) -> list[dict[str, Any]]:
        """What its tests have reported so far."""
        if not self.report.exists():
            return []
        return [
            json.loads(line) for line in self.report.read_text("utf-8").splitlines(keepends=True) if line[-1] == "\n"
        ]

    def progress(self) -> str:
        """How far it is: "works 12 of 80"."""
        rows = self.rows()
        total = next((row["total"] for row in rows if "total" in row), None)
        return (
            f"{self.name} {sum('name' in row for row in rows):,} of {total:,}"
            if total is not None
            else f"{self.name} collects"
        )


def say(line: str) -> None:
    """At once, also to a pipe."""
    print(line, flush=True)


def run(names: list[str], jobs: int, order: int) -> tuple[list[Running], list[str]]:
    """Run parts, `jobs` at a time: those that ended, and the names of those that failed."""
    waiting, running, ended, failed = list(names), list[Running](), list[Running](), list[str]()
    told = time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(Running(waiting.pop(0), order))
                say(f"{running[-1].name} begins: {running[-1].part.about}")
            time.sleep(0.2)
            for part in [each for each in running if each.process.poll() is not None]:
                running.remove(part)
                ended.append(part)
                last = (part.log.read_text("utf-8", "replace").strip().splitlines() or ["no output"])[-1]
                say(f"{part.name}: {part.seconds():.0f} s, {last.strip('= ')}")
                if part.process.returncode:
                    failed.append(part.name)
                    say(part.log.read_text("utf-8", "replace"))
            if running and time.monotonic() - told >= EVERY:
                told = time.monotonic()
                say("  ... " + ", ".join(part.progress() for part in running))
    finally:
        for part in running:  # Ctrl-C
            part.process.terminate()
    return ended, failed


def passes_alone(part: Running, order: int) -> bool:
    """Ask the failed tests of a part once more, with nothing beside them: whether all of them pass.

    Parts share the cores, so a test of seconds or of processes may fail for want of time. Many failures, and a part
    that ended early, are not asked again.
    """
    rows = part.rows()
    names = sorted({row["name"] for row in rows if row.get("outcome") == "failed"})
    total = next((row["total"] for row in rows if "total" in row), 0)
    if not 0 < len(names) <= ASKED_AGAIN or len({row["name"] for row in rows if "name" in row}) < total:
        return False
    command = [sys.executable, "-m", "pytest", "-q", f"--randomly-seed={order}", *names]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | part.part.settings, check=False)
    say(f"{part.name}: {len(names)} failed tests asked again, alone: {'failed' if done.returncode else 'passed'}")
    for name in names:
        say(f"  {name}")
    return not done.returncode


def summary(ended: list[Running]) -> None:
    """Why tests were skipped, and the slowest ten."""
    rows = [row for part in ended for row in part.rows() if "name" in row]
    skipped = Counter(row["reason"].removeprefix("Skipped: ") for row in rows if row["outcome"] == "skipped")
    if skipped:
        say(f"\n{skipped.total():,} tests were skipped:")
        for reason, count in skipped.most_common():
            say(f"  {count:4}  {reason}")
    say(f"\nthe slowest {SLOWEST}, seconds (CPU seconds):")
    for row in sorted(rows, key=lambda row: -row["seconds"])[:SLOWEST]:
        say(f"  {row['seconds']:6.1f} ({row['cpu']:.1f})  {row['name']}")


def kernels(ended: list[Running]) -> tuple[int, list[str]]:
    """How many kernels the package has; those that no compiled part has run (in its own process)."""
    found = set()
    for path in (ROOT / "jittok").rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found |= {
            f"{module}.{name}" for name in re.findall(r"^@kernel\ndef (\w+)", path.read_text("utf-8"), re.MULTILINE)
        }
    ran = {name for part in ended for row in part.rows() for name in row.get("kernels", ())}
    return len(found), sorted(found - ran)


def write_costs(ended: list[Running]) -> None:
    """The tests that take more than a CPU second, compiled and with all parameters, to COSTS. Kernels must be kept."""
    costs: dict[str, float] = {}
    for row in (row for part in ended if not part.part.settings for row in part.rows() if "name" in row):
        name = row["name"].partition("[")[0]
        costs[name] = max(costs.get(name, 0.0), row["cpu"])
    dear = {name: round(seconds, 1) for name, seconds in sorted(costs.items()) if seconds > 1}
    COSTS.write_text(json.dumps(dear, indent=1) + "\n", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+", choices=[*WHOLE, *PARTS], metavar="PART", help=", ".join([*WHOLE, *PARTS]))
    parser.add_argument("--jobs", type=int, default=3, help="parts at a time: some tests wait for other processes")
    parser.add_argument("--order", type=int, default=1, help="seed of the order of tests (default: 1)")
    parser.add_argument("--costs", action="store_true", help="write tests/run/costs.json, by which make test samples")
    options = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for given in options.parts for name in WHOLE.get(given, [given])))
    begin = time.monotonic()
    ended, failed = run(names, options.jobs, options.order)
    failed = [part.name for part in ended if part.name in failed and not passes_alone(part, options.order)]
    summary(ended)
    if options.costs and not failed:
        write_costs(ended)
    heads = [row for part in ended for row in part.rows() if "total" in row]
    asked, left = sum(row["total"] for row in heads), sum(row["left"] for row in heads)
    seconds = time.monotonic() - begin
    say(f"\n{len(names)} parts in {seconds:.0f} s, order {options.order}; failed: {', '.join(failed) or 'none'}")
    if set(options.parts) & set(WHOLE):
        size, missing = kernels(ended)
        say(f"kernels: {size - len(missing)} of {size} were run{': not ' * bool(missing)}{', '.join(missing)}")
    rest = " ".join(REST[name] for name in options.parts if name in REST)
    say(f"asked: {asked:,} tests; left out: {left:,}. {rest}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
