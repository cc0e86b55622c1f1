"""Predicts what a run will write, from a sample of its input: for `--dry-run`, and for the disk check before a run.

How long a run will take is measured: the documents of the sample go through the whole compiler. Only that includes the
cost of reading, encoding, writing, hashing and syncing together on this machine.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.compiler import compile_corpus, formats_of, inputs_of
from jittok.corpus.formats.base import Format
from jittok.corpus.inputs.decompression import open_unpacked
from jittok.corpus.inputs.kinds import TABLES
from jittok.corpus.inputs.remote import is_url
from jittok.corpus.inputs.sources import STDIN, Source
from jittok.corpus.options import Options
from jittok.corpus.ranges import tables
from jittok.corpus.ranges.cutting import Limit, cut_lines, cut_separated, interval
from jittok.corpus.ranges.documents import Bad, RangeTexts
from jittok.corpus.ranges.encoder import Encoded, RangeEncoder
from jittok.corpus.ranges.encoder import Row as EncodedRows
from jittok.corpus.ranges.units import Key, RawRange, Unit, bytes_of, read_unit, units
from jittok.corpus.shards.shuffling import spool_bytes
from jittok.corpus.store import open_store
from jittok.encode.threads.stretches import thread_count
from jittok.errors import CorpusError, InWords
from jittok.kernels.inputs import Documents
from jittok.kernels.jit.pool import NEVER_CANCELLED, Cancellation
from jittok.tokenizer.facts import KERNELS

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

EXACT_BYTES = 4 << 20
"""Inputs of up to this many bytes on disk are read whole."""
SLOW_EXACT_BYTES = 256 << 10
"""The same limit where plain Python encodes, about a hundred times slower."""
MOST_SECONDS = 10.0
"""Seconds of probing, after which no further probe begins: a slow vocabulary costs no more than this and one probe."""
QUICK_PROBES = 8
LONG_DOCUMENT_RATIO = 2
"""An interval whose last document extends beyond this many times its size is estimated from its own bytes alone."""
NORMAL_95 = 1.96
SHORT_RUN_BYTES, LONG_RUN_BYTES = 2 << 20, 16 << 20
"""Bytes of text of the two runs: their difference is free of what every run costs once. Inputs of up to SHORT bytes are
compiled as they are."""
RANGES = 8
"""In the shorter one, so that all threads have work."""
ROUNDS = 3
PROBES, PROBE_BYTES = 32, 128 << 10
LEAST_ERROR = 0.02
"""No sample is said to be nearer to the truth than this."""
LENGTH_BYTES = 4
"""Of a text in Parquet, beside its own."""
START_BYTES, LONGEST_START, BYTES_PER_READ = 1 << 20, 64 << 20, 64 << 10


@dataclass(frozen=True)
class Prediction:
    """Expected numbers; `error` is half of a 95 % interval as a share of each, None with a single probe."""

    documents: float
    tokens: float
    text_bytes: float
    bytes: dict[str, float]  # by format
    seconds: float
    sampled: int  # bytes of input on disk that were looked at
    total: int
    error: dict[str, float | None]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def predict(
    encoder: RangeEncoder, formats: Sequence[Format], threads: int = 1, probes: int = PROBES, spare: int = 0
) -> Prediction:
    """Encode a sample spread over the input and scale it up; small inputs are encoded whole, without an error.

    `spare`: bytes at the start of the input that need no prediction. Raises CorpusError for standard input.
    """
    sources = encoder.sources
    if any(source.size is None for source in sources):
        raise CorpusError(STDIN, InWords("standard input"), "files, as a prediction reads its input twice")
    total = sum(source.size or 0 for source in sources)
    encoder.tok._wait_for_kernels()
    encoder.tok.encode_batch(["warm"])  # loading or compiling kernels is not what a sample should measure
    start = time.perf_counter()
    whole = total <= (EXACT_BYTES if encoder.tok.runs == KERNELS else SLOW_EXACT_BYTES)
    looked = list(_exact(encoder)) if whole else list(_in_time(_probe(encoder, total, probes), start + MOST_SECONDS))
    rows = np.array(looked, np.float64).reshape(-1, 5)
    seconds = time.perf_counter() - start
    seen = rows[:, 0].sum()
    factor = 1.0 if whole else total / max(seen, 1)
    documents, tokens, text_bytes = (rows[:, i].sum() * factor for i in (1, 2, 3))
    names = ("documents", "tokens", "text_bytes")
    error = {name: 0.0 if whole else _error(rows[:, 0], rows[:, i]) for i, name in enumerate(names, 1)}
    for name in () if whole else names[1:]:
        found = error[name]
        error[name] = None if found is None else max(found, LEAST_ERROR)
    if all(source.kind == "txt" for source in sources):
        documents, error["documents"] = float(len(sources)), 0.0
    elif not whole:  # no sample may have met the beginning of a document that is nearly all there is
        documents = max(documents, float(sum(bool(source.size) for source in sources if source.kind not in TABLES)))
    share = max(total - spare, 0) / max(total, 1)
    seconds *= text_bytes / max(rows[:, 4].sum(), 1) * share / threads
    sizes = {form.name: form.predict(documents, tokens) * share for form in formats if form.name != "errors"}
    return Prediction(
        documents * share, tokens * share, text_bytes * share, sizes, seconds,
        int(total if whole else seen), total, error,
    )  # fmt: skip


def _error(sizes: NDArray[np.float64], counts: NDArray[np.float64]) -> float | None:
    """Half of a 95 % interval of the ratio of sums, as a share of it, by leaving out one probe at a time."""
    n = sizes.size
    if n < 2 or not counts.sum():
        return None
    ratios = (counts.sum() - counts) / np.maximum(sizes.sum() - sizes, 1)
    spread = np.sqrt((n - 1) / n * ((ratios - ratios.mean()) ** 2).sum())
    return float(NORMAL_95 * spread / (counts.sum() / sizes.sum()))


Row = tuple[float, float, float, float, int]
"""Bytes on disk, documents, tokens and bytes of text in them, bytes of text that were encoded to know."""


def _in_time(rows: Iterator[Row], end: float) -> Iterator[Row]:
    """The rows that begin before the clock shows `end`, the first of them in any case."""
    for row in rows:
        yield row
        if time.perf_counter() > end:
            return


def _spread(probes: int) -> list[int]:
    """The numbers below `probes`, ordered by their bits reversed: so the first few are spread over all of them."""
    width = max(probes - 1, 1).bit_length()
    return sorted(range(probes), key=lambda k: int(f"{k:0{width}b}"[::-1], 2))


def _exact(encoder: RangeEncoder) -> Iterator[Row]:
    for unit in units(encoder.sources, encoder.options):
        for raw in read_unit(unit, encoder.sources, encoder.options):
            yield _row(encoder, raw, raw.new)


def _row(encoder: RangeEncoder, raw: RawRange, size: float) -> Row:
    encoded = encoder(raw)
    return size, encoded.lengths.size, encoded.ids.size, encoded.text_bytes, encoded.text_bytes


def _lines_at(encoder: RangeEncoder, i: int, position: int) -> Row:
    """Documents that begin in an interval of a plain file of lines; tokens of what is there.

    A document may be longer than an interval by far: it counts where it begins, but its tokens where they are.
    """
    source = encoder.sources[i]
    size = min(PROBE_BYTES, source.size or 0)
    start = min(position, (source.size or 0) - size)
    with source.open() as file:
        file.seek(start)
        bare = file.read(size)
        limit = Limit(source.path, encoder.options.max_document_bytes, "line")
        block = interval(file, start, start + size, limit) if b"\n" in bare or start == 0 else b""
    if len(block) <= LONG_DOCUMENT_RATIO * size and block:
        _, documents, tokens, text_bytes, encoded = _row(encoder, RawRange(Key(i, 1, 0), i, block, 0, 0), size)
        scale = size / len(block)
        return size, documents, tokens * scale, text_bytes * scale, encoded
    begun = bare.count(b"\n") + (start == 0) - bare.endswith(b"\n")
    return size, begun, *_inside(encoder, bare, source.kind == "jsonl")


def _inside(encoder: RangeEncoder, part: bytes, escaped: bool) -> tuple[int, int, int]:
    """Tokens and bytes of a part of a long text; `escaped`: as JSON has it."""
    text = part.decode("utf-8", "ignore")
    if escaped:
        first, last = text.find(" "), text.rfind(" ")  # no escape sequence has a space
        with contextlib.suppress(ValueError):  # with other fields, the raw text is near enough
            text = str(json.loads(f'"{text[first + 1 : last]}"', strict=False))
    data = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
    ends = np.array([0, data.size], np.int64)
    ends.flags.writeable = False
    one = np.ones(1, np.int64)
    if encoder.chats is not None:  # a part of the JSON of a chat
        return int(encoder.tok.encode(text.encode("utf-8", "replace")).size), data.size, data.size
    _, ids, _ = encoder.encode(RangeTexts(Documents(data, ends[:1], ends[1:]), one, one, 1))
    return int(ids.size), data.size, data.size


def _text_at(encoder: RangeEncoder, i: int, position: int) -> Row:
    """A part of a plain file that is one document."""
    source = encoder.sources[i]
    size = min(PROBE_BYTES, source.size or 0)
    with source.open() as file:
        file.seek(min(position, (source.size or 0) - size))
        return size, 1, *_inside(encoder, file.read(size), escaped=False)


def _probe(encoder: RangeEncoder, total: int, probes: int) -> Iterator[Row]:
    """Probes at even distances over the bytes on disk; of a file that can only be read from its start, its start."""
    begins = np.cumsum([0, *(source.size or 0 for source in encoder.sources)])
    from_start: dict[int, int] = defaultdict(int)
    rows: dict[int, list[float]] = defaultdict(list)
    for position in (np.array(_spread(probes)) + 0.5) * total / probes:
        i = int(np.searchsorted(begins, position, "right")) - 1
        source, offset = encoder.sources[i], int(position - begins[i])
        if source.kind in ("lines", "jsonl") and not source.packing:
            yield _lines_at(encoder, i, offset)
        elif source.kind == "txt" and not source.packing:
            yield _text_at(encoder, i, offset)
        elif source.kind == "parquet":
            rows[i].append(offset / max(source.size or 0, 1))
        else:
            from_start[i] += 1
    for i, count in from_start.items():
        yield from _probe_start(encoder, i) if count == 1 else _probe_stream(encoder, i, count)
    for i, shares in rows.items():
        yield from _probe_rows(encoder, i, sorted(shares))


def _probe_rows(encoder: RangeEncoder, i: int, shares: list[float]) -> Iterator[Row]:
    """Rows of a Parquet file near these shares of its text. A group with one probe gives its start, which is read at
    once.

    How many rows it has, and how many bytes of text, its footer says; probes tell the tokens of a byte.
    """
    source, name = encoder.sources[i], encoder.options.of_tables
    groups = range(tables.row_groups(source))
    if not groups:
        return
    ends = np.cumsum([tables.bytes_of_groups(source, name, [group]) for group in groups])
    marks = np.array(shares) * ends[-1]
    texts: list[Any] = []
    probes: list[tuple[float, Row]] = []  # each with the text that it stands for
    for group in groups:
        first, stop = (int(ends[group - 1]) if group else 0), int(ends[group])
        wanted = ((marks[(first <= marks) & (marks < stop)] - first) / max(stop - first, 1)).tolist()
        found = list(_rows_at(encoder, i, group, wanted if len(wanted) > 1 else [0.0], texts)) if wanted else []
        long = [text_bytes / max(size, 1) for size, _, _, text_bytes, _ in found]  # places are even over rows
        total = max(sum(long), 1e-9)
        probes += [((stop - first) * mean / total, row) for mean, row in zip(long, found, strict=True)]
    if not probes:
        return
    rows = sum(tables.rows_of(source, group) for group in groups)
    seen, stands = sum(row[0] for _, row in probes), max(sum(text for text, _ in probes), 1e-9)
    known = tables.bytes_of_groups(source, name, groups) - LENGTH_BYTES * rows
    # of lists and members of structs it has all columns, and of chats not what is rendered
    if encoder.chats is not None or not tables.has_column(source, name) or _repeat(texts):
        for _, (size, _, tokens, text_bytes, encoded) in probes:
            part = seen / max(rows, 1) / len(probes)  # of the file
            scale = rows * part / max(size, 1)
            yield (source.size or 0) * part, rows * part, tokens * scale, text_bytes * scale, encoded
        return
    for share, (_, _, tokens, text_bytes, encoded) in probes:
        part = share / stands * seen / max(rows, 1)
        text = known * part
        yield (source.size or 0) * part, rows * part, tokens / max(text_bytes, 1) * text, text, encoded


def _repeat(arrays: Sequence[Any]) -> bool:
    """Whether texts repeat, so that a table that keeps each once has fewer bytes."""
    import pyarrow as pa

    texts = pa.chunked_array([chunk for array in arrays for chunk in getattr(array, "texts", array).chunks])
    return bool(texts.unique().nbytes < (1 - LEAST_ERROR) * sum(chunk.nbytes for chunk in texts.chunks))


def _rows_at(encoder: RangeEncoder, i: int, group: int, shares: list[float], texts: list[Any]) -> Iterator[Row]:
    """The rows of a row group at these shares of it; in place of bytes on disk, how many they are. The texts are added
    to `texts`."""
    for _, array, read in tables.parquet_rows(encoder.sources[i], [group], _small(encoder), 0):
        if read > shares[0]:
            texts.append(array)
            yield _row(encoder, RawRange(Key(i, group, 0), i, array, 0, 0), len(array))
            shares = [share for share in shares if share >= read]
        if not shares:
            return


def _small(encoder: RangeEncoder) -> Any:
    return replace(encoder.options, range_bytes=PROBE_BYTES)


def _probe_start(encoder: RangeEncoder, i: int) -> Iterator[Row]:
    """The first documents of a packed file, a file with separators or an Arrow file; the start of a long text."""
    source = encoder.sources[i]
    if source.kind == "arrow":
        for _, array, read in tables.arrow_rows(source, _small(encoder), 0):
            yield _row(encoder, RawRange(Key(i, 0, 0), i, array, 0, 0), read * (source.size or 0))
            return
    start, ratio = _unpacked_start(source)
    take, limit = io.BytesIO(start).read, Limit(source.path, encoder.options.max_document_bytes, "document")
    payload: Any
    if source.kind == "txt":
        payload = [(i, start[:PROBE_BYTES])]
    elif source.kind == "separated":
        _, payload = next(cut_separated(take, PROBE_BYTES, (encoder.options.separator or "").encode(), limit), (0, []))
    else:
        _, payload = next(cut_lines(take, PROBE_BYTES, limit), (0, b""))
    size = (
        len(payload) if isinstance(payload, bytes) else sum(len(p if isinstance(p, bytes) else p[1]) for p in payload)
    )
    yield _row(encoder, RawRange(Key(i, 0, 0), i, payload, 0, 0), size * ratio)


def _probe_stream(encoder: RangeEncoder, i: int, count: int) -> Iterator[Row]:
    """Documents at so many even distances of a file that can only be read from its start: it is read as a whole."""
    source, seen, step, read, end = encoder.sources[i], 0, 1, 0, time.perf_counter() + MOST_SECONDS
    kept: list[tuple[RawRange, int]] = []  # every `step`-th part: fewer when there turn out to be many
    for k, raw in enumerate(read_unit(Unit(i, 0, i, 0, 0), encoder.sources, _small(encoder))):
        size = bytes_of(raw.payload)
        seen, read = seen + size, raw.read
        if k % step == 0:
            kept.append((raw, size))
        if len(kept) > count:
            kept, step = kept[::2], 2 * step
        if time.perf_counter() > end:
            break
    else:
        read = source.size or 0
    for raw, size in kept:
        yield _row(encoder, raw, size * read / max(seen, 1))


def _unpacked_start(source: Source) -> tuple[bytes, float]:
    """The start of a source, and how many bytes on disk it takes for each of its own."""
    with source.open() as file:
        packed = file.read(START_BYTES)
    read, found = open_unpacked(io.BytesIO(packed), source.packing, source.path), bytearray()
    try:
        while len(found) < LONGEST_START and (piece := read(BYTES_PER_READ)):
            found += piece
    except CorpusError:  # what comes next was not read
        pass
    return bytes(found), len(packed) / max(len(found), 1)


def check_space(out: Path, encoder: RangeEncoder, formats: Sequence[Format], done: int, shards: int = 1) -> None:
    """CorpusError if the disk of `out` has less free space than the rest of the run is expected to need, where
    `done` bytes of the input have been read and so many shards grow at once. Of URLs one sample has to do, as what is
    fetched costs time and money."""
    if any(source.size is None for source in encoder.sources):
        return
    far = [source.kind for source in encoder.sources if is_url(source.path)]
    if "parquet" in far:
        return  # a sample of a row group is the whole column of it
    expected = predict(encoder, formats, probes=1 if far else QUICK_PROBES, spare=done)
    need = sum(expected.bytes.values())
    if encoder.options.shuffle_documents is not None:
        need += _spooled(expected, encoder, shards)
    need *= 1 + (expected.error["tokens"] or 0)
    free = shutil.disk_usage(out).free
    if need > free:
        found = f"{free / 1e6:.0f} MB of free disk"
        raise CorpusError(
            str(out),
            InWords(found),
            f"about {need / 1e6:.0f} MB, estimated from a sample of the input (--no-space-check continues)",
        )


def _spooled(expected: Prediction, encoder: RangeEncoder, shards: int) -> float:
    """Bytes of the documents that wait to be sorted, of so many shards."""
    options = encoder.options
    found = spool_bytes(expected.documents, expected.tokens, encoder.tok.vocab_size, options)
    most = shards * options.shard_bytes or expected.text_bytes  # 0: one shard
    return found * min(most / max(expected.text_bytes, 1), 1)


class Sampler(RangeEncoder):
    """An encoder that keeps the texts it was given."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.kept: list[str] = []
        self.kept_bytes = self.text_bytes = 0  # of these, and of what was encoded: of chats, what was rendered
        self._read = 0
        self._bad: list[tuple[str, Bad]] = []

    def __call__(self, raw: RawRange, stop: Cancellation = NEVER_CANCELLED) -> Encoded:
        """As the encoder does."""
        encoded = super().__call__(raw, stop)
        self.text_bytes += encoded.text_bytes
        replaced = encoded.lost if self.options.on_error == "replace" else 0
        self._read += encoded.lengths.size - replaced
        self._bad += [(self.sources[bad.source].path, bad) for bad in encoded.bad[:1]]
        return encoded

    def refuse_nothing(self) -> None:
        """CorpusError when none of the documents looked at has a text."""
        if self._bad and not self._read:
            path, bad = self._bad[0]
            raise CorpusError(path, InWords(f"no text in any sampled document; for example {bad.found}"), bad.expected)

    def read(self, raw: RawRange, stop: Cancellation = NEVER_CANCELLED) -> RangeTexts:
        """As the encoder does."""
        texts = super().read(raw, stop)
        if self.chats is not None:
            self._keep(texts)
        return texts

    def rows(self, texts: RangeTexts, stop: Cancellation) -> tuple[RangeTexts, list[EncodedRows]]:
        """As the encoder does."""
        self._keep(texts)
        return super().rows(texts, stop)

    def _keep(self, texts: RangeTexts) -> None:
        data, starts, stops, *_ = texts.docs
        for i, j in zip(starts.tolist(), stops.tolist(), strict=True):
            self.kept.append(data[i:j].tobytes().decode("utf-8", "replace"))
            self.kept_bytes += j - i


class DryRun(NamedTuple):
    """What a run would write and how long it would take, by that many threads; its inputs, and what they leave out."""

    prediction: Prediction
    threads: int
    inputs: int
    left_out: list[str]


def dry_run(
    inputs: Sequence[str | os.PathLike[str]],
    tok: Tokenizer,
    out: str | os.PathLike[str],
    options: Options,
    threads: int | None = None,
) -> DryRun:
    """Predict a run of `compile_corpus` with these arguments; nothing is written to `out`. CorpusError as from it."""
    sources, left_out = inputs_of(inputs, options, open_store(out))
    slow = tok.runs != KERNELS  # plain Python, a thread at a time
    sampler, count = Sampler(tok, sources, options), 1 if slow else thread_count(threads)
    found = predict(sampler, formats_of(tok, sources, options), count)
    sampler.refuse_nothing()
    if slow:  # megabytes through the whole compiler would take minutes, and encoding is nearly all there is to do
        found = replace(found, error={**found.error, "seconds": found.error["text_bytes"]})
    else:
        share = sampler.kept_bytes / max(sampler.text_bytes, 1) if sampler.chats else 1.0
        found = with_time(found, sampler.kept, tok, options, count, share)
    return DryRun(found, count, len(sources), left_out)


def with_time(
    found: Prediction, texts: Sequence[str], tok: Tokenizer, options: Options, threads: int, share: float = 1.0
) -> Prediction:
    """The same prediction with the seconds of the whole compiler, and their error: of the text and between the runs.
    share: bytes of `texts` for each byte of text.

    Writes some 16 MB of text and its shards in a temporary directory; of an input of up to 2 MB, that input.
    """
    if not sum(map(len, texts)):
        return found
    small = replace(
        options, kind="jsonl", field="text", lines=False, separator=None, range_bytes=SHORT_RUN_BYTES // RANGES
    )
    with tempfile.TemporaryDirectory(prefix="jittok-") as name:
        folder = Path(name)
        size, chats = found.text_bytes * share, options.messages is not None
        measure = _as_it_is if size <= SHORT_RUN_BYTES else _by_two_sizes
        write = partial(_write, line=str.encode if chats else _line)
        seconds, spread = measure(
            folder, texts, size, write, lambda path, out: _seconds(path, tok, small, threads, out)
        )
    text = found.error["text_bytes"]
    error = {**found.error, "seconds": None if text is None else math.hypot(text, spread)}
    return replace(found, seconds=seconds, error=error)


Timer = Callable[[Path, Path], float]
"""The seconds in which a file is compiled into a folder."""


def _as_it_is(folder: Path, texts: Sequence[str], size: float, write: Any, seconds: Timer) -> tuple[float, float]:
    """(seconds, their share of error) of text that is so little that the start of a run takes longest."""
    path = write(folder / "all.jsonl", texts, size)
    seconds(path, folder / "warm")
    took = [seconds(path, folder / f"out{number}") for number in range(ROUNDS)]
    middle = float(np.median(took))
    return middle, (max(took) - min(took)) / 2 / middle


def _by_two_sizes(folder: Path, texts: Sequence[str], size: float, write: Any, seconds: Timer) -> tuple[float, float]:
    """The same of any more text: what every run costs once, and the rest by the byte."""
    short, long = (write(folder / f"{size}.jsonl", texts, size) for size in (SHORT_RUN_BYTES, LONG_RUN_BYTES))
    seconds(short, folder / "warm")
    once, rates = [], []
    for number in range(ROUNDS):
        first = seconds(short, folder / f"short{number}")
        second = seconds(long, folder / f"long{number}")
        rates.append(max(second - first, second / 2) / (LONG_RUN_BYTES - SHORT_RUN_BYTES))
        once.append(max(first - rates[-1] * SHORT_RUN_BYTES, 0.0))
    rate = float(np.median(rates))
    return float(np.median(once)) + rate * size, (max(rates) - min(rates)) / 2 / rate


def _line(text: str) -> bytes:
    import orjson

    return orjson.dumps({"text": text})


def _write(path: Path, texts: Sequence[str], size: float, line: Callable[[str], bytes]) -> Path:
    total = 0
    with path.open("wb") as file:
        while total < size:
            for text in texts:
                file.write(line(text) + b"\n")
                total += len(text.encode())
                if total >= size:
                    break
    return path


def _seconds(path: Path, tok: Tokenizer, options: Options, threads: int, out: Path) -> float:
    start = time.perf_counter()
    compile_corpus([path], tok, out, options, threads=threads, check_space=False)
    return time.perf_counter() - start
