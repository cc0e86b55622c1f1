"""Short texts, one or a few: the steps of a plan laid out once, so that as little Python as possible runs per text.

A `ShortTextFrame` is a list of kernel calls for a workspace and the options of a call: cut the text, check it, or run
the steps of the plan on a copy of it, encode, join ids. For the next text only its address and size, and the number of
its fragments, are written: kernels read `bytes` and ASCII `str` in place. If anything is missing (capacity, scratch,
valid text), the text is left to `Encoder.one`, which starts over.

A frame that is used often gets a builtin function (`python_objects.encode_builtin`), which walks the same list
without Python. It may be called when `Workspace.ready` is its `generation`: then the workspace is free, and its
arrays are those of all frames of that generation. A caller that acquires a workspace writes 0 to `ready`. Only
`try_short_text` sets it again, with a frame that fits. The GIL is held all the time. The builtin may still run
between the moment when a caller acquires a workspace and the moment when 0 is written. This is harmless: it ends
before the GIL is released, and a workspace holds no state between two calls. While NumPy creates the array of a
builtin, other code may run. Then `ready` is -1, and the workspace belongs to the builtin until it ends.
"""

from __future__ import annotations

import ctypes
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.rows.ids import Ids
from jittok.encode import limits
from jittok.encode.cutters import can_wait
from jittok.encode.plan import BEFORE, ComposeInPlace, Extent, FragmentTexts, Plan
from jittok.kernels.fragments import PAD, TEXT_PREFIXED
from jittok.kernels.jit import frozen
from jittok.kernels.memory.python_objects import encode_builtin
from jittok.kernels.memory.python_objects.encode_builtin import NO_LIMIT, address_of
from jittok.kernels.memory.python_objects.texts import bytes_data_offset, str_layout
from jittok.kernels.normalize.nfc.normalizer import GROWTH, NO_MAP, find_changed, make_nfc_work, normalize_changed
from jittok.kernels.structures.utf8_check import VALID, first_malformed

if TYPE_CHECKING:
    from jittok.common.rows.token_array import TokenArray
    from jittok.encode.buffers import Workspace
    from jittok.encode.cutters import EncodeOptions
    from jittok.encode.encoder import Encoder

MOST_FRAMES = 16
"""Rules for which a workspace keeps a frame."""
CALLS_BEFORE_BUILTIN, CALLS_BEFORE_FIRST_BUILTIN = 20, 1000
"""Texts after which a frame gets a builtin; the first of a process takes milliseconds."""
HOLDING = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
"""A kernel's machine code, called with the GIL held."""
_IN_STR, _IN_BYTES = str_layout().header, bytes_data_offset()
"""Where texts begin in objects; 0: they cannot be read there."""


class Cells:
    """The numbers that change from text to text, at addresses that stay: its bytes, and its fragments."""

    def __init__(self) -> None:
        self.size, self.number = np.zeros(1, np.int64), np.zeros(1, np.int64)


class ShortCall(NamedTuple):
    """A kernel with its arguments, and what of them changes: names of those that are the text and the number of its
    fragments."""

    kernel: Any
    args: tuple[Any, ...]
    text: str = ""
    number: str = ""
    result: NDArray[np.int64] | None = None  # int64[1] receives what the kernel returns; the last one returns the ids
    least: int = 0  # results from `least` to `most` are success
    most: int = NO_LIMIT
    other: tuple[ShortCall, ...] = ()  # the rest of the list, if the result is the size of the text instead


class LaidCall:
    """A `ShortCall` as machine code and its frame."""

    __slots__ = (
        "_call", "cuts", "entry", "frame", "holding", "least", "most", "number_at", "other", "result", "result_at",
        "text_at", "words",
    )  # fmt: skip

    def __init__(self, call: ShortCall, cells: Cells) -> None:
        self.cuts = call.result is cells.number  # whether the result is the number of fragments
        names = list(call.kernel.plan)
        made = self._call = call.kernel.call(*call.args)
        self.words, self.frame = made.words, made.words.buffer_info()[0]
        self.text_at = made.slots[names.index(call.text)] if call.text else 0  # 0: nowhere
        self.number_at = made.slots[names.index(call.number)] if call.number else 0
        self.entry, self.holding = call.kernel.entry, HOLDING(address_of(call.kernel.entry))
        self.least, self.most, self.other = call.least, call.most, -1
        self.result = None if call.result is None else memoryview(call.result)  # type: ignore[arg-type]
        self.result_at = 0 if call.result is None else call.result.ctypes.data

    def step(self, first: int) -> tuple[int, ...]:
        """The same for a builtin, see `encode_builtin.Step`. first: the address of the first step."""
        text, number = (self.frame + 8 * at if at else 0 for at in (self.text_at, self.number_at))
        other = 0 if self.other < 0 else first + 8 * encode_builtin.STEP * self.other
        code = address_of(self.holding)
        return encode_builtin.Step(code, self.frame, text, number, self.result_at, self.least, self.most, other)


class Copied(NamedTuple):
    """Where a text is copied to, if kernels prepare it, and what is zeroed before that."""

    held: NDArray[np.uint8]
    clear: NDArray[np.uint8]


class ShortTextFrame:
    """The calls for one text. Valid while the workspace and the encoder have the arrays that it was made with
    (`fits`)."""

    __slots__ = (
        "_calls", "_cells", "_copied", "_generation", "_ids", "_keep", "_lacks", "_made_with", "_ready", "_size",
        "builtin", "uses",
    )  # fmt: skip

    def __init__(
        self, calls: tuple[ShortCall, ...], cells: Cells, workspace: Workspace,
        made_with: tuple[Any, ...] = (None,) * 5, copied: Copied | None = None, lacks: Any = None, keep: Any = None,
    ) -> None:  # fmt: skip
        """made_with: see `_arrays_of`; lacks: a kernel that was missing; keep: what stays alive as long as this."""
        self._cells, self._copied, self._lacks, self._keep, self._made_with = cells, copied, lacks, keep, made_with
        self._calls = list[LaidCall | None]()  # None: the end of a list
        self._lay_out(calls)
        self._size = memoryview(cells.size)  # type: ignore[arg-type]
        self._ids, self._ready, self._generation = workspace.ids, workspace.ready, workspace.generation
        self.uses = 0
        self.builtin: encode_builtin.Builtin | None = None

    def _lay_out(self, calls: tuple[ShortCall, ...]) -> None:
        made = [LaidCall(call, self._cells) for call in calls]
        self._calls += [*made, None]
        for call, laid in zip(calls, made, strict=True):
            if call.other:
                laid.other = len(self._calls)
                self._lay_out(call.other)

    def fits(self, encoder: Encoder, workspace: Workspace) -> bool:
        """Whether no array has been replaced since, and no kernel that was missing has become available."""
        ids, scratch, arrays, starts, work = self._made_with
        same = workspace.ids is ids and workspace.scratch is scratch and encoder.arrays is arrays
        same = same and workspace.starts is starts and workspace.special_work is work
        return same and (self._lacks is None or self._lacks.entry is None)

    def encode(self, address: int, size: int) -> int:
        """Write the ids of the text at an address to the workspace. Returns their number, or less than 0 on a miss."""
        calls, copied, at, number, found = self._calls, self._copied, 0, 1, -1
        is_short = size <= limits.LONGEST_WITH_GIL
        self._size[0] = size
        if copied is not None:
            if not is_short:
                return -1
            ctypes.memmove(copied.held.ctypes.data, address, size)
            copied.clear[:] = 0
        while (call := calls[at]) is not None:
            words, text_at = call.words, call.text_at
            if text_at:
                words[text_at], words[text_at + 1] = address, size
            if call.number_at:
                words[call.number_at] = number
            found = call.holding(call.frame) if is_short else call.entry(call.frame)
            if call.least <= found <= call.most:
                if call.cuts:
                    number = found
                elif call.result is not None:
                    call.result[0] = found
                at += 1
            elif call.other >= 0 and is_short and found == size:
                at = call.other
            else:
                return -1
        return found

    def make_builtin(self) -> None:
        """Create the builtin that does what `encode` does, for texts of up to LONGEST_WITH_GIL bytes, and returns an
        array of the ids."""
        end = (0,) * encode_builtin.STEP
        steps = array("q", bytes(8 * encode_builtin.STEP * len(self._calls)))
        first = steps.buffer_info()[0]
        for k, call in enumerate(self._calls):
            row = array("q", end if call is None else call.step(first))
            steps[k * encode_builtin.STEP : (k + 1) * encode_builtin.STEP] = row
        cells, copies = self._cells, dict[str, int]()
        zeros = np.zeros(0 if self._copied is None else self._copied.clear.size, np.uint8)
        if self._copied is not None:
            copies = {
                "held": self._copied.held.ctypes.data, "clear": self._copied.clear.ctypes.data,
                "zeros": zeros.ctypes.data, "clear_size": zeros.size,
            }  # fmt: skip
        self.builtin = encode_builtin.make(
            Ids, self._ids, (steps, zeros, self._calls, cells, self._copied, self._keep, self._ready),
            longest=limits.LONGEST_WITH_GIL, generation=self._generation, ready=self._ready.buffer_info()[0],
            size=cells.size.ctypes.data, number=cells.number.ctypes.data, steps=first,
            **copies,
        )  # fmt: skip


def _arrays_of(encoder: Encoder, workspace: Workspace) -> tuple[Any, ...]:
    """The arrays that frames are made with. Those of fragments are replaced together, see `grow_fragments`."""
    return workspace.ids, workspace.scratch, encoder.arrays, workspace.starts, workspace.special_work


# ---- from a plan to a frame


def _make_frame(encoder: Encoder, workspace: Workspace, rule: EncodeOptions) -> ShortTextFrame | None:
    """A frame for texts with these options; None if a kernel or an array that it needs is missing."""
    if not all(frame.fits(encoder, workspace) for frame in workspace.frames.values()):
        workspace.frames.clear()
        workspace.generation += 1
    if workspace.scratch is None or (rule.cuts and rule.kernel.entry is None) or not _may_check(encoder.plan):
        return None
    model = encoder.first_kernel()
    if model.entry is None:
        return None
    frame = _Layout(encoder, workspace, rule, model).frame()
    if frame is None:
        return None
    if len(workspace.frames) >= MOST_FRAMES:
        workspace.frames.clear()
    workspace.frames[id(rule)] = frame  # it keeps the rule alive, so that the rule's id() stays unique
    return frame


def _may_check(plan: Plan) -> bool:
    """Whether the kernel that checks a text is ready, if there is one. It is loaded, or compiled unless there are only
    few texts."""
    if plan.compose is None and plan.utf8 != BEFORE:
        return True
    kernel = first_malformed if plan.compose is None else find_changed
    if kernel.entry is None and not can_wait(kernel):
        kernel.ready()
    return kernel.entry is not None


class _Layout:
    """Lays out the calls of one frame."""

    def __init__(self, encoder: Encoder, workspace: Workspace, rule: EncodeOptions, model: Any) -> None:
        self._encoder, self._workspace, self._rule, self._model = encoder, workspace, rule, model
        self._cells = Cells()
        self._lacks: Any = None  # a kernel
        self._ends: NDArray[np.int64] = np.zeros(1, np.int64)

    def frame(self) -> ShortTextFrame | None:
        """The frame; None where a kernel is missing."""
        workspace, rule, plan, calls = self._workspace, self._rule, self._encoder.plan, list[ShortCall]()
        whole = frozen(np.zeros(1, np.int64), np.int64), frozen(self._cells.size, np.int64)
        fragments: tuple[Any, ...] = (*whole, frozen([TEXT_PREFIXED], np.int32))
        if rule.cuts:
            out = workspace.starts, workspace.stops, workspace.tokens, np.zeros(1, np.int64), workspace.report
            given = *rule.tables, workspace.special_work, workspace.held.data, *whole, 0, 1, rule.before, rule.after
            calls.append(ShortCall(rule.kernel, (*given, *out), "data", "", self._cells.number, 1))
            fragments = workspace.read_starts, workspace.read_stops, workspace.read_tokens
            self._ends = workspace.ends
        if plan.compose is not None:
            calls.append(self._composed(plan.compose, fragments, rule.around))
        elif plan.utf8 == BEFORE:
            given = workspace.held.data, *fragments, 0, 0
            calls.append(ShortCall(first_malformed, given, "data", "last", None, VALID, VALID))
        copied = None
        if not plan.prepares:
            calls.append(self._encoded(self._encoder.arrays, (workspace.held.data, *fragments), "data"))
        elif (prepared := self._prepared()) is None:
            return None
        else:
            calls += prepared[0]
            copied = prepared[1]
        if any(call.kernel.entry is None for call in calls):
            return None
        made_with = _arrays_of(self._encoder, workspace)
        return ShortTextFrame(tuple(calls), self._cells, workspace, made_with, copied, self._lacks, rule)

    def _encoded(self, arrays: Any, texts: tuple[Any, ...], text: str = "") -> ShortCall:
        """The model's call. text: the name of the argument that is the text, if it is read in place."""
        workspace = self._workspace
        out = workspace.ids, self._ends, workspace.report
        return ShortCall(
            self._model, (arrays, workspace.scratch, *texts, 0, 1, 0, *out), text, "last"
        )  # fmt: skip

    def _composed(self, compose: ComposeInPlace, fragments: tuple[Any, ...], around: tuple[int, int]) -> ShortCall:
        """The call that finds what NFC changes. A text that is one fragment, apart from ids around it, is rewritten as
        a whole: `find_changed` returns its size."""
        data, capacity, tables = self._workspace.held.data, fragments[0].size, compose.tables
        positions = np.zeros(capacity, np.int64)
        given = tables, data, *fragments, 0, int(compose.strict), positions
        looked = ShortCall(find_changed, given, "data", "count", None, 0, 0)
        if not normalize_changed.at_hand():
            self._lacks = normalize_changed
            return looked
        out, made = np.zeros(GROWTH * limits.LONGEST_WITH_GIL + PAD, np.uint8), np.zeros(2 * capacity, np.int64)
        maps = np.empty(NO_MAP, np.int64), np.empty(NO_MAP, np.int64)
        work, known = make_nfc_work(limits.LONGEST_WITH_GIL), frozen(positions, np.int64)
        starts, stops = np.zeros(sum(around) + 1, np.int64), np.zeros(sum(around) + 1, np.int64)
        change = ShortCall(
            normalize_changed, (tables, work, data, *fragments[:2], known, 0, out, *maps, made), "data", "count",
            stops[around[0] : around[0] + 1],
        )  # fmt: skip
        columns = frozen(out, np.uint8), frozen(starts, np.int64), frozen(stops, np.int64), fragments[2]
        return looked._replace(other=(change, self._encoded(self._encoder.arrays, columns)))

    def _prepared(self) -> tuple[list[ShortCall], Copied] | None:
        """The calls of the plan's steps on a copy of the text, of the model, and of the join; None where a text may
        become too long."""
        workspace, encoder, calls = self._workspace, self._encoder, list[ShortCall]()
        held, read = np.zeros(limits.LONGEST_WITH_GIL + PAD, np.uint8), (workspace.read_starts, workspace.read_stops)
        texts = FragmentTexts(frozen(held, np.uint8), *read, workspace.read_tokens)
        extent = Extent(texts.number, limits.LONGEST_WITH_GIL, limits.LONGEST_WITH_GIL)
        for step in (*encoder.plan.normalize, *encoder.plan.front):
            for bound in step.bind(texts, extent):
                if bound.extent.size > limits.MOST_PREPARED_BYTES:
                    return None
                calls.append(ShortCall(bound.kernel, bound.args, "", "count", None, bound.least, bound.most))
                texts, extent = bound.made, bound.extent
        arrays, clear = encoder.plan.arrays_for(encoder.arrays, texts.data), held[:0]
        if encoder.plan.marks:
            clear = calls[-1].args[-3][extent.size :]  # the bitmap
        calls.append(self._encoded(arrays, texts.columns))
        if encoder.plan.join is not None:
            kernel, unknown = encoder.plan.join
            given = workspace.ids, self._ends, 0, 0, unknown
            calls.append(ShortCall(kernel, given, "", "count"))
        return calls, Copied(held, clear)


# ---- one text, a few texts


def try_short_text(encoder: Encoder, text: object, rule: EncodeOptions) -> NDArray[np.int32] | None:
    """The ids of one short text; None if it does not take the fast path: then `Encoder.one` encodes it. Afterwards the
    frame's builtin, if it has one, is in `encoder.builtins`."""
    if not (encoder.binds and encoder.begun) or (encoder.searches_again and rule.later.ids.size):  # type: ignore[union-attr]
        return None
    kind = type(text)
    position = _IN_BYTES if kind is bytes else 0
    if kind is str and text.isascii():  # type: ignore[attr-defined]
        position = _IN_STR
    if not (position and 0 < (size := len(text)) <= limits.LONGEST_QUICK):  # type: ignore[arg-type]
        return None
    try:
        workspace = encoder._workspaces.pop()
    except IndexError:
        return None
    ready, ids = workspace.ready, None
    if ready[0] < 0:
        return None
    ready[0] = 0
    frame = workspace.frames.get(id(rule))
    if frame is None or not frame.fits(encoder, workspace):
        frame = _make_frame(encoder, workspace, rule)
    count = -1 if frame is None else frame.encode(id(text) + position, size)
    if frame is not None and count >= 0:
        ids = workspace.ids[:count].copy()
        frame.uses += 1
        if frame.uses == CALLS_BEFORE_FIRST_BUILTIN or (frame.uses == CALLS_BEFORE_BUILTIN and encode_builtin.ready()):
            frame.make_builtin()
        encoder.builtins[id(rule)] = frame.builtin
        ready[0] = workspace.generation
    encoder._workspaces.append(workspace)
    return ids


def encode_small_batch(
    encoder: Encoder, builtins: dict[tuple[bool, bool, str], encode_builtin.Builtin | None], texts: Any,
    rule: EncodeOptions, asked: tuple[Any, Any, str],
) -> TokenArray | None:  # fmt: skip
    """One row per text of a list or tuple, each by the fast path of single texts, which is faster than laying out a
    batch; None if a text does not take it. The general path then raises the error, if there is one.

    builtins: those of single texts, by the options of calls; asked: the options of this call, compiled to `rule`
    """
    if type(texts) not in (list, tuple) or not 0 < len(texts) <= limits.MOST_TEXTS:
        return None
    if not all(type(text) in (str, bytes) for text in texts) or sum(map(len, texts)) > limits.MOST_CHARACTERS:
        return None
    key = bool(asked[0]), bool(asked[1]), asked[2]
    builtin, rows = builtins.get(key), []
    for text in texts:
        if type(text) is str and not text.isascii():
            try:
                text = text.encode()  # noqa: PLW2901
            except UnicodeEncodeError:
                return None
        ids = builtin(text) if builtin is not None else None
        if ids is None:
            ids = encoder.try_short_text(text, rule)
            if ids is None:
                return None
            builtin = builtins[key] = encoder.builtins[id(rule)]
        rows.append(ids)
    from jittok.common.rows.token_array import TokenArray

    return TokenArray.of_rows(rows)
