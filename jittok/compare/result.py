"""The result of a comparison over documents, as data and as text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jittok.common.display.terminal import harmless, one_name, visible
from jittok.compare import page
from jittok.compare.spelling import UNKNOWN

SHOWN = 10
WIDEST = 160


@dataclass(frozen=True)
class Side:
    """One of the two tokenizers."""

    name: str
    answers: str  # whose ids these are: "llama.cpp", "tokenizers" ...
    type: str
    tokens: int
    tokens_per_byte: float


@dataclass(frozen=True)
class Parting:
    """A difference: a part of a text with a border between tokens at both ends, but different tokens in between."""

    text: str
    a: list[str]
    b: list[str]
    a_ids: list[int]
    b_ids: list[int]
    count: int
    cause: str
    script: str
    document: int  # where it occurs first
    where: str
    byte: int


@dataclass(frozen=True)
class Comparison:
    """Two tokenizers over documents. Tokens are compared by their texts, or by id with `by_id`."""

    a: Side
    b: Side
    documents: int
    bytes: int
    differing: int  # documents
    first_differing: list[int]
    partings: int
    causes: dict[str, int]
    scripts: dict[str, int]
    frequent: list[Parting]
    not_looked_at: int = 0  # differences whose cause was not searched for
    notes: list[str] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """Whether no document differs."""
        return not self.differing

    @property
    def differs(self) -> bool:
        """Whether any document does."""
        return not self.same

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return asdict(self)

    def to_json(self) -> str:
        """The same as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_html(self) -> str:
        """A standalone HTML page, for light and dark."""
        return page.whole(f"{self.a.name} and {self.b.name}", self._repr_html_())

    def _repr_html_(self) -> str:
        return page.comparison(self.to_dict())

    def __str__(self) -> str:
        lines = [
            f"{self.differing} of {self.documents} documents differ, {self.bytes} bytes",
            f"  A  {one_name(self.a.name)}  ({self.a.answers}, {self.a.type})",
            f"     {self.a.tokens} tokens, {self.a.tokens_per_byte:.4f} a byte",
            f"  B  {one_name(self.b.name)}  ({self.b.answers}, {self.b.type})",
            f"     {self.b.tokens} tokens, {self.b.tokens_per_byte:.4f} a byte",
        ]
        if self.partings:
            lines.append(f"{self.partings} differences")
            more = {"rarer, not analyzed": self.not_looked_at} if self.not_looked_at else {}
            lines += _counted("by cause", {**self.causes, **more})
            lines += _counted("by script", self.scripts)
            lines.append("the most frequent")
            for each in self.frequent[:SHOWN]:
                lines += [
                    f"  {each.count:>8}  {_short(repr(each.text))}  {each.cause or 'not analyzed'}, {each.script}",
                    f"            A  {_short(' | '.join(each.a))}",
                    f"            B  {_short(' | '.join(each.b))}",
                    f"            first in {one_name(each.where)}, byte {each.byte}",
                ]
        lines += [f"  - {note}" for note in self.notes]
        return harmless("\n".join(lines)) + "\n"

    def __repr__(self) -> str:
        return f"Comparison({self.differing} of {self.documents} documents differ, {self.partings} differences)"


def _short(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[:WIDEST]}…"


def _counted(title: str, counts: dict[str, int]) -> list[str]:
    width = max(len(str(count)) for count in counts.values()) if counts else 1
    return [f"  {title}", *(f"    {count:>{width}}  {name}" for name, count in counts.items())]


def of_tally(tally: Any, where: Callable[[int], str] | None = None) -> Comparison:
    """The comparison of a `PartingTally`."""
    from jittok.compare.causes import CAUSES, MOST_PARTINGS, Causes

    groups = sorted(tally.groups.values(), key=lambda group: (-group.count, group.document, group.position))
    Causes(tally).find(groups[:MOST_PARTINGS])
    causes = {name: sum(group.count for group in groups if group.cause == name) for name in CAUSES}
    not_looked_at = sum(group.count for group in groups[MOST_PARTINGS:]) + tally.forgotten
    frequent = []
    for group in groups[:100]:
        a, b = tally.spelled(group)
        frequent.append(
            Parting(
                text=group.text.decode("utf-8", "backslashreplace"),
                a=[shown(text) for text in a],
                b=[shown(text) for text in b],
                a_ids=group.a,
                b_ids=group.b,
                count=group.count,
                cause=group.cause,
                script=group.script,
                document=group.document,
                where=where(group.document) if where is not None else f"document {group.document}",
                byte=group.position,
            )
        )
    sides = [_side(tok, count, tally.size) for tok, count in zip((tally.a, tally.b), tally.tokens, strict=True)]
    return Comparison(
        a=sides[0],
        b=sides[1],
        documents=tally.documents,
        bytes=tally.size,
        differing=tally.differing,
        first_differing=tally.first_documents,
        partings=tally.partings,
        causes={name: count for name, count in causes.items() if count},
        scripts=dict(sorted(tally.scripts.items(), key=lambda item: -item[1])),
        frequent=frequent,
        not_looked_at=not_looked_at,
        notes=_notes(tally),
    )


def _notes(tally: Any) -> list[str]:
    if not tally.not_aligned:
        return []
    note = (
        f"in {tally.not_aligned} more documents that differ, differences were not located: finding the spans of their "
        f"tokens is slow, and was done for {tally.aligned} bytes only"
    )
    return [note]


def shown(text: bytes) -> str:
    """The text of a token, in one line."""
    return "<unknown>" if text == UNKNOWN else visible(text)


def _side(tok: Any, tokens: int, size: int) -> Side:
    from jittok.common.pipeline import Pipeline

    vocab = tok.vocab
    answers = vocab.library if isinstance(vocab, Pipeline) else f"llama.cpp {tok.llama_cpp}"
    return Side(tok.name or Path(vocab.source).name, answers, tok.type, tokens, tokens / size if size else 0.0)
