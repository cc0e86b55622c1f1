"""Unigram: the steps of normalizing, the walks through the character map, the lattice and the best path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jittok.common.unicode.tables import well_formed
from jittok.reference.models import ugm
from jittok.reference.models.ugm import Challenge, LatticeCell
from jittok.reference.normalize.nfc import nfc
from jittok.reference.normalize.xcda import charsmap
from jittok.reference.text import Mapped, Token, rewritten
from jittok.trace.gdb import Breakpoint
from jittok.trace.recorder import Record, Recorder
from jittok.trace.stages.base import Stages
from jittok.vocab.describe import shown


def session(recorder: Recorder, fragment: Mapped, after_special: bool) -> list[Token]:  # noqa: ARG001
    """The tokens of one fragment."""
    vocab = recorder.vocab
    composed = {}
    if vocab.nfc:
        fragment = nfc(fragment)
        composed["nfc"] = shown(fragment.text)
    steps: list[Record] = []

    def observe(at: int, used: int, piece: bytes, size: int) -> None:
        steps.append(
            {
                "offset": fragment.starts[at],
                "length": used,
                "piece": shown(piece),
                "rule": _rule(recorder, fragment, at),
                "normalized_length": size,
            }
        )

    text = ugm.normalize(vocab, fragment, observe)
    units = rewritten(text.byte_units())
    recorder.add("normalized", text=shown(text.text), length=len(text.text), map=units, steps=steps, **composed)
    if not text.text:
        return []
    seen: list[Challenge] = []
    cells = ugm.lattice(vocab, bytes(text.text), seen.append)
    path = ugm.best_path(cells)
    _record_lattice(recorder, bytes(text.text), cells, seen, path)
    return list(ugm.joined(vocab, text, path))


def _rule(recorder: Recorder, fragment: Mapped, at: int) -> str:
    """The rule of a step; a walk through the character map is recorded."""
    vocab, text = recorder.vocab, fragment.text
    if bytes(text[at : at + 1]) in ugm.tables(vocab).user_prefixes:
        return "user_defined"
    chars = charsmap(vocab)
    size, _ = chars.longest_key(text, at)
    walk = recorder.count("charsmap") and recorder.stages["charsmap"][-1]["walk"] + 1
    for k, step in enumerate(chars.walk(text, at)):
        stopped = step.label != step.byte
        recorder.add(
            "charsmap",
            walk=walk,
            offset=fragment.starts[at + k],
            byte=step.byte,
            node=step.node,
            label=step.label,
            leaf=step.leaf,
            base=None if stopped else step.base,
            then=None if stopped else step.then,
            value=step.value,
            replacement=None if step.value is None else shown(chars.replacement(step.value, at)),
            stop=stopped,
            matched=k + 1 == size,
        )
    if size:
        return "charsmap"
    return "unchanged" if well_formed(text, at, vocab.shortest_utf8) else "replacement"


def _record_lattice(
    recorder: Recorder, text: bytes, cells: list[LatticeCell], seen: list[Challenge], path: list[Token]
) -> None:
    """A record per offset that can be reached, with all paths that were compared there."""
    known = ugm.tables(recorder.vocab).tokens
    rivals: dict[int, list[Record]] = {}
    for rival in seen:
        rivals.setdefault(rival.stop, []).append(
            {
                "token_id": rival.token,
                "text": shown(text[rival.start : rival.stop]),
                "input_offset": rival.start,
                "score": rival.score,
                "score_sum": rival.total,
                "won": rival.won,
                "unknown": known.get(text[rival.start : rival.stop]) != rival.token,
            }
        )
    on_path = {0, *(token.stop for token in path)}
    for position, (token, start, score) in enumerate(cells):
        if score > ugm.LOWEST:
            recorder.add(
                "lattice",
                position=position,
                token_id=token,
                text=shown(text[start:position]),
                input_offset=start,
                score_sum=score,
                on_path=position in on_path,
                challengers=rivals.get(position, []),
            )


def breakpoints(stages: Stages) -> Iterator[Breakpoint]:
    """The stops of a debugger in llama.cpp, with the values of these stages."""
    session = "llm_tokenizer_ugm_session"
    yield Breakpoint(
        "charsmap",
        "a byte of a walk through the character map: is the node a child?",
        f"{session}::normalize_prefix",
        "xcda_view.get_lcheck(node_index) != c",
        ("c", "node_index"),
        [(row["byte"], row["node"]) for row in stages["charsmap"]],
    )
    rivals: list[tuple[Any, ...]] = []
    for number in dict.fromkeys(row["fragment"] for row in stages["lattice"]):
        rivals += sorted(
            (rival["input_offset"], row["position"], rival["token_id"], rival["score_sum"])
            for row in stages["lattice"]
            if row["fragment"] == number
            for rival in row["challengers"]
            if not rival["unknown"]
        )
    yield Breakpoint(
        "lattice",
        "a token challenges the best path to its end",
        f"{session}::tokenize",
        "struct best_tokenization & current_champ = tokenization_results[prefix_offset]",
        ("input_offset", "prefix_offset", "token_id", "challenger_score"),
        rivals,
    )
    path: list[tuple[Any, ...]] = []
    for number in dict.fromkeys(row["fragment"] for row in stages["lattice"]):
        way = [row for row in stages["lattice"] if row["fragment"] == number and row["on_path"] and row["position"]]
        path += [(row["token_id"], row["input_offset"]) for row in reversed(way)]
    yield Breakpoint(
        "backtrack",
        "the best path, from its end",
        f"{session}::tokenize",
        "if (!(is_prev_unknown && is_unknown))",
        ("tokenization.token_id", "tokenization.input_offset"),
        path,
    )
