"""Training beside other trainers: CPU, wall and peak memory, each in a process of its own, interleaved.

    python bench/train.py english.jsonl.xz code.jsonl.xz big.jsonl --docs --python gigabpe=/path/to/python

Reading the documents is not counted: they are in memory (gigabpe reads a text file, so its reading counts). "first" is
the first call of a process, "again" the second one. The same merges are told by equal digests; gigabpe is given lines,
so its words differ a little. With --python another interpreter runs a peer: gigabpe=/path/to/python. Peers that are
not installed are left out. A corpus of more than 100 MB has one turn of one call, and no Unigram. So has, after its
first process, whatever took longer than --slow seconds in it. A process that takes longer than --limit is ended, and
its row says so. --docs writes the table into docs/train.md after each corpus: what is done stays when a run is ended.
Kernels are compiled before anything is measured.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import lzma
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PEERS = (
    "jittok", "tokenizers", "gigabpe", "jittok-spm", "sentencepiece-bpe", "jittok-unigram", "sentencepiece-unigram",
)  # fmt: skip

LARGE = 100 << 20
MARKS = ("<!-- train -->", "<!-- /train -->")
HEAD = (
    "| corpus | trainer | CPU s, first call | again | of jittok's | MB above the process | merges | digest |",
    "|---|---|---|---|---|---|---|---|",
)


def read(corpus: str) -> list[str]:
    raw = Path(corpus).read_bytes()
    return [json.loads(line)["text"] for line in (lzma.decompress(raw) if corpus.endswith(".xz") else raw).splitlines()]


def jittok(texts: list[str], size: int, threads: int) -> list[list[str]]:
    import jittok

    made = jittok.train(texts, size=size, pre="gpt-2", like="hf", threads=threads).learned
    return [[made.texts[a], made.texts[b]] for a, b in made.merges.pairs.tolist()]


def jittok_spm(texts: list[str], size: int, threads: int) -> list[str]:
    from jittok.train.spm import train_spm

    return train_spm(texts, size, threads=threads).pieces


def jittok_unigram(texts: list[str], size: int, threads: int) -> list[tuple[str, float]]:
    from jittok.train.unigram import train_unigram

    made = train_unigram(texts, size, threads=threads)
    return list(zip(made.pieces, made.scores, strict=True))


def tokenizers(texts: list[str], size: int, _threads: int) -> list[list[str]]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tok.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=alphabet))
    return [list(pair) for pair in json.loads(tok.to_str())["model"]["merges"]]


def gigabpe(path: str, size: int, threads: int) -> list[list[str]]:
    import gigabpe as trainer

    _, merges = trainer.train_bpe([path], vocab_size=size, special_tokens=[], pretokenizer="bytelevel", threads=threads)
    return [list(pair) for pair in merges]


def sentencepiece_model(lines: list[str], size: int, **options: Any) -> Any:
    import io

    import sentencepiece as spm

    out = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, vocab_size=size, normalization_rule_name="identity",
        minloglevel=2, **options,
    )  # fmt: skip
    return spm.SentencePieceProcessor(model_proto=out.getvalue())


def sentencepiece_bpe(lines: list[str], size: int, threads: int) -> list[str]:
    made = sentencepiece_model(lines, size, model_type="bpe", byte_fallback=True, num_threads=threads)
    return [made.id_to_piece(k) for k in range(made.get_piece_size())]


def sentencepiece_unigram(lines: list[str], size: int, _threads: int) -> list[tuple[str, float]]:
    made = sentencepiece_model(lines, size, model_type="unigram")  # 16 threads: their number changes its answer
    return [(made.id_to_piece(k), made.get_score(k)) for k in range(made.get_piece_size())]


def measure(peer: str, corpus: str, size: int, threads: int, calls: int) -> dict[str, Any]:
    texts = read(corpus)
    given: Any = texts
    trainers: dict[str, Callable[..., Any]] = {
        "jittok": jittok, "tokenizers": tokenizers, "gigabpe": gigabpe, "jittok-spm": jittok_spm,
        "sentencepiece-bpe": sentencepiece_bpe, "jittok-unigram": jittok_unigram,
        "sentencepiece-unigram": sentencepiece_unigram,
    }  # fmt: skip
    if peer.startswith("sentencepiece"):
        given = [line for text in texts for line in text.split("\n")]
    with tempfile.TemporaryDirectory() as folder:
        if peer == "gigabpe":
            given = str(Path(folder) / "corpus.txt")
            Path(given).write_text("".join(text.rstrip("\n") + "\n" for text in texts), encoding="utf-8")
            del texts
        before = resource.getrusage(resource.RUSAGE_SELF)
        rows, merges = [], []
        for _ in range(calls):
            start, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
            merges = trainers[peer](given, size, threads)
            end = resource.getrusage(resource.RUSAGE_SELF)
            rows.append((end.ru_utime - start.ru_utime, end.ru_stime - start.ru_stime, time.perf_counter() - began))
    digest = hashlib.sha256(json.dumps(merges).encode()).hexdigest()[:12]
    return {
        "user": [row[0] for row in rows], "system": [row[1] for row in rows], "wall": [row[2] for row in rows],
        "before": before.ru_maxrss / 1024, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "merges": len(merges), "digest": digest,
    }  # fmt: skip


def installed(peer: str, python: str) -> bool:
    """Whether the package of a peer is there for an interpreter."""
    package = "sentencepiece" if peer.startswith("sentencepiece") else peer.partition("-")[0]
    found = subprocess.run([python, "-c", f"import {package}"], capture_output=True, check=False)
    return found.returncode == 0


def measured(corpus: str, peers: dict[str, str], options: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """What each peer (name -> interpreter) took in each turn."""
    large = Path(corpus).stat().st_size > LARGE
    turns, calls = (1, 1) if large else (options.turns, options.calls)
    found: dict[str, list[dict[str, Any]]] = {peer: [] for peer in peers}
    taken: dict[str, float] = {}  # seconds of the last process
    environment = {**os.environ, "RAYON_NUM_THREADS": str(options.threads)}
    for _ in range(turns):
        for peer, rows in found.items():
            if large and peer.endswith("-unigram"):
                continue  # sentencepiece needs many minutes and gigabytes
            command = [peers[peer], __file__, corpus, "--one", peer, "--size", str(options.size)]
            command += ["--threads", str(options.threads), "--calls", str(calls)]
            if taken.get(peer, 0.0) > options.slow:
                continue
            start = time.perf_counter()
            print(f"{time.strftime('%H:%M:%S')} {Path(corpus).name} {peer}", file=sys.stderr, flush=True)
            try:
                ran = subprocess.run(
                    command, capture_output=True, text=True, env=environment, check=False, timeout=options.limit
                )
            except subprocess.TimeoutExpired:
                taken[peer] = math.inf
                continue
            taken[peer] = time.perf_counter() - start
            if ran.returncode:
                sys.exit(f"{peer}: {ran.stderr[-500:]}")
            rows.append(json.loads(ran.stdout.splitlines()[-1]))
    return {peer: rows for peer, rows in found.items() if rows or taken.get(peer) == math.inf}


def table_rows(corpus: str, found: dict[str, list[dict[str, Any]]], limit: float) -> list[str]:
    """Rows of Markdown. The times are those of jittok's trainer of the same kind."""
    name, lines, own = Path(corpus).name.partition(".")[0], [], 1.0
    for peer, rows in found.items():
        if not rows:
            lines.append(f"| {name} | {peer} | above {limit:.0f} s of wall time | | | | | |")
            continue
        spent = [[row["user"][n] + row["system"][n] for row in rows] for n in (0, -1)]
        first, again = (statistics.median(times) for times in spent)
        if peer.startswith("jittok"):
            own = again
        taken = max(row["peak"] - row["before"] for row in rows)
        cells = [name, peer, f"{first:.2f}", f"{again:.2f}", f"{again / own:.1f}", f"{taken:.0f}"]
        lines.append(f"| {' | '.join([*cells, str(rows[0]['merges']), rows[0]['digest']])} |")
    return lines


def write_docs(table: str, path: Path, threads: int) -> None:
    """Replace what is between the marks."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    cpu = next(
        (line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), ""
    )
    about = f"{datetime.date.today()}, {threads} thread of {cpu}."
    path.write_text(f"{before}{MARKS[0]}\n{table}\n\n{about}\n\n{MARKS[1]}{after}", encoding="utf-8")


def compile_first(peer: str) -> None:
    """Train once on next to nothing, so that no call that is measured compiles."""
    trainers: dict[str, Callable[..., Any]] = {
        "jittok": jittok, "jittok-spm": jittok_spm, "jittok-unigram": jittok_unigram,
    }  # fmt: skip
    text = " ".join(f"{a}{b}{a}\u20ac \xe9{b}" for a in "abcdefgh" for b in "xyz")
    trainers[peer]([text] * 30, 330, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", metavar="CORPUS", help="JSON Lines with a text in each, also .xz")
    parser.add_argument("--size", type=int, default=32000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--calls", type=int, default=2, help="in each process")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--python", action="append", default=[], metavar="PEER=PATH")
    parser.add_argument("--slow", type=float, default=40, help="seconds of a process that is not run again")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a process is ended")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/train.md")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--compile", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compile:
        compile_first(options.compile)
        return
    if options.one:
        found = measure(options.one, options.corpora[0], options.size, options.threads, options.calls)
        print(json.dumps(found))
        return
    given = dict(row.split("=", 1) for row in options.python)
    peers = {peer: given.get(peer, sys.executable) for peer in options.peers.split(",")}
    peers = {peer: python for peer, python in peers.items() if installed(peer, python)}
    for peer in peers:
        if peer.startswith("jittok"):  # in a process of its own: the peak of this one is that of its children, too
            subprocess.run([peers[peer], __file__, "none", "--compile", peer], env=os.environ, check=True)
    lines = list(HEAD)
    for corpus in options.corpora:
        rows = table_rows(corpus, measured(corpus, peers, options), options.limit)
        print("\n".join(rows if len(lines) > len(HEAD) else [*lines, *rows]), flush=True)
        lines += rows
        if options.docs:
            write_docs("\n".join(lines), Path(__file__).parents[1] / "docs" / "train.md", options.threads)


if __name__ == "__main__":
    main()
