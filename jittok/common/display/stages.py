"""Traces as HTML: each stage as a picture where one helps, and as a table. Plain records in, markup out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from jittok.common.display.characters import readable
from jittok.common.display.pictures import lattice, matches, merges, text_chip, text_chips
from jittok.common.display.tables import ROWS, Markup, table
from jittok.common.display.tokens import DIM, chips, fold, marked, rest

Record = dict[str, Any]
Records = Sequence[Record]
FRAME = "max-width:100%;overflow-x:auto"
MOST_SHOWN = 200
"""Limit of characters, words or runs of a text that are shown at once."""
MOST_HTML = 80_000
"""Limit of characters of HTML of all stages together; a stage beyond it shows how to display it alone."""
PICTURES = 60_000
"""Limit of characters of HTML of the pictures of one stage."""
ABOUT = {
    "fragments": "the text cut around special tokens: the buffer after each of them",
    "normalized": "what the text becomes before it is cut",
    "charsmap": "walks through the double array of the character map, byte by byte",
    "split": "the words after each stage of the file's splitter",
    "words": "what the regexes (or BERT's rules) cut the text into",
    "symbols": "the symbols of each word before and after merging",
    "merges": "pairs taken from the queue, best first",
    "resegment": "from symbols to tokens: what is none falls to bytes",
    "matches": "the longest token at each place",
    "lattice": "all tokens that fit, and the best way to each place",
    "path": "the cheapest way from each place to the end",
    "tokens": "the result",
}


def trace(facts: Record, stages: Mapping[str, Records], context: Record) -> str:
    """All stages of one text, folded except for the tokens."""
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
            inside = _inside(name, records, context)
            if len(inside) > left:
                inside = f"much: <code>trace.show({name!r})</code> shows it"
            left -= len(inside)
            parts.append(fold(f"{name} · {len(records)} · {ABOUT[name]}", inside))
    parts.append(fold(f"tokens · {len(stages['tokens'])} · as a table", _token_table(stages["tokens"])))
    return f'<div style="{FRAME}"><div>{title}</div>{chips(stages["tokens"])}{"".join(parts)}</div>'


def stage(name: str, records: Records, context: Record) -> str:
    """One stage."""
    title = f'<div><b>{escape(name)}</b> <span style="{DIM}">{escape(ABOUT[name])}</span></div>'
    if not records:
        return f'<div style="{FRAME}">{title}nothing: this type of vocabulary or this text does without it</div>'
    return f'<div style="{FRAME}">{title}{_inside(name, records, context)}</div>'


def _inside(name: str, records: Records, context: Record) -> str:
    return _STAGES[name](records, context)


def _fragments(records: Records, context: Record) -> str:
    raw: bytes = context["text"]

    def buffer(parts: Records) -> Markup:
        shown = []
        for part in parts[:ROWS]:
            stretch = raw[part["offset"] : part["offset"] + part["length"]]
            where = f"offset {part['offset']}, length {part['length']}"
            if part["type"] == "token":
                named = f"token {part['token']}, {where}"
                shown.append(f"<b>{text_chip(stretch, 1, named)}</b>")
            else:
                position = f'<small style="{DIM}">({part["offset"]}, {part["length"]})</small>'
                shown.append(text_chip(_cut(readable(stretch)), 0, where) + position)
        return Markup(" ".join(shown) + rest(len(parts) - ROWS, "fragments"))

    rows = [
        (
            record["searched"],
            "start" if record["special"] is None else f"{record['text']} ({record['special']})",
            record["found"],
            buffer(record["buffer"]),
        )
        for record in records[:ROWS]
    ]
    return table(("", "looked for", "found", "buffer"), rows, len(records))


def _normalized(records: Records, context: Record) -> str:
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


def _changes(step: Record) -> bool:
    """Whether a step of normalizing is shown."""
    if step["rule"] == "kept":
        return bool(step["lower"] != step["code_point"])
    return bool(step["rule"] != "unchanged")


def _step_value(name: str, value: Any) -> object:
    if name in ("code_point", "first_of_nfd", "lower"):
        return f"U+{value:04X} {readable(chr(value).encode('utf-8', 'surrogatepass'))}"
    return Markup(marked(value.encode("utf-8", "surrogateescape"))) if name == "piece" else value


def _charsmap(records: Records, context: Record) -> str:
    del context
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


def _split(records: Records, context: Record) -> str:
    del context
    rows = [(row["fragment"], row["step"], Markup(text_chips(row["words"][:MOST_SHOWN]))) for row in records[:ROWS]]
    return table(("fragment", "stage", "words"), rows, len(records), "stages")


def _words(records: Records, context: Record) -> str:
    regexes = context["regexes"]
    titles = []
    for record in records[:MOST_SHOWN]:
        regex = record.get("regex")
        how = "matched by" if record.get("matched") else "left between matches of"
        where = f"word {record['word']}, {record['length']} bytes at {record['offset']}"
        titles.append(where if regex is None else f"{where}\n{how} regex {regex}")
    shown = text_chips([record["text"] for record in records[:MOST_SHOWN]], titles)
    used = sorted({record["regex"] for record in records if record.get("regex") is not None})
    rows = [(number, Markup(f"<code>{escape(regexes[number])}</code>")) for number in used if number < len(regexes)]
    patterns = (
        fold(
            f"{len(rows)} regex that cut them" if len(rows) == 1 else f"{len(rows)} regexes that cut them",
            table(("", "regex"), rows, len(rows)),
        )
        if rows
        else ""
    )
    return f'<div style="line-height:1.9">{shown}</div>{rest(len(records) - MOST_SHOWN, "words")}{patterns}'


def _symbols(records: Records, context: Record) -> str:
    del context

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


def _merges(records: Records, context: Record) -> str:
    out: list[str] = []
    undrawn: list[Record] = []
    left = PICTURES
    key = "word" if "word" in records[0] else "fragment"
    by_queue = _grouped(records, key)
    for symbols in context["stages"]["symbols"]:
        pops = by_queue.get(symbols[key], [])
        picture = merges(symbols, pops) if pops and left > 0 else ""
        if picture and len(picture) <= left:
            left -= len(picture)
            applied = sum(row["applied"] for row in pops)
            text = _cut(readable("".join(symbols["symbols"]).encode("utf-8", "surrogateescape")))
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


def _resegment(records: Records, context: Record) -> str:
    del context
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


def _matches(records: Records, context: Record) -> str:
    words = context["stages"]["words"]
    out = []
    if words:
        by_word = _grouped(records, "word")
        for word in words:
            rows = by_word.get(word["word"], [])
            out.append(f"<div>{matches(rows, word['text'])}</div>")
            if sum(map(len, out)) > PICTURES:
                out.pop()
                break
            out += [
                f'<div style="{DIM}">{escape(row["why"])}</div>'
                for row in rows
                if row["why"] and row["token_id"] is None
            ]
    positions = [
        [
            *([row["word"]] if words else []),
            row["start"],
            row["stop"],
            None if row["text"] is None else Markup(text_chip(row["text"], 2)),
            row["token_id"],
            row["why"] or f"{len(row['tried'])} tried: ends {_few(row['tried'])}",
        ]
        for row in records[:ROWS]
    ]
    head = [*(["word"] if words else []), "start", "stop", "text", "id", "tried"]
    listed = table(head, positions, len(records), "places")
    return "".join(out) + (fold(f"all {len(records)} places", listed) if out else listed)


def _lattice(records: Records, context: Record) -> str:
    del context
    out: list[str] = []
    for rows in _grouped(records, "word" if "word" in records[0] else "fragment").values():
        if sum(map(len, out)) > PICTURES:
            break
        out.append(lattice(rows))
        lines = [
            (
                row["position"],
                Markup(text_chip(row["text"], 2 if row["on_path"] else 0)),
                row["token_id"],
                row["input_offset"],
                f"{row['score_sum']:.6f}",
                len(row["challengers"]),
                "yes" if row["on_path"] else "",
            )
            for row in rows[:ROWS]
        ]
        head = ("position", "text", "token_id", "input_offset", "score_sum", "challengers", "on the best path")
        out.append(
            fold(
                f"{len(rows)} positions that can be reached",
                table(head, lines, len(rows), "positions"),
                shown=not out[-1],
            )
        )
    return "".join(out)


def _path(records: Records, context: Record) -> str:
    del context
    rows = [
        (
            row["position"],
            Markup(text_chip(row["text"], 2 if row["on_path"] else 0)),
            row["token_id"],
            row["length"],
            row["cost"],
            len(row["challengers"]),
            "yes" if row["on_path"] else "",
        )
        for row in records[:ROWS]
    ]
    return table(
        ("place", "piece", "id", "code points", "cost to the end", "compared", "taken"), rows, len(records), "places"
    )


def _tokens(records: Records, context: Record) -> str:
    del context
    return chips(records) + fold("as a table", _token_table(records))


def _token_table(records: Records) -> str:
    rows = [
        (
            row["index"],
            row["id"],
            Markup(text_chip(bytes.fromhex(row["bytes"]), row["id"] % 7)),
            row["bytes"],
            "{} to {}".format(*row["span"]),
            row["rank"] if row.get("rank") is not None else row["score"] or None,
            ", ".join(row["attributes"]),
        )
        for row in records[:ROWS]
    ]
    return table(("", "id", "piece", "bytes", "of the text", "rank or score", "type"), rows, len(records), "tokens")


def _grouped(records: Records, key: str) -> dict[Any, list[Record]]:
    groups: dict[Any, list[Record]] = {}
    for record in records:
        groups.setdefault(record[key], []).append(record)
    return groups


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "…"


def _few(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers[:12])) + (" …" if len(numbers) > 12 else "")


_STAGES: dict[str, Callable[[Records, Record], str]] = {
    "fragments": _fragments,
    "normalized": _normalized,
    "charsmap": _charsmap,
    "split": _split,
    "words": _words,
    "symbols": _symbols,
    "merges": _merges,
    "resegment": _resegment,
    "matches": _matches,
    "lattice": _lattice,
    "path": _path,
    "tokens": _tokens,
}
