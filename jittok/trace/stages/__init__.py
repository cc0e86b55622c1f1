"""One module a stage: its records as HTML, as lines of a terminal, and as sentences.

The functions here show all stages of a trace together, or one by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from jittok.common.display.characters import readable
from jittok.common.display.colours import TERMINAL, alternate
from jittok.common.display.terminal import FAINT, TITLE, Line, StyledText, uncoloured
from jittok.common.display.tokens import DIM, SPECIAL, chips, fold
from jittok.trace.recorder import Record
from jittok.trace.stages.base import Records, StageKind, Stages
from jittok.trace.stages.fragments import FragmentsStage
from jittok.trace.stages.lattice import LatticeStage, PathStage
from jittok.trace.stages.matches import MatchesStage
from jittok.trace.stages.merges import MergesStage, ResegmentStage, SymbolsStage
from jittok.trace.stages.normalized import CharsmapStage, NormalizedStage
from jittok.trace.stages.tokens import TokensStage, token_table
from jittok.trace.stages.words import SplitStage, WordsStage

KINDS: dict[str, StageKind] = {
    kind.name: kind
    for kind in (
        FragmentsStage(),
        NormalizedStage(),
        CharsmapStage(),
        SplitStage(),
        WordsStage(),
        SymbolsStage(),
        MergesStage(),
        ResegmentStage(),
        MatchesStage(),
        LatticeStage(),
        PathStage(),
        TokensStage(),
    )
}
STAGES = tuple(KINDS)
"""All stages, in the order in which they happen."""
FRAME = "max-width:100%;overflow-x:auto"
MOST_HTML = 80_000
"""Limit of characters of HTML of all stages together; a stage beyond it shows how to display it alone."""
ROWS = 100
"""Default limit of lines of a stage in a terminal."""


def stage_html(name: str, records: Records, context: Record) -> str:
    """One stage as HTML."""
    kind = KINDS[name]
    title = f'<div><b>{escape(name)}</b> <span style="{DIM}">{escape(kind.about)}</span></div>'
    inside = kind.html(records, context) if records else "nothing: this type of vocabulary or this text does without it"
    return f'<div style="{FRAME}">{title}{inside}</div>'


def trace_html(facts: Record, stages: Stages, context: Record) -> str:
    """All stages of one text as HTML, folded except for the tokens."""
    options = [name for name in ("add_special", "parse_special") if facts[name]]
    title = (
        f"<b>{escape(facts['vocab'])}</b> ({escape(facts['type'])}"
        + (f", pre {escape(facts['pre'])}" if facts["pre"] else "")
        + f"): {facts['bytes']} bytes, {len(stages['tokens'])} tokens"
        + (f" with {', '.join(options)}" if options else "")
    )
    parts, left = [], MOST_HTML
    for name, records in stages.items():
        if records and name != "tokens":
            inside = KINDS[name].html(records, context)
            if len(inside) > left:
                inside = f"too much to show here: <code>trace.show({name!r})</code>"
            left -= len(inside)
            parts.append(fold(f"{name} · {len(records)} · {KINDS[name].about}", inside))
    parts.append(fold(f"tokens · {len(stages['tokens'])} · as a table", token_table(stages["tokens"])))
    return f'<div style="{FRAME}"><div>{title}</div>{chips(stages["tokens"])}{"".join(parts)}</div>'


def stage_lines(name: str, records: Records, context: Record, rows: int | None = ROWS) -> Iterator[Line]:
    """One stage in a terminal: a title and a line per record, at most `rows` of them."""
    yield [StyledText(name, TITLE), StyledText(f"  {len(records)}", FAINT)]
    shown = records if rows is None else records[:rows]
    if shown:
        yield from KINDS[name].lines(shown, context)
    if len(records) > len(shown):
        yield [StyledText(f"  … and {len(records) - len(shown)} more", FAINT)]


def stage_text(name: str, records: Records, context: Record) -> str:
    """One stage as text without colors."""
    return uncoloured(stage_lines(name, records, context))


def trace_lines(facts: Record, stages: Stages, context: Record, rows: int | None = ROWS) -> Iterator[Line]:
    """All stages of one text, the tokens first and last."""
    options = [name for name in ("add_special", "parse_special") if facts[name]]
    pre = f", pre {facts['pre']}" if facts["pre"] else ""
    asked = f" with {', '.join(options)}" if options else ""
    head = f" ({facts['type']}{pre}): {facts['bytes']} bytes, {len(stages['tokens'])} tokens{asked}"
    yield [StyledText(facts["vocab"], TITLE), StyledText(head)]
    yield from _token_line(stages["tokens"], rows)
    for name, records in stages.items():
        if records:
            yield []
            yield from stage_lines(name, records, context, rows)


def _token_line(tokens: Records, rows: int | None) -> Iterator[Line]:
    line: Line = []
    shown = tokens if rows is None else tokens[: 4 * rows]
    for token, hue in zip(shown, alternate([token["id"] for token in shown]), strict=True):
        raw = bytes.fromhex(token["bytes"])
        special = " bold" if SPECIAL & set(token["attributes"]) else ""
        line.append(StyledText(readable(raw) or "∅", f"black on {TERMINAL[hue]}{special}"))
        line.append(StyledText(" "))
        if raw.endswith(b"\n"):
            yield line
            line = []
    if len(tokens) > len(shown):
        line.append(StyledText(f"… {len(tokens) - len(shown)} more", FAINT))
    yield line


def sentence(name: str, record: Record, regexes: Sequence[str] = ()) -> str:
    """The sentence of a record. regexes: the patterns that words refer to by number."""
    return KINDS[name].sentence(record, regexes)
