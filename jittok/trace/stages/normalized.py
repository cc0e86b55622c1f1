"""Stages "normalized" and "charsmap": what the text becomes before it is split."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from jittok.common.display.characters import readable
from jittok.common.display.tables import ROWS, Markup, table
from jittok.common.display.terminal import BAD, FAINT, GOOD, StyledText, clipped
from jittok.common.display.tokens import DIM, fold, marked, rest, text_chip
from jittok.trace.recorder import Record
from jittok.trace.stages.base import MOST_SHOWN, Records, StageKind


class NormalizedStage(StageKind):
    """Each fragment after normalizing, and the source of each of its bytes."""

    name = "normalized"
    about = "what the text becomes before it is split"

    def html(self, records: Records, context: Record) -> str:
        """A picture and a table."""
        raw: bytes = context["text"]
        out = []
        for record in records[:ROWS]:
            text = record["text"].encode("utf-8", "surrogateescape")
            shown, copied = [], b""  # unchanged bytes are shown together: they may be parts of characters
            for k, (i, j, start, stop) in enumerate(record["map"][:MOST_SHOWN]):
                before = raw[start:stop]
                if text[i:j] == before:
                    copied += before
                    continue
                said = f"{readable(before) or 'nothing'} (bytes {start} to {stop}) became {readable(text[i:j])}"
                shown += [marked(copied), text_chip(text[i:j].decode("utf-8", "surrogateescape"), 1 + k % 2, said)]
                copied = b""
            shown.append(marked(copied))
            step = f' <small style="{DIM}">{escape(record["step"])}</small>' if "step" in record else ""
            line = f'<div style="line-height:1.9">{"".join(shown)}{step}</div>'
            out.append(line + rest(len(record["map"]) - MOST_SHOWN, "units"))
            steps = [step for step in record.get("steps", ()) if _changes(step)]
            if steps:
                head = tuple(steps[0])
                rows = [[_step_value(name, step[name]) for name in head] for step in steps[:ROWS]]
                out.append(
                    fold(
                        f"{len(steps)} of {len(record['steps'])} steps that change or cut something",
                        table(head, rows, len(steps), "steps"),
                    )
                )
        return "".join(out) + rest(len(records) - ROWS, "fragments")

    def row(self, record: Record, context: Record) -> list[StyledText]:
        """A line of a terminal."""
        changed = sum(step["rule"] not in ("unchanged", "kept") for step in record.get("steps", ()))
        note = f", {changed} of {len(record['steps'])} steps change or cut" if record.get("steps") else ""
        text = readable(record["text"].encode("utf-8", "surrogateescape"))
        row = [
            StyledText(f"fragment {record['fragment']}", FAINT),
            StyledText(text),
            StyledText(f"{record['length']} bytes{note}", FAINT),
        ]
        if "step" in record:
            row.append(StyledText(clipped(record["step"]), GOOD if record["changed"] else FAINT))
        return row

    def sentence(self, record: Record, regexes: Sequence[str]) -> str:
        """What happened."""
        if "step" in record:
            what = f"becomes {record['text']!r}, {record['length']} bytes" if record["changed"] else "stays as it is"
            return f"{record['step']}: fragment {record['fragment']} {what}"
        return f"fragment {record['fragment']} becomes {record['text']!r}, {record['length']} bytes"


def _changes(step: Record) -> bool:
    """Whether a step of normalizing is shown."""
    if step["rule"] == "kept":
        return bool(step["lower"] != step["code_point"])
    return bool(step["rule"] != "unchanged")


def _step_value(name: str, value: Any) -> object:
    if name in ("code_point", "first_of_nfd", "lower"):
        return f"U+{value:04X} {readable(chr(value).encode('utf-8', 'surrogatepass'))}"
    return Markup(marked(value.encode("utf-8", "surrogateescape"))) if name == "piece" else value


class CharsmapStage(StageKind):
    """The walks through the double array of a character map."""

    name = "charsmap"
    about = "walks through the double array of the character map, byte by byte"

    def html(self, records: Records, context: Record) -> str:
        """A picture and a table."""
        walks: dict[int, list[Record]] = {}
        for record in records:
            walks.setdefault(record["walk"], []).append(record)
        told = [row for rows in walks.values() if any(row["matched"] for row in rows) for row in rows]
        head = ("walk", "at", "byte", "node", "label", "base", "then", "leaf", "value", "replacement", "")

        def line(row: Record) -> list[object]:
            end = "no such child" if row["stop"] else "longest match" if row["matched"] else ""
            label = f"{row['label']:x}"
            text = None if row["replacement"] is None else Markup(text_chip(row["replacement"], 2))
            return [
                row["walk"], row["offset"], f"{row['byte']:02x}", row["node"], label, row["base"], row["then"],
                row["leaf"], row["value"], text, end,
            ]  # fmt: skip

        picture = table(head, map(line, told), len(told)) if told else f'<div style="{DIM}">no walk matched</div>'
        return picture + fold(f"all {len(walks)} walks", table(head, map(line, records), len(records)))

    def row(self, record: Record, context: Record) -> list[StyledText]:
        """A line of a terminal."""
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
            row.append(StyledText(f"leaf: value {record['value']} is {clipped(record['replacement'])}{end}", GOOD))
        return row

    def sentence(self, record: Record, regexes: Sequence[str]) -> str:
        """What happened."""
        head = f"byte {record['byte']:02x} at {record['offset']} leads to node {record['node']}"
        if record["stop"]:
            return f"{head}, whose label is {record['label']:x}: the walk stops"
        if not record["leaf"]:
            return f"{head}, base {record['base']}: no leaf, continue from {record['then']}"
        end = " (the longest match)" if record["matched"] else ""
        return f"{head}, a leaf: value {record['value']} stands for {record['replacement']!r}{end}"
