"""Measures how long a run will take: the documents of a sample go through the whole compiler.

Only that includes the cost of reading, encoding, writing, hashing and syncing together on this machine.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jittok.corpus.cancellation import NEVER_CANCELLED, Cancellation
from jittok.corpus.compiler import compile_corpus
from jittok.corpus.options import Options
from jittok.corpus.prediction import Prediction
from jittok.corpus.range_encoder import Encoded, RangeEncoder, Row
from jittok.corpus.ranges import RawRange
from jittok.corpus.reader import Bad, RangeTexts
from jittok.errors import CorpusError, InWords

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

SHORT_RUN_BYTES, LONG_RUN_BYTES = 2 << 20, 16 << 20
"""Bytes of text of the two runs: their difference is free of what every run costs once. Inputs of up to SHORT bytes are
compiled as they are."""
RANGES = 8
"""In the shorter one, so that all threads have work."""
ROUNDS = 3


class Sampler(RangeEncoder):
    """An encoder that keeps the texts it was given."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.kept: list[str] = []
        self._read = 0
        self._bad: list[tuple[str, Bad]] = []

    def __call__(self, raw: RawRange, stop: Cancellation = NEVER_CANCELLED) -> Encoded:
        """As the encoder does."""
        encoded = super().__call__(raw, stop)
        replaced = encoded.lost if self.options.on_error == "replace" else 0
        self._read += encoded.lengths.size - replaced
        self._bad += [(self.sources[bad.source].path, bad) for bad in encoded.bad[:1]]
        return encoded

    def refuse_nothing(self) -> None:
        """CorpusError when none of the documents looked at has a text."""
        if self._bad and not self._read:
            path, bad = self._bad[0]
            raise CorpusError(path, InWords(f"no text in any sampled document; for example {bad.found}"), bad.expected)

    def rows(self, texts: RangeTexts, stop: Cancellation) -> tuple[RangeTexts, list[Row]]:
        """As the encoder does."""
        data, starts, stops, *_ = texts.docs
        for i, j in zip(starts.tolist(), stops.tolist(), strict=True):
            self.kept.append(data[i:j].tobytes().decode("utf-8", "replace"))
        return super().rows(texts, stop)


def with_time(found: Prediction, texts: Sequence[str], tok: Tokenizer, options: Options, threads: int) -> Prediction:
    """The same prediction with the seconds of the whole compiler, and their error: of the text and between the runs.

    Writes some 16 MB of text and its shards in a temporary directory; of an input of up to 2 MB, that input.
    """
    if not sum(map(len, texts)):
        return found
    small = replace(
        options, kind="jsonl", field="text", lines=False, separator=None, range_bytes=SHORT_RUN_BYTES // RANGES
    )
    with tempfile.TemporaryDirectory(prefix="jittok-") as name:
        folder = Path(name)
        measure = _as_it_is if found.text_bytes <= SHORT_RUN_BYTES else _by_two_sizes
        seconds, spread = measure(
            folder, texts, found.text_bytes, lambda path, out: _seconds(path, tok, small, threads, out)
        )
    text = found.error["text_bytes"]
    error = {**found.error, "seconds": None if text is None else math.hypot(text, spread)}
    return replace(found, seconds=seconds, error=error)


Timer = Callable[[Path, Path], float]
"""The seconds in which a file is compiled into a folder."""


def _as_it_is(folder: Path, texts: Sequence[str], size: float, seconds: Timer) -> tuple[float, float]:
    """(seconds, their share of error) of text that is so little that the start of a run takes longest."""
    path = _write(folder / "all.jsonl", texts, size)
    seconds(path, folder / "warm")
    took = [seconds(path, folder / f"out{number}") for number in range(ROUNDS)]
    middle = float(np.median(took))
    return middle, (max(took) - min(took)) / 2 / middle


def _by_two_sizes(folder: Path, texts: Sequence[str], size: float, seconds: Timer) -> tuple[float, float]:
    """The same of any more text: what every run costs once, and the rest by the byte."""
    short, long = (_write(folder / f"{size}.jsonl", texts, size) for size in (SHORT_RUN_BYTES, LONG_RUN_BYTES))
    seconds(short, folder / "warm")
    once, rates = [], []
    for number in range(ROUNDS):
        first = seconds(short, folder / f"short{number}")
        second = seconds(long, folder / f"long{number}")
        rates.append(max(second - first, second / 2) / (LONG_RUN_BYTES - SHORT_RUN_BYTES))
        once.append(max(first - rates[-1] * SHORT_RUN_BYTES, 0.0))
    rate = float(np.median(rates))
    return float(np.median(once)) + rate * size, (max(rates) - min(rates)) / 2 / rate


def _write(path: Path, texts: Sequence[str], size: float) -> Path:
    import orjson

    total = 0
    with path.open("wb") as file:
        while total < size:
            for text in texts:
                file.write(orjson.dumps({"text": text}) + b"\n")
                total += len(text.encode())
                if total >= size:
                    break
    return path


def _seconds(path: Path, tok: Tokenizer, options: Options, threads: int, out: Path) -> float:
    start = time.perf_counter()
    compile_corpus([path], tok, out, options, threads=threads, check_space=False)
    return time.perf_counter() - start
