"""Each test file in a process of its own: none may need what another one did before it.

    python tests/alone.py [PATH ...]

PATH: files or folders, all of tests/ without one. Each file runs in an order of its own, whose seed is printed where it
fails. Status 1 if any failed.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTHING_TO_RUN = 5
"""Status of pytest where all tests of a file are left out."""


def files(paths: list[str]) -> list[Path]:
    found = []
    for path in map(Path, paths or [str(ROOT / "tests")]):
        if not path.exists():
            sys.exit(f"{path}: found nothing of that name, expected a test file or a folder")
        found += sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
    return found


def main() -> int:
    failed = []
    chosen = files(sys.argv[1:])
    for number, path in enumerate(chosen, 1):
        seed = random.randrange(1 << 31)
        command = [sys.executable, "-m", "pytest", "-q", "-rfE", f"--randomly-seed={seed}", str(path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        print(f"{number}/{len(chosen)}  {path.resolve().relative_to(ROOT)}  {last}", flush=True)
        if done.returncode not in (0, NOTHING_TO_RUN):
            failed.append(path)
            print(done.stdout + done.stderr + f"\nagain: {' '.join(command)}", flush=True)
    print(f"{len(failed)} of {len(chosen)} files fail alone", *failed, sep="\n  ")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
