"""`prove`: one tokenizer file, read by jittok and by its own library, on the same texts.

Ids are compared for each way in which the library can be asked for special tokens, then the text that the ids decode
to, then the spans of tokens where the library gives them. What differs is cut down to the shortest part of a text that
still differs, and the first stage whose output differs is named. Both are timed on one thread, in turns, by CPU time.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.common.display.terminal import harmless, one_name, visible
from jittok.compat.proof.libraries import PLAIN, SAID, Library, installed, kind_of, own_library, release_of
from jittok.compat.proof.spans import OwnSpans, Spans

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

ROUNDS = 3
MOST_TIMED = 1 << 20
"""Bytes of texts that both encode for the clock."""
OPTIONS = ("add_special", "parse_special")
SHRINKS, SPAN_SHRINKS = 4000, 400
"""Texts that are tried at most while a text whose ids, or spans, differ is cut down."""


@dataclass(frozen=True)
class Difference:
    """The first text on which the two differ, cut down to what still differs."""

    where: str
    text: str
    about: str  # "ids", "text" or "spans"
    options: str  # of encode, as Python; empty for the defaults
    jittok: Spans | str
    library: Spans | str
    pieces: tuple[list[str], list[str]]
    cause: str


@dataclass(frozen=True)
class Proof:
    """What was compared, and the first difference if there is one."""

    file: str
    sha256: str
    type: str
    tokens: int
    jittok: str
    library: str
    version: str
    texts: int
    bytes: int
    ids: int
    decoded: bool  # whether the library's text of the ids was compared
    spans: tuple[int, int] | None  # texts whose spans were compared, their characters; None: the library gives none
    special: tuple[str, ...]  # what was done with special tokens, each text in all ways
    difference: Difference | None
    differing: int  # texts
    seconds: tuple[float, float] | None  # CPU, of `timed` bytes: jittok, library
    timed: int
    machine: str
    note: str

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return self.difference is None

    @property
    def ratio(self) -> float:
        """The library's CPU time divided by jittok's; NaN where nothing was timed."""
        return self.seconds[1] / self.seconds[0] if self.seconds else float("nan")

    def to_json(self) -> str:
        """The proof as one line of JSON."""
        return json.dumps({**asdict(self), "same": self.same}, ensure_ascii=False)

    def __str__(self) -> str:
        named = one_name(self.file)
        what = "ids and decoded text" if self.decoded else "ids"
        lines = [
            f"{named}: {self.type}, {self.tokens} tokens",
            f"  jittok {self.jittok}, {self.library} {self.version}",
        ]
        asked = (
            f"{self.texts:,} texts, {self.bytes:,} bytes, {self.ids:,} ids; special tokens {', '.join(self.special)}"
        )
        if self.difference is None:
            lines.append(f"  equal: {what} of {asked}")
            spans = f"{self.library} gives no spans of tokens"
            if self.spans is not None:
                spans = "equal: spans of {:,} of them, of {:,} characters".format(*self.spans)
            lines.append(f"  {spans}")
        else:
            lines += [f"  DIFFERENT: {self.differing:,} of {asked}", *_told(self.difference, self.library)]
        if self.seconds:
            mine, its = self.seconds
            lines.append(
                f"  CPU time of {self.timed:,} new bytes on one thread: "
                f"jittok {mine:.3f} s, {self.library} {its:.3f} s ({self.ratio:.1f} times)"
            )
        lines += [f"  {line}" for line in (self.machine, self.note) if line]
        return harmless("\n".join(lines)) + "\n"

    def report(self) -> str:
        """The same as a block of Markdown, to paste into an issue."""
        return f"```text\n{self}  sha256 {self.sha256}\n```\n"


def _told(found: Difference, library: str) -> list[str]:
    call = f"encode(text{', ' if found.options else ''}{found.options})"
    lines = [f"    first in {one_name(found.where)}, {found.about} of {call}", f"    text     {found.text!r}"]
    for name, value, pieces in (("jittok", found.jittok, found.pieces[0]), (library, found.library, found.pieces[1])):
        lines.append(f"    {name:<8} {value!r}" + (f"  {' | '.join(pieces)}" if pieces else ""))
    return [*lines, f"    cause    {found.cause}"]


def prove(
    file: str | os.PathLike[str],
    texts: Iterable[tuple[str, str]],
    *,
    name: str | None = None,
    timed: bool = True,
    on_text: Callable[[int], object] = lambda _: None,
    **options: Any,
) -> Proof:
    """Compare a tokenizer file in jittok and in its own library.

    file: a tokenizer file or a folder with one. texts: (where, text) pairs; `where` is shown with a difference.
    name: what the result calls the file. timed: whether both are timed. on_text: called with the bytes of each text
    that was compared. options: of `jittok.load`, for rank files.

    LibraryMissing if the library is not installed; else as `jittok.load`.
    """
    import jittok

    release: dict[str, Any] = {}
    tok = jittok.load(file, **options)
    if kind_of(tok.vocab) == "gguf":
        release = {"llama_cpp": release_of(installed("gguf"))[0]}
        tok = jittok.load(file, **release, **options)
    library = own_library(file, tok.vocab)
    asked = _Asked(tok, library)
    found: Difference | None = None
    count = size = ids = differing = 0
    kept: list[str] = []
    for where, text in texts:
        mine, difference = asked.first_difference(where, text)
        differing += difference is not None
        found = found or difference
        encoded = len(text.encode())
        count, size, ids = count + 1, size + encoded, ids + mine
        if sum(map(len, kept)) < MOST_TIMED:
            kept.append(text)
        on_text(encoded)
    fresh = partial(jittok.load, file, **{**options, **release})
    seconds = _timed(fresh, library, kept) if timed and kept else None
    return Proof(
        file=name or os.fsdecode(file), sha256=_sha256(Path(file)), type=tok.type, tokens=tok.vocab_size,
        jittok=jittok.__version__, library=library.name, version=library.version, texts=count, bytes=size, ids=ids,
        decoded=library.decode is not None, spans=asked.spans, special=tuple(SAID[way] for way in library.ways),
        difference=found, differing=differing,
        seconds=seconds, timed=sum(len(text.encode()) for text in kept), machine=_machine(), note=library.note,
    )  # fmt: skip


def _sha256(path: Path) -> str:
    """The digest of a file; of a folder that of its files' names and contents, in order."""
    digest = hashlib.sha256()
    for each in sorted(path.iterdir()) if path.is_dir() else [path]:
        if each.is_file():
            if path.is_dir():
                digest.update(each.name.encode() + b"\0")
            with each.open("rb") as opened:
                while block := opened.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()


def _machine() -> str:
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        processor = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{processor}, {platform.system()}, Python {platform.python_version()}"


def _timed(fresh: Callable[[], Tokenizer], library: Library, texts: list[str]) -> tuple[float, float]:
    """CPU seconds of both for all texts without special tokens: the least of some rounds, in turns. `fresh` gives a
    tokenizer of jittok that has seen none of them."""
    best = [float("inf")] * 2
    for _ in range(ROUNDS):
        tok = fresh()
        tok.encode_batch(["first", "call"], threads=1)
        calls: tuple[Callable[[], Any], ...] = (
            lambda tok=tok: tok.encode_batch(texts, threads=1),  # type: ignore[misc]
            lambda: library.encode_many(texts),
        )
        for i, call in enumerate(calls):
            before = time.process_time()
            call()
            best[i] = min(best[i], time.process_time() - before)
    return max(best[0], 1e-9), best[1]


class _Asked:
    """Both, asked of one text after the other."""

    def __init__(self, tok: Tokenizer, library: Library) -> None:
        self.tok, self.library = tok, library
        self.spans = None if library.spans is None else (0, 0)  # texts whose spans were compared, their characters
        self._own = None if library.spans is None else OwnSpans(tok, library.name)

    def first_difference(self, where: str, text: str) -> tuple[int, Difference | None]:
        """The number of ids of a text, and its first difference."""
        tok, library, mine = self.tok, self.library, list[int]()
        for way in library.ways:
            mine = _ids(tok, text, way)
            if mine != library.encode(text, *way):
                return len(mine), self._of_ids(where, text, way)
        plain = _ids(tok, text, PLAIN)
        if library.decode is not None and (shown := tok.decode(plain)) != (its := library.decode(plain)):
            return len(plain), Difference(where, text, "text", "", shown, its, ([], []), "decoding of the same ids")
        return len(plain), self._of_spans(where, text)

    def _of_ids(self, where: str, text: str, way: tuple[bool, bool]) -> Difference:
        """The difference on the shortest part of a text that is found by halving."""
        tok, library = self.tok, self.library

        def differs(part: str) -> bool:
            return _ids(tok, part, way) != library.encode(part, *way)

        part = shortened(text, differs)
        mine, its = _ids(tok, part, way), library.encode(part, *way)
        pieces = (_pieces(tok, mine), _pieces(tok, its))
        return Difference(where, part, "ids", _options(way), mine, its, pieces, _cause(tok, library, part, way))

    def _of_spans(self, where: str, text: str) -> Difference | None:
        """The first difference of spans; ids are equal."""
        own, theirs, tok = self._own, self.library.spans, self.tok
        if own is None or theirs is None or (part := own.part(text)) is None:
            return None
        texts, characters = self.spans or (0, 0)
        self.spans = texts + 1, characters + len(part)
        for way in dict.fromkeys((self.library.ways[0], self.library.ways[-1])):
            if own(part, way) == theirs(part, *way):
                continue
            part = shortened(part, lambda short: own(short, way) != theirs(short, *way), SPAN_SHRINKS)  # noqa: B023
            mine, its = own(part, way), theirs(part, *way)
            pieces = _pieces(tok, _ids(tok, part, way))
            first = next((k for k, (a, b) in enumerate(zip(mine, its, strict=False)) if a != b), len(mine) - 1)
            cause = f"spans of the same ids, from token {first}, {pieces[first]!r}" if pieces else "spans of no ids"
            return Difference(where, part, "spans", _options(way), mine, its, (pieces, []), cause)
        return None


def _ids(tok: Tokenizer, text: str, way: tuple[bool, bool]) -> list[int]:
    ids: list[int] = tok.encode(text, add_special=way[0], parse_special=way[1]).tolist()
    return ids


def _pieces(tok: Tokenizer, ids: list[int]) -> list[str]:
    return [visible(tok.id_to_token(i)) if 0 <= i < tok.vocab_size else "no token" for i in ids]


def _options(way: tuple[bool, bool]) -> str:
    return ", ".join(f"{name}=True" for name, on in zip(OPTIONS, way, strict=True) if on)


def shortened(text: str, differs: Callable[[str], bool], most: int = SHRINKS) -> str:
    """The shortest part of a text that is found by leaving out pieces, halves first, single characters last, while
    `differs` stays true. `most`: how many parts are tried."""
    size, tried = max(1, len(text) // 2), 0
    while True:
        at, smaller = 0, False
        while at < len(text) and tried < most:
            tried += 1
            part = text[:at] + text[at + size :]
            if differs(part):
                text, smaller = part, True
            else:
                at += size
        if tried >= most or (size == 1 and not smaller):
            return text
        size = max(1, size // 2)


def _cause(tok: Tokenizer, library: Library, text: str, way: tuple[bool, bool]) -> str:
    """Which stage differs first, as far as the library shows its stages."""
    if way != PLAIN and _ids(tok, text, PLAIN) == library.encode(text, *PLAIN):
        return "special tokens: the text alone gives the same ids"
    try:
        trace = json.loads(tok.trace(text, add_special=way[0], parse_special=way[1]).to_json())
    except AssertionError:
        return "a kernel: jittok's plain reference gives other ids than its kernels"
    if library.stages is None:
        return f"the model, or what comes before it ({library.name} does not show its stages)"
    if len(trace["fragments"][-1]["buffer"]) > 1:
        return "added tokens, or the model"
    normalized, words = library.stages(text)
    mine = trace["normalized"][-1]["text"] if trace["normalized"] else text
    if mine != normalized:
        return f"normalizer: {mine!r} in jittok, {normalized!r} in {library.name}"
    cut = [word["text"] for word in trace["words"]]
    if cut != words:
        return f"split: {cut!r} in jittok, {words!r} in {library.name}"
    return "model: normalized text and pre-tokens are equal"


def bundled_texts() -> list[tuple[str, str]]:
    """Texts of many scripts, and sources of this Python: (where, text) pairs, some 600 kB."""
    import sysconfig

    from jittok.convert.texts import TEXTS

    found = [(f"bundled text {number}", text) for number, text in enumerate(TEXTS, 1)]
    folder, size = Path(sysconfig.get_path("stdlib")), 0
    for path in sorted(folder.glob("*.py")):
        text = path.read_text("utf-8", "replace")
        found.append((str(path), text))
        size += len(text)
        if size > MOST_TIMED // 2:
            break
    return found


__all__ = ["Difference", "Proof", "bundled_texts", "prove", "shortened"]
