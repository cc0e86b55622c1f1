"""The result of `Tokenizer.explain`: the plan of a tokenizer as a table, with what each step does to an example.

The rows come from the plan that the encoder runs (`encode.plan`), the examples from the references, which have the
same steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

from jittok.common.display.tables import Markup, table
from jittok.common.display.terminal import harmless, visible
from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.descriptions import in_words
from jittok.reference.pipeline import runner
from jittok.reference.special import partition
from jittok.reference.steps import after_each_step
from jittok.reference.text import Mapped, Piece, mapped, read_text
from jittok.vocab import Vocab

MOST_PARTS = 12
"""Parts of an example that are shown."""
MOST_CHARACTERS = 60
"""Characters of each."""


class ExplainedStep(NamedTuple):
    """One step of a plan."""

    part: str  # cut, check, normalize, split, model or join
    does: str  # in the file's own words
    by: str  # kernels by name, or "plain Python"
    where: str  # file:line of each
    example: list[str]  # the example after this step, in parts; ids of the model as numbers


class Explanation(Sequence[ExplainedStep]):
    """The steps from a text to its ids, in order; displayed as a table."""

    def __init__(self, title: str, text: str, steps: list[ExplainedStep]) -> None:
        self.title, self.text, self._steps = title, text, steps

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, at: Any) -> Any:
        return self._steps[at]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Each step as a dict, in values that JSON supports."""
        return [step._asdict() for step in self._steps]

    def _lines(self) -> Iterator[str]:
        yield f"{self.title}, for the text {_shown(self.text)!r}"
        for number, step in enumerate(self._steps, 1):
            yield f"{number:>3} {step.part:<9} {step.does}"
            yield f"{'':13} {step.by}, {step.where}"
            if step.example:
                yield f"{'':13} -> {_parts(step.example)}"

    def __repr__(self) -> str:
        return harmless("\n".join(self._lines()))

    def _repr_html_(self) -> str:
        head = "", "step", "what it does", "by", "where", f"{_shown(self.text)!r} after it"
        rows = [
            (k, step.part, step.does, step.by, Markup(f"<code>{step.where}</code>"), _parts(step.example))
            for k, step in enumerate(self._steps, 1)
        ]
        return f"<div><b>{escape(self.title)}</b></div>" + table(head, rows, len(rows))


def _shown(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def _parts(parts: list[str]) -> str:
    shown = " | ".join(map(_shown, parts[:MOST_PARTS]))
    return shown if len(parts) <= MOST_PARTS else f"{shown} | … {len(parts) - MOST_PARTS} more"


def explain(
    vocab: Vocab | Pipeline, rows: Sequence[Any], text: bytes, ids: list[int], around: tuple[int, int],
    parse_special: bool,
) -> Explanation:  # fmt: skip
    """The table of a plan. rows: `encode.plan.rows_of`; ids: those of the text, with so many `around` it."""
    pipeline = vocab.pipeline if isinstance(vocab, Vocab) else vocab
    of = _of_gguf(vocab, text, parse_special) if isinstance(vocab, Vocab) else _of_file(vocab, text, parse_special)
    cut, after = of
    steps = list[ExplainedStep]()
    for row in rows:
        known = [after[id(record)] for record in row.does if id(record) in after]
        example = known[-1] if known else []
        if row.part == "cut" and not any(step.part == "cut" for step in steps):
            example = cut
        elif row.part in ("model", "join"):
            own = ids if row is rows[-1] else ids[around[0] : len(ids) - around[1]]
            example = [str(token) for token in own]
        does = ", then ".join(record if isinstance(record, str) else in_words(record) for record in row.does)
        steps.append(ExplainedStep(row.part, does, row.by, row.where, example))
    name = vocab.name or vocab.source
    return Explanation(f"{name}: {pipeline.format}, {vocab.type}", visible(text), steps)


def _of_gguf(vocab: Vocab, text: bytes, parse_special: bool) -> tuple[list[str], dict[int, list[str]]]:
    """(the fragments of a text, the parts after each step by the id() of its record)."""
    cut, after = list[str](), dict[int, list[str]]()
    special = True
    for fragment in partition(vocab, text, parse_special):
        cut.append(visible(text[fragment.start : fragment.stop]))
        if fragment.token is None:
            for step, parts in after_each_step(vocab, mapped(text, fragment.start, fragment.stop), special):
                shown = (visible(bytes(part.text)) if isinstance(part, Mapped) else str(part.id) for part in parts)
                after.setdefault(id(step), []).extend(shown)
        special = fragment.token is not None
    return cut, after


def _of_file(pipeline: Pipeline, raw: bytes, parse_special: bool) -> tuple[list[str], dict[int, list[str]]]:
    """The same for other files."""
    run, cut, after = runner(pipeline), list[str](), dict[int, list[str]]()
    text = read_text(raw)
    if run.pieces:
        return [text.text], {id(pipeline.normalize[0]): [run.squeezed(text).text]}

    def see(step: Any, made: Piece | list[Piece]) -> None:
        pieces = [made] if isinstance(made, Piece) else made
        parts = cut if step == "cut" else after.setdefault(id(step), [])
        parts.extend(visible(piece.text.encode()) for piece in pieces)

    for _ in run.words(text, parse_special, see):
        pass
    return cut, after
