"""The plan of a tokenizer: what `Encoder` runs for a text, in order.

1. **cut** documents around special tokens: `cutters`;
2. **normalize** each fragment: steps, in `normalize`; then tokens of normalized text are searched for;
3. write what pre-tokens begin with, and **mark** where they begin: steps, in `front`;
4. the **model**: `arrays`, for the kernels of `family`. It splits text into pre-tokens itself where they are not
   marked, and normalizes what `normalize` does not;
5. **join**: ids around each document, written by 1; repeats of the unknown token, by `join`.

A `Step` rewrites fragments. Most files have none: their model reads the text in place.

`rows_of` shows the plan row by row, for `Tokenizer.explain`: what is no step of its own is done by the model's kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.encode.cutters import FileCutter, LlamaCutter
from jittok.errors import UnsupportedVocab
from jittok.kernels.fragments import PAD
from jittok.kernels.jit import I32, I64, U8, frozen
from jittok.kernels.memory import FAST
from jittok.kernels.memory.python_objects.encode_builtin import NO_LIMIT
from jittok.kernels.merging.left_to_right import BUILD_ON_DEMAND
from jittok.kernels.normalize.nfc.fragments import Changed, Nfc, changed_fragments, nfc_tables
from jittok.kernels.normalize.nfc.normalizer import find_changed
from jittok.kernels.normalize.prefixes import gather
from jittok.kernels.special.tables import SpecialTokens
from jittok.kernels.structures.utf8_check import first_malformed
from jittok.vocab.types import TYPES

if TYPE_CHECKING:
    from jittok.common.pipeline import Pipeline
    from jittok.encode.buffers import Workspace
    from jittok.encode.cutters import EncodeOptions
    from jittok.vocab import Vocab

CUT, CHECK, NORMALIZE, SPLIT, MODEL, JOIN = "cut", "check", "normalize", "split", "model", "join"
"""Parts of a plan, in order."""
PACKAGE = Path(__file__).resolve().parents[2]
"""The folder that the package is in."""
ANY_BYTES, BY_KERNEL, BEFORE = "any bytes", "by the kernel", "before"
"""Who finds invalid UTF-8: no one, as llama.cpp reads any bytes; the kernel of the plan; a kernel that runs before."""


class Extent(NamedTuple):
    """How much text there is, or may be."""

    number: int  # of fragments
    size: int  # bytes of all of them
    longest: int  # bytes of the longest


class FragmentTexts(NamedTuple):
    """The fragments of texts, see `jittok.kernels.fragments`."""

    data: U8
    starts: I64
    stops: I64
    tokens: I32
    kept: tuple[Any, ...] | None = None  # as in Documents: then only kernels may read at these offsets

    @property
    def number(self) -> int:
        """Number of fragments."""
        return int(self.tokens.size)

    @property
    def size(self) -> int:
        """Bytes of all texts."""
        return int(np.where(self.tokens < 0, self.stops - self.starts, 0).sum())

    @property
    def extent(self) -> Extent:
        """How much text this is."""
        return Extent(self.number, self.size, int((self.stops - self.starts).max(initial=0)))

    @property
    def columns(self) -> tuple[U8, I64, I64, I32]:
        """The arrays in the order of a kernel's arguments."""
        return self.data, self.starts, self.stops, self.tokens

    def some(self, its: slice) -> FragmentTexts:
        """A slice of them."""
        return self._replace(starts=self.starts[its], stops=self.stops[its], tokens=self.tokens[its])


class BoundKernel(NamedTuple):
    """A kernel with its arguments, and what it writes. Results from `least` to `most` are success. The argument `count`
    is the number of fragments."""

    kernel: Any
    args: tuple[Any, ...]
    made: FragmentTexts
    extent: Extent  # the most that is in `made`
    least: int = 0
    most: int = NO_LIMIT


class Step:
    """One step: what it does, in the file's own words, and how.

    does: records of `jittok.common.pipeline.steps`; kernels: those that run for every text
    """

    does: tuple[Any, ...] = ()
    kernels: tuple[Any, ...] = ()
    in_python = False
    """Whether Python does most of the work."""
    binds = False
    """Whether `bind` is possible: kernels do all of the step, at least for most texts."""

    def run(self, workspace: Workspace, texts: FragmentTexts) -> FragmentTexts:
        """The fragments after this step."""
        raise NotImplementedError(type(self).__name__)

    def bind(self, texts: FragmentTexts, extent: Extent) -> list[BoundKernel]:
        """The step as kernels on arrays that stay where they are, with capacity for `extent`. A text with which one of
        them does not succeed is not for these."""
        raise NotImplementedError(type(self).__name__)


def written(kernel: Any, given: tuple[Any, ...], capacity: int, tokens: I32, extent: Extent) -> BoundKernel:
    """A kernel with new arrays for what it writes: `out` of that capacity, and where each fragment is in it."""
    out, starts, stops = np.empty(capacity, np.uint8), np.empty(tokens.size, np.int64), np.empty(tokens.size, np.int64)
    made = FragmentTexts(frozen(out, np.uint8), frozen(starts, np.int64), frozen(stops, np.int64), tokens)
    return BoundKernel(kernel, (*given, out, starts, stops), made, extent)


def exchanged(
    workspace: Workspace, texts: FragmentTexts, data: U8, starts: I64, stops: I64, changes: NDArray[np.int64]
) -> FragmentTexts:
    """The texts, with text k of `data` in place of text k where changes[k] >= 0."""
    size = texts.size + int(np.where(changes >= 0, stops - starts, 0).sum())
    other = data, starts, stops, frozen(changes, np.int64)
    given = texts.data, texts.starts, texts.stops, *other, texts.tokens, texts.number
    call = written(gather, given, size + PAD, texts.tokens, texts.extent)
    workspace.run(call.kernel, *call.args)
    return call.made


class ComposeInPlace(Step):
    """NFC for a model that reads text in place: fragments that change are copied, the others stay where they are.

    strict: raise NotUtf8 for invalid UTF-8; else it becomes U+FFFD.
    """

    kernels = (find_changed,)

    def __init__(self, tables: Nfc, strict: bool) -> None:
        self.tables, self.strict = tables, strict

    def changed(self, texts: FragmentTexts) -> Changed | None:
        """The fragments that change; None if there are none."""
        return changed_fragments(self.tables, *texts.columns, texts.number, strict=self.strict)

    def replaced(self, workspace: Workspace, texts: FragmentTexts, found: Changed) -> FragmentTexts:
        """The texts with those that change in place of what they were. Both are offsets from one address, if kernels
        can read at such offsets; else all are copied."""
        if not FAST:
            changes = np.where(found.changes >= 0, np.arange(found.changes.size), -1)
            return exchanged(workspace, texts, found.data, found.starts, found.stops, changes)
        here, there = texts.data.ctypes.data, found.data.ctypes.data
        base, changed = min(here, there), found.changes >= 0
        starts = np.where(changed, found.starts + (there - base), texts.starts + (here - base))
        stops = np.where(changed, found.stops + (there - base), texts.stops + (here - base))
        first, kept = texts.data if here == base else found.data, (texts, found.data)
        return FragmentTexts(first, frozen(starts, np.int64), frozen(stops, np.int64), texts.tokens, kept)


class Plan(NamedTuple):
    """How one tokenizer encodes; see the module's docstring. Immutable, and shared by threads."""

    vocab: Any  # a Vocab, or a Pipeline of any other file
    family: str  # the name of a record of `vocab.types.TYPES`
    arrays: Any  # the compiled vocabulary, for the kernels of the family
    cutter: LlamaCutter | FileCutter
    utf8: str = ANY_BYTES  # who finds invalid UTF-8
    compose: ComposeInPlace | None = None  # the only step, if there is one and the model reads text in place
    normalize: tuple[Step, ...] = ()
    front: tuple[Step, ...] = ()
    prepared: Any = False  # how texts are prepared, see `file_plan.step_plan`; False: the model reads them in place
    marks: str = ""  # the field of `arrays` that says where the bitmap of pre-tokens begins; "" without one
    # if only the text at the start of a document gets a prefix: whether a normalized text begins there
    first_only: Callable[[str], bool] | None = None
    unused: Any = None  # pieces of type UNUSED, which become others after merging
    join: tuple[Any, int] | None = None  # the kernel that makes one of repeats of an id, and that id
    chain: int = BUILD_ON_DEMAND  # whether there may be tables of left-to-right BPE
    rest: Any = None  # the pipeline by which the reference encodes fragments that the kernel leaves

    @property
    def prepares(self) -> bool:
        """Whether the model reads texts that steps have written."""
        return self.prepared is not False

    @property
    def binds(self) -> bool:
        """Whether kernels alone do all steps of most texts, see `Step.bind`."""
        plain = self.first_only is None and self.unused is None
        return plain and all(step.binds for step in (*self.normalize, *self.front))

    def arrays_for(self, arrays: Any, data: NDArray[np.uint8]) -> Any:
        """The arrays for `data`: if pre-tokens are marked, they say where the bitmap of their starts begins."""
        if not self.marks:
            return arrays
        from jittok.kernels.pretokenize.splitters.word_bitmap import MARKS  # few plans need it

        return arrays._replace(**{self.marks: data.size // MARKS * 8})

    def compiled(self) -> dict[str, Any]:
        """What is compiled, as keyword arguments of the function that makes the plan: `gguf_plan`, or
        `file_plan.plan_of`."""
        if isinstance(self.cutter, LlamaCutter):
            return {"arrays": self.arrays, **self.cutter.compiled()}
        return {"arrays": self.arrays, **self.cutter.compiled(), "family": self.family, "prepared": self.prepared}


def gguf_plan(vocab: Vocab, arrays: Any = None, **searches: Any) -> Plan:
    """The plan of a GGUF. Its model's kernel normalizes and splits. arrays, searches: if they are compiled already.
    UnsupportedVocab for a type without kernels."""
    kind = TYPES.get(vocab.type)
    if kind is None or not kind.module:
        raise UnsupportedVocab(vocab.source, "tokenizer.ggml.model", vocab.model, "a type that can tokenize")
    if arrays is None:
        arrays = model_of(vocab.type).compile_pipeline(vocab.pipeline)
    compose = ComposeInPlace(nfc_tables(), strict=False) if vocab.nfc else None
    return Plan(vocab, vocab.type, arrays, LlamaCutter(vocab, **searches), compose=compose)


def model_of(family: str) -> Any:
    """The module with the kernels of a family."""
    import importlib

    return importlib.import_module(TYPES[family].module)


# ---- the plan as a table


class PlanRow(NamedTuple):
    """One row: a part of the plan, and who does it."""

    part: str
    does: tuple[Any, ...]  # records of `jittok.common.pipeline`, or words
    by: str  # names of kernels, or "plain Python"
    where: str  # file:line of each


def rows_of(encoder: Any, rule: EncodeOptions) -> list[PlanRow]:
    """The rows of an encoder (or a `ReferenceEncoder`), for the options of a call."""
    if encoder.in_python:
        return encoder.rows()  # type: ignore[no-any-return]
    plan: Plan = encoder.plan
    pipeline = _pipeline_of(plan)
    model = _row(MODEL, (pipeline.model,), (encoder.first_kernel(),))
    own = [record for step in (*plan.normalize, *plan.front) for record in step.does]
    searched = sum(int(found.ids.size) for found in rule.tables if isinstance(found, SpecialTokens))
    rows = (
        [_row(CUT, (f"cut around {special_tokens(searched)}",), (rule.kernel,))] if rule.searches and searched else []
    )
    if plan.utf8 == BEFORE:
        rows.append(_row(CHECK, ("valid UTF-8",), (first_malformed,)))
    if plan.compose is not None:
        own += pipeline.normalize
        rows.append(_row(NORMALIZE, pipeline.normalize[:1], (find_changed,)))
    rows += [_of_step(NORMALIZE, step) for step in plan.normalize]
    rows += [model._replace(part=NORMALIZE, does=(record,)) for record in _rest(pipeline.normalize, own)]
    if plan.normalize and rule.later is not None and rule.later.ids.size:
        from jittok.kernels.special.leftmost import cut_leftmost

        rows.append(
            _row(CUT, (f"cut around {special_tokens(rule.later.ids.size)} of normalized text",), (cut_leftmost,))
        )
    rows += [_of_step(SPLIT, step) for step in plan.front]
    rows += [model._replace(part=SPLIT, does=(record,)) for record in _rest(pipeline.split, own)]
    rows.append(model)
    if plan.unused is not None:
        from jittok.kernels.models.spm.unused_pieces import write_parts

        rows.append(_row(JOIN, ("pieces of type UNUSED become the pieces that they were merged from",), (write_parts,)))
    if plan.join is not None:
        rows.append(_row(JOIN, ("repeats of the unknown token become one",), (plan.join[0],)))
    if rule.around != (0, 0):
        before, after = rule.around
        rows.append(_row(JOIN, (f"ids around the text: {before} before it, {after} after it",), (rule.kernel,)))
    return rows


def special_tokens(count: int) -> str:
    """A number of special tokens, in words."""
    return f"{count:,} special token{'' if count == 1 else 's'}"


def _pipeline_of(plan: Plan) -> Pipeline:
    return getattr(plan.vocab, "pipeline", plan.vocab)  # type: ignore[no-any-return]


def _rest(records: Iterable[Any], own: list[Any]) -> list[Any]:
    """The records that no step of the plan does."""
    return [record for record in records if not any(record is each for each in own)]


def _of_step(part: str, step: Step) -> PlanRow:
    row = _row(part, step.does, step.kernels)
    if not step.in_python:
        return row
    return row._replace(by="plain Python", where=place_of(type(step).run))


def _row(part: str, does: tuple[Any, ...], kernels: tuple[Any, ...]) -> PlanRow:
    found = dict.fromkeys(kernels)
    names = ", ".join(f"kernel {kernel.__name__}" for kernel in found)
    return PlanRow(part, does, names, ", ".join(place_of(kernel.python) for kernel in found))


def place_of(function: Any) -> str:
    """Where a function is, as file:line."""
    code = function.__code__
    path = Path(code.co_filename)
    shown = path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else path.name
    return f"{shown}:{code.co_firstlineno}"
