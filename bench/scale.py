"""jittok beside a peer over gigabytes of new text: `python bench/scale.py`; `--help` tells more.

A corpus is made of what the machine has, each text once: sources and documents of installed packages, manuals, files
under `--texts FOLDER`, and with `--debian` packages that `apt-get download` fetches. Both sides take turns on batches
that neither has seen, in one process, and change who is first. The clock is CPU time, user and system apart. The peer
is called in the way that is its fastest on the first texts. All ids of those are compared before the clock starts,
those of each batch behind its turn: a batch on which they differ is told, and its documents counted.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import hashlib
import io
import json
import os
import platform
import re
import resource
import site
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import compare
import numpy as np
import peers

import jittok

HERE = Path(__file__).resolve().parent
PAGES = ".1.gz", ".3.gz", ".5.gz", ".7.gz", ".8.gz"
ENDINGS = {
    "code": (
        *(".py", ".pyi", ".pyx", ".c", ".h", ".cc", ".cpp", ".hpp"),
        *(".rs", ".go", ".js", ".ts", ".sh", ".pl", ".f90", ".S"),
    ),
    "english": (".txt", ".rst", ".md", ".html", ".htm", ".tex", ".info.gz", *PAGES),
    "multilingual": (".po", ".properties", ".txt", ".html", *PAGES),
}
"""What the files of a corpus end in."""
FOLDERS = {
    "code": [sysconfig.get_path("stdlib"), *site.getsitepackages(), "/usr/include", "/usr/share", "/usr/src"],
    "english": ["/usr/share/doc", "/usr/share/man", sysconfig.get_path("stdlib"), *site.getsitepackages()],
    "multilingual": ["/usr/share/locale", "/usr/share/man", "/usr/share/help", "/usr/share/i18n"],
}
PACKAGES = {
    "code": ["linux-source", "llvm-toolchain-source", "gcc-12-source", "binutils-source"],
    "english": ["doc-rfc-std", "manpages", "manpages-dev", "linux-doc", "debian-handbook", "python3-doc"],
    "multilingual": [
        *("manpages-de", "manpages-fr", "manpages-es", "manpages-ja", "manpages-pl", "manpages-ru", "manpages-it"),
        *("manpages-zh", "manpages-ro", "manpages-nl", "manpages-pt-br"),
    ],
}  # fmt: skip
"""Debian's, of which those that are there are taken."""
LEAST, MOST = 200, 4 << 20
"""Bytes of a text."""


def texts_of_file(name: str, read: Callable[[], bytes]) -> Iterator[bytes]:
    """The text of a file, if it is one."""
    try:
        raw = read()
        text = gzip.decompress(raw) if name.endswith(".gz") else raw
        text.decode()
    except (OSError, UnicodeDecodeError, EOFError, ValueError):
        return
    if LEAST <= len(text) <= MOST and b"\0" not in text:
        yield text


def texts_of_folder(folder: str | Path, endings: tuple[str, ...]) -> Iterator[bytes]:
    """All texts under a folder, in the order of their names."""
    for path, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            here = Path(path, name)
            if name.endswith(endings) and not here.is_symlink():
                yield from texts_of_file(name, here.read_bytes)


def texts_of_package(package: str, endings: tuple[str, ...]) -> Iterator[bytes]:
    """All texts of a Debian package, those of source archives in it too; none where it cannot be had."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(["apt-get", "download", package], cwd=folder, capture_output=True, check=False)
        except FileNotFoundError:  # another system
            return
        for path in Path(folder).glob("*.deb") if done.returncode == 0 else []:
            files = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(path)], capture_output=True, check=True).stdout
            yield from _texts_of_tar(io.BytesIO(files), endings)


def _texts_of_tar(file: Any, endings: tuple[str, ...]) -> Iterator[bytes]:
    with tarfile.open(fileobj=file) as tar:
        for member in tar:
            inside = tar.extractfile(member) if member.isfile() else None
            if inside is None:
                continue
            if re.search(r"\.tar\.(xz|gz|bz2)$", member.name):
                yield from _texts_of_tar(inside, endings)
            elif member.name.endswith(endings):
                yield from texts_of_file(member.name, inside.read)


def corpus(name: str, options: argparse.Namespace) -> Iterator[bytes]:
    """The texts of a corpus, no text twice."""
    seen: set[bytes] = set()
    folders = options.texts or FOLDERS[name]
    sources: list[Iterable[bytes]] = [texts_of_folder(folder, ENDINGS[name]) for folder in folders]
    if options.debian:
        sources += [texts_of_package(package, ENDINGS[name]) for package in PACKAGES[name]]
    for source in sources:
        for text in source:
            key = hashlib.blake2b(text, digest_size=12).digest()
            if key not in seen:
                seen.add(key)
                yield text


def batches(texts: Iterator[bytes], size: int) -> Iterator[list[bytes]]:
    """Texts in batches of about so many bytes; what is left over at the end is not enough for one."""
    batch: list[bytes] = []
    here = 0
    for text in texts:
        batch.append(text)
        here += len(text)
        if here >= size:
            yield batch
            batch, here = [], 0


def cpu() -> np.ndarray[Any, Any]:
    """Seconds of this process so far: user, system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return np.array([used.ru_utime, used.ru_stime])


def resident() -> int:
    """Bytes of memory that this process has."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return int(re.search(r"VmRSS:\s*(\d+)", status.read_text())[1]) << 10  # type: ignore[index]


def own_way(tok: jittok.Tokenizer, options: argparse.Namespace) -> peers.Way:
    """How jittok is called."""
    ready = peers.as_texts if options.kind == "str" else peers.as_bytes
    return peers.Way(f"batch of {options.kind}", ready, lambda texts: tok.encode_batch(texts, threads=options.threads))


def measure(vocabulary: str, name: str, options: argparse.Namespace) -> dict[str, Any] | None:
    """Both over one corpus: a point for each batch. None where the peer cannot be asked or there is too little text."""
    tok = compare.load(vocabulary)
    (peer,) = peers.peers(tok, options.threads, [options.peer])
    if isinstance(peer, str):
        print(f"{vocabulary}: {peer}", file=sys.stderr)
        return None
    source = batches(corpus(name, options), int(options.batch * 1e6))
    first = next(source, None)
    if first is None:
        print(f"{name}: less text than one batch; try --debian or --texts", file=sys.stderr)
        return None
    ways = list(peer.ways)
    right = tok.encode_batch(first, threads=1).to_list()
    for way in ways:
        same = sum(a == b for a, b in zip(right, peer.ids(way.run(way.ready(first))), strict=True))
        if same < len(first):
            print(f"{vocabulary} {name}: {way.name}: {len(first) - same} of {len(first)} rows differ", file=sys.stderr)
    chosen = compare.fastest(ways, first, time.process_time)
    sides = {"jittok": own_way(tok, options), "peer": chosen}
    points: list[dict[str, Any]] = []
    done = differ = documents = 0
    gc.collect()
    gc.disable()
    for number, batch in enumerate(islice(source, max(1, int(options.gigabytes * 1000 / options.batch)))):
        size = sum(map(len, batch))
        point: dict[str, Any] = {"bytes": size}
        found = {}
        for side in sorted(sides, reverse=number % 2 == 1):
            texts, before = sides[side].ready(batch), resident()
            start = cpu()
            result = sides[side].run(texts)
            point[side] = [round(float(part), 4) for part in cpu() - start]
            point[f"{side} resident"] = resident() - before  # with the ids that it gave
            found[side] = result.to_list() if side == "jittok" else peer.ids(result)
            del result, texts
        differ += sum(a != b for a, b in zip(found["jittok"], found["peer"], strict=True))
        documents += len(batch)
        done += size
        point["resident"] = resident()
        points.append(point)
    gc.enable()
    if not points:
        print(f"{name}: only one batch of text; try --debian or --texts", file=sys.stderr)
        return None
    total = {side: np.sum([point[side] for point in points], axis=0) for side in sides}
    return {
        "vocabulary": Path(vocabulary).stem, "corpus": name, "against": peer.name, "way": chosen.name,
        "kind": options.kind, "bytes": done, "documents": documents, "differ": differ,
        "ratio": round(float(total["peer"].sum() / total["jittok"].sum()), 3),
        "ns_a_byte": {side: [round(float(part) / done * 1e9, 3) for part in both] for side, both in total.items()},
        "resident": points[-1]["resident"], "points": points,
    }  # fmt: skip


def plot(results: list[dict[str, Any]], path: Path) -> None:
    """The ratio over gigabytes, of all so far; below it what the process has of memory."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, (ratio, memory) = plt.subplots(2, figsize=(8, 6), sharex=True, layout="constrained")
    for row in results:
        at = np.cumsum([point["bytes"] for point in row["points"]]) / 1e9
        both = [np.cumsum([sum(point[side]) for point in row["points"]]) for side in ("peer", "jittok")]
        label = f"{row['vocabulary']}, {row['corpus']}"
        ratio.plot(at, both[0] / both[1], label=label)
        memory.plot(at, [point["resident"] / 1e6 for point in row["points"]], label=label)
    ratio.axhline(1, color="grey", linewidth=0.8)
    ratio.set(ylabel=f"CPU time of {results[0]['against']} over jittok's")
    memory.set(xlabel="gigabytes of new text", ylabel="memory of both together, MB")
    ratio.legend()
    figure.savefig(path, metadata={"Date": None})


def table(results: list[dict[str, Any]]) -> str:
    """One line a vocabulary and corpus."""
    lines = [
        "| vocabulary | text | GB | ratio | jittok: user, system (ns a byte) | peer | its: user, system |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in results:
        own, theirs = (", ".join(f"{part:.2f}" for part in row["ns_a_byte"][side]) for side in ("jittok", "peer"))
        star = "*" if row["differ"] else ""
        lines.append(
            f"| {row['vocabulary']} | {row['corpus']} | {row['bytes'] / 1e9:.2f} | {row['ratio']:.2f} | {own} | "
            f"{row['against']}{star}, {row['way']} | {theirs} |"
        )
    return "\n".join(lines) + "\n"


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", nargs="+", default=["gpt-2"], help="bundled names or GGUF files")
    parser.add_argument("--corpora", nargs="+", default=list(ENDINGS), choices=list(ENDINGS))
    parser.add_argument("--peer", default="gigatoken", choices=compare.NAMES)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of each corpus, if there is as much")
    parser.add_argument("--batch", type=float, default=8.0, help="megabytes of a call")
    parser.add_argument("--kind", default="bytes", choices=["bytes", "str"], help="what jittok is given")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--texts", nargs="+", type=Path, help="folders of texts in place of the machine's own")
    parser.add_argument("--debian", action="store_true", help="download packages, some hundred megabytes")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder for the JSON file and the plot")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Measure, write, and print the table."""
    options = options_of(arguments)
    os.environ["RAYON_NUM_THREADS"] = str(options.threads)  # read by the peers in Rust when first used
    found = [measure(vocabulary, name, options) for vocabulary in options.vocab for name in options.corpora]
    results = [each for each in found if each is not None]
    if not results:
        return 1
    machine = {"cpu": compare.processor(), "python": f"Python {platform.python_version()}", "system": platform.system()}
    options.results.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"\W+", "-", f"scale-{machine['cpu']}-{options.threads}-{options.kind}").strip("-").lower()
    report = {"machine": machine, "threads": options.threads, "batch": options.batch, "results": results}
    (options.results / f"{stem}.json").write_text(json.dumps(report) + "\n", encoding="utf-8")
    plot(results, options.results / f"{stem}.svg")
    print(table(results))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
