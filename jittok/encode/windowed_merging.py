"""BPE of a long text that sentencepiece's normalizer rewrites, in windows: the text may become ten times longer.

The normalizer resumes after a part as if the text had not been split (`normalize_part`). The model's windows overlap:
each begins with a token of the one before. If that token is the first one again, every pair of adjacent tokens is in
one of the two windows, so all tokens are those of the whole text (`merging.left_to_right` has the reason). If another
token is first, the text starts over with longer parts. Nothing merges across a user-defined piece, so a new window
begins after the last one that is certain. A piece is certain if the longest one would end in the window, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.characters import SPACE_BYTE
from jittok.encode.steps import FragmentTexts, cut_again
from jittok.encode.workspace import Workspace
from jittok.kernels.fragments import PAD, TEXT
from jittok.kernels.jit import I32, I64, U8, frozen
from jittok.kernels.models.spm.arrays import SpmArrays
from jittok.kernels.models.spm.unknown_runs import join_unknown
from jittok.kernels.models.spm.unused_pieces import UnusedSplits as Unused
from jittok.kernels.models.spm.unused_pieces import count_parts, write_parts
from jittok.kernels.normalize.sentencepiece import SentencePieceTables, normalize_part
from jittok.kernels.special.tables import SpecialTokens
from jittok.kernels.structures.long_keys import make_ahead

LONG_TEXT = 1 << 20
"""Bytes of a text that is done in parts,"""
PART_BYTES = 1 << 16
"""and of a part."""
LONG_CUT_TEXT = 1 << 18
"""The same of texts that user-defined pieces cut:"""
CUT_PART_BYTES = 1 << 17
"""there is more to do for each part."""
OVERLAP_TOKENS = 64
"""Tokens at the end of a window that the next one begins with."""
EXTRA_TOKENS = 1 << 12
"""Tokens that are tried beyond those: one of them begins where a character does."""

Run = Callable[[FragmentTexts, int], Any]
"""run(a window, cut at pieces, count) -> the new count: its ids to the workspace, after the first `count`."""


class WindowedMerger:
    """Encodes long texts of one encoder in windows."""

    def __init__(
        self, table: SentencePieceTables, arrays: SpmArrays, unknown: int | None, unused: Unused | None
    ) -> None:
        self.table, self.unknown, self.unused = table, unknown, unused
        lengths = np.diff(arrays.texts.offsets[: arrays.tokens + 1])
        for bytes_ in (arrays.byte_ids, arrays.span_byte_ids):
            lengths[bytes_[bytes_ >= 0]] = 1
        self._lengths = lengths

    def encode(
        self, workspace: Workspace, data: U8, start: int, stop: int, count: int, run: Run, pieces: SpecialTokens,
        part: int = 0,
    ) -> int | None:  # fmt: skip
        """Write the ids of data[start:stop] after the first `count`. Returns the number of ids now, or None if the text
        has to be encoded as a whole. pieces: user-defined pieces, searched for in normalized text."""
        longest = int(pieces.lengths.max(initial=1))
        part = part or (PART_BYTES if pieces.ids.size == 0 else CUT_PART_BYTES)
        out, done = np.empty(self.table.growth * (stop - start) + 1, np.uint8), np.zeros(3, np.int64)  # most untouched
        at, origin, first, window, held = start, count, -1, np.empty(0, np.uint8), 0
        ahead = make_ahead(self.table.long)
        workspace.passed = min(workspace.passed, count)
        while True:
            size = workspace.run(
                normalize_part, self.table, data, at, stop, at + part, int(done[2]), held, ahead, out, done
            )
            at, sure, held = int(done[0]), int(done[1]), size - int(done[1])
            window = np.concatenate([window, out[:sure]])
            out[:held] = out[sure:size].copy()
            ends, known, after = at >= stop, _one(window), 0
            if pieces.ids.size:
                known, after = _cut(pieces, workspace, known, longest, ends)
                if not ends and not after and window.size < part + longest:
                    continue
            end = run(known, count) if window.size else count
            if not isinstance(end, int):
                return None
            ids = workspace.ids[count:end]
            if first >= 0 and (ids.size == 0 or ids[0] != first):
                return self.encode(workspace, data, start, stop, origin, run, pieces, 2 * part)
            if ends:
                return self._joined(workspace, origin, count, end)
            workspace.discard_prefix(count - 1)
            if after:
                count, first, window = self._joined(workspace, origin, count, end), -1, window[after:]
                continue
            text = window[: known.size]
            spelled = int(self._lengths[ids].sum())
            if spelled != text.size + 2 * int(np.count_nonzero(text == SPACE_BYTE)):
                return None
            last, position = self._last(ids, text)
            if last:
                first, window = int(ids[-last]), window[position:]
                count = self._joined(workspace, origin, count, end - last)

    def _last(self, ids: NDArray[np.int32], window: NDArray[np.uint8]) -> tuple[int, int]:
        """(the number of last tokens to repeat in the next window, the offset where they begin, which is the start of a
        character); (0, 0) if there are none."""
        tail = self._lengths[
            ids[: -OVERLAP_TOKENS - EXTRA_TOKENS : -1]
        ].cumsum()  # bytes of the last token, of the last two, ...
        if tail.size <= OVERLAP_TOKENS:
            return 0, 0
        near = window[max(0, window.size - int(tail[-1])) :][::-1]
        bytes_ = np.where(near == SPACE_BYTE, 3, 1).cumsum()
        for number in range(OVERLAP_TOKENS, min(tail.size, ids.size - 1)):
            k = int(np.searchsorted(bytes_, tail[number - 1]))
            if k < bytes_.size and bytes_[k] == tail[number - 1] and near[k] & 0xC0 != 0x80:
                return number, window.size - k - 1
        return 0, 0

    def _joined(self, workspace: Workspace, origin: int, first: int, last: int) -> int:
        """Fix the ids from `first` on: unused pieces are split, and repeats of the unknown token become one. Returns
        their new end."""
        if self.unused is not None:
            last = unused_taken_apart(self.unused, workspace, np.array([last]), 1, first, last)
        if self.unknown is None:
            return last
        return int(
            workspace.run(join_unknown, workspace.ids, np.array([last]), 1, max(origin, first - 1), self.unknown)
        )


def unused_taken_apart(
    table: Unused, workspace: Workspace, ends: NDArray[np.int64], fragments: int, first: int, last: int
) -> int:
    """Replace unused pieces among ids first .. last - 1 of a workspace by their parts. Returns the new end of the ids.
    ends: int64[fragments] the ends of the fragments' ids, which are updated."""
    count = int(workspace.run(count_parts, table, workspace.ids, first, last))
    if count < 0:
        return last
    if workspace.ids.size < first + count:
        workspace.grow_ids(first + count + (first + count) // 8, last)
    return int(workspace.run(write_parts, table, workspace.ids, ends, fragments, first, count))


def one_text(size: int) -> tuple[I64, I64, I32]:
    """Starts, stops and tokens of one fragment of `size` bytes."""
    return frozen([0], np.int64), frozen([size], np.int64), frozen([TEXT], np.int32)


def _one(window: NDArray[np.uint8]) -> FragmentTexts:
    data = np.append(window, np.zeros(PAD, np.uint8))
    return FragmentTexts(frozen(data, np.uint8), *one_text(window.size))


def _cut(
    pieces: SpecialTokens, workspace: Workspace, window: FragmentTexts, longest: int, ends: bool
) -> tuple[FragmentTexts, int]:
    """(a window cut at pieces, the end of the last one): up to that piece, if it is certain, else all of the text in
    which no piece can begin. ends: whether nothing follows, so that all pieces are certain."""
    texts, last = cut_again(pieces, workspace, window, window.size // 2)[0], window.size - longest
    kinds = frozen(np.where(texts.tokens < 0, TEXT, texts.tokens), np.int32)
    texts = texts._replace(tokens=kinds)
    if ends:
        return texts, 0
    sure = np.flatnonzero((kinds >= 0) & (texts.starts <= last))
    if sure.size:
        number = int(sure[-1]) + 1
        return texts.some(slice(0, number)), int(texts.stops[number - 1])
    stop = max(last + 1, 0)
    while stop > 0 and window.data[stop] & 0xC0 == 0x80:
        stop -= 1
    return FragmentTexts(window.data, *one_text(stop)), 0
