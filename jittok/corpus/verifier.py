"""`jittok verify`: checks that the files are those that were written, and the ids those that the tokenizer gives today.

Kernels that were wrong when a corpus was written give the same ids when they run again. So the plain reference, which
shares no code with them, tokenizes some documents of each shard too. It takes ten seconds for what kernels do in a
hundredth of one, so it reads few bytes of each shard.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.display.progress import Bar, Show
from jittok.common.pipeline import Pipeline
from jittok.corpus.inputs.sources import LOST_AT, STDIN, Source, look_at
from jittok.corpus.options import SIDES, Options, from_identity
from jittok.corpus.ranges.documents import select
from jittok.corpus.ranges.encoder import Encoded, RangeEncoder
from jittok.corpus.ranges.engines import encode_on_threads
from jittok.corpus.ranges.split import of_side
from jittok.corpus.ranges.units import Key, RawRange, read_unit, units_at
from jittok.corpus.shards import readback
from jittok.corpus.shards.fields import fields_of
from jittok.corpus.shards.manifest import SIDE, Manifest, label_of, read_manifest, store_of, with_recorded_release
from jittok.corpus.shards.plan import CHAT, chat_facts, input_path
from jittok.corpus.shards.shuffling import keys_of_range
from jittok.corpus.shards.writer import fault_of
from jittok.corpus.store import Store
from jittok.corpus.tasks.begin import changed_inputs
from jittok.corpus.tasks.shares import part_of
from jittok.errors import CorpusError, EncodingFailed, InWords, UnsupportedVocab
from jittok.kernels.jit.pool import NEVER_CANCELLED, Cancellation
from jittok.tokenizer.facts import KERNELS

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

SAMPLE = 16
"""Ranges that are tokenized again, spread over the corpus with the first and the last."""
LABEL = re.compile(r"\d{5,}(-\d{3,})?")
STRANGER = "a file that is not part of this corpus: move it elsewhere"
BYTES = 1 << 15
"""Text that the reference reads of each shard, unless all documents are longer;"""
LONGEST_DOCUMENT = 1 << 18
"""then the shortest of them, if it is no longer than this."""
DOCUMENTS = 16
"""That the reference reads of each shard, at most, spread over one of its ranges."""


@dataclass
class Report:
    """What `verify` found. `differences` is empty when all is well."""

    files: int = 0
    bytes: int = 0
    ranges: int = 0
    documents: int = 0
    of_documents: int = 0
    witnessed: int = 0  # documents that the plain reference has tokenized as well,
    witnessed_bytes: int = 0
    witnessed_shards: int = 0  # and the shards that they are from
    of_shards: int = 0
    runs: str = ""  # what tokenized again, a value of `Tokenizer.runs`; empty with `hashes_only`
    differences: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


@dataclass(frozen=True)
class _Place:
    """A range and where its documents lie in the corpus."""

    task: str  # where documents are shuffled, so that each task is read at once
    key: Key
    shard: int
    first: int  # document of the corpus
    documents: int
    first_of_shard: int
    rows: NDArray[np.int64] | None = field(default=None, compare=False)  # int64[documents]: of the shard

    def of_row(self, row: int) -> dict[str, int]:
        """Which document row `row` of the range is, of the corpus and of its shard."""
        at = int(self.rows[row]) if self.rows is not None else 0
        return {"document": self.first_of_shard + at, "document_of_shard": at}


class _Order:
    """Where the documents of a range are in their shard."""

    def __init__(self, manifest: Manifest) -> None:
        self._shards, self._seed = manifest["shards"], manifest["options"].get("shuffle_documents")
        self._shard, self._places = -1, np.zeros(0, np.int64)

    def rows(self, position: _Place) -> NDArray[np.int64]:
        """int64[documents]: one after the other, or by the keys of all documents of the shard."""
        first = position.first - position.first_of_shard
        if self._seed is None:
            return np.arange(first, first + position.documents)
        if self._shard != position.shard:
            rows = self._shards[position.shard]["ranges"]
            keys = np.concatenate([keys_of_range(self._seed, row[:3], row[3]) for row in rows])
            self._places = np.empty(keys.size, np.int64)
            self._places[np.argsort(keys, kind="stable")] = np.arange(keys.size)
            self._shard = position.shard
        return self._places[first : first + position.documents]


def verify(
    folder: str | os.PathLike[str],
    tok: Tokenizer,
    *,
    all: bool = False,  # noqa: A002  as on the command line
    hashes_only: bool = False,
    part: str | None = None,
    threads: int | None = None,
    progress: Show = "auto",
) -> Report:
    """Hash every file of a corpus directory and tokenize a sample of its ranges again (`all`: every one, and hash the
    inputs; `hashes_only`: none). Some documents of each shard are tokenized by the plain reference too, so that what
    kernels have always got wrong is found (not where the general path runs, which is that reference). `part`, "i/n":
    only each n-th shard, from shard i on, so that several processes share the work.

    progress: "auto" shows how far it is when it lasts.

    Differences name shard, format and document. CorpusError for a directory without manifest, another vocabulary, or
    inputs that are not there any more.
    """
    store, found, share = store_of(folder), Report(), part_of(part or "0/1", None)
    tok = with_recorded_release(tok, store)
    manifest = read_manifest(store)
    if not hashes_only and manifest["vocab"].get(CHAT) != chat_facts(tok, from_identity(manifest["options"])).get(CHAT):
        raise CorpusError(
            str(folder), InWords("other chat templates or special tokens in the files of the vocabulary"),
            "those that the corpus was made with, or --hashes-only",
        )  # fmt: skip
    numbers = range(share.index, len(manifest["shards"]), share.count)
    with Bar("verify", len(numbers), "shards", progress) as bar:
        _check_files(store, manifest, numbers, found, bar)
    if share.index == 0:
        _check_strangers(store, manifest, found)
    found.of_documents = sum(manifest["shards"][number]["documents"] for number in numbers)
    if hashes_only:
        return found
    sources = _sources(manifest, store.local)
    corpora = _opened(folder, tok, manifest, found)
    if all:
        _check_inputs(manifest, sources, range(share.index, len(sources), share.count), found)
    positions = [position for position in _places(manifest) if position.shard in numbers]
    one_a_shard = _one_a_shard(positions)
    chosen = positions if all else {*_sample(positions), *one_a_shard.values()}
    chosen = sorted(chosen, key=lambda position: (position.task, position.key))
    found.runs = tok.runs
    # the general path is the plain reference: asked again it is no second witness
    keys = {position.key for position in one_a_shard.values()} if tok.runs == KERNELS else set()
    encoder = ReferenceRangeEncoder(tok, sources, from_identity(manifest["options"]), keys, manifest.get(SIDE, ""))
    found.of_shards = len(numbers) if keys else 0
    fields = _Fields(store, manifest)
    with Bar("verify", len(chosen), "ranges", progress) as bar:
        for placed, encoded in _placed(encoder, chosen, threads, _Order(manifest), found):
            _compare(encoded, placed, corpora, sources, found)
            fields.compare(encoded, placed, found)
            if isinstance(encoded, WithTexts):
                _ask_reference(encoder, encoded, placed, found)
            bar.update(1)
    return found


def _placed(
    encoder: RangeEncoder, chosen: Sequence[_Place], threads: int | None, order: _Order, found: Report
) -> Iterator[tuple[_Place, Encoded]]:
    """The chosen ranges, each with where its documents are, as they are encoded today, up to one that is gone."""
    again = _encode_again(encoder, chosen, threads)
    for position in chosen:
        encoded = next(again, None)
        if encoded is None or encoded.key != position.key:
            what = "the range is not in the input any more"
            found.differences.append(_difference(position, encoder.sources, what))
            return
        found.ranges += 1
        found.documents += encoded.lengths.size
        yield replace(position, rows=order.rows(position)), encoded


def _opened(
    folder: str | os.PathLike[str], tok: Tokenizer, manifest: Manifest, found: Report
) -> dict[str, readback.Corpus]:
    """The corpus in each of its formats; one that cannot be read is a difference."""
    corpora = {}
    for name in manifest["options"]["formats"]:
        try:
            corpora[name] = readback.open(folder, tok, format=name)
        except (CorpusError, OSError, ValueError) as error:  # noqa: PERF203
            if found.ok:  # else the damage has been named already
                raise
            found.differences.append({"format": name, "what": f"cannot be read: {error}"})
    return corpora


def _sample(positions: list[_Place]) -> list[_Place]:
    """Up to SAMPLE of them, the first and the last among these."""
    return (
        [positions[i] for i in np.unique(np.linspace(0, len(positions) - 1, SAMPLE).astype(int))] if positions else []
    )


def _one_a_shard(positions: list[_Place]) -> dict[int, _Place]:
    """The first range of each shard that has documents."""
    first: dict[int, _Place] = {}
    for position in positions:
        if position.documents:
            first.setdefault(position.shard, position)
    return first


def _ask_reference(encoder: ReferenceRangeEncoder, encoded: WithTexts, position: _Place, found: Report) -> None:
    """Compare what kernels make of some documents with what the plain reference does."""
    offsets, before = np.concatenate([[0], np.cumsum(encoded.lengths)]), found.witnessed
    for row, text, ids in encoder.by_reference(encoded.some):
        found.witnessed, found.witnessed_bytes = found.witnessed + 1, found.witnessed_bytes + len(text)
        now, right = encoded.ids[offsets[row] : offsets[row + 1]], np.array(ids, np.int64)
        if not np.array_equal(now, right):
            found.differences.append({
                "shard": position.shard, **position.of_row(row),
                "input": encoder.sources[int(encoded.sources[row])].path,
                "what": _first_difference(now, right, "by the kernels", "by the plain reference"),
            })  # fmt: skip
    found.witnessed_shards += found.witnessed > before


def _check_files(store: Store, manifest: Manifest, numbers: Iterable[int], found: Report, bar: Bar) -> None:
    for number in numbers:
        for file in manifest["shards"][number]["files"]:
            found.files += 1
            found.bytes += file["bytes"]
            what = fault_of(store, file)
            if what is not None:
                found.differences.append({"shard": number, "file": file["name"], "what": what})
        bar.update(1)


def _check_strangers(store: Store, manifest: Manifest, found: Report) -> None:
    """Find files that have the name of a shard but are not in the manifest. A program that reads all shards would read
    them too. Files with other names are not looked at: other programs may put them there, such as an index."""
    names = {file["name"] for shard in manifest["shards"] for file in shard["files"]}
    shapes = {LABEL.sub("#", name) for name in names}
    for parent in sorted({name.rpartition("/")[0] for name in names}):
        for name in sorted(entry.name for entry in store.objects(parent)):
            if name not in names and LABEL.sub("#", name) in shapes:
                found.differences.append({"file": name, "what": STRANGER})


def _sources(manifest: Manifest, folder: Path | None) -> list[Source]:
    sources = []
    for row in manifest["inputs"]:
        if row["path"] == STDIN:
            expected = "inputs that can be read again, or --hashes-only"
            raise CorpusError("-", InWords("a corpus made from standard input"), expected)
        try:
            path = input_path(row["path"], manifest, folder)
            size, stamp, inode = look_at(path)
        except OSError:
            if "lost" in row:  # it was not to be read then either
                sources.append(Source(row["path"], row["bytes"], "", row["kind"], row["packing"]))
                continue
            raise CorpusError(
                row["path"], InWords("no such file"), "the inputs at their original paths, or --hashes-only"
            ) from None
        sources.append(Source(path, size, stamp, row["kind"], row["packing"], inode))
    return sources


def _check_inputs(manifest: Manifest, sources: Sequence[Source], which: Iterable[int], found: Report) -> None:
    options = from_identity(manifest["options"])
    for i in changed_inputs(manifest, sources, options, which):
        path = manifest["inputs"][i]["path"]
        found.differences.append({"input": path, "what": "other content than was compiled (SHA-256)"})


def _places(manifest: Manifest) -> list[_Place]:
    positions, first = [], 0
    shuffled = manifest["options"].get("shuffle_documents") is not None
    for number, shard in enumerate(manifest["shards"]):
        of_shard, task = first, label_of(shard, number).partition("-")[0] if shuffled else ""
        for source, part, at, documents, _ in shard["ranges"]:
            if at != LOST_AT:  # the account of a damaged input
                positions.append(_Place(task, Key(source, part, at), number, first, documents, of_shard))
            first += documents
    return positions


def _encode_again(encoder: RangeEncoder, chosen: Sequence[_Place], threads: int | None) -> Iterator[Encoded]:
    """The chosen ranges as they are encoded today."""
    wanted = {position.key for position in chosen}

    def ranges() -> Iterator[RawRange]:
        for _, group in groupby(chosen, key=lambda position: position.task):
            places = dict.fromkeys((position.key.source, position.key.part) for position in group)
            for unit in units_at(encoder.sources, encoder.options, places):
                for raw in read_unit(unit, encoder.sources, encoder.options):
                    if raw.key in wanted:
                        yield raw

    return encode_on_threads(encoder, ranges(), threads)


def _compare(
    encoded: Encoded,
    position: _Place,
    corpora: dict[str, Any],
    sources: Sequence[Source],
    found: Report,
) -> None:
    if encoded.lengths.size != position.documents:
        what = f"found {encoded.lengths.size} documents in the input, expected {position.documents}"
        found.differences.append(_difference(position, sources, what))
        return
    offsets = np.concatenate([[0], np.cumsum(encoded.lengths)])
    for name, corpus in corpora.items():
        try:
            rows = _documents(corpus, position)
            masks = _documents(corpus.masks, position) if corpus.masks else []
        except (CorpusError, OSError, ValueError, IndexError):
            if not any(row.get("shard") == position.shard and "file" in row for row in found.differences):
                raise
            continue  # its files have been named already
        written: list[tuple[Any, NDArray[Any], str]] = [(rows, encoded.ids, "token")]
        if encoded.mask is not None:
            written.append((masks, encoded.mask, "mask of token"))
        for read, again, kind in written:
            for k, row in enumerate(read):
                now = again[offsets[k] : offsets[k + 1]]
                if not np.array_equal(row, now):
                    found.differences.append({
                        "shard": position.shard, "format": name, **position.of_row(k),
                        "input": sources[int(encoded.sources[k])].path, "what": _first_difference(row, now, kind=kind),
                    })  # fmt: skip
                    break


def _documents(corpus: Any, position: _Place) -> list[Any]:
    """The documents of a range, read in the order in which they lie there."""
    rows = position.rows
    if rows is None or bool((np.diff(rows) == 1).all()):
        first = position.first_of_shard + (int(rows[0]) if rows is not None and rows.size else 0)
        return list(corpus[first : first + position.documents])
    found: list[Any] = [None] * rows.size
    for k in np.argsort(rows).tolist():
        found[k] = corpus[position.first_of_shard + int(rows[k])]
    return found


class _Fields:
    """The fields beside the ids, a shard at a time."""

    def __init__(self, store: Store, manifest: Manifest) -> None:
        self._store, self._manifest = store, manifest
        self._shard, self._table = -1, None

    def compare(self, encoded: Encoded, position: _Place, found: Report) -> None:
        """Compare the fields of a range with those that were written; what is damaged has been named already."""
        if not encoded.kept or encoded.lengths.size != position.documents:
            return
        names = self._manifest["options"]["keep"]
        if self._shard != position.shard:
            try:
                self._table = fields_of(self._store, self._manifest["shards"][position.shard], names)
            except (CorpusError, OSError):
                if found.ok:
                    raise
                self._table = None
            self._shard = position.shard
        if self._table is None:
            return
        for name, now in zip(names, encoded.kept, strict=True):
            written = self._table.column(name).take(position.rows).to_pylist()
            apart = [k for k, (was, value) in enumerate(zip(written, now.to_pylist(), strict=True)) if was != value]
            if apart:
                found.differences.append({
                    "shard": position.shard, "field": name, **position.of_row(apart[0]),
                    "what": f"found {written[apart[0]]!r}, expected {now[apart[0]].as_py()!r}",
                })  # fmt: skip


def _first_difference(written: Any, now: Any, where: str = "in the shard", whose: str = "", kind: str = "token") -> str:
    shorter = min(written.size, now.size)
    apart = np.flatnonzero(written[:shorter] != now[:shorter])
    at = int(apart[0]) if apart.size else shorter
    return (
        f"{kind} {at}: found {_token(written, at)} {where}, expected {_token(now, at)} {whose}{' ' if whose else ''}"
        f"({written.size} and {now.size} tokens)"
    )


def _token(ids: Any, at: int) -> str:
    return str(int(ids[at])) if at < ids.size else "the end"


def _difference(position: _Place, sources: Sequence[Source], what: str) -> dict[str, Any]:
    return {
        "shard": position.shard,
        "document": position.first,
        "input": sources[position.key.source].path,
        "what": what,
    }


@dataclass
class WithTexts(Encoded):
    """A range as ids, and some of its documents: (row, text)."""

    some: list[tuple[int, bytes]] = field(default_factory=list)


class ReferenceRangeEncoder(RangeEncoder):
    """A RangeEncoder of the documents of one side, which keeps some of those of the ranges with these keys."""

    def __init__(
        self, tok: Tokenizer, sources: Sequence[Source], options: Options, keys: Collection[Key], side: str
    ) -> None:
        super().__init__(tok, sources, options)
        self.keys, self.side = frozenset(keys), side

    def __call__(self, raw: RawRange, stop: Cancellation = NEVER_CANCELLED) -> Encoded:
        """Read and encode one range on this thread."""
        whole = super().__call__(replace(raw), stop)  # which releases what it has read
        encoded = of_side(whole, self.side)
        if raw.key not in self.keys:
            return encoded
        # read again: few ranges are checked, and the others need not keep their texts
        texts, _, _ = self.encode(self.read(raw, stop), stop)
        if whole.training is not None:
            texts = select(texts, whole.training == (self.side == SIDES[0]))
        docs = texts.docs
        lost = {(bad.source, bad.line) for bad in texts.bad if bad.lost}  # with "replace", documents without ids
        are_lost = [place in lost for place in zip(texts.sources.tolist(), texts.lines.tolist(), strict=True)]
        rows = chosen(np.where(are_lost, 0, docs.stops - docs.starts))
        some = [(row, docs.between(int(docs.starts[row]), int(docs.stops[row]))) for row in rows]
        return WithTexts(**vars(encoded), some=some)

    def by_reference(self, some: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, bytes, list[int]]]:
        """(row, text, ids that the reference gives it) of each document that the witness can judge. It cannot judge
        documents that only `--on-error replace` lets pass, nor those of a vocabulary that it does not know."""
        from jittok.reference.pipeline import runner
        from jittok.reference.tokenize import tokenize

        vocab = self.tok.vocab
        for row, text in some:
            try:
                if self.chats is not None:
                    yield row, text, self.chats.by_reference(text)
                    continue
                if isinstance(vocab, Pipeline):
                    run = runner(vocab)
                    found = run.encode(text.decode("utf-8", "replace"), self._special["parse_special"])
                    ids = run.around(found, None, self._special["add_special"])
                else:
                    ids = tokenize(vocab, text, **self._special)
            except (EncodingFailed, UnsupportedVocab):
                continue
            yield row, text, ids if self.eos is None else [*ids, self.eos]


def chosen(sizes: NDArray[np.int64]) -> list[int]:
    """Which documents of these sizes the reference reads; none where all are empty or too long."""
    full = np.flatnonzero(sizes)
    if not full.size:
        return []
    rows, left = [], BYTES
    for row in dict.fromkeys(full[np.linspace(0, full.size - 1, DOCUMENTS).astype(int)].tolist()):
        if sizes[row] <= left:
            rows.append(row)
            left -= int(sizes[row])
    shortest = int(full[sizes[full].argmin()])
    return rows or ([shortest] if sizes[shortest] <= LONGEST_DOCUMENT else [])
