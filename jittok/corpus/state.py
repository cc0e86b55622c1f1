"""The state that the ledger of a directory records: how far a run has come, and whether it is the same run."""

from __future__ import annotations

import importlib
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok import __version__
from jittok.corpus.formats import format_class
from jittok.corpus.input_hashes import InputHasher
from jittok.corpus.ledger import Fact
from jittok.corpus.options import FIRST_CUTS, Options
from jittok.corpus.ranges import Key
from jittok.corpus.relative_paths import RelativePaths
from jittok.corpus.sources import STDIN, Source
from jittok.errors import CorpusError, InWords

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

RANGE_FIELDS = 5
ANSWERS = 1
"""Incremented with each change to the ids of any text that the fingerprint of a vocabulary does not reflect."""


def make_plan(tok: Tokenizer, sources: Sequence[Source], options: Options, out: Path | None = None) -> Fact:
    """All that decides the bytes of the directory, as plain data."""
    packages = {format_class(name).writer for name in options.formats} - {""}
    writers = {name: importlib.import_module(name).__version__ for name in sorted(packages)}
    paths = RelativePaths(out)
    names = ("fingerprint", "llama_cpp", "name", "type", "pre", "asked_pre", "bos_id", "eos_id")
    facts = {name: getattr(tok, name) for name in names}
    return {
        "jittok": __version__,
        "vocab": {**facts, "tokens": tok.vocab_size, **paths.vocabulary(tok)},
        **paths.inputs(sources),
        "options": options.identity(),
        "writers": writers,
        "rules": rules_of(options),
        "inputs": [
            {"path": s.path, "bytes": s.size, "kind": s.kind, "packing": s.packing, "stamp": s.stamp} for s in sources
        ],
    }


def rules_of(options: Options) -> Fact:
    """What decides, beside the fingerprint of the vocabulary, whether a corpus may be resumed: whether ids and
    layouts are those of the version that started it. Versions that differ in neither write the same bytes."""
    layouts = {f"layout of {name}": format_class(name).layout for name in options.formats}
    return {"answers": ANSWERS, **layouts}


def differences(old: Fact, new: Fact, on_error_may_change: bool = False) -> list[str]:
    """The differences between the plan a directory was started with and the present one, in words."""
    said = []
    rules = {"answers": 1, **{f"layout of {name}": 1 for name in old["options"]["formats"]}}
    was_ruled, is_ruled = ({**rules, **plan.get("rules", {})} for plan in (old, new))
    if any(was_ruled[key] != is_ruled.get(key) for key in rules):
        said.append(
            f"jittok {new['jittok']} (begun with {old['jittok']}, whose {_first_rule(was_ruled, is_ruled)} differ)"
        )
    if old["vocab"]["fingerprint"] != new["vocab"]["fingerprint"]:
        said.append(f"vocabulary {named(new['vocab'])} (begun with {named(old['vocab'])})")
    ends = [plan["vocab"].get("eos_id") for plan in (old, new)]
    if new["options"]["append_eos"] and new["options"].get("eos") is None and ends[0] != ends[1]:
        said.append(f"end-of-text token {ends[1]} (begun with {ends[0]})")
    for part in ("options", "writers"):
        free = {"max_document_bytes", *(["on_error"] if on_error_may_change else [])}
        for key in sorted({*old[part], *new[part]} - free):
            first = {"cuts": FIRST_CUTS}.get(key)
            was, now = old[part].get(key, first), new[part].get(key)
            said += [f"{key} {now!r} (begun with {was!r})"] if was != now else []
    before, after = ([row["path"] for row in plan["inputs"]] for plan in (old, new))
    if before != after:
        gone, more = [path for path in before if path not in set(after)], [p for p in after if p not in set(before)]
        said += [_first_of("no input", gone), _first_of("a new input", more)]
        said += ["inputs in another order"] if not gone and not more else []
    else:
        changes: list[str] = []
        for was, now in zip(old["inputs"], new["inputs"], strict=True):
            known = (key for key in ("bytes", "kind", "packing") if was[key] != now[key] and was[key] is not None)
            changes += [
                f"{now['path']}: {key} {now[key]!r} (begun with {was[key]!r})" for key in known if now[key] is not None
            ]
        said += [*changes[:1], *([f"{len(changes) - 1:,} more such changes"] if len(changes) > 1 else [])]
    return [clause for clause in said if clause]


def _first_rule(was: Fact, now: Fact) -> str:
    return next(key for key in was if was[key] != now.get(key))


def _first_of(what: str, paths: Sequence[str]) -> str:
    """The first of some paths and how many more there are; nothing where there is none."""
    return "" if not paths else f"{what} {paths[0]}" + (f" and {len(paths) - 1:,} more" if len(paths) > 1 else "")


def different(folder: Path, said: Sequence[str]) -> CorpusError:
    """A directory that was begun with something else."""
    expected = "the same vocabulary, options and inputs, or another --out"
    return CorpusError(str(folder), InWords("another corpus"), f"{expected}; now {'; '.join(said)}")


def named(vocab: Fact) -> str:
    """A vocabulary of a plan or a manifest, in words."""
    release = f" as llama.cpp {vocab['llama_cpp']} reads it" if vocab.get("llama_cpp") else ""
    return f"{vocab['name'] or 'without a name'} {vocab['fingerprint'][:12]}{release}"


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
        """Whether this damage of an input has been told."""
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
    """The state that a ledger tells of; its first line must be a plan.

    LookupError, TypeError or ValueError where no run could have written these lines: who continues with them would end
    with a manifest that says what is not so.
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


COUNTS = ("documents", "tokens", "bytes", "lines", "blank", "bad", "read")


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
        raise ValueError(f"range {list(key)} behind {list(state.done)}")


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


def changed(source: Source) -> CorpusError:
    """The error for an input that has changed."""
    return CorpusError(
        source.path, InWords("other content"), "the content that it had when the corpus was begun (or a new directory)"
    )
