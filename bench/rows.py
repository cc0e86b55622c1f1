"""Rows for training, beside tokenizers and transformers: `python bench/rows.py [--newer PYTHON]`.

BERT: questions and contexts, windows of 384 ids that share 128; GPT-2 and Llama 3: documents, windows of 1024 that
share 128; all padded. All take turns on one thread, the clock is CPU time, ids are compared first. jittok's time
includes arrays that a model takes (`to_padded`), the others' only their own objects. `--newer`: a Python that has
tokenizers 1.0, which cuts texts and knows no windows; a process of its own. Each cell is the least of all rounds. "of
encode_batch": the speed of both calls as a part of that of `encode_batch` alone, on the same texts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import compare
import conftest

import jittok

NEWER = """
import json, sys, time
import tokenizers
for line in sys.stdin:
    asked = json.loads(line)
    if "path" in asked:
        tok = tokenizers.Tokenizer.from_file(asked["path"])
        tok.truncation = tokenizers.Truncation(asked["length"], strategy=asked["strategy"])
        tok.padding = tokenizers.Padding(pad_id=asked["pad_id"], length=asked["length"])
        inputs = [tuple(each) if isinstance(each, list) else each for each in asked["inputs"]]
        answer = [row.ids for row in tok.encode_batch(inputs)]
    else:
        start = time.process_time()
        rows = tok.encode_batch(inputs)
        answer = time.process_time() - start
    print(json.dumps(answer), flush=True)
"""


class Task(NamedTuple):
    """Texts of one kind, and how they are cut."""

    name: str
    path: Path
    texts: list[str]
    pairs: list[str] | None
    length: int
    overlap: int
    strategy: str
    pad_id: int


def tasks(folder: Path, size: int) -> list[Task]:
    """Texts of `size` characters for each of three tokenizer files."""
    whole, taken = [text.decode() for text in compare.corpus("english")], 0
    documents = []
    while taken < size:
        documents.append(whole[len(documents) % len(whole)])
        taken += len(documents[-1])
    joined = "\n".join(documents)
    contexts = [joined[k : k + 3000] for k in range(0, size, 3000)]
    questions = [" ".join(text.split()[:9]) + "?" for text in contexts]
    found = []
    for name, path in (
        ("bert-base-uncased", "bert-base-uncased/tokenizer.json"), ("gpt2", "gpt2-files/tokenizer.json"),
        ("llama-3", "llama-3/tokenizer.json"),
    ):  # fmt: skip
        with tarfile.open(conftest.SHARED / "tokenizer-files" / f"{path.split('/')[0]}.tar.xz") as tar:
            tar.extractall(folder, filter="data")
        if name == "gpt2":
            write_gpt2(folder / "gpt2-files")
        pairs = (questions, contexts, 384, 128, "only_second") if name.startswith("bert") else None
        texts, second, length, overlap, strategy = pairs or (documents, None, 1024, 128, "longest_first")
        found.append(Task(name, folder / path, texts, second, length, overlap, strategy, 0))
    return found


def write_gpt2(folder: Path) -> None:
    """The tokenizer.json of a folder with vocab.json and merges.txt."""
    from tokenizers import ByteLevelBPETokenizer

    ByteLevelBPETokenizer(str(folder / "vocab.json"), str(folder / "merges.txt")).save(str(folder / "tokenizer.json"))


def seconds(call: Callable[[], Any]) -> float:
    """CPU seconds of one call. What it made is released afterwards."""
    start = time.process_time()
    made = call()
    spent = time.process_time() - start
    del made
    return spent


def ways_of(task: Task, tok: jittok.Tokenizer, windows: bool) -> dict[str, Callable[[], Any]]:
    """Name -> rows of one task."""
    import tokenizers
    import transformers

    own = tokenizers.Tokenizer.from_file(str(task.path))
    stride = task.overlap if windows else 0
    own.enable_truncation(task.length, stride=stride, strategy=task.strategy)
    own.enable_padding(length=task.length, pad_id=task.pad_id)
    given: Any = task.texts if task.pairs is None else list(zip(task.texts, task.pairs, strict=True))
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_file=str(task.path), pad_token="[PAD]")
    wrapped.pad_token_id = task.pad_id
    options: dict[str, Any] = {
        "truncation": task.strategy, "max_length": task.length, "stride": stride, "padding": "max_length",
        "return_overflowing_tokens": windows,
    }  # fmt: skip

    def rows() -> Any:
        made = tok.encode_batch(
            task.texts, task.pairs, max_length=task.length, overlap=stride, truncation=task.strategy, windows=windows,
            add_special=True, parse_special=True, threads=1,
        )  # fmt: skip
        return made.to_padded(task.length, pad_id=task.pad_id)

    def alone() -> Any:
        first = tok.encode_batch(task.texts, parse_special=True, threads=1)
        return first, tok.encode_batch(task.pairs, parse_special=True, threads=1) if task.pairs else None

    return {
        "jittok": rows, "encode_batch": alone, f"tokenizers {tokenizers.__version__}": lambda: own.encode_batch(given),
        f"transformers {transformers.__version__}": lambda: wrapped(task.texts, task.pairs, **options),
    }  # fmt: skip


def ids_of(result: Any, windows: bool) -> list[list[int]]:
    """The padded rows of any of these."""
    if hasattr(result, "mask"):
        return result.ids.tolist()  # type: ignore[no-any-return]
    if hasattr(result, "input_ids"):
        return result.input_ids  # type: ignore[no-any-return]
    return [row.ids for each in result for row in ([each, *each.overflowing] if windows else [each])]


class Newer:
    """tokenizers 1.0 in a process of its own."""

    def __init__(self, python: str) -> None:
        self.child = subprocess.Popen([python, "-c", NEWER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **asked: Any) -> Any:
        """The answer to one line."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(json.dumps(asked) + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())


def measure(task: Task, windows: bool, rounds: int, newer: Newer | None) -> None:
    """Print the row of one task."""
    tok = jittok.load(task.path)
    ways = ways_of(task, tok, windows)
    wanted = ids_of(ways["jittok"](), windows)
    for name, way in ways.items():
        if name != "encode_batch":
            assert ids_of(way(), windows) == wanted, name
    clocks: dict[str, Callable[[], float]] = {name: lambda way=way: seconds(way) for name, way in ways.items()}
    if newer is not None and not windows:
        given = task.texts if task.pairs is None else list(zip(task.texts, task.pairs, strict=True))
        how = {"length": task.length, "strategy": task.strategy, "pad_id": task.pad_id, "inputs": given}
        same = newer.ask(path=str(task.path), **how) == wanted
        clocks["tokenizers 1.0" + ("" if same else " (other ids)")] = newer.ask
    least = dict.fromkeys(clocks, 1e9)
    for k in range(rounds):
        for name, clock in clocks.items():
            if k < 3:
                least[name] = min(least[name], clock())
        for name in ("jittok", "encode_batch") * 4:
            least[name] = min(least[name], clocks[name]())
    size = sum(map(len, task.texts)) + sum(map(len, task.pairs or []))
    own = least["jittok"]
    others = [f"{name}: {spent / own:.1f}" for name, spent in least.items() if name not in ("jittok", "encode_batch")]
    kind = "windows" if windows else "cut"
    share = f"{least['encode_batch'] / own:.2f} of encode_batch"
    print(f"| {task.name} | {kind} | {size / own / 1e6:.0f} MB/s | {share} | " + " | ".join(others) + " |", flush=True)


def main() -> int:
    """Print the table: CPU time of the others as a multiple of jittok's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--newer", help="a Python that has tokenizers 1.0")
    parser.add_argument("--size", type=int, default=4 << 20, help="characters of text")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"], os.environ["TOKENIZERS_PARALLELISM"] = "1", "false"
    newer = Newer(options.newer) if options.newer else None
    with tempfile.TemporaryDirectory() as name:
        for task in tasks(Path(name), options.size):
            for windows in (True, False):
                measure(task, windows, options.rounds, newer)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
