"""The reader of training sequences beside other ways to read the same ids: millions of tokens a CPU second.

    python bench/reader.py [--mb 100] [--length 2048] [--batch 16] [--corpus FOLDER]

Peers that are not installed (torch, litdata, mosaicml-streaming) are left out. Megatron's way is its files by memmap,
with its index of samples in memory. A digest of all rows that a way gave, whatever their order, is compared with that
of the ids of the corpus; nanoGPT draws offsets, so its rows are others, as those of best fit are. CPU seconds are
those of all threads of the process; three rounds, the best. Padding is that of whole documents.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from corpus import make_input, own_texts

import jittok
from jittok.corpus import Options, compile_corpus, sequences
from jittok.corpus.reading import packing
from jittok.corpus.reading.opening import How, opened

FORMATS = ("npy", "nanogpt", "megatron", "arrow")
ROUNDS = 3
Rows = Iterator[Any]
"""Batches of rows."""


def all_ids(folder: Path) -> Any:
    """The ids of all shards."""
    return np.concatenate([np.load(path) for path in sorted((folder / "npy").glob("*.ids.npy"))])


def measured(make: Callable[[], Rows]) -> float:
    """Millions of tokens a CPU second, the best of some rounds."""
    best = 0.0
    for _ in range(ROUNDS):
        count, begin = 0, time.process_time()
        for batch in make():
            count += batch.size if isinstance(batch, np.ndarray) else batch.numel()
        best = max(best, count / (time.process_time() - begin) / 1e6)
    return best


def digest(make: Callable[[], Rows], length: int) -> str:
    """A digest of all rows as a set: the order does not count."""
    total = 0
    for batch in make():
        for row in np.ascontiguousarray(np.asarray(batch), np.int32).reshape(-1, length):
            total += int.from_bytes(hashlib.blake2b(row.tobytes(), digest_size=16).digest(), "little")
    return f"{total % (1 << 128):032x}"[:12]


def own(folder: Path, length: int, size: int) -> Iterator[tuple[str, Callable[[], Rows]]]:
    """jittok's ways."""
    for form in FORMATS:
        for shuffle in (None, "sequences"):
            reader = sequences(folder, length, shuffle=shuffle, seed=1, format=form)
            name = f"jittok, {form}, {'shuffled' if shuffle else 'in order'} (ids, segments, positions)"
            yield name, lambda reader=reader: (batch.ids for batch in reader.loader(size, drop_last=False))
    reader = sequences(folder, length, pack="best", pad_id=0, shuffle="sequences", seed=1)
    yield "jittok, npy, best fit, shuffled", lambda: (batch.ids for batch in reader.loader(size, drop_last=False))


def memmap_rows(ids: Any, folder: Path, length: int, size: int) -> Iterator[tuple[str, Callable[[], Rows]]]:
    """Plain NumPy, nanoGPT's get_batch and Megatron's way."""
    path = folder / "one.bin"
    ids.tofile(path)
    data, count = np.memmap(path, ids.dtype, "r"), ids.size // length

    def in_order() -> Rows:
        for k in range(0, count, size):
            yield data[k * length : min(k + size, count) * length].astype(np.int32).reshape(-1, length)

    yield "NumPy memmap, in order (ids alone)", in_order
    if importlib.util.find_spec("torch"):
        import torch

        def get_batch() -> Rows:
            for _ in range(count // size):
                places = torch.randint(ids.size - length, (size,))
                x = torch.stack([torch.from_numpy(data[i : i + length].astype(np.int64)) for i in places])
                torch.stack([torch.from_numpy(data[i + 1 : i + 1 + length].astype(np.int64)) for i in places])
                yield x

        yield "nanoGPT get_batch, drawn (x and y, int64)", get_batch
    order = np.random.default_rng(1).permutation(count)

    def sampled() -> Rows:
        for k in range(0, count, size):
            rows = [
                np.frombuffer(data, ids.dtype, length, int(at) * length * ids.itemsize) for at in order[k : k + size]
            ]
            yield np.stack([row.astype(np.int64) for row in rows])

    yield "Megatron's files, indexes in memory, shuffled (ids, int64)", sampled


def tokens_of(place: tuple[str, int, int]) -> Iterator[Any]:
    """What litdata stores: pieces of the ids."""
    import torch

    name, first, stop = place
    yield torch.from_numpy(np.load(name, mmap_mode="r")[first:stop].astype(np.int32))


def litdata_rows(ids: Any, folder: Path, length: int, _size: int) -> Iterator[tuple[str, Callable[[], Rows]]]:
    """litdata's TokensLoader."""
    from litdata import StreamingDataset, TokensLoader, optimize

    np.save(folder / "ids.npy", ids[: ids.size // length * length])
    step = length * 2048
    places = [
        (str(folder / "ids.npy"), at, min(at + step, ids.size // length * length)) for at in range(0, ids.size, step)
    ]
    loader = TokensLoader(block_size=length)
    optimize(
        tokens_of, places, str(folder / "lit"), chunk_size=step * 4, num_workers=1, item_loader=loader, verbose=False
    )
    for shuffle in (False, True):

        def rows(shuffle: bool = shuffle) -> Rows:
            found = StreamingDataset(str(folder / "lit"), item_loader=TokensLoader(block_size=length), shuffle=shuffle)
            yield from found

        yield f"litdata, {'shuffled' if shuffle else 'in order'} (ids)", rows


def streaming_rows(ids: Any, folder: Path, length: int, size: int) -> Iterator[tuple[str, Callable[[], Rows]]]:
    """mosaicml-streaming."""
    from streaming import MDSWriter, StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    with MDSWriter(out=str(folder / "mds"), columns={"ids": f"ndarray:{ids.dtype.name}:{length}"}) as out:
        for k in range(ids.size // length):
            out.write({"ids": ids[k * length : (k + 1) * length]})

    for shuffle in (False, True):

        def rows(shuffle: bool = shuffle) -> Rows:
            clean_stale_shared_memory()
            found = StreamingDataset(local=str(folder / "mds"), shuffle=shuffle, batch_size=size, num_canonical_nodes=1)
            for row in found:
                yield row["ids"].astype(np.int32)

        yield f"mosaicml-streaming, {'shuffled' if shuffle else 'in order'} (ids)", rows


def padding(folder: Path, length: int) -> None:
    """How much of sequences of whole documents is padding."""
    tokens = opened([folder], How())
    for name, pack in (("whole", packing.whole), ("best", packing.best)):
        begin = time.process_time()
        count = pack(packing.in_order(tokens), length).sequences()
        took = time.process_time() - begin
        share = 100 * (1 - tokens.total / (count * length))
        print(f"| padding of {name}: {share:.2f} % | table in {took * 1e3:.0f} ms | |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=100)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--corpus", type=Path, help="a finished corpus with the formats npy, nanogpt, megatron, arrow")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = given.corpus or folder / "made"
        if not given.corpus:
            path, _ = make_input(folder, list(own_texts()), given.mb * 1_000_000)
            compile_corpus([path], jittok.bundled("gpt-2"), made, Options(formats=FORMATS))
            path.unlink()
        compare(made, folder, given.length, given.batch)


def compare(made: Path, folder: Path, length: int, size: int) -> None:
    """Print the table."""
    ids = all_ids(made)
    want = digest(lambda: iter([ids[: ids.size // length * length]]), length)
    print(f"{ids.size / 1e6:.1f} M ids, {length} x {size}\n\n| reader | M tokens a CPU second | ids |\n|---|---|---|")
    makers: list[Any] = [lambda: own(made, length, size), lambda: memmap_rows(ids, folder, length, size)]
    for package, rows in (("litdata", litdata_rows), ("streaming", streaming_rows)):
        if importlib.util.find_spec(package):
            makers.append(lambda rows=rows: rows(ids, folder, length, size))
    for make in makers:
        with contextlib.suppress(ImportError):
            for name, rows in make():
                drawn = "drawn" in name or "best" in name
                equal = "other rows" if drawn else "equal" if digest(rows, length) == want else "DIFFER"
                print(f"| {name} | {measured(rows):.0f} | {equal} |", flush=True)
    shutil.rmtree(folder / "lit", ignore_errors=True)
    padding(made, length)


if __name__ == "__main__":
    main()
