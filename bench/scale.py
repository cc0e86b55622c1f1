"""jittok beside a peer over gigabytes of new text: `python bench/scale.py`; `--help` tells more.

Both sides take turns on batches that neither has seen, in one process, and change who is first. The clock is CPU time,
user and system apart. The peer is called in the way that is its fastest on the first texts. The ids of all batches are
compared, those of the first before the clock starts: documents on which they differ are counted. `--debian` fetches
some hundred megabytes of packages, once (`bench/texts.py`). `--minutes` bounds the run: each vocabulary, corpus and
kind of call gets its share, and stops when that is over. `--docs` writes the table and pictures of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import re
import resource
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import compare
import numpy as np
import peers
from texts import ENDINGS, batches, corpus

import jittok

HERE = Path(__file__).resolve().parent
VOCABULARIES = ["gpt-2", "llama-bpe", "gpt-oss", "mistral", "t5", "bert"]
PEERS = {"t5": "tokie", "bert": "tokie"}
"""The fastest of the others; gigatoken where none is named."""
FLOORS = {"mistral": 5.0, "t5": 5.5, "bert": 3.5}
"""Ratios that are wanted, 1.25 where none is named."""
FLOOR = 1.25
CALLS = ["8:bytes", "50:bytes", "50:str", "50:arrow"]
LARGE = ["gpt-2", "llama-bpe", "gpt-oss"]
"""Vocabularies whose large calls are measured."""
FIRST_SHARE = 4
"""The first kind of call gets so many times the text and the time of another."""
MARKS = ("<!-- scale -->\n", "<!-- /scale -->")
PICTURE = HERE.parent / "docs" / "scale-{}.svg"
COLOURS = {"light": "#1f2328", "dark": "#e6edf3"}


def cpu() -> np.ndarray[Any, Any]:
    """Seconds of this process so far: user, system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return np.array([used.ru_utime, used.ru_stime])


def resident() -> int:
    """Bytes of memory that this process has."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    (kilobytes,) = re.findall(r"VmRSS:\s*(\d+)", status.read_text())
    return int(kilobytes) << 10


def _as_arrow(texts: list[bytes]) -> Any:
    import pyarrow

    return pyarrow.array(peers.as_texts(texts), pyarrow.large_string())


READY = {"bytes": peers.as_bytes, "str": peers.as_texts, "arrow": _as_arrow}


def differing(own: jittok.TokenArray, theirs: Any) -> int:
    """How many rows have other ids."""
    rows = [np.asarray(getattr(row, "ids", row)) for row in theirs]
    flat = np.concatenate(rows) if rows else np.zeros(0)
    lengths = np.array([row.size for row in rows])
    if np.array_equal(lengths, np.diff(own.offsets)) and np.array_equal(flat, own.ids):
        return 0
    return sum(not np.array_equal(mine, row) for mine, row in zip(own, rows, strict=True))


def _rows(peer: peers.Peer, result: Any) -> Any:
    """A result as rows of arrays."""
    return result if peer.ids is peers.rows else peer.ids(result)


def measure(
    vocabulary: str, name: str, call: str, share: float, end: float, options: argparse.Namespace
) -> dict[str, Any] | None:
    """Both over one corpus: a point for each batch, `share` of all there is. None where the peer cannot be asked or
    there is too little text. It ends at a time of `time.perf_counter`, but not before one batch."""
    tok = compare.load(vocabulary)
    (peer,) = peers.peers(tok, options.threads, [options.peer or PEERS.get(Path(vocabulary).stem, "gigatoken")])
    if isinstance(peer, str):
        print(f"{vocabulary}: {peer}", file=sys.stderr)
        return None
    size, _, kind = call.partition(":")
    most = int(options.gigabytes * 1e9)
    source = batches(corpus(name, options.texts, options.debian, most, options.keep), int(float(size) * 1e6))
    first = next(source, None)
    if first is None:
        print(f"{name}: less text than one batch; try --debian or --texts", file=sys.stderr)
        return None
    ways = list(peer.ways)
    right = tok.encode_batch(first, threads=1)
    for way in ways:
        wrong = differing(right, _rows(peer, way.run(way.ready(first))))
        if wrong:
            print(f"{vocabulary} {name}: {way.name}: {wrong} of {len(first)} rows differ", file=sys.stderr)
    del right  # its memory is for the next call, as that of the peer's results is
    chosen = compare.fastest(ways, first, time.process_time)
    own = peers.Way(f"batch of {kind}", READY[kind], lambda texts: tok.encode_batch(texts, threads=options.threads))
    sides = {"jittok": own, "peer": chosen}
    points: list[dict[str, Any]] = []
    done = differ = documents = 0
    gc.collect()
    gc.disable()
    for number, batch in enumerate(islice(source, max(1, int(share * options.runs * most / float(size) / 1e6)))):
        point: dict[str, Any] = {"bytes": sum(map(len, batch))}
        found = {}
        for side in sorted(sides, reverse=number % 2 == 1):
            texts, before = sides[side].ready(batch), resident()
            start = cpu()
            result = sides[side].run(texts)
            point[side] = [round(float(part), 4) for part in cpu() - start]
            point[f"{side} resident"] = resident() - before  # with the ids that it gave
            found[side] = result
            del result, texts
        differ += differing(found["jittok"], _rows(peer, found["peer"]))
        documents += len(batch)
        done += point["bytes"]
        point["resident"] = resident()
        points.append(point)
        if time.perf_counter() > end:
            break
    gc.enable()
    if not points:
        print(f"{name}: only one batch of text; try --debian or --texts", file=sys.stderr)
        return None
    total, last = ({side: np.sum([point[side] for point in part], axis=0) for side in sides}
                   for part in (points, points[-(len(points) // 3 + 1):]))  # fmt: skip
    return {
        "vocabulary": Path(vocabulary).stem, "corpus": name, "call": call, "against": peer.name, "way": chosen.name,
        "bytes": done, "documents": documents, "differ": differ,
        "ratio": round(float(total["peer"].sum() / total["jittok"].sum()), 3),
        "last_third": round(float(last["peer"].sum() / last["jittok"].sum()), 3),
        "ns_a_byte": {side: [round(float(part) / done * 1e9, 3) for part in both] for side, both in total.items()},
        "resident": points[-1]["resident"], "points": points,
    }  # fmt: skip


def runs_of(options: argparse.Namespace) -> Iterator[tuple[str, str, str, float, float]]:
    """What is measured: vocabulary, corpus, kind of call, share of all time, when it ends."""
    runs = [
        (vocabulary, name, call, FIRST_SHARE if k == 0 else 1)
        for name in options.corpora
        for vocabulary in options.vocab
        for k, call in enumerate(options.calls)
        if k == 0 or Path(vocabulary).stem in LARGE
    ]
    total = sum(weight for *_, weight in runs)
    options.runs = total / FIRST_SHARE  # the first kind of call may have all the text
    begin, done = time.perf_counter(), 0.0
    for vocabulary, name, call, weight in runs:
        done += weight / total
        yield vocabulary, name, call, weight / total, begin + 60 * options.minutes * done


def plot(results: list[dict[str, Any]], path: Path, colour: str) -> None:
    """The ratio over gigabytes of the first kind of call, a panel a corpus; below it what the process has of memory."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    first = [row for row in results if row["call"] == results[0]["call"]]
    names, vocabularies = (list(dict.fromkeys(row[key] for row in first)) for key in ("corpus", "vocabulary"))
    style = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), colour)
    with plt.rc_context({**style, "svg.hashsalt": "scale", "legend.frameon": False}):
        figure, axes = plt.subplots(
            2, len(names), figsize=(9, 5), sharex="col", sharey="row", squeeze=False, layout="constrained"
        )
        for row in first:
            above, below = axes[:, names.index(row["corpus"])]
            at = np.cumsum([point["bytes"] for point in row["points"]]) / 1e9
            both = [np.cumsum([sum(point[side]) for point in row["points"]]) for side in ("peer", "jittok")]
            look = {"color": f"C{vocabularies.index(row['vocabulary'])}", "linewidth": 1.2}
            above.plot(at, both[0] / both[1], label=f"{row['vocabulary']} ({row['against']})", **look)
            below.plot(at, [point["resident"] / 1e6 for point in row["points"]], **look)
        for column, name in enumerate(names):
            axes[0, column].set(title=name, yscale="log", yticks=[1, 1.5, 2, 3, 5, 8], ylim=(0.9, 10))
            axes[0, column].set_yticks([], minor=True)
            axes[0, column].set_yticklabels(["1", "1.5", "2", "3", "5", "8"])
            axes[0, column].axhline(1, color="grey", linewidth=0.8)
            axes[1, column].set(xlabel="gigabytes of new text", ylim=(0, None))
        axes[0, 0].set_ylabel("peer's CPU time over jittok's")
        axes[1, 0].set_ylabel("memory of both, MB")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
        figure.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(figure)


def _floor(row: dict[str, Any]) -> str:
    """The ratio that is wanted, and whether the row has less."""
    floor = FLOORS.get(row["vocabulary"], FLOOR)
    return f"{floor:g}" if row["ratio"] >= floor else f"{floor:g}, not reached"


def table(results: list[dict[str, Any]]) -> str:
    """One line a vocabulary, corpus and kind of call."""
    lines = [
        "| vocabulary | text | call | GB | ratio | last third | floor | user, system (ns a byte) | peer | its |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in results:
        own, theirs = (", ".join(f"{part:.2f}" for part in row["ns_a_byte"][side]) for side in ("jittok", "peer"))
        star = "*" if row["differ"] else ""
        size, _, kind = row["call"].partition(":")
        reached = _floor(row)
        lines.append(
            f"| {row['vocabulary']} | {row['corpus']} | {size} MB of {kind} | {row['bytes'] / 1e9:.2f} | "
            f"{row['ratio']:.2f} | {row['last_third']:.2f} | {reached} | {own} | {row['against']}{star} | {theirs} |"
        )
    return "\n".join(lines) + "\n"


DOCS_BYTES = 100_000_000
"""Less text than this flatters: such a row is printed, but not written to the page."""


def write_page(results: list[dict[str, Any]], machine: dict[str, str], path: Path) -> None:
    """Replace what is between the marks, and the pictures."""
    for name, colour in COLOURS.items():
        plot(results, Path(str(PICTURE).format(name)), colour)
    lines = ["| vocabulary | text | GB | ratio | floor | peer |", "|---|---|---|---|---|---|"]
    for row in results:
        if row["call"] == results[0]["call"] and row["bytes"] >= DOCS_BYTES:
            against = row["against"] + ("*" if row["differ"] else "")
            size = row["bytes"] / 1e9
            first = f"| {row['vocabulary']} | {row['corpus']} | {size:.2f} | {row['ratio']:.2f} "
            lines.append(f"{first}| {_floor(row)} | {against} |")
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    about = f"{machine['cpu']}, {machine['python']}. `*`: its ids differ in some documents."
    if any("not reached" in line for line in lines):
        about += " [bench/WHAT_WORKED.md](../bench/WHAT_WORKED.md) explains the rows below their floor."
    about = "\n".join(textwrap.wrap(about, 120))
    made = "\n".join(lines)
    path.write_text(f"{before}{MARKS[0]}{made}\n\n{about}\n\n{MARKS[1]}{after}", encoding="utf-8")


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", nargs="+", default=VOCABULARIES, help="bundled names, names of shared ones, files")
    parser.add_argument("--corpora", nargs="+", default=list(ENDINGS), choices=list(ENDINGS))
    parser.add_argument("--calls", nargs="+", default=CALLS, help="megabytes of a call, and bytes, str or arrow")
    parser.add_argument("--peer", choices=compare.NAMES, help="in place of each vocabulary's fastest")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of each corpus, if there is as much")
    parser.add_argument("--minutes", type=float, default=10.0, help="of the whole run, but for making the corpora")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--texts", nargs="+", type=Path, default=[], help="folders in place of the machine's own texts")
    parser.add_argument("--debian", action="store_true", help="download packages, some hundred megabytes")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir(), "jittok-scale"), help="for corpora")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder for the JSON file and the plot")
    parser.add_argument("--docs", action="store_true", help="write the table and pictures of docs/benchmarks.md")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Measure, write, and print the table."""
    options = options_of(arguments)
    os.environ["RAYON_NUM_THREADS"] = str(options.threads)  # read by the peers in Rust when first used
    for name in options.corpora:  # made before the clock starts
        for _ in corpus(name, options.texts, options.debian, int(options.gigabytes * 1e9), options.keep):
            break
    results = []
    for run in runs_of(options):
        found = measure(*run, options)
        if found is not None:
            results.append(found)
            print(table([found]).splitlines()[-1], flush=True)
    if not results:
        return 1
    machine = {"cpu": compare.processor(), "python": f"Python {platform.python_version()}", "system": platform.system()}
    options.results.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"\W+", "-", f"scale-{machine['cpu']}-{options.threads}").strip("-").lower()
    report = {"machine": machine, "threads": options.threads, "results": results}
    (options.results / f"{stem}.json").write_text(json.dumps(report) + "\n", encoding="utf-8")
    plot(results, options.results / f"{stem}.svg", COLOURS["light"])
    if options.docs:
        write_page(results, machine, HERE.parent / "docs" / "benchmarks.md")
    print(table(results))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
