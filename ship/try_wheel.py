"""A wheel in an environment without a compiler: python ship/try_wheel.py WHEEL

It is installed with what it depends on, but for Numba, into an environment that is made in a folder of its own. Commands
and libraries of the system are out of reach there. The first ids of five vocabularies must be the recorded ones, and all
kernels must come from the wheel. Prints the size of the wheel, and seconds.
"""

from __future__ import annotations

import lzma
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from email.parser import BytesParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data"
VOCABS = {"bert-bge": "bert", "gpt-2": "gpt-2", "mistral-v1": "mistral", "t5": "t5", "syn-rwkv": "a.gguf"}
"""Recorded set -> the vocabulary as `load` and `bundled` take it."""
COMPILER = "numba"
TRIAL = """
import base64, json, lzma, os, sys, time
begin = time.process_time()
import jittok
from jittok.kernels.jit import kernel, shipped
given, recorded = sys.argv[1:]
tok = jittok.load(given, cache=False) if os.path.exists(given) else jittok.bundled(given, llama_cpp="0.3.36")
cases, seconds = 0, 0.0
with lzma.open(recorded, "rt", encoding="utf-8") as file:
    for row in map(json.loads, file):
        if row["kind"] != "case" or not isinstance(row["ff"], list):
            continue
        text = row["text"] if isinstance(row.get("text"), str) else base64.b64decode((row.get("text") or row)["b64"])
        found = tok.encode(text).tolist()
        seconds = seconds or time.process_time() - begin
        cases += 1
        assert found == row["ff"], (text, found, row["ff"])
        assert tok.encode_batch([text]).to_list() == [found]
assert cases > 10, cases
for name in ("numba", "llvmlite"):
    assert name not in sys.modules, name
origins = {each.origin for each in kernel.registry} - {None}
assert origins == {"shipped"}, origins
print(f"{cases} texts, first ids after {seconds:.2f} CPU s; {shipped.status()}")
"""


def needs(wheel: Path) -> list[str]:
    """What the wheel depends on without an extra, and without the compiler."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        facts = BytesParser().parsebytes(archive.read(name))
    lines = [line for line in facts.get_all("Requires-Dist", []) if "extra ==" not in line]
    return [line for line in lines if (re.match(r"[\w-]+", line) or [""])[0].lower() != COMPILER]


def main(wheel: Path) -> int:
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        home, begin = Path(folder), time.monotonic()
        python = home / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([sys.executable, "-m", "venv", str(home / "venv")], check=True)
        subprocess.run([*pip, *needs(wheel)], check=True)
        subprocess.run([*pip, "--no-deps", "--no-index", str(wheel.resolve())], check=True)
        print(f"installed without {COMPILER} in {time.monotonic() - begin:.0f} s", flush=True)
        (home / "a.gguf").write_bytes(lzma.decompress((DATA / "vocabs" / "syn-rwkv.gguf.xz").read_bytes()))
        bare = {"PATH": str(home / "nothing"), "HOME": folder, "JITTOK_CACHE_DIR": str(home / "cache")}
        if "SYSTEMROOT" in os.environ:  # without it Windows starts no Python
            bare["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
        for recorded, vocab in VOCABS.items():
            path = DATA / "golden" / f"{recorded}.jsonl.xz"
            done = subprocess.run(
                [str(python), "-c", TRIAL, vocab, str(path)],
                env=bare, cwd=home, capture_output=True, text=True, check=False,
            )  # fmt: skip
            print(f"{vocab}: {(done.stdout or done.stderr).strip()}", flush=True)
            if done.returncode:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
