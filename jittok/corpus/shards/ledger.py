"""The ledger, an append-only record of what is done, one fact a line with its checksum; and the state that it records.

An incomplete line ends the ledger; it and all lines after it are cut off when the ledger is opened again. Replaying it
gives the state: how far a run has come, and whether it is the same run.
"""

from __future__ import annotations

import json
import os
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.corpus.inputs.sources import STDIN, InputHasher, Source, changed
from jittok.corpus.ranges.units import Key
from jittok.corpus.shards.plan import Fact
from jittok.corpus.store import disk
from jittok.corpus.store.disk import open_regular

if TYPE_CHECKING:
    pass

LEDGER = "ledger.jsonl"
RANGE_FIELDS = 5
COUNTS = ("documents", "tokens", "bytes", "lines", "blank", "bad", "read")
fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class Ledger:
    """The facts on disk. `facts` holds those that were there when it was opened, oldest first; `add` only appends to
    the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self._places = [0]  # where line k begins, and where the last one ends
        self.facts = list(self._read())
        os.ftruncate(self._descriptor, self._places[-1])

    def _read(self) -> Iterator[Fact]:
        with open(os.dup(self._descriptor), "rb") as file:  # noqa: PTH123  a descriptor
            for line in file:
                fact = _parsed(line)
                if fact is None:
                    return
                self._places.append(self._places[-1] + len(line))
                yield fact

    def add(self, fact: Fact, sync: bool = False) -> None:
        """Append a line. With `sync`, it and all lines before it survive a loss of power when this returns."""
        text = json.dumps(fact, separators=(",", ":"))
        disk.append(self._descriptor, f"{disk.crc_of_text(text)} {text}\n".encode("ascii"))
        if sync:
            os.fsync(self._descriptor)

    def hold(self) -> bool:
        """Lock the file until it is closed; whether no other process holds the lock. True on systems without locks."""
        if fcntl is None:
            return True
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        return True

    def cut(self, count: int) -> None:
        """Drop all but the first `count` of the facts that were there when the ledger was opened."""
        os.ftruncate(self._descriptor, self._places[count])
        del self.facts[count:], self._places[count + 1 :]

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _parsed(line: bytes) -> Fact | None:
    """The fact of a complete line, None for anything else."""
    try:
        checksum, text = line.decode("ascii").split(" ", 1)
        if not text.endswith("\n") or disk.crc_of_text(text[:-1]) != checksum:
            return None
        fact = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return fact if isinstance(fact, dict) else None


@dataclass
class State:
    """The progress of a run."""

    plan: Fact
    inputs: dict[int, tuple[int, str | None]] = field(default_factory=dict)  # finished: size, digest
    lost_inputs: dict[int, list[tuple[int, str]]] = field(
        default_factory=dict
    )  # source -> lines before its damage, what it is
    shards: list[Fact] = field(default_factory=list)  # finished: their lines in the ledger
    shard_ranges: list[array[int]] = field(default_factory=list)  # of each finished one, RANGE_FIELDS numbers a range
    open_ranges: list[tuple[int, Fact]] = field(default_factory=list)  # place in the ledger, line
    done: Key | None = None
    prefix: list[Any] | None = None
    base: tuple[int, int] = (-1, 0)  # a source and how many of its lines have been seen
    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0
    blank: int = 0
    bad: int = 0
    lost: int = 0  # of these, without any text
    read: int = 0  # bytes of input, for progress
    last: int = -1  # the last source of the last range
    last_open: array[int] = field(default_factory=lambda: array("q"))

    def add_range(self, fact: Fact) -> None:
        """Count one range."""
        key = Key(*fact["range"])
        seen = self.base[1] if self.base[0] == key.source else 0
        self.base = (key.source, seen + fact["lines"])
        self.done, self.prefix = key, fact["prefix"]
        self.documents += fact["documents"]
        self.tokens += fact["tokens"]
        self.text_bytes += fact["bytes"]
        self.blank += fact["blank"]
        self.bad += fact["bad"]
        self.lost += fact.get("lost", 0)
        self.read += fact["read"]
        self.last = fact.get("last", key.source)
        for source, line, found in fact.get("lost_inputs", ()):
            self.lost_inputs.setdefault(source, []).append((line - 1, found))
        self.last_open.extend([*key, fact["documents"], fact["tokens"]])

    def add_input(self, fact: Fact) -> None:
        """An input is done."""
        self.inputs[fact["input"]] = (fact["bytes"], fact["sha256"])
        if "gone" in fact:
            self.lost_inputs.setdefault(fact["input"], []).append((self.lines_before(fact["input"]), fact["gone"]))

    def knows_lost(self, source: int, found: str) -> bool:
        """Whether this damage of an input has been reported."""
        return any(found == known for _, known in self.lost_inputs.get(source, ()))

    @property
    def has_read(self) -> bool:
        """Whether any document had a text; with "replace" those without one are documents too."""
        kept = self.documents - (self.lost if self.plan["options"]["on_error"] == "replace" else 0)
        return kept > 0 or not self.bad

    def add_shard(self, fact: Fact) -> None:
        """Close a shard."""
        self.shards.append(fact)
        self.shard_ranges.append(self.last_open)
        self.last_open = array("q")
        self.open_ranges = []

    def lines_before(self, source: int) -> int:
        """Lines of a source in the ranges so far."""
        return self.base[1] if self.base[0] == source else 0


def replay(facts: Sequence[Fact]) -> State:
    """The state that a ledger records; its first line must be a plan.

    LookupError, TypeError or ValueError where no run could have written these lines: a run that continued with them
    would end with a wrong manifest.
    """
    state = State(facts[0]["plan"])
    for position, fact in enumerate(facts[1:], 1):
        if "range" in fact:
            _check_range(fact, state)
            state.add_range(fact)
            state.open_ranges.append((position, fact))
        elif "shard" in fact:
            _check_shard(fact, state)
            state.add_shard(fact)
        elif "input" in fact:
            _expect("input", fact["input"], len(state.inputs))
            if fact["sha256"] is not None:
                _check_file(fact)
            _check_count(fact["bytes"])
            state.add_input(fact)
        elif "on_error" in fact:
            state.plan["options"]["on_error"] = fact["on_error"]
        else:
            raise ValueError(f"a line of {', '.join(map(repr, fact))[:80]}")
    return state


def _check_range(fact: Fact, state: State) -> None:
    """ValueError, TypeError or KeyError unless a range follows those before it."""
    key = Key(*fact["range"])
    for number in (*key, *(fact[name] for name in COUNTS), fact.get("lost", 0), fact.get("last", 0)):
        _check_count(number)
    for source, line, found in fact.get("lost_inputs", ()):
        _check_count(source)
        _check_count(line)
        str.encode(found)
    if state.done is not None and key <= state.done:
        raise ValueError(f"range {list(key)} after {list(state.done)}")


def _check_shard(fact: Fact, state: State) -> None:
    """The same for a shard, which holds all ranges since the one before it."""
    _expect("shard", fact["shard"], len(state.shards))
    for name, column in (("documents", -2), ("tokens", -1)):
        _expect(name, fact[name], sum(state.last_open[RANGE_FIELDS + column :: RANGE_FIELDS]))
    for file in fact["files"]:
        _check_file(file)


def _check_file(fact: Fact) -> None:
    """The same for what is said of a file."""
    _check_count(fact["bytes"])
    if not isinstance(fact["sha256"], str) or not re.fullmatch("[0-9a-f]{64}", fact["sha256"]):
        raise ValueError(f"sha256 {str(fact['sha256'])[:80]!r}")


def _check_count(number: object) -> None:
    if type(number) is not int or not 0 <= number < 1 << 63:
        raise ValueError(f"the number {str(number)[:80]}")


def _expect(name: str, found: object, expected: int) -> None:
    if type(found) is not int or found != expected:
        raise ValueError(f"{name} {str(found)[:80]} where {expected} comes")


def check_inputs(state: State, sources: Sequence[Source], hasher: InputHasher) -> None:
    """CorpusError when an input of which something has been read is not what it was; `hasher` is brought to its place.

    Finished inputs whose time stamps are as they were are taken as unchanged; else they are hashed. Of the input that
    was under way the part that was read is always hashed.
    """
    if state.done is None:
        return
    stamps = [row["stamp"] for row in state.plan["inputs"]]
    for i, source in enumerate(sources[: max(state.done.source, state.last) + 1]):
        if source.path == STDIN or i in state.lost_inputs:
            continue
        if i in state.inputs:
            if stamps[i] != source.stamp and hasher.whole(i) != state.inputs[i]:
                raise changed(source)
        elif state.prefix is not None and state.prefix[0] == i:
            if hasher.prefix(i, state.prefix[1]) != state.prefix:
                raise changed(source)
        elif stamps[i] != source.stamp:
            raise changed(source)
