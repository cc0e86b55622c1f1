"""PLaMo-2 and 3: the pieces that were compared at each offset, from the end of the text, and the cheapest path."""

from __future__ import annotations

from collections.abc import Iterator

from jittok.common.unicode.tables import utf8
from jittok.reference.models import plamo2
from jittok.reference.text import Mapped, Token
from jittok.trace.gdb import Breakpoint
from jittok.trace.recorder import Record, Recorder
from jittok.trace.stages.base import Stages
from jittok.vocab.describe import shown


def session(recorder: Recorder, fragment: Mapped, after_special: bool) -> list[Token]:  # noqa: ARG001
    """The tokens of one fragment."""
    vocab = recorder.vocab
    known = plamo2.table(vocab)
    tokens: list[Token] = []
    for text in plamo2.segments(vocab, fragment):
        _record_part(recorder, fragment, text)
        tokens += plamo2.searched(known, fragment, text)
    return tokens


def _record_part(recorder: Recorder, fragment: Mapped, text: list[plamo2.Point]) -> None:
    """A record per offset of one segment, from its end."""
    points, positions = [c for c, _, _ in text], [fragment.starts[i] for _, i, _ in text]
    challengers: dict[int, list[Record]] = {}

    def observe(position: int, size: int, token: int, score: int, cost: int, won: bool) -> None:
        challengers.setdefault(position, []).append(
            {"token_id": token, "length": size, "score": score, "cost": cost, "won": won}
        )

    pieces = plamo2.best_pieces(plamo2.table(recorder.vocab), points, positions, observe)
    on_path, at = set(), 0
    for size, _ in pieces:
        on_path.add(at)
        at += size
    for position in sorted(challengers, reverse=True):
        best = next((rival for rival in reversed(challengers[position]) if rival["won"]), None)
        recorder.add(
            "path",
            position=position,
            offset=positions[position],
            text=shown(b"".join(map(utf8, points[position : position + (best["length"] if best else 1)]))),
            token_id=best["token_id"] if best else None,
            length=best["length"] if best else None,
            cost=best["cost"] if best else None,
            on_path=position in on_path,
            challengers=challengers[position],
        )


def breakpoints(stages: Stages) -> Iterator[Breakpoint]:
    """The stops of a debugger in llama.cpp, with the values of these stages."""
    yield Breakpoint(
        "path",
        "a piece is compared with the cheapest path to the end",
        "llm_tokenizer_plamo2::encode",
        "if (s < scores[i])",
        ("i", "piece_length", "s"),
        [(row["position"], rival["length"], rival["cost"]) for row in stages["path"] for rival in row["challengers"]],
    )
