"""jittok beside its peers: `python bench/compare.py`; `--docs` writes docs/benchmarks.md, see `--help`.

Vocabularies are bundled names or GGUF files. Corpora are those beside the checkout, or Python's own sources and
documentation. Both sides take turns on the same documents in one process. The ratio is taken pair by pair, and its
median is given. There are three runs:
- *unseen*: each document once, as in a corpus, after a warm-up on other documents;
- *seen*: the same documents again;
- *single*: the same documents again, one call for each text, each a str.
A peer is called in the way that is its fastest on these documents. Ids are compared before the clock starts. On one
thread the clock is CPU time, so other work counts less.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import lzma
import os
import platform
import re
import resource
import statistics
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import conftest
import numpy as np
import peers

import jittok

HERE = Path(__file__).resolve().parent
NAMES = ["gigatoken", "tokie", "tokenizers", "tiktoken", "sentencepiece"]
MARKS = ("<!-- speed -->\n", "<!-- /speed -->")
SINGLE = ("<!-- single -->\n", "<!-- /single -->")
SECONDS = 40.0
"""A peer gets no more pairs once its turns have taken so long, but three."""
LEAST_PAIRS = 3


def corpus(name: str) -> list[bytes]:
    """Documents of a corpus beside the checkout; without it "code" and "english" are Python's own."""
    path = conftest.SHARED / "corpora" / f"{name}.jsonl.xz"
    if path.exists():
        return [json.loads(line)["text"].encode() for line in lzma.decompress(path.read_bytes()).splitlines()]
    if name == "english":
        from pydoc_data.topics import topics

        return [text.encode() for text in topics.values()]
    return conftest._sources()


def load(name: str) -> jittok.Tokenizer:
    """A bundled vocabulary, one beside the checkout, or a GGUF file."""
    if name in jittok.bundled_names():
        return jittok.bundled(name)
    path = conftest.SHARED / "vocabs" / f"{name}.gguf.xz"
    return jittok.load(lzma.decompress(path.read_bytes()) if path.exists() else name)


def chunks(documents: list[bytes], count: int) -> list[list[bytes]]:
    """`count` parts of about equal bytes."""
    parts: list[list[bytes]] = [[]]
    target, size = sum(map(len, documents)) / count, 0
    for document in documents:
        if size >= target * len(parts):
            parts.append([])
        parts[-1].append(document)
        size += len(document)
    return parts


def own_way(tok: jittok.Tokenizer, mode: str, threads: int) -> peers.Way:
    """How jittok is called."""
    if mode == "single":
        return peers.Way("each str", peers.as_texts, lambda texts: [tok.encode(text) for text in texts], True)
    return peers.Way("batch of bytes", peers.as_bytes, lambda texts: tok.encode_batch(texts, threads=threads))


def ways_of(peer: peers.Peer, mode: str) -> list[peers.Way]:
    """The ways of a peer that may be taken in a mode; none if it has no call for one text."""
    if mode != "single":
        return list(peer.ways)
    return [way for way in peer.ways if way.single and way.ready is peers.as_texts]


def fastest(ways: list[peers.Way], documents: list[bytes], clock: Callable[[], float]) -> peers.Way:
    """The way that does most bytes a second. Each gets documents of its own after a warm-up, where there are enough."""
    parts = chunks(documents, 2 * len(ways))
    rates = {}
    for k, way in enumerate(ways):
        part = (parts[2 * k], parts[2 * k + 1]) if len(parts) == 2 * len(ways) else (documents, documents)
        warm, timed = (way.ready(each) for each in part)
        way.run(warm)
        start = clock()
        way.run(timed)
        rates[way.name] = sum(map(len, part[1])) / max(clock() - start, 1e-9)
    return max(ways, key=lambda way: rates[way.name])


def compare(
    tok: jittok.Tokenizer, peer: peers.Peer, documents: list[bytes], mode: str, pairs: int, threads: int
) -> dict[str, Any]:
    """MB/s of both and the ratio. The tokenizer and the peer must be new when the mode is "unseen"."""
    clock = time.process_time if threads == 1 else time.perf_counter

    def seconds(way: peers.Way, texts: list[bytes]) -> tuple[float, float]:
        ready = way.ready(texts)
        start, system = clock(), resource.getrusage(resource.RUSAGE_SELF).ru_stime
        way.run(ready)
        return clock() - start, resource.getrusage(resource.RUSAGE_SELF).ru_stime - system

    own = own_way(tok, mode, threads)
    parts = chunks(documents, pairs + 1)
    if mode != "unseen":
        parts = [documents] * (pairs + 1)
    theirs_way = fastest(ways_of(peer, mode), parts[0], clock)
    for way in (own, theirs_way):  # not measured
        way.run(way.ready(parts[0]))
    mine, theirs, rates, system, total = [], [], [], np.zeros(2), 0.0
    gc.collect()
    gc.disable()
    begin = time.perf_counter()
    for part in parts[1:]:
        size = sum(map(len, part)) / 1e6
        (a, of_a), (b, of_b) = seconds(own, part), seconds(theirs_way, part)
        system += of_a, of_b
        total += size
        mine.append(size / a)
        theirs.append(size / b)
        rates.append(b / a)
        if time.perf_counter() - begin > SECONDS and len(rates) >= LEAST_PAIRS:
            break
    gc.enable()
    return {
        "jittok": round(statistics.median(mine), 1), "peer": round(statistics.median(theirs), 1),
        "ratio": round(statistics.median(rates), 2), "least": round(min(rates), 2), "most": round(max(rates), 2),
        "pairs": len(rates), "way": theirs_way.name, "system ns a byte": (system / total * 1e3).round(2).tolist(),
    }  # fmt: skip


def measure(vocabulary: str, name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Results of one vocabulary on one corpus."""
    documents = corpus(name)
    results = []
    for mode in options.modes:
        for wanted in options.peers:
            tok = load(vocabulary)
            for peer in peers.peers(tok, options.threads, [wanted]):
                if isinstance(peer, str):
                    print(f"{vocabulary} {name}: {peer}", file=sys.stderr)
                    continue
                ways = ways_of(peer, mode)
                if not ways:
                    print(f"{vocabulary} {name}: {peer.name} has no call for one str", file=sys.stderr)
                    continue
                sample = chunks(documents, options.pairs + 1)[0]
                right = tok.encode_batch(sample).to_list()
                same = min(
                    sum(row == other for row, other in zip(right, peer.ids(way.run(way.ready(sample))), strict=True))
                    for way in ways
                ) / len(sample)
                found = compare(tok, peer, documents, mode, options.pairs, options.threads)
                results.append(
                    {"vocabulary": Path(vocabulary).stem, "corpus": name, "mode": mode, "against": peer.name,
                     "same": round(same, 3)} | found
                )  # fmt: skip
                print(json.dumps(results[-1]), flush=True)
    return results


def processor() -> str:
    """What the machine calls its processor."""
    path = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", path.read_text()) if path.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def table(report: dict[str, Any]) -> str:
    """The table of docs/benchmarks.md: the fastest peer of each vocabulary and corpus."""
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for row in report["results"]:
        if row["mode"] == "single":
            continue
        cell = best.setdefault((row["vocabulary"], row["corpus"]), {})
        if row["mode"] not in cell or row["peer"] > cell[row["mode"]]["peer"]:
            cell[row["mode"]] = row
    lines = [
        "| vocabulary | text | unseen MB/s | seen MB/s | fastest peer | its MB/s | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for (vocabulary, name), cell in best.items():
        modes = [cell[mode] for mode in ("unseen", "seen") if mode in cell]
        rates = " / ".join(f"{row['peer']:.0f}" for row in modes)
        ratios = " / ".join(f"{row['ratio']:.{1 if row['ratio'] >= 2 else 2}f}" for row in modes)
        own = [f"{cell[mode]['jittok']:.0f}" if mode in cell else "" for mode in ("unseen", "seen")]
        against = modes[0]["against"] + ("" if modes[0]["same"] == 1 else "*")
        lines.append(f"| {vocabulary} | {name} | {own[0]} | {own[1]} | {against} | {rates} | {ratios} |")
    return "\n".join(lines) + "\n"


def single_table(report: dict[str, Any]) -> str:
    """The table of one text at a time: the fastest peer of each vocabulary and corpus."""
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for row in report["results"]:
        key = row["vocabulary"], row["corpus"]
        if row["mode"] == "single" and (key not in best or row["peer"] > best[key]["peer"]):
            best[key] = row
    lines = ["| vocabulary | text | MB/s | fastest peer | its MB/s | ratio |", "|---|---|---|---|---|---|"]
    for (vocabulary, name), row in best.items():
        against = row["against"] + ("" if row["same"] == 1 else "*")
        lines.append(
            f"| {vocabulary} | {name} | {row['jittok']:.0f} | {against} | {row['peer']:.0f} | {row['ratio']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def write_page(report: dict[str, Any], path: Path) -> None:
    """Replace what is between the marks."""
    text = path.read_text(encoding="utf-8")
    if any(row["mode"] == "single" for row in report["results"]):
        before, rest = text.split(SINGLE[0])
        _, after = rest.split(SINGLE[1])
        text = f"{before}{SINGLE[0]}{single_table(report)}\n{SINGLE[1]}{after}"
    if all(row["mode"] == "single" for row in report["results"]):
        path.write_text(text, encoding="utf-8")
        return
    before, rest = text.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    about = f"One core of {report['machine']['cpu']}, {report['machine']['python']}; " + ", ".join(
        f"{name} {version}" for name, version in report["versions"].items()
    )
    starred = any(row["same"] != 1 for row in report["results"])
    note = " `*`: its ids differ in some documents." if starred else ""
    about = "\n".join(textwrap.wrap(f"{about}.{note}", 120))
    path.write_text(f"{before}{MARKS[0]}{table(report)}\n{about}\n\n{MARKS[1]}{after}", encoding="utf-8")


def plot(report: dict[str, Any], path: Path) -> None:
    """Bars of MB/s, seen and unseen, jittok and its peers."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    rows = report["results"]
    groups = list(dict.fromkeys((row["vocabulary"], row["corpus"], row["mode"]) for row in rows))
    names = ["jittok", *dict.fromkeys(row["against"] for row in rows)]
    figure, axes = plt.subplots(figsize=(8, 0.32 * len(groups) * max(2, len(names) - 1) / 2 + 1), layout="constrained")
    height = 0.8 / len(names)
    for k, name in enumerate(names):
        for place, group in enumerate(groups):
            here = [r for r in rows if (r["vocabulary"], r["corpus"], r["mode"]) == group]
            rates = (
                [r["jittok"] for r in here] if name == "jittok" else [r["peer"] for r in here if r["against"] == name]
            )
            label = name if place == 0 else None
            if rates:
                axes.barh(place + k * height, max(rates), height, color=f"C{k}", label=label)
    axes.set_yticks([place + 0.4 - height / 2 for place in range(len(groups))], [" ".join(group) for group in groups])
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="MB/s on one core, logarithmic")
    axes.legend()
    figure.savefig(path, metadata={"Date": None})


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", nargs="+", default=list(jittok.bundled_names()), help="bundled names or GGUF files")
    parser.add_argument("--corpora", nargs="+", default=["english", "code", "multilingual"])
    parser.add_argument("--peers", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument(
        "--modes", nargs="+", default=["unseen", "seen", "single"], choices=["unseen", "seen", "single"]
    )
    parser.add_argument("--pairs", type=int, default=7, help="turns of both sides")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder for the JSON file and the plot")
    parser.add_argument("--docs", action="store_true", help="write the tables of docs/benchmarks.md")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Measure, write, and print the table."""
    options = options_of(arguments)
    os.environ["RAYON_NUM_THREADS"] = str(options.threads)  # read by the peers in Rust when first used
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if options.threads > 1 else "false"
    results = [row for vocab in options.vocab for name in options.corpora for row in measure(vocab, name, options)]
    versions = {"jittok": jittok.__version__}
    for name in ("numba", "numpy", *dict.fromkeys(row["against"] for row in results)):
        versions[name] = importlib.metadata.version(name)
    machine = {"cpu": processor(), "python": f"Python {platform.python_version()}", "system": platform.system()}
    report = {"machine": machine, "versions": versions, "threads": options.threads, "results": results}
    options.results.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"\W+", "-", f"{machine['cpu']}-{options.threads}").strip("-").lower()
    (options.results / f"{stem}.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    plot(report, options.results / f"{stem}.svg")
    if options.docs:
        write_page(report, HERE.parent / "docs" / "benchmarks.md")
    print(table(report), single_table(report), sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
