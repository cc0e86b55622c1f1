"""CPU milliseconds of a start, in fresh processes: `python bench/start.py [VOCABULARY]`. Cold: an empty cache.

CPU and not wall time, so that a busy machine changes it less; the minimum of several warm runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

STEPS = """
import json, sys, time
clock, marks = time.process_time, []  # long work is done by another thread than this one
def mark(): marks.append(clock())
mark()
import numpy; mark()
import jittok; mark()
name = sys.argv[1]
tok = jittok.bundled(name) if name in jittok.bundled_names() else jittok.load(name); mark()
ids = tok.encode("The first text."); mark()
tok.encode_batch(["The first text."]); mark()
tok.decode(ids); mark()
from jittok._jit import kernel
from_where = sorted({each.origin for each in kernel.registry if each.origin})
print(json.dumps([[1000 * (b - a) for a, b in zip(marks, marks[1:])], from_where]))
"""
NAMES = ["numpy", "import jittok", "load", "first encode", "first batch", "first decode"]
WARM_RUNS = 7


def run(cache: str, vocabulary: str) -> tuple[list[float], list[str]]:
    env = os.environ | {"JITTOK_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"}  # its threads wait at work
    command = [sys.executable, "-c", STEPS, vocabulary]
    return json.loads(subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True).stdout)


if __name__ == "__main__":
    chosen = sys.argv[1] if len(sys.argv) > 1 else "gpt-2"
    with tempfile.TemporaryDirectory() as folder:
        cold, origins = run(folder, chosen)
        warm = [min(step) for step in zip(*(run(folder, chosen)[0] for _ in range(WARM_RUNS)), strict=True)]
    print(f"{chosen:20}{'cold':>8}{'warm':>8}   kernels, cold: {', '.join(origins)}")
    for row in [*zip(NAMES, cold, warm, strict=True), ("total", sum(cold), sum(warm))]:
        print(f"{row[0]:20}{row[1]:8.0f}{row[2]:8.0f}")
