"""Texts and tokenizers for the benchmarks, and speed in MB/s beside the times."""

import functools
import json
import lzma
import os
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

import jittok

SHARED = Path(os.environ.get("JITTOK_SHARED") or Path(__file__).resolve().parents[2] / "shared")
BYTES = 4 << 20


def _sources() -> list[bytes]:
    """Python's standard library, which is everywhere."""
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return [path.read_bytes() for path in paths]


@functools.cache
def documents(name: str) -> list[bytes]:
    """BYTES of a corpus beside the checkout, or of Python sources where there is none."""
    path = SHARED / "corpora" / f"{name}.jsonl.xz"
    if path.exists():
        texts = [json.loads(line)["text"].encode() for line in lzma.decompress(path.read_bytes()).splitlines()]
    else:
        texts = _sources()
    chosen, size = [], 0
    for text in texts:
        if size >= BYTES:
            break
        chosen.append(text)
        size += len(text)
    return chosen


@pytest.fixture(scope="session")
def corpus() -> Callable[[str], list[bytes]]:
    return documents


@pytest.fixture(scope="session")
def bundled() -> Callable[[str], jittok.Tokenizer]:
    return functools.cache(jittok.bundled)


@pytest.fixture
def rate(benchmark) -> Callable[[int], None]:
    """rate(bytes): note MB/s of the fastest round."""

    def note(size: int) -> None:
        if benchmark.stats:  # None when benchmarks only run once as tests
            benchmark.extra_info["MB/s"] = round(size / benchmark.stats.stats.min / 1e6, 1)

    return note
