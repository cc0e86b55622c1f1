"""The steps that prepare a text (`steps`) as a fixed sequence of kernel calls, for short texts: each kernel reads the
output of the one before it. For the next text only its bytes and the number of its fragments are written. See
`short_text`.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE
from jittok.encode import steps
from jittok.encode.precheck import HOLDING, LONGEST_WITH_GIL
from jittok.kernels.fragments import PAD
from jittok.kernels.jit import I32, I64, U8, frozen
from jittok.kernels.memory.encode_builtin import STEP, address_of
from jittok.kernels.models.spm.unknown_runs import join_unknown
from jittok.kernels.normalize.char_replacements import write_replacements
from jittok.kernels.normalize.decomposition import find_disorder
from jittok.kernels.normalize.nfc import find_changed
from jittok.kernels.normalize.nfc_tables import nfc_tables
from jittok.kernels.normalize.prefixes import strip_white, write_prefixes, write_runs
from jittok.kernels.normalize.sentencepiece import write_normalized
from jittok.kernels.pretokenize.splitters.general import make_split_work
from jittok.kernels.pretokenize.splitters.word_bitmap import MARKS, SPELLS, mark_words
from jittok.kernels.structures.long_keys import make_ahead

if TYPE_CHECKING:
    from jittok.encode.workspace import Workspace

MOST_BYTES = 1 << 22
"""Bytes of the longest result of a step on a short text."""
JOIN_NUMBER = 2
"""The argument of `join_unknown` which is the number of fragments."""
NO_LIMIT = (1 << 62) - 1


class TextBuffer(NamedTuple):
    """Texts between two steps, in arrays that stay where they are."""

    data: U8
    starts: I64
    stops: I64
    tokens: I32
    most: int  # capacity: bytes of all texts together

    @property
    def capacity(self) -> int:
        """Capacity: the number of texts."""
        return self.starts.size

    @property
    def all(self) -> tuple[U8, I64, I64, I32]:
        """The arrays in the order of a kernel's arguments."""
        return self.data, self.starts, self.stops, self.tokens


class BoundKernel(NamedTuple):
    """A kernel, its arguments, which of them is the number of fragments, and the range of results that are success."""

    kernel: Any
    args: tuple[Any, ...]
    number: int
    least: int = 0
    most: int = NO_LIMIT


Layer = Callable[..., tuple[list[BoundKernel], TextBuffer]]


def _writes(
    kernel: Any, prefix: tuple[Any, ...], texts: TextBuffer, rest: tuple[Any, ...], most: int
) -> tuple[list[BoundKernel], TextBuffer]:
    """A kernel that takes texts, their number and the `rest`, then the arrays to write to; and what it writes."""
    out, positions = np.empty(most + PAD, np.uint8), np.empty((2, texts.capacity), np.int64)
    ready = BoundKernel(kernel, (*prefix, *texts.all, 0, *rest, out, positions[0], positions[1]), len(prefix) + 4)
    made = TextBuffer(
        frozen(out, np.uint8), frozen(positions[0], np.int64), frozen(positions[1], np.int64), texts.tokens, most
    )
    return [ready], made


def _images(table: Any, texts: TextBuffer) -> tuple[list[BoundKernel], TextBuffer]:
    return _writes(write_replacements, (table,), texts, (), table.growth * texts.most)


def _squeezed(table: Any, texts: TextBuffer) -> tuple[list[BoundKernel], TextBuffer]:
    return _writes(
        write_normalized, (table,), texts, (make_ahead(table.long),), table.growth * texts.most + texts.capacity
    )


def _front(prefix: U8, unless: U8, other: U8, least: int, texts: TextBuffer) -> tuple[list[BoundKernel], TextBuffer]:
    return _writes(write_prefixes, (), texts, (prefix, unless, other, least), texts.most + texts.capacity * prefix.size)


def _runs(content: U8, texts: TextBuffer) -> tuple[list[BoundKernel], TextBuffer]:
    return _writes(write_runs, (), texts, (SPACE_BYTE, 2, content), (1 + content.size) * texts.most)


def _stripped(step: Any, texts: TextBuffer) -> tuple[list[BoundKernel], TextBuffer]:
    positions = np.empty((2, texts.capacity), np.int64)
    ready = BoundKernel(strip_white, (*texts.all, 0, int(step.left), int(step.right), positions[0], positions[1]), 4)
    return [ready], texts._replace(starts=frozen(positions[0], np.int64), stops=frozen(positions[1], np.int64))


def _composed(texts: TextBuffer) -> tuple[list[BoundKernel], TextBuffer]:
    """NFC, for texts that it does not change."""
    positions = np.empty(texts.capacity, np.int64)
    return [BoundKernel(find_changed, (nfc_tables(old=True), *texts.all, 0, 1, positions), 5, 0, 0)], texts


def _taken_apart(table: Any, composes: bool, _change: Any, texts: TextBuffer) -> tuple[list[BoundKernel], TextBuffer]:
    """A normal form, for texts whose combining marks are in order."""
    kernels, made = _images(table.images, texts)
    if composes:
        more, made = _composed(made)
        return [*kernels, *more], made
    odd = np.empty(texts.capacity, np.int64)
    return [BoundKernel(find_disorder, (table, *texts.all, 0, odd), 5, 0, 0), *kernels], made


def _marked(marking: Any, texts: TextBuffer) -> tuple[list[BoundKernel], TextBuffer]:
    grows = 2 if marking.spelled == SPELLS else 1 + marking.goes_on + marking.ends
    n = (grows * texts.most + steps.SPARE_BYTES) // 64 * 8 + 8
    out, positions = np.empty(MARKS * n, np.uint8), np.empty((2, texts.capacity), np.int64)
    dropped = np.empty(texts.most // 64 + 1 if marking.behaves.size else 0, np.uint64)
    work = make_split_work(texts.most, marking.splitter)
    ready = BoundKernel(mark_words, (marking, work, dropped, *texts.all, 0, out, positions[0], positions[1]), 7)
    made = TextBuffer(
        frozen(out, np.uint8), frozen(positions[0], np.int64), frozen(positions[1], np.int64), texts.tokens, 8 * n
    )
    return [ready], made


LAYERS: dict[Any, Layer] = {
    steps.with_replacements: _images, steps.sentencepiece_normalized: _squeezed, steps.with_prefix: _front,
    steps.without_runs: _runs, steps.stripped: _stripped, steps.composed: _composed, steps.decomposed: _taken_apart,
    steps.with_bitmap: _marked,
}  # fmt: skip
"""The function that lays out the calls of a step; steps that are not here need Python."""


def layers_of(steps: tuple[Any, ...]) -> list[Layer] | None:
    """The functions that lay out these steps; None where one of them needs Python."""
    found = list[Layer]()
    for step in steps:
        func, args = (step.func, step.args) if isinstance(step, partial) else (step, ())
        if func not in LAYERS:
            return None
        found.append(partial(LAYERS[func], *args))
    return found


class CallSequence:
    """The steps of an encoder in a workspace: kernels and their frames, the model's input, and the fix-up of ids."""

    __slots__ = ("_clear", "_held", "_join", "_keep", "_records", "_runs", "arrays", "marks", "texts")

    def __init__(
        self, kernels: list[BoundKernel], texts: TextBuffer, held: Any, marks: int, join: BoundKernel | None
    ) -> None:
        self.arrays: Any = None  # of the model
        self.texts, self.marks, self._held, self._runs, self._keep = texts, marks, held, [], []
        words = array("q")
        for ready in [*kernels, *([] if join is None else [join])]:
            call = ready.kernel.call(*ready.args)
            code = HOLDING(address_of(ready.kernel.entry))
            frame, at = call.words.buffer_info()[0], call.slots[ready.number]
            self._keep.append(call)
            self._runs.append((code, frame, call.words, at, ready.least, ready.most))
            words.extend((address_of(code), frame, frame + 8 * at, ready.least, ready.most))
        self._records, self._join = words, self._runs.pop() if join is not None else None
        zeros = np.zeros(marks // 8 if marks else 0, np.uint8)
        self._clear = texts.data.ctypes.data + marks, zeros, zeros.size

    def prepare(self, address: int, size: int, number: int) -> bool:
        """Run the steps on the text at an address; whether the model's input is now ready."""
        start, zeros, clear = self._clear
        ctypes.memmove(self._held.ctypes.data, address, size)
        ctypes.memmove(start, zeros.ctypes.data, clear)
        for code, frame, words, at, least, most in self._runs:
            words[at] = number
            if not least <= code(frame) <= most:
                return False
        return True

    def joined(self, count: int, number: int) -> int:
        """The number of ids after repeats of the unknown token are removed."""
        if self._join is None or count < 0:
            return count
        code, frame, words, at, _, _ = self._join
        words[at] = number
        return code(frame)  # type: ignore[no-any-return]

    def words(self) -> dict[str, int]:
        """The same as named words of a builtin's frame."""
        start, zeros, clear = self._clear
        steps = self._records.buffer_info()[0]
        words = {
            "held": self._held.ctypes.data, "clear": start, "zeros": zeros.ctypes.data, "clear_size": clear,
            "steps": steps, "steps_end": steps + 8 * STEP * len(self._runs),
        }  # fmt: skip
        if self._join is not None:
            join, frame, at = self._records[-STEP : -STEP + 3]
            words |= {"join": join, "join_frame": frame, "join_fragments": at}
        return words


def chain_of(layers: list[Layer], workspace: Workspace, unknown: int | None) -> CallSequence | None:
    """The steps in a workspace; None while a kernel is not compiled, or where a text may become too long. unknown: the
    id of which repeats become one."""
    held = np.zeros(LONGEST_WITH_GIL + PAD, np.uint8)
    positions = workspace.read_starts, workspace.read_stops, workspace.read_tokens
    texts, kernels, marks = TextBuffer(frozen(held, np.uint8), *positions, LONGEST_WITH_GIL), list[BoundKernel](), 0
    for layer in layers:
        more, texts = layer(texts)
        if texts.most > MOST_BYTES:
            return None
        kernels += more
    if kernels and kernels[-1].kernel is mark_words:
        marks = texts.most
    join = None
    if unknown is not None:
        join = BoundKernel(join_unknown, (workspace.ids, workspace.ends, 0, 0, unknown), JOIN_NUMBER)
    if any(ready.kernel.entry is None for ready in [*kernels, *([] if join is None else [join])]):
        return None
    return CallSequence(kernels, texts, held, marks, join)
