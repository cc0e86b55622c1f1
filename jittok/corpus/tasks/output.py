"""What a task writes: its shards, one after the other, published when they are full, and its record at the end."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from jittok.corpus.formats.base import Format
from jittok.corpus.inputs.kinds import TABLES
from jittok.corpus.inputs.sources import Source
from jittok.corpus.options import Options, below
from jittok.corpus.ranges.cutting import newlines_before
from jittok.corpus.ranges.digests import Digests
from jittok.corpus.ranges.documents import Bad
from jittok.corpus.ranges.encoder import Encoded, RangeEncoder
from jittok.corpus.shards.manifest import finished
from jittok.corpus.shards.shuffling import ShuffledWriter
from jittok.corpus.shards.writer import FileFacts, Laid, ShardWriter
from jittok.corpus.store import Store
from jittok.corpus.tasks.plan import WORK, Plan, id_there
from jittok.corpus.tasks.records import BadRow, Done, delete_done, label_of, write_done
from jittok.errors import CorpusError, InWords

SCRATCH = f"{WORK}/w"
COUNTED = 4 << 30
"""Bytes of an input in which lines are counted to name one in a message."""
FEW_BAD = 1000
"""This many documents without any text at the start mean that the run reads the wrong field."""


class Superseded(CorpusError):
    """A corpus that has been finished, or begun anew, while this process was at a task of it."""


class Work(NamedTuple):
    """What all tasks of a corpus share. It can be pickled."""

    store: Store
    plan: Plan
    sources: Sequence[Source]
    options: Options
    formats: Sequence[Format]
    encoder: RangeEncoder
    elsewhere: bool = False  # its inputs were found by another process, perhaps on another machine


class _Full(NamedTuple):
    """A shard that is written and has no names yet: its record, and its files."""

    fact: dict[str, Any]
    files: Sequence[FileFacts]


class TaskOutput:
    """The shards of a task. Where documents have sides, each shard has one of the same ranges on every side."""

    def __init__(self, work: Work, number: int, check: Callable[[], None] = lambda: None) -> None:
        """`check` raises when the work is not wanted any more."""
        self.work, self.number, self._sides, self._check = work, number, work.options.sides, check
        self._folder = f"{SCRATCH}/{label_of(number)}.{secrets.token_hex(8)}"
        self.scratch = work.store.scratch(self._folder)
        self._writers: dict[str, ShardWriter | ShuffledWriter] = {}  # of the shard that grows
        self._ranges: dict[str, list[list[int]]] = {}
        self._held: list[_Full] = []
        self._shards: list[dict[str, Any]] = []
        self._closed = 0  # shards of a side that are full
        self._counts = dict.fromkeys(("documents", "tokens", "text_bytes", "blank", "bad", "lost", "read"), 0)
        self._bad: list[BadRow] = []
        self._known: set[tuple[int, str]] = set()
        self._lines: list[tuple[int, int, int]] = []
        self._seen = (-1, 0)  # an input, and its lines or rows before the next range
        self._begins: dict[tuple[int, int], int] = {}

    def add(self, encoded: Encoded, laid: Sequence[Laid]) -> None:
        """One range, in order, as it is written on each side. CorpusError for a bad document, unless it may be left
        out."""
        if not self._writers:
            self._publish_held(several=True)
            self._open()
        bad = self._bad_rows(encoded)
        options = self.work.options
        if bad and options.on_error == "fail":
            raise CorpusError(
                self._line_of(bad[0]), InWords(bad[0].found),
                f"{bad[0].expected} (to continue: --on-error skip or --on-error replace)",
            )  # fmt: skip
        for side, part in zip(self._sides, laid, strict=True):
            self._writers[side].append(part)
            self._ranges[side].append([*encoded.key, int(part.rows.lengths.size), int(part.rows.ids.size)])
        for name, count in (
            ("documents", encoded.lengths.size), ("tokens", encoded.ids.size), ("text_bytes", encoded.text_bytes),
            ("blank", encoded.blank), ("bad", len(bad)), ("lost", encoded.lost), ("read", encoded.new),
        ):  # fmt: skip
            self._counts[name] += int(count)
        self._bad += bad
        if self.number == 0:
            refuse_nothing(self._counts, options, FEW_BAD, self._bad, self._line_of)
        if options.shard_bytes and sum(each.text_bytes for each in self._writers.values()) >= options.shard_bytes:
            self._close_shard()

    def _open(self) -> None:
        for side in self._sides:
            folder, formats = self.scratch / f"{self._closed}{side}", self.work.formats
            shuffled = self.work.options.shuffle_documents is not None
            self._writers[side] = (
                ShuffledWriter(folder, formats, self._check) if shuffled else ShardWriter(folder, formats)
            )
            self._ranges[side] = []

    # ---- documents that are bad

    def _bad_rows(self, encoded: Encoded) -> list[BadRow]:
        """The bad documents of a range. The damage of an input is told once."""
        source, part, _ = encoded.key
        known = self.work.sources[source]
        relative = known.kind in ("lines", "jsonl") and not known.packing and known.size is not None
        if relative:  # who has read the lines before it is not known here
            self._lines.append((source, part, encoded.seen))
            base = 0
        else:
            base = self._seen[1] if self._seen[0] == source else 0
            base = max(base, encoded.begin) if known.kind in TABLES else base
            self._seen, part = (source, base + encoded.seen), 0
        if encoded.bad:
            self._begins.setdefault((source, part), encoded.begin)
        found = []
        for bad in encoded.bad:
            if bad.input and (bad.source, bad.found) in self._known:
                continue
            if bad.input:
                self._known.add((bad.source, bad.found))
            found.append(self._bad_row(bad, part, base if bad.source == source else 0))
        return found

    def _bad_row(self, bad: Bad, part: int, base: int) -> BadRow:
        return BadRow(self._closed, bad.source, part, bad.line + base, bad.input, bad.found, bad.expected)

    def _line_of(self, bad: BadRow) -> str:
        """A bad document in words: its file and line, counted from the start of the file where that is not far."""
        source = self.work.sources[bad.source]
        if not bad.part:
            return f"{source.path}, line {bad.line}"
        begin = self._begins[bad.source, bad.part]
        if begin > COUNTED:
            return f"{source.path}, line {bad.line} after byte {begin}"
        with source.open() as file:
            before = newlines_before(file, begin)
        return f"{source.path}, line {bad.line + before}"

    # ---- shards

    def _close_shard(self) -> None:
        if not self._writers:
            return
        self._check_plan()
        for side, writer in self._writers.items():
            files, shard = writer.finish(), writer.shard
            fact = {
                "side": side, "documents": shard.documents, "tokens": shard.tokens, "text_bytes": writer.text_bytes,
                "ranges": self._ranges[side],
            }  # fmt: skip
            self._held.append(_Full(fact, files))
            self._shards.append(fact)
        self._writers, self._closed = {}, self._closed + 1

    def _publish_held(self, several: bool) -> None:
        """Give the last full shard its names: those of the only one of the task, or of one of several."""
        if not self._held:
            return
        self._check_plan()
        label = label_of(self.number, self._closed - 1 if several else None)
        for fact, files in self._held:
            fact["shard"] = label
            fact["files"] = []
            for file in files:
                name = file.name.format(label)
                self._publish(file, below(fact["side"], name), mark_of_file(self.work.plan.id, label, file.sha256))
                fact["files"].append({"name": name, "bytes": file.bytes, "sha256": file.sha256})
        self._held = []

    def _publish(self, file: FileFacts, name: str, mark: str) -> None:
        """Give a file its name. An upload may last for minutes: when the corpus is no longer this one by then, the file
        goes, if it is this one and belongs to no finished corpus."""
        store = self.work.store
        try:
            store.publish(file.path, name, mark)
        except FileNotFoundError:
            self._check_plan()  # its file here went with its corpus
            raise
        try:
            self._check_plan()
        except Superseded:
            if store.mark_of(name) == mark and not finished(store):
                store.delete(name)
            raise

    def finish(self, digests: Digests) -> Done:
        """Publish what is left, and write the record."""
        if not self._writers and not self._shards:
            self._open()
        self._close_shard()
        self._publish_held(several=self._closed > 1)
        done = Done(
            self.work.plan.id, self.number, **self._counts, lines=self._lines, shards=self._shards, digests=digests
        )
        self._check_plan()
        write_done(self.work.store, done, self._bad)
        try:
            self._check_plan()
        except Superseded:
            delete_done(self.work.store, self.work.plan, self.number)
            raise
        self.drop()
        return done

    def _check_plan(self) -> None:
        """Superseded when the corpus is no longer the one that this task belongs to: nothing of it may be written."""
        store = self.work.store
        if (there := id_there(store)) != self.work.plan.id:
            found = "no plan: it has been finished or removed" if there is None else "another plan: it was begun anew"
            raise Superseded(store.place, InWords(found), "the plan that this process began with")

    def drop(self) -> None:
        """Remove what lies on this machine."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}
        with suppress(OSError):
            self.work.store.clear(self._folder)


def mark_of_file(plan: str, label: str, sha256: str) -> str:
    """What a file in a bucket carries: plan, shard and digest."""
    return f"{plan[:16]} {label} {sha256}"


def has_text(counts: dict[str, int], options: Options) -> bool:
    """Whether any document had a text; with "replace" those without one are documents too."""
    kept = counts["documents"] - (counts["lost"] if options.on_error == "replace" else 0)
    return kept > 0 or not counts["bad"]


def refuse_nothing(
    counts: dict[str, int], options: Options, least: int, bad: Sequence[BadRow], where: Callable[[BadRow], str]
) -> None:
    """CorpusError when no document so far had a text, of `least` or more: then not the documents are wrong."""
    if has_text(counts, options) or counts["bad"] < least:
        return
    first = bad[0] if bad else None
    found = f"no text in any of {counts['bad']:,} documents; here {first.found if first else 'nothing'}"
    place = where(first) if first else "the inputs"
    raise CorpusError(place, InWords(found), first.expected if first else "texts (--field, --column)")
