"""Traces as text for a terminal: lines of styled spans, in color if `rich` is installed and it is a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

from jittok.common.display.characters import readable
from jittok.common.display.colours import TERMINAL, alternate
from jittok.common.display.terminal import harmless
from jittok.common.display.tokens import SPECIAL

Record = dict[str, Any]
Records = Sequence[Record]
ROWS = 100
"""Default limit of lines of a stage."""
WIDEST = 60
"""Limit of characters of a cell."""
GOOD, BAD, FAINT, TITLE = "bold green", "dim", "dim", "bold"


class StyledText(NamedTuple):
    """A run of a line; `style` is one of rich's."""

    text: str
    style: str = ""


Line = list[StyledText]


def stage(name: str, records: Records, context: Record, rows: int | None = ROWS) -> str:
    """One stage without colors."""
    return plain(stage_lines(name, records, context, rows))


def report(facts: Record, stages: Mapping[str, Records], context: Record, rows: int | None = ROWS) -> str:
    """All stages without colors."""
    return plain(lines(facts, stages, context, rows))


def plain(shown: Iterator[Line]) -> str:
    """Lines without their styles."""
    return "\n".join(harmless("".join(stretch.text for stretch in line)).rstrip() for line in shown)


def print_lines(shown: Iterator[Line], stream: IO[str], colour: bool | None = None) -> None:
    """Write lines to a stream, in color if it is a terminal (or `colour` is True) and rich is installed."""
    if stream.isatty() if colour is None else colour:
        try:
            from rich.console import Console
            from rich.text import Text
        except ImportError:
            pass
        else:
            console = Console(file=stream, force_terminal=True, soft_wrap=True, highlight=False)
            for line in shown:
                console.print(Text.assemble(*((harmless(stretch.text), stretch.style) for stretch in line)))
            return
    for line in shown:
        stream.write(harmless("".join(stretch.text for stretch in line)).rstrip() + "\n")


def lines(facts: Record, stages: Mapping[str, Records], context: Record, rows: int | None = ROWS) -> Iterator[Line]:
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


def stage_lines(name: str, records: Records, context: Record, rows: int | None = ROWS) -> Iterator[Line]:
    """One stage: a title and a line per record."""
    yield [StyledText(name, TITLE), StyledText(f"  {len(records)}", FAINT)]
    shown = records if rows is None else records[:rows]
    if name == "merges":
        yield from _merge_lines(shown, context)
    elif shown:
        yield from _columns([_ROWS[name](record, context) for record in shown])
    if len(records) > len(shown):
        yield [StyledText(f"  … and {len(records) - len(shown)} more", FAINT)]


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


def _columns(rows: list[list[StyledText]]) -> Iterator[Line]:
    widths = [max(len(row[k].text) for row in rows if k < len(row)) for k in range(max(map(len, rows)))]
    for row in rows:
        line: Line = [StyledText("  ")]
        for cell, width in zip(row, widths, strict=False):
            line += [cell, StyledText(" " * (width - len(cell.text) + 2))]
        yield line


def _text(text: str | None) -> str:
    if text is None:
        return ""
    shown = readable(text.encode("utf-8", "surrogateescape"))
    return shown if len(shown) <= WIDEST else shown[: WIDEST - 1] + "…"


def _fragments(record: Record, context: Record) -> list[StyledText]:
    raw: bytes = context["text"]
    parts = []
    for part in record["buffer"][:12]:
        stretch = _text(raw[part["offset"] : part["offset"] + part["length"]].decode("utf-8", "backslashreplace"))
        if part["type"] == "token":
            parts.append(f"[{part['token']} {stretch}]")
        else:
            parts.append(f"({part['offset']}, {part['length']}) {stretch}")
    more = f" … {len(record['buffer']) - 12} more" if len(record["buffer"]) > 12 else ""
    name = "start" if record["special"] is None else f"{record['text']} ({record['special']})"
    style = GOOD if record["found"] else FAINT
    return [
        StyledText(name, style),
        StyledText(f"found {record['found']}", FAINT),
        StyledText(" | ".join(parts) + more),
    ]


def _normalized(record: Record, context: Record) -> list[StyledText]:
    del context
    changed = sum(step["rule"] not in ("unchanged", "kept") for step in record.get("steps", ()))
    note = f", {changed} of {len(record['steps'])} steps change or cut" if record.get("steps") else ""
    text = readable(record["text"].encode("utf-8", "surrogateescape"))
    row = [
        StyledText(f"fragment {record['fragment']}", FAINT),
        StyledText(text),
        StyledText(f"{record['length']} bytes{note}", FAINT),
    ]
    if "step" in record:
        row.append(StyledText(_text(record["step"]), GOOD if record["changed"] else FAINT))
    return row


def _charsmap(record: Record, context: Record) -> list[StyledText]:
    del context
    row = [
        StyledText(f"walk {record['walk']} at {record['offset']}", FAINT),
        StyledText(f"byte {record['byte']:02x}"),
        StyledText(f"node {record['node']}"),
    ]
    if record["stop"]:
        return [*row, StyledText(f"label {record['label']:x}", BAD), StyledText("stop", BAD)]
    row += [
        StyledText(f"label {record['label']:x}"),
        StyledText(f"base {record['base']}"),
        StyledText(f"then {record['then']}"),
    ]
    if record["leaf"]:
        end = " (longest)" if record["matched"] else ""
        row.append(StyledText(f"leaf: value {record['value']} is {_text(record['replacement'])}{end}", GOOD))
    return row


def _split(record: Record, context: Record) -> list[StyledText]:
    del context
    return [
        StyledText(f"fragment {record['fragment']}", FAINT),
        StyledText(_text(record["step"])),
        StyledText(" | ".join(map(_text, record["words"][:WIDEST])), GOOD),
    ]


def _words(record: Record, context: Record) -> list[StyledText]:
    regexes = context["regexes"]
    row = [
        StyledText(str(record["word"]), FAINT),
        StyledText(_text(record["text"]), GOOD),
        StyledText(f"{record['length']} bytes at {record['offset']}", FAINT),
    ]
    if record.get("regex") is not None and record["regex"] < len(regexes):
        how = "matched by" if record["matched"] else "left by"
        row.append(StyledText(f"{how} regex {record['regex']}: {_text(regexes[record['regex']])}", FAINT))
    return row


def _symbols(record: Record, context: Record) -> list[StyledText]:
    del context
    first = " ".join(map(_text, record["symbols"][:WIDEST]))
    last = "taken whole" if record["whole"] else " ".join(_text(part["text"]) for part in record["final"][:WIDEST])
    return [
        StyledText(str(record.get("word", record["fragment"])), FAINT),
        StyledText(first),
        StyledText(f"{len(record['offers'])} offered", FAINT),
        StyledText(last, GOOD),
    ]


def _merge_lines(records: Records, context: Record) -> Iterator[Line]:
    """A line per pair, with the symbols after it, under their word."""
    del context
    position: Any = None
    for row in records:
        key = "word" if "word" in row else "fragment"
        if row[key] != position:
            position = row[key]
            yield [StyledText(f"  {key} {position}", TITLE)]
        value = f"rank {row['rank']}" if "rank" in row else f"score {row['score']:g}"
        head = f"    {row['step']:>3}  ({row['left']}, {row['right']}) {_text(row['text'])}  {value}  "
        if row["stale"]:
            yield [StyledText(head, BAD), StyledText("stale", BAD)]
            continue
        line = [StyledText(f"{head:<40}")]
        i = 0 if row["symbols"] else -1
        count = 0
        while i >= 0 and count < WIDEST:
            symbol = row["symbols"][i]
            line += [StyledText(_text(symbol["text"]), GOOD if i == row["left"] else ""), StyledText(" ")]
            i, count = symbol["next"], count + 1
        yield line


def _resegment(record: Record, context: Record) -> list[StyledText]:
    del context
    ids = " ".join(map(str, record["ids"]))
    style = GOOD if record["by"] == "token" else "yellow"
    return [
        StyledText(f"symbol {record['symbol']}", FAINT),
        StyledText(_text(record["text"]), style),
        StyledText(record["by"]),
        StyledText(ids),
    ]


def _matches(record: Record, context: Record) -> list[StyledText]:
    del context
    where = f"word {record['word']} from {record['start']}" if "word" in record else f"from {record['start']}"
    tried = f"{len(record['tried'])} tried"
    if record["token_id"] is None or record["stop"] is None:
        return [
            StyledText(where, FAINT),
            StyledText("no token", "bold red"),
            StyledText(""),
            StyledText(record["why"] or ""),
        ]
    return [
        StyledText(where, FAINT),
        StyledText(_text(record["text"]), GOOD),
        StyledText(f"id {record['token_id']}"),
        StyledText(record["why"] or tried, FAINT),
    ]


def _lattice(record: Record, context: Record) -> list[StyledText]:
    del context
    rivals = [
        f"{_text(rival['text'])} {rival['score_sum']:.3f}{'' if rival['won'] else ' lost'}"
        for rival in record["challengers"][:6]
    ]
    style = GOOD if record["on_path"] else ""
    return [
        StyledText(("▶ " if record["on_path"] else "  ") + str(record["position"]), style),
        StyledText(_text(record["text"]), style),
        StyledText(f"id {record['token_id']}"),
        StyledText(f"from {record['input_offset']}"),
        StyledText(f"{record['score_sum']:.6f}"),
        StyledText("; ".join(rivals), FAINT),
    ]


def _path(record: Record, context: Record) -> list[StyledText]:
    del context
    style = GOOD if record["on_path"] else ""
    return [
        StyledText(("▶ " if record["on_path"] else "  ") + str(record["position"]), style),
        StyledText(_text(record["text"]), style),
        StyledText(f"id {record['token_id']}"),
        StyledText(f"cost {record['cost']}"),
        StyledText(f"{len(record['challengers'])} compared", FAINT),
    ]


def _tokens(record: Record, context: Record) -> list[StyledText]:
    del context
    value = (
        f"rank {record['rank']}"
        if record.get("rank") is not None
        else f"score {record['score']:g}"
        if record["score"]
        else ""
    )
    return [
        StyledText(str(record["index"]), FAINT),
        StyledText(str(record["id"])),
        StyledText(_text(record["piece"]), GOOD),
        StyledText(record["bytes"] if len(record["bytes"]) <= WIDEST else record["bytes"][:WIDEST] + "…"),
        StyledText("{} to {}".format(*record["span"]), FAINT),
        StyledText(value, FAINT),
        StyledText(", ".join(record["attributes"]), FAINT),
    ]


_ROWS = {
    "fragments": _fragments,
    "normalized": _normalized,
    "charsmap": _charsmap,
    "split": _split,
    "words": _words,
    "symbols": _symbols,
    "resegment": _resegment,
    "matches": _matches,
    "lattice": _lattice,
    "path": _path,
    "tokens": _tokens,
}
