"""A sentence for each record of a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Record = dict[str, Any]


def sentence(stage: str, record: Record, regexes: Sequence[str] = ()) -> str:
    """The sentence of a record. regexes: the patterns that words refer to by number."""
    if stage == "words":
        return _word(record, regexes)
    return _SENTENCES[stage](record)


def _fragments(record: Record) -> str:
    buffer = " ".join(
        f"text({part['offset']}, {part['length']})" if part["type"] == "raw_text" else f"token {part['token']}"
        for part in record["buffer"]
    )
    if record["special"] is None:
        return f"the buffer is {buffer or 'empty'}"
    count = record["found"]
    times = "not found" if not count else "found once" if count == 1 else f"found {count} times"
    return f"{record['text']!r} (id {record['special']}) is {times}; the buffer is {buffer or 'empty'}"


def _normalized(record: Record) -> str:
    if "step" in record:
        what = f"becomes {record['text']!r}, {record['length']} bytes" if record["changed"] else "stays as it is"
        return f"{record['step']}: fragment {record['fragment']} {what}"
    return f"fragment {record['fragment']} becomes {record['text']!r}, {record['length']} bytes"


def _charsmap(record: Record) -> str:
    head = f"byte {record['byte']:02x} at {record['offset']} leads to node {record['node']}"
    if record["stop"]:
        return f"{head}, whose label is {record['label']:x}: the walk stops"
    if not record["leaf"]:
        return f"{head}, base {record['base']}: no leaf, continue from {record['then']}"
    end = " (the longest match)" if record["matched"] else ""
    return f"{head}, a leaf: value {record['value']} stands for {record['replacement']!r}{end}"


def _split(record: Record) -> str:
    return f"{record['step']} leaves {len(record['words'])} words: {' '.join(map(repr, record['words'][:20]))}"


def _word(record: Record, regexes: Sequence[str]) -> str:
    head = f"{record['text']!r}, {record['length']} bytes at {record['offset']}"
    if record.get("regex") is None:
        return head
    regex = regexes[record["regex"]] if record["regex"] < len(regexes) else ""
    short = regex if len(regex) <= 60 else regex[:60] + "…"
    how = "matched by" if record["matched"] else "left over by"
    return f"{head}, {how} regex {record['regex']} {short}"


def _symbols(record: Record) -> str:
    if record["whole"]:
        return f"{''.join(record['symbols'])!r} is a token and taken as it is"
    pairs = len(record["offers"])
    return f"{' '.join(record['symbols'])}: {pairs} pair{'' if pairs == 1 else 's'} offered, in the end " + " ".join(
        part["text"] for part in record["final"]
    )


def _merges(record: Record) -> str:
    value = f"rank {record['rank']}" if "rank" in record else f"score {record['score']:g}"
    head = f"step {record['step']}: pair ({record['left']}, {record['right']}) {record['text']!r}, {value}"
    if record["stale"]:
        return f"{head}, is stale: one of its sides has changed"
    offers = ", ".join(repr(offer["text"]) for offer in record["offers"])
    return f"{head}, is merged" + (f"; offers {offers}" if offers else "")


def _resegment(record: Record) -> str:
    if record["by"] == "token":
        return f"symbol {record['symbol']} {record['text']!r} is token {record['ids'][0]}"
    return f"symbol {record['symbol']} {record['text']!r} is no token: bytes {record['ids']}"


def _matches(record: Record) -> str:
    if record["token_id"] is None or (record["unk"] and record["stop"] is None):
        return f"at {record['start']}: {record['why']}"
    head = f"at {record['start']}: the longest token is {record['text']!r}, id {record['token_id']}"
    return f"{head}, after {len(record['tried'])} tries" + (f" ({record['why']})" if record["why"] else "")


def _lattice(record: Record) -> str:
    if not record["challengers"]:
        return "position 0: the start, score 0"
    won = f"{record['text']!r} (id {record['token_id']}) from {record['input_offset']}, sum {record['score_sum']:.6f}"
    count = len(record["challengers"])
    end = ", on the best path" if record["on_path"] else ""
    return f"position {record['position']}: best of {count} is {won}{end}"


def _path(record: Record) -> str:
    if record["token_id"] is None:
        return f"position {record['position']}: no piece"
    what = f"token {record['token_id']}" if record["token_id"] >= 0 else "bytes"
    end = ", on the cheapest path" if record["on_path"] else ""
    count = len(record["challengers"])
    return (
        f"position {record['position']}: cheapest of {count} is {record['text']!r} ({what}), cost {record['cost']}{end}"
    )


def _tokens(record: Record) -> str:
    start, stop = record["span"]
    return f"{record['id']} {record['piece']!r}, bytes {start} to {stop}, {' '.join(record['attributes'])}"


_SENTENCES: dict[str, Callable[[Record], str]] = {
    "fragments": _fragments,
    "normalized": _normalized,
    "charsmap": _charsmap,
    "split": _split,
    "symbols": _symbols,
    "merges": _merges,
    "resegment": _resegment,
    "matches": _matches,
    "lattice": _lattice,
    "path": _path,
    "tokens": _tokens,
}
