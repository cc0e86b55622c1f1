"""Training beside other trainers: CPU, wall and peak memory, each in a process of its own, interleaved.

    python bench/train.py texts.jsonl [.xz] --size 32000 --peers jittok,tokenizers,gigabpe --turns 3

Reading the documents is not counted: they are in memory (gigabpe reads a text file, so its reading counts). "first" is
the first call of a process, "again" the second one. The same merges are told by equal digests; gigabpe is given lines,
so its words differ a little. With --python another interpreter runs a peer: gigabpe=/path/to/python.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="JSON Lines with a text in each, also .xz")
    parser.add_argument("--size", type=int, default=32000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--calls", type=int, default=2, help="in each process")
    parser.add_argument("--peers", default="jittok,tokenizers,gigabpe")
    parser.add_argument("--python", action="append", default=[], metavar="PEER=PATH")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.corpus, options.size, options.threads, options.calls)))
        return
    pythons = dict(given.split("=", 1) for given in options.python)
    found: dict[str, list[dict[str, Any]]] = {peer: [] for peer in options.peers.split(",")}
    for _ in range(options.turns):
        for peer, rows in found.items():
            command = [pythons.get(peer, sys.executable), __file__, options.corpus, "--one", peer]
            command += ["--size", str(options.size), "--threads", str(options.threads), "--calls", str(options.calls)]
            environment = {**os.environ, "RAYON_NUM_THREADS": str(options.threads)}
            ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
            if ran.returncode:
                sys.exit(f"{peer}: {ran.stderr[-500:]}")
            rows.append(json.loads(ran.stdout.splitlines()[-1]))
    print("| trainer | first call: user + system s | again | of jittok's | MB before, peak | merges | digest |")
    print("|---|---|---|---|---|---|---|")
    own = None
    for peer, rows in found.items():
        middle = {k: [statistics.median(row[k][n] for row in rows) for n in (0, -1)] for k in ("user", "system")}
        first, again = (middle["user"][n] + middle["system"][n] for n in (0, -1))
        own = own or again
        cells = [
            peer,
            f"{middle['user'][0]:.2f} + {middle['system'][0]:.2f}",
            f"{again:.2f} (first {first:.2f})",
            f"{again / own:.2f}",
            f"{rows[0]['before']:.0f}, {max(row['peak'] for row in rows):.0f}",
            str(rows[0]["merges"]),
            rows[0]["digest"],
        ]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
