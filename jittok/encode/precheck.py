"""Kernels that run before a model's for one short text: one checks whether its fragments can be encoded as they are,
another writes the normalized text if they cannot. See `short_text`.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jittok.encode.whole_documents import can_wait
from jittok.kernels.fragments import PAD
from jittok.kernels.jit import frozen
from jittok.kernels.memory.encode_builtin import address_of
from jittok.kernels.normalize.nfc import GROWTH, NO_MAP, find_changed, make_nfc_work, normalize_changed
from jittok.kernels.normalize.nfc_fragments import Nfc
from jittok.kernels.structures.utf8_check import VALID, first_malformed

if TYPE_CHECKING:
    from jittok.encode.workspace import Workspace

LONGEST_WITH_GIL = 1 << 12
"""Texts of up to this many bytes are encoded with the GIL held: releasing it would take longer."""
LOOK_NUMBER = 5
"""The index of the argument of both checking kernels that is the number of fragments."""
CHANGE_DATA, CHANGE_NUMBER = 2, 6
"""Arguments of `normalize_changed`."""
MODEL_DATA, MODEL_LAST = 2, 7
"""Arguments of `encode_fragments`."""
HOLDING = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
"""A kernel's machine code, called with the GIL held."""


class PreCheckTables(NamedTuple):
    """How fragments are checked: with NFC for changes, which are rewritten; without it for valid UTF-8."""

    nfc: Nfc | None
    strict: bool  # with NFC: whether invalid UTF-8 is refused

    @property
    def kernel(self) -> Any:
        """The kernel that checks."""
        return first_malformed if self.nfc is None else find_changed

    @property
    def unchanged(self) -> int:
        """The kernel's result if nothing changes and, where that is required, all is valid UTF-8."""
        return VALID if self.nfc is None else 0

    def may_begin(self) -> bool:
        """Whether its kernel is ready. It is loaded, or compiled unless there are only few texts."""
        kernel = self.kernel
        if kernel.entry is None and not can_wait(kernel):
            kernel.ready()
        return kernel.entry is not None


class PreCheckCall:
    """Machine code and its frame."""

    __slots__ = ("_call", "address", "at", "entry", "holding", "number_at", "words")

    def __init__(self, kernel: Any, call: Any, data: int, number: int) -> None:
        """data, number: indices of the arguments that are the text and the number of its fragments."""
        self._call, self.words, self.at, self.number_at = call, call.words, call.slots[data], call.slots[number]
        self.entry, self.address = kernel.entry, call.words.buffer_info()[0]
        self.holding = HOLDING(ctypes.cast(kernel.entry, ctypes.c_void_p).value or 0)

    def run(self, address: int, size: int, number: int) -> int:
        """The kernel's result for the text at an address. The GIL is held if the text is short."""
        words, at = self.words, self.at
        words[at], words[at + 1], words[self.number_at] = address, size, number
        return self.holding(self.address) if size <= LONGEST_WITH_GIL else self.entry(self.address)  # type: ignore[no-any-return]

    def run_again(self, number: int) -> int:
        """The same for the text that is in the frame already."""
        self.words[self.number_at] = number
        return self.holding(self.address)  # type: ignore[no-any-return]


class PreCheck:
    """The calls of a frame before its model: the check, and perhaps those for a text that changes.

    A text that is one fragment, apart from ids around it, is rewritten as a whole. `find_changed` returns its new size.
    """

    __slots__ = ("_lacks", "_look", "_places", "_stop", "change", "changed", "stop_at", "unchanged")

    def __init__(
        self, look: PreCheckTables, workspace: Workspace, text: Any, fragments: tuple[Any, ...], model: Any,
        arrays: Any, around: tuple[int, int],
    ) -> None:  # fmt: skip
        """fragments: starts, stops and tokens of the text; model: the kernel that encodes, with its `arrays`."""
        self.unchanged, tables = look.unchanged, look.nfc
        capacity = fragments[0].size
        self._lacks, self.change, self.stop_at = None, None, 0
        if tables is None:
            self._look = PreCheckCall(first_malformed, first_malformed.call(text, *fragments, 0, 0), 0, LOOK_NUMBER)
            return
        positions = np.zeros(capacity, np.int64)
        call = find_changed.call(tables, text, *fragments, 0, int(look.strict), positions)
        self._look = PreCheckCall(find_changed, call, 1, LOOK_NUMBER)
        if not normalize_changed.at_hand():
            self._lacks = normalize_changed
            return
        out, made = np.zeros(GROWTH * LONGEST_WITH_GIL + PAD, np.uint8), np.zeros(2 * capacity, np.int64)
        maps = np.empty(NO_MAP, np.int64), np.empty(NO_MAP, np.int64)
        changing = normalize_changed.call(
            tables,
            make_nfc_work(LONGEST_WITH_GIL),
            text,
            *fragments[:2],
            frozen(positions, np.int64),
            0,
            out,
            *maps,
            made,
        )
        self.change = PreCheckCall(normalize_changed, changing, CHANGE_DATA, CHANGE_NUMBER)
        starts, stops = np.zeros(sum(around) + 1, np.int64), np.zeros(sum(around) + 1, np.int64)
        encoding = model.call(
            arrays, workspace.scratch, frozen(out, np.uint8), frozen(starts, np.int64), frozen(stops, np.int64),
            fragments[2], 0, 1, 0, workspace.ids, workspace.ends, workspace.report,
        )  # fmt: skip
        self.changed = PreCheckCall(model, encoding, MODEL_DATA, MODEL_LAST)
        its = stops[around[0] : around[0] + 1]
        self._stop, self.stop_at = memoryview(its), its.ctypes.data  # type: ignore[arg-type]

    def fits(self) -> bool:
        """Whether the frame is still complete: no kernel that was missing has become available."""
        return self._lacks is None or self._lacks.entry is None

    def encode(self, address: int, size: int, number: int) -> int | None:
        """None if the model can encode the text at an address as it is; else the number of its ids, or less than 0 if
        the text is left to the general path."""
        seen = self._look.run(address, size, number)
        if seen == self.unchanged:
            return None
        if self.change is None or seen != size or size > LONGEST_WITH_GIL:
            return -1
        self._stop[0] = self.change.run(address, size, number)
        return self.changed.run_again(number)

    def words(self) -> dict[str, int]:
        """The same as named words of a builtin's frame."""
        look = self._look
        words = {
            "unchanged": self.unchanged, "look": address_of(look.holding), "look_frame": look.address,
            "look_text": look.address + 8 * look.at, "look_fragments": look.address + 8 * look.number_at,
        }  # fmt: skip
        if self.change is not None:
            change, changed = self.change, self.changed
            words |= {
                "change": address_of(change.holding), "change_frame": change.address,
                "change_text": change.address + 8 * change.at,
                "change_fragments": change.address + 8 * change.number_at,
            }  # fmt: skip
            words |= {
                "changed_stop": self.stop_at, "changed_frame": changed.address,
                "changed_fragments": changed.address + 8 * changed.number_at,
            }  # fmt: skip
        return words
