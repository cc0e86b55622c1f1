"""Is there a newer llama.cpp, and what does it do that jittok does not know? Installs what PyPI has, compares, reports.

    python upstream/watch.py [--report FILE] [--libraries DIR] [--library PATH ...] [--texts N] [--pre PATTERN ...]

The newest builds of PACKAGES go into environments of their own under DIR. --library names a build that lies elsewhere,
and takes the place of installing. Each build is asked for all recorded texts (tests/data, and those beside the
checkout) and for every pre string on a vocabulary of all byte pairs with drawn texts. The words in its own strings are
tried as pre strings, as models, and as tokens. The report has every answer that no release known to jittok gives.
Standard error tells how far it is. Exit status: 0 nothing is new; 1 something is (the report says what, and
CONTRIBUTING what to do) or no build could be asked; 2 wrong use.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / "tests" / name) for name in ("", "data", "fuzz"))]

import compare  # noqa: E402  beside this file
from asking import Side  # noqa: E402

PACKAGES = ("llama-cpp-python", "xllamacpp", "llama-cpp-py-sync")
"""What ships llama.cpp on PyPI, with a library that has its C interface."""
BUILDING = 45 * 60
"""Seconds that a package without a wheel may take to be compiled."""
MOST = 12
"""Examples of one difference."""


class Build:
    """A library and where it comes from."""

    def __init__(self, name: str, python: Path, library: str) -> None:
        self.name, self.python, self.library = name, python, library


def installed(package: str, folder: Path) -> Build:
    """The newest build of a package, in an environment of its own. RuntimeError when it cannot be had."""
    home = folder / package
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    say(f"{package}: installing the newest")
    try:
        _run([*install, "--only-binary", package, package])
    except RuntimeError:
        say(f"{package}: no wheel for this machine; pip compiles its sources, for up to {BUILDING // 60} minutes")
        _run([*install, package], BUILDING)
    version = _run([python, "-c", f"import importlib.metadata as m; print(m.version({package!r}))"])
    return Build(f"{package} {version}", python, _run([python, HERE / "library.py", "find"]))


def _run(command: list[Any], limit: int | None = None) -> str:
    try:
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, check=False, timeout=limit
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"not done after {error.timeout:.0f} s") from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"status {done.returncode}"]
        raise RuntimeError(lines[-1])
    return done.stdout.strip()


def say(line: str) -> None:
    """Progress, for one who waits."""
    print(line, file=sys.stderr, flush=True)


def builds(options: argparse.Namespace) -> tuple[list[Build], list[str]]:
    """The builds to look at, and what could not be had."""
    if options.library:
        return [Build(Path(path).name, Path(sys.executable), str(Path(path).resolve())) for path in options.library], []
    found, missing = [], []
    for package in PACKAGES:
        try:
            found.append(installed(package, options.libraries))
        except RuntimeError as error:  # noqa: PERF203
            missing.append(f"{package}: {error}")
            say(f"{package} cannot be had: {error}")
    return found, missing


def section(build: Build, texts: int) -> tuple[list[str], bool | None]:
    """Lines of the report about one build, and whether it does anything new; None: it could not be asked."""
    try:
        side = Side(build.python, build.library)
    except RuntimeError as error:
        say(f"{build.name} cannot be asked: {error}")
        return [f"## {build.name}", "", f"Cannot be asked here: {error}", ""], None
    checks, began = [], time.monotonic()
    with side:
        for kind in compare.CHECKS:
            for check in kind(side, texts):
                checks.append(check)
                say(f"{time.monotonic() - began:6.0f} s  {build.name}: {check.name}, {check.asked} answers")
    lines, new = [f"## {build.name}", "", "| asked | answers | " + " | ".join(compare.RELEASE_NAMES) + " |"], []
    lines.append("|---|---|" + "---|" * len(compare.RELEASE_NAMES))
    for check in checks:
        counts = " | ".join(str(check.differing[name]) for name in compare.RELEASE_NAMES)
        lines.append(f"| {check.name} | {check.asked} | {counts} |")
        new += check.new
    lines += ["", "Numbers are answers that are neither jittok's for that release nor for a later one.", ""]
    if new:
        lines += [f"**New: {len(new)} answers that no release gives.**", ""]
        lines += [f"- {note}" for note in new[:MOST]] + ([f"- and {len(new) - MOST} more"] if len(new) > MOST else [])
        lines.append("")
    return lines, bool(new)


def main(arguments: list[str] | None = None) -> int:
    """Write the report; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--report", type=Path, default=Path("upstream-report.md"), metavar="FILE")
    parser.add_argument("--libraries", type=Path, default=Path(".venv/upstream"), metavar="DIR")
    parser.add_argument("--library", action="append", default=[], metavar="PATH", help="a library in place of packages")
    parser.add_argument("--texts", type=int, default=40, metavar="N", help="drawn texts a pre string (default 40)")
    parser.add_argument("--pre", nargs="+", default=["*"], metavar="PATTERN", help="pre strings to try on byte pairs")
    options = parser.parse_args(arguments)
    compare.PRE_PATTERNS[:] = options.pre
    found, missing = builds(options)
    lines, new = ["# llama.cpp, as PyPI has it, beside jittok", ""], list[bool | None]()
    lines += [f"jittok knows the releases {', '.join(compare.RELEASE_NAMES)}.", ""]
    for build in found:
        more, is_new = section(build, options.texts)
        lines, new = lines + more, [*new, is_new]
        options.report.write_text("\n".join(lines), encoding="utf-8")  # what is known so far
    if missing:
        lines += ["## Not asked: no build to install here", "", *(f"- {each}" for each in missing), ""]
    options.report.write_text("\n".join(lines), encoding="utf-8")
    sys.stdout.write("\n".join(lines))
    return 0 if False in new and True not in new else 1


if __name__ == "__main__":
    raise SystemExit(main())
