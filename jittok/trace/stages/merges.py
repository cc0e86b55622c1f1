"""Stages "symbols", "merges" and "resegment": the queue of each word (BPE) or text (SPM), pair by pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from jittok.common.display.characters import readable
from jittok.common.display.tables import ROWS, Markup, TableCell, box, grid, table
from jittok.common.display.terminal import BAD, FAINT, GOOD, TITLE, WIDEST, Line, StyledText, clipped
from jittok.common.display.tokens import DIM, fold, marked_text, rest, text_chip, text_chips
from jittok.reference.merging import MERGED, OFFERED, Pair, Symbols
from jittok.trace.recorder import SYMBOL_ROWS, Record, Recorder
from jittok.trace.stages.base import (
    MOST_SHOWN,
    PICTURES,
    Records,
    StageKind,
    clipped_text,
    grouped,
)
from jittok.vocab.describe import shown

COLUMNS = 48
"""Limit of symbols of a word that is drawn."""
STEPS = 40
"""Limit of steps of a queue that are drawn."""
STRONG, WEAK = 0.5, 0.12


class Merging:
    """An observer of `merge`: a record per pop in `merges`, and the pairs offered before the first one.

    position: fields that identify the word; name: of a pair's priority, "rank" or "score".
    """

    def __init__(self, recorder: Recorder, position: Record, name: str) -> None:
        self.recorder, self.position, self.name = recorder, position, name
        self.offers: list[Record] = []
        self.steps = 0
        self._offers = self.offers  # where the next offer belongs
        self._rows: list[Record] | None = None

    def start(self, symbols: Symbols) -> None:
        """Record the symbols before the first step."""
        self._rows = [self._row(symbols, i) for i in range(len(symbols.n))]

    def __call__(self, what: str, pair: Pair, symbols: Symbols) -> None:
        """One step; see `merging.Observe`."""
        if what == OFFERED:
            self._offers.append(self._entry(pair))
            return
        self._offers = []
        self.steps += 1
        merged = what == MERGED
        if self._rows is not None and self.recorder.symbol_rows + len(self._rows) > SYMBOL_ROWS:
            self._rows = None
        if self._rows is not None:
            self.recorder.symbol_rows += len(self._rows)
            if merged:
                self._rows = list(self._rows)
                for i in {pair.left, pair.right, symbols.next[pair.left]} - {-1}:
                    self._rows[i] = self._row(symbols, i)
        self.recorder.add(
            "merges",
            **self.position,
            step=self.steps,
            **self._entry(pair),
            stale=not merged,
            applied=merged,
            offers=self._offers,
            symbols=self._rows,
        )

    def _entry(self, pair: Pair) -> Record:
        entry: Record = {"left": pair.left, "right": pair.right, "text": shown(pair.made)}
        if self.name == "rank":
            return {**entry, "rank": int(pair.priority)}
        return {**entry, "id": self.recorder.vocab.ids[pair.made], "score": 0.0 - pair.priority}

    @staticmethod
    def _row(symbols: Symbols, i: int) -> Record:
        return {
            "text": shown(symbols.piece(i)),
            "n": symbols.n[i],
            "prev": symbols.prev[i],
            "next": symbols.next[i],
        }


class SymbolsStage(StageKind):
    """The symbols of each word before and after merging."""

    name = "symbols"
    about = "the symbols of each word before and after merging"

    def html(self, records: Records, context: Record) -> str:
        """A picture and a table."""

        def row(record: Record) -> list[object]:
            final = record["final"][:MOST_SHOWN]
            first = Markup(text_chips(record["symbols"][:MOST_SHOWN]))
            last = Markup(text_chips([part["text"] for part in final], [f"ids {part['ids']}" for part in final]))
            return [
                record.get("word", record["fragment"]),
                first,
                len(record["offers"]),
                "taken whole" if record["whole"] else last,
            ]

        return table(("word", "symbols", "pairs offered", "in the end"), map(row, records), len(records), "words")

    def row(self, record: Record, context: Record) -> list[StyledText]:
        """A line of a terminal."""
        first = " ".join(map(clipped, record["symbols"][:WIDEST]))
        last = (
            "taken whole" if record["whole"] else " ".join(clipped(part["text"]) for part in record["final"][:WIDEST])
        )
        return [
            StyledText(str(record.get("word", record["fragment"])), FAINT),
            StyledText(first),
            StyledText(f"{len(record['offers'])} offered", FAINT),
            StyledText(last, GOOD),
        ]

    def sentence(self, record: Record, regexes: Sequence[str]) -> str:
        """What happened."""
        if record["whole"]:
            return f"{''.join(record['symbols'])!r} is a token and taken as it is"
        pairs, final = len(record["offers"]), " ".join(part["text"] for part in record["final"])
        offered = f"{pairs} pair{'' if pairs == 1 else 's'} offered"
        return f"{' '.join(record['symbols'])}: {offered}, in the end {final}"


class MergesStage(StageKind):
    """The pairs taken from the queue."""

    name = "merges"
    about = "pairs taken from the queue, best first"

    def html(self, records: Records, context: Record) -> str:
        """A picture and a table."""
        out: list[str] = []
        undrawn: list[Record] = []
        left = PICTURES
        key = "word" if "word" in records[0] else "fragment"
        by_queue = grouped(records, key)
        for symbols in context["stages"]["symbols"]:
            pops = by_queue.get(symbols[key], [])
            picture = _pyramid(symbols, pops) if pops and left > 0 else ""
            if picture and len(picture) <= left:
                left -= len(picture)
                applied = sum(row["applied"] for row in pops)
                text = clipped_text(readable("".join(symbols["symbols"]).encode("utf-8", "surrogateescape")))
                title = f"{key} {symbols[key]}: {text}, {applied} of {len(pops)} pairs merged"
                out.append(fold(title, picture, shown=True))
            else:
                undrawn += pops
        if undrawn:
            value = "rank" if "rank" in undrawn[0] else "score"
            rows = [
                (
                    row.get("word", row["fragment"]),
                    row["step"],
                    row["left"],
                    row["right"],
                    Markup(text_chip(row["text"])),
                    row[value],
                    "stale" if row["stale"] else "merged",
                )
                for row in undrawn[:ROWS]
            ]
            out.append(
                fold(
                    f"{len(undrawn)} pairs of longer or later words",
                    table(("word", "step", "left", "right", "text", value, ""), rows, len(rows), "pairs"),
                )
            )
        return "".join(out)

    def lines(self, records: Records, context: Record) -> Iterator[Line]:
        """A line per pair, with the symbols after it, under their word."""
        position: Any = None
        for row in records:
            key = "word" if "word" in row else "fragment"
            if row[key] != position:
                position = row[key]
                yield [StyledText(f"  {key} {position}", TITLE)]
            value = f"rank {row['rank']}" if "rank" in row else f"score {row['score']:g}"
            head = f"    {row['step']:>3}  ({row['left']}, {row['right']}) {clipped(row['text'])}  {value}  "
            if row["stale"]:
                yield [StyledText(head, BAD), StyledText("stale", BAD)]
                continue
            line = [StyledText(f"{head:<40}")]
            i = 0 if row["symbols"] else -1
            count = 0
            while i >= 0 and count < WIDEST:
                symbol = row["symbols"][i]
                line += [StyledText(clipped(symbol["text"]), GOOD if i == row["left"] else ""), StyledText(" ")]
                i, count = symbol["next"], count + 1
            yield line

    def sentence(self, record: Record, regexes: Sequence[str]) -> str:
        """What happened."""
        value = f"rank {record['rank']}" if "rank" in record else f"score {record['score']:g}"
        head = f"step {record['step']}: pair ({record['left']}, {record['right']}) {record['text']!r}, {value}"
        if record["stale"]:
            return f"{head}, is stale: one of its sides has changed"
        offers = ", ".join(repr(offer["text"]) for offer in record["offers"])
        return f"{head}, is merged" + (f"; offers {offers}" if offers else "")


def _pyramid(symbols: Record, pops: Sequence[Record]) -> str:
    """A queue as a pyramid: a row per step, each symbol as wide as the symbols it was merged from. "" if it is too
    wide."""
    first = symbols["symbols"]
    count = len(first)
    if count > COLUMNS:
        return ""
    rows = [
        [
            TableCell("start", style=DIM),
            *(TableCell(marked_text(text), style=box(0), title=f"symbol {i}") for i, text in enumerate(first)),
        ]
    ]
    for pop in pops[:STEPS]:
        value = f"rank {pop['rank']}" if "rank" in pop else f"score {pop['score']:g}"
        what = f"pair ({pop['left']}, {pop['right']}), {value}"
        head = TableCell(f"{pop['step']} · {escape(value)}", style="white-space:nowrap;text-align:left", title=what)
        if pop["stale"] or pop["symbols"] is None:
            state = "stale" if pop["stale"] else "merged"
            note = f"{state}: ({pop['left']}, {pop['right']}) {marked_text(pop['text'])}"
            rows.append([head, TableCell(note, count, f"text-align:left;{DIM}", what)])
            continue
        cells, i = [head], 0
        while i >= 0:
            symbol = pop["symbols"][i]
            end = symbol["next"] if symbol["next"] >= 0 else count
            new = i == pop["left"]
            cells.append(
                TableCell(
                    marked_text(symbol["text"]),
                    end - i,
                    box(2, STRONG) + ";font-weight:bold" if new else box(0, WEAK),
                    f"symbol {i}: n {symbol['n']}, prev {symbol['prev']}, next {symbol['next']}",
                )
            )
            i = symbol["next"]
        rows.append(cells)
    return grid(rows) + rest(len(pops) - STEPS, "steps")


class ResegmentStage(StageKind):
    """The tokens of the symbols that SPM's merging leaves."""

    name = "resegment"
    about = "from symbols to tokens: one that is no token becomes those of its bytes"

    def html(self, records: Records, context: Record) -> str:
        """A picture and a table."""
        rows = [
            (
                row["symbol"],
                Markup(text_chip(row["text"], 2 if row["by"] == "token" else 3)),
                row["by"],
                " ".join(map(str, row["ids"])),
            )
            for row in records[:ROWS]
        ]
        return table(("symbol", "text", "by", "ids"), rows, len(records), "symbols")

    def row(self, record: Record, context: Record) -> list[StyledText]:
        """A line of a terminal."""
        ids = " ".join(map(str, record["ids"]))
        style = GOOD if record["by"] == "token" else "yellow"
        return [
            StyledText(f"symbol {record['symbol']}", FAINT),
            StyledText(clipped(record["text"]), style),
            StyledText(record["by"]),
            StyledText(ids),
        ]

    def sentence(self, record: Record, regexes: Sequence[str]) -> str:
        """What happened."""
        if record["by"] == "token":
            return f"symbol {record['symbol']} {record['text']!r} is token {record['ids'][0]}"
        return f"symbol {record['symbol']} {record['text']!r} is no token: bytes {record['ids']}"
