"""What a comparison over documents has found, as data and as it is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from jittok.compare import page
from jittok.display.terminal import visible

SHOWN = 10


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
    """A stretch of text at whose ends both have a border between tokens, and other tokens in between."""

    text: str
    a: list[str]
    b: list[str]
    a_ids: list[int]
    b_ids: list[int]
    count: int
    cause: str
    script: str
    document: int  # where it is met first
    where: str
    byte: int


@dataclass(frozen=True)
class Comparison:
    """Two tokenizers over documents. Tokens are compared by what they stand for, or by id if that was asked for."""

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
    not_looked_at: int = 0  # partings whose cause was not looked for
    notes: list[str] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """Whether no document differs."""
        return not self.differing

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self)

    def to_json(self) -> str:
        """The same as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_html(self) -> str:
        """A page of its own, for light and dark."""
        return page.whole(f"{self.a.name} and {self.b.name}", self._repr_html_())

    def _repr_html_(self) -> str:
        return page.comparison(self.to_dict())

    def __str__(self) -> str:
        lines = [
            f"{self.differing} of {self.documents} documents differ, {self.bytes} bytes",
            f"  A  {self.a.name}  ({self.a.answers}, {self.a.type})",
            f"     {self.a.tokens} tokens, {self.a.tokens_per_byte:.4f} a byte",
            f"  B  {self.b.name}  ({self.b.answers}, {self.b.type})",
            f"     {self.b.tokens} tokens, {self.b.tokens_per_byte:.4f} a byte",
        ]
        if self.partings:
            lines.append(f"{self.partings} partings")
            lines += _counted("by cause", self.causes)
            lines += _counted("by script", self.scripts)
            lines.append("the most frequent")
            for each in self.frequent[:SHOWN]:
                lines.append(f"  {each.count:>8}  {each.text!r}  {each.cause}, {each.script}")
                lines.append(f"            A  {' | '.join(each.a)}")
                lines.append(f"            B  {' | '.join(each.b)}")
                lines.append(f"            first in {each.where}, byte {each.byte}")
        lines += [f"  - {note}" for note in self.notes]
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return f"Comparison({self.differing} of {self.documents} documents differ, {self.partings} partings)"


def _counted(title: str, counts: dict[str, int]) -> list[str]:
    width = max(len(str(count)) for count in counts.values()) if counts else 1
    return [f"  {title}", *(f"    {count:>{width}}  {name}" for name, count in counts.items())]


def of_tally(tally: Any, where: Callable[[int], str] | None = None) -> Comparison:
    """The comparison that a `Tally` holds."""
    from jittok.compare.causes import CAUSES, LOOKED_AT, Causes

    groups = sorted(tally.groups.values(), key=lambda group: (-group.count, group.document, group.place))
    Causes(tally).find(groups[:LOOKED_AT])
    causes = {name: sum(group.count for group in groups if group.cause == name) for name in CAUSES}
    not_looked_at = sum(group.count for group in groups[LOOKED_AT:]) + tally.forgotten
    frequent = []
    for group in groups[:100]:
        a, b = tally.spelled(group)
        place = where(group.document) if where is not None else f"document {group.document}"
        frequent.append(
            Parting(
                group.text.decode("utf-8", "backslashreplace"), *([visible(text) for text in side] for side in (a, b)),
                group.a, group.b, group.count, group.cause, group.script, group.document, place, group.place,
            )  # fmt: skip
        )
    return Comparison(
        *(_side(tok, count, tally.bytes) for tok, count in zip((tally.a, tally.b), tally.tokens, strict=True)),
        tally.documents, tally.bytes, tally.differing, tally.first_documents, tally.partings,
        {name: count for name, count in causes.items() if count},
        dict(sorted(tally.scripts.items(), key=lambda item: -item[1])), frequent, not_looked_at,
    )  # fmt: skip


def _side(tok: Any, tokens: int, size: int) -> Side:
    from jittok.pipeline import Pipeline

    vocab = tok.vocab
    answers = vocab.library if isinstance(vocab, Pipeline) else f"llama.cpp {tok.llama_cpp}"
    return Side(tok.name or vocab.source, answers, tok.type, tokens, tokens / size if size else 0.0)
