"""CPU milliseconds of a start, in fresh processes: `python bench/start.py [VOCABULARY ...]`. Cold: an empty cache.
`python bench/start.py --peers VOCABULARY ...`: seconds to the first ids beside the others', in turns.

CPU and not wall time, so that a busy machine changes it less; the minimum of several warm runs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
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
tok.encode_batch(["The first text."] * 1000); mark()
tok.decode(ids.tolist() * 1000); mark()
from jittok.kernels.jit import kernel
from_where = sorted({each.origin for each in kernel.registry if each.origin})
print(json.dumps([[1000 * (b - a) for a, b in zip(marks, marks[1:])], from_where]))
"""
NAMES = ["numpy", "import jittok", "load", "first encode", "first batch", "first decode", "much text", "many ids"]
WARM_RUNS = 7


def run(cache: str, vocabulary: str) -> tuple[list[float], list[str]]:
    env = os.environ | {"JITTOK_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"}  # its threads wait at work
    command = [sys.executable, "-c", STEPS, vocabulary]
    return json.loads(subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True).stdout)


OURS = "import jittok; ids = jittok.{load}({name!r}).encode(text)"
OURS_BATCH = "import jittok; ids = jittok.{load}({name!r}).encode_batch([text] * 1000)[0]"
"""Does not leave a text to plain Python where the kernel would have to be compiled."""
FIRST_IDS = {
    "jittok, first": OURS,
    "jittok, again": OURS,
    "jittok, batch": OURS_BATCH,
    "jittok, batch again": OURS_BATCH,
    "tokenizers": "import tokenizers; ids = tokenizers.Tokenizer.from_file({json!r}).encode(text).ids",
    "gigatoken": "import gigatoken; ids = gigatoken.Tokenizer({json!r}).encode(text)",
    "tokie": "import tokie; ids = tokie.Tokenizer.from_json({json!r}).encode_batch_flat([text])",
    "sentencepiece": "import sentencepiece as s; ids = s.SentencePieceProcessor(model_file={model!r}).encode(text)",
    "llama-cpp-python": "import llama_cpp as l; l.Llama({gguf!r}, vocab_only=True, verbose=False).tokenize(b'The')",
}
"""What a process does from nothing to the first ids."""


def first_ids(chosen: str) -> None:
    """CPU seconds of whole processes to their first ids, ours and others' in turns, each with its own kind of file."""
    import lzma
    from pathlib import Path

    from peers import _json_file, _sentencepiece_model

    import jittok

    bundled = chosen in jittok.bundled_names()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        files = {"name": chosen, "load": "bundled" if bundled else "load", "json": "", "gguf": chosen}
        files["model"] = str(place / "model")
        tok = jittok.bundled(chosen) if bundled else jittok.load(chosen)
        if bundled:
            packed = Path(jittok.__file__).parent / "vocab" / "data" / f"{chosen}.gguf.xz"
            files["gguf"] = str(place / "vocab.gguf")
            Path(files["gguf"]).write_bytes(lzma.decompress(packed.read_bytes()))
        with contextlib.suppress(KeyError):  # for spm there is none
            files["json"] = _json_file(tok, place)
        if tok.type in ("spm", "ugm"):
            (place / "model").write_bytes(_sentencepiece_model(tok))
        spent: dict[str, list[float]] = {}
        for _ in range(WARM_RUNS):
            shutil.rmtree(place / "cache", ignore_errors=True)
            env = os.environ | {"JITTOK_CACHE_DIR": str(place / "cache"), "OPENBLAS_NUM_THREADS": "1"}
            for name, code in FIRST_IDS.items():
                whole = f"import time; text = 'The first text.'; {code.format(**files)}; print(time.process_time())"
                done = subprocess.run(
                    [sys.executable, "-c", whole], env=env, capture_output=True, text=True, check=False, cwd=folder
                )
                if done.returncode == 0:
                    spent.setdefault(name, []).append(float(done.stdout.split()[-1]))
    for name, seconds in spent.items():
        print(f"{chosen[-20:]:20} {name:20}{min(seconds):8.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="CPU milliseconds of a start, in fresh processes.")
    parser.add_argument("vocabulary", nargs="*", default=["gpt-2"], help="bundled names or files (default: gpt-2)")
    parser.add_argument("--peers", action="store_true", help="seconds to the first ids, beside the others'")
    given = parser.parse_args()
    for chosen in given.vocabulary:
        if given.peers:
            first_ids(chosen)
            continue
        with tempfile.TemporaryDirectory() as folder:
            cold, origins = run(folder, chosen)
            warm = [min(step) for step in zip(*(run(folder, chosen)[0] for _ in range(WARM_RUNS)), strict=True)]
        print(f"{chosen[-20:]:20}{'cold':>8}{'warm':>8}   kernels, cold: {', '.join(origins)}")
        for row in [*zip(NAMES, cold, warm, strict=True), ("total", sum(cold), sum(warm))]:
            print(f"{row[0]:20}{row[1]:8.0f}{row[2]:8.0f}")
