"""The fast path of single short texts: as little Python per text as possible.

A `ShortTextFrame` is a kernel's call, laid out once for a workspace and the options of a call. For the next text only
its address and size are written: kernels read `bytes` and ASCII `str` in place. If anything is missing (capacity,
scratch, valid text), the text is left to `Encoder.one`, which starts over.

A frame that is used often gets a builtin function (`memory.encode_builtin`), which does the same without Python. It may
be called when `Workspace.ready` is its `generation`: then the workspace is free, and its arrays are those of all frames
of that generation. A caller that acquires a workspace writes 0 to `ready`. Only `try_short_text` sets it again, with a
frame that fits. The GIL is held all the time. The builtin may still run between the moment when a caller acquires a
workspace and the moment when 0 is written. This is harmless: it ends before the GIL is released, and a workspace holds
no state between two calls. While NumPy creates the array of a builtin, other code may run. Then `ready` is -1, and the
workspace belongs to the builtin until it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.rows.ids import Ids
from jittok.encode.precheck import LONGEST_WITH_GIL, MODEL_DATA, MODEL_LAST, PreCheck, PreCheckCall
from jittok.kernels.fragments import TEXT_PREFIXED
from jittok.kernels.jit import frozen
from jittok.kernels.memory import encode_builtin
from jittok.kernels.memory.objects import bytes_data_offset, str_layout

if TYPE_CHECKING:
    from jittok.encode.call_sequence import CallSequence
    from jittok.encode.encoder import Encoder
    from jittok.encode.options import EncodeOptions
    from jittok.encode.workspace import Workspace

LONGEST_QUICK = 1 << 16
"""Bytes of the longest text for which a frame is used."""
MOST_FRAMES = 16
"""Rules for which a workspace keeps a frame."""
CALLS_BEFORE_BUILTIN, CALLS_BEFORE_FIRST_BUILTIN = 20, 1000
"""Texts after which a frame gets a builtin; the first of a process takes milliseconds."""
_IN_STR, _IN_BYTES = str_layout().header, bytes_data_offset()
"""Where texts begin in objects; 0: they cannot be read there."""


def has_to_cut(rule: EncodeOptions) -> bool:
    """Whether a text may become several fragments."""
    return bool(rule.special.ids.size) or rule.before >= 0 or rule.after >= 0


class ShortTextFrame:
    """The call of a model's kernel for one text, and those before it: one cuts the text around special tokens, others
    check it (`precheck`) or prepare it (`call_sequence`).

    It is valid while the workspace and the encoder have the arrays that it was made with (`fits`).
    """

    __slots__ = (
        "_arrays",
        "_chain",
        "_cut",
        "_generation",
        "_ids",
        "_keep",
        "_model",
        "_precheck",
        "_ready",
        "_scratch",
        "_special",
        "_starts",
        "_stop",
        "_stop_at",
        "builtin",
        "uses",
    )  # fmt: skip

    def __init__(
        self,
        encoder: Encoder,
        workspace: Workspace,
        rule: EncodeOptions,
        kernel: Any,
        chain: CallSequence | None = None,
    ) -> None:
        self._arrays, self._scratch, self._ids = encoder.arrays, workspace.scratch, workspace.ids
        self._starts, self._special = workspace.starts, workspace.special_work
        start, stop, ends = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64)
        text, positions = workspace.held.data, (frozen(start, np.int64), frozen(stop, np.int64))
        fragments: tuple[Any, ...] = (*positions, frozen([TEXT_PREFIXED], np.int32))
        self._cut = None
        cutting = encoder.cutting(rule, workspace)
        if cutting is not None:
            cutter, tables, around = cutting
            cut = cutter.call(
                *tables, text, *positions, 0, 1, *around, workspace.starts, workspace.stops, workspace.tokens, ends,
                workspace.report,
            )  # fmt: skip
            self._cut = PreCheckCall(cutter, cut, len(tables), len(tables) + 4)
            fragments, ends = (workspace.read_starts, workspace.read_stops, workspace.read_tokens), workspace.ends
        self._chain, read, arrays = chain, (text, *fragments), encoder.arrays
        if chain is not None:
            read, arrays = chain.texts.all, chain.arrays
        call = kernel.call(arrays, workspace.scratch, *read, 0, 1, 0, workspace.ids, ends, workspace.report)
        self._model, self._precheck = PreCheckCall(kernel, call, MODEL_DATA, MODEL_LAST), None
        if encoder.look is not None:
            around = rule.around if cutting is not None else (0, 0)
            self._precheck = PreCheck(encoder.look, workspace, text, fragments, kernel, encoder.arrays, around)
        self._stop, self._stop_at, self._keep = memoryview(stop), stop.ctypes.data, rule  # type: ignore[arg-type]
        self._ready, self._generation = workspace.ready, workspace.generation
        self.uses = 0
        self.builtin: encode_builtin.Builtin | None = None

    def fits(self, encoder: Encoder, workspace: Workspace) -> bool:
        """Whether no array has been replaced since. Those of fragments are replaced together, see `grow_fragments`."""
        return (
            workspace.ids is self._ids
            and workspace.scratch is self._scratch
            and encoder.arrays is self._arrays
            and workspace.starts is self._starts
            and workspace.special_work is self._special
            and (self._precheck is None or self._precheck.fits())
        )

    def encode(self, address: int, size: int) -> int:
        """Write the ids of the text at an address to the workspace. Returns their number, or less than 0 on a miss."""
        self._stop[0] = size
        number = 1 if self._cut is None else self._cut.run(address, size, 1)
        if number <= 0:  # 0: no fragments, so no ids; too rare for a path of its own
            return -1
        done = None if self._precheck is None else self._precheck.encode(address, size, number)
        if done is not None or self._chain is None:
            return self._model.run(address, size, number) if done is None else done
        if size > LONGEST_WITH_GIL or not self._chain.prepare(address, size, number):
            return -1
        return self._chain.joined(self._model.run_again(number), number)

    def make_builtin(self) -> None:
        """Create the builtin that does what `encode` does, for texts of up to LONGEST_QUICK bytes, and returns an array
        of the ids."""
        cut, model, words = self._cut, self._model, dict[str, int]()
        if cut is not None:
            words = {
                "cut": encode_builtin.address_of(cut.holding), "cut_frame": cut.address,
                "cut_text": cut.address + 8 * cut.at
            }  # fmt: skip
        words |= {} if self._precheck is None else self._precheck.words()
        words |= {} if self._chain is None else self._chain.words()
        self.builtin = encode_builtin.make(
            Ids, self._ids, (cut, model, self._precheck, self._chain, self._keep, self._stop, self._ready),
            longest=LONGEST_WITH_GIL, generation=self._generation, ready=self._ready.buffer_info()[0],
            size=self._stop_at, model=encode_builtin.address_of(model.holding), model_frame=model.address,
            model_text=model.address + 8 * model.at, fragments=model.address + 8 * model.number_at, **words,
        )  # fmt: skip


def try_short_text(encoder: Encoder, text: object, rule: EncodeOptions) -> NDArray[np.int32] | None:
    """The ids of one short text; None if it does not take the fast path: then `Encoder.one` encodes it. Afterwards the
    frame's builtin, if it has one, is in `encoder.builtins`."""
    kind = type(text)
    position = _IN_BYTES if kind is bytes else 0
    if kind is str and text.isascii():  # type: ignore[attr-defined]
        position = _IN_STR
    if not (position and 0 < (size := len(text)) <= LONGEST_QUICK):  # type: ignore[arg-type]
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


def _make_frame(encoder: Encoder, workspace: Workspace, rule: EncodeOptions) -> ShortTextFrame | None:
    """A frame for texts with these options; None if a kernel or an array that it needs is missing."""
    if not all(frame.fits(encoder, workspace) for frame in workspace.frames.values()):
        workspace.frames.clear()
        workspace.generation += 1
    cutting = encoder.cutting(rule, workspace)
    if workspace.scratch is None or (cutting and cutting[0].entry is None):
        return None
    if encoder.look is not None and not encoder.look.may_begin():
        return None
    chain = encoder.chain(workspace) if encoder.chain is not None else None
    if encoder.chain is not None and chain is None:
        return None
    kernel = _first_kernel(encoder, workspace)
    if kernel.entry is None:
        return None
    if len(workspace.frames) >= MOST_FRAMES:
        workspace.frames.clear()
    frame = workspace.frames[id(rule)] = ShortTextFrame(
        encoder, workspace, rule, kernel, chain
    )  # it keeps the rule alive, so that the rule's id() stays unique
    return frame


def _first_kernel(encoder: Encoder, workspace: Workspace) -> Any:
    """The kernel that the model calls first."""
    if encoder.one_kernel:
        return encoder.model.encode_fragments
    called: list[Any] = []

    def note(kernel: Any, *_args: Any) -> int:
        called.append(kernel)
        return 0

    nothing = workspace.read_starts, workspace.read_stops, workspace.read_tokens
    encoder.model.encode_fragments(
        encoder.arrays, workspace.scratch, workspace.held.data, *nothing, 0, 0, 0, workspace.ids, workspace.ends,
        workspace.report, run=note,
    )  # fmt: skip
    return called[0]
