"""Rows of ids joined to text and cleaned as llama.cpp does it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.characters import SPACE_BYTE
from jittok.decode.pieces import ENDS_SPACE, HIDDEN, HOLDS_MOVER, LENGTH, QUOTE, SHORT_PIECE, PieceTable, moves
from jittok.errors import InvalidToken, MalformedArray
from jittok.kernels.jit import I32, I64, OutI64, OutU8, frozen, helper, kernel
from jittok.kernels.memory import (
    Window,
    equal_mask,
    get_i32,
    get_i64,
    get_u8,
    get_u64,
    get_word,
    put_u8,
    put_word,
    trailing_zeros,
    window,
)
from jittok.vocab import NO_TOKEN, Vocab

OUT_OF_CAPACITY, BAD_ID, BAD_ROW = -1, -2, -3
BYTES_PER_ID = 8
"""Capacity that is usually enough."""
KEPT_CAPACITY = 1 << 20
"""Capacity for texts that a thread keeps."""
CLEANED_NEAR = 3
"""The number of bytes that an apostrophe affects after it."""


class DecodeFrame(NamedTuple):
    """Which ids of a row are left out, and whether its text is cleaned."""

    strip: int  # 1: a space before the first piece is left out
    bos: int  # id that is dropped at the start, once; -1: none
    eos: int  # id that is dropped at the end, once; -1: none
    special: int  # 1: special tokens print their text
    clean: int  # 1: see `clean_spaces`


@kernel
def join_rows(
    pieces: PieceTable, frame: DecodeFrame, ids: I32, offsets: I64, out: OutU8, ends: OutI64, report: OutI64
) -> int:
    """Write the text of each row ids[offsets[r]:offsets[r + 1]], concatenated, as llama.cpp's detokenize.

    out: uint8[capacity]; ends: int64[rows] the ends of the texts; report: int64[1]

    Returns the number of bytes or a code. BAD_ID: report has the index of the first id outside the vocabulary. BAD_ROW:
    report has a row outside `ids`. OUT_OF_CAPACITY: report has a sufficient capacity, SHORT bytes more than the texts.
    Linear in ids and bytes. Other threads may write to `ids` meanwhile: each id is read once, and checked before it is
    used as an index.
    """
    numbers, text, at = window(ids), window(out), 0
    for row in range(ends.size):
        first, last, strip, start = offsets[row], offsets[row + 1], frame.strip, at
        if not 0 <= first <= last <= ids.size:
            report[0] = row
            return BAD_ROW
        if frame.bos >= 0 and first < last and get_i32(numbers, first) == frame.bos:
            first, strip = first + 1, 0
        if frame.eos >= 0 and first < last and get_i32(numbers, last - 1) == frame.eos:
            last -= 1
        at, dirty, done = _join_row(
            pieces, frame.special, strip, numbers, first, last, text, at, out.size - SHORT_PIECE
        )
        if at == BAD_ID:
            report[0] = done
            return BAD_ID
        if at == OUT_OF_CAPACITY:
            return _need(pieces, numbers, ids.size, report)
        if frame.clean and dirty >= 0:
            at = _clean(text, start, dirty, at)
        ends[row] = at
    return at


@helper
def _need(pieces: PieceTable, numbers: Window, count: int, report: OutI64) -> int:
    """OUT_OF_CAPACITY, with a sufficient capacity for the pieces of all ids in the report; or BAD_ID."""
    facts, tokens, need = window(pieces.facts), pieces.facts.size, SHORT_PIECE
    for k in range(count):
        token = get_i32(numbers, k)
        if not 0 <= token < tokens:
            report[0] = k
            return BAD_ID
        need += get_i32(facts, token) & LENGTH
    report[0] = need
    return OUT_OF_CAPACITY


def frame_of(vocab: Vocab, remove_special: bool, unparse_special: bool, clean: bool) -> DecodeFrame:
    """How rows are joined: `remove_special` drops BOS and EOS, `unparse_special` prints special tokens, `clean` removes
    spaces where the vocabulary does."""
    return DecodeFrame(
        strip=int(vocab.add_space_prefix),
        bos=vocab.bos_id if remove_special and vocab.add_bos else NO_TOKEN,
        eos=vocab.eos_id if remove_special and vocab.add_eos else NO_TOKEN,
        special=int(bool(unparse_special)),
        clean=int(bool(clean) and vocab.clean_spaces),
    )


class _Scratch:
    """The buffers with which one thread joins single rows. Between calls it holds no array of a caller."""

    def __init__(self, pieces: PieceTable) -> None:
        self.offsets, self.ends, self.report = np.zeros(2, np.int64), np.empty(1, np.int64), np.zeros(1, np.int64)
        self.read_offsets = frozen(self.offsets, np.int64)
        self.text = np.empty(KEPT_CAPACITY, np.uint8)
        nothing = frozen(np.zeros(0, np.int32), np.int32)
        self.call = join_rows.call(
            pieces,
            DecodeFrame(0, NO_TOKEN, NO_TOKEN, 0, 0),
            nothing,
            self.read_offsets,
            self.text,
            self.ends,
            self.report,
        )


class Decoder:
    """The pieces of a vocabulary, joined. Safe to share between threads."""

    def __init__(self, vocab: Vocab, pieces: PieceTable) -> None:
        self.vocab, self.pieces = vocab, pieces
        self._frames: dict[tuple[bool, bool, bool], DecodeFrame] = {}
        self._scratch: list[_Scratch] = []

    def frame(self, remove_special: bool, unparse_special: bool, clean: bool = True) -> DecodeFrame:
        """See `frame_of`."""
        key = bool(remove_special), bool(unparse_special), bool(clean)
        if key not in self._frames:
            self._frames[key] = frame_of(self.vocab, *key)
        return self._frames[key]

    def one(self, ids: I32, frame: DecodeFrame) -> bytes:
        """The bytes of one row. Raises InvalidToken."""
        try:
            own = self._scratch.pop()
        except IndexError:
            own = _Scratch(self.pieces)
        try:
            own.offsets[1] = ids.size
            capacity = BYTES_PER_ID * ids.size + SHORT_PIECE
            text = own.text if capacity <= KEPT_CAPACITY else np.empty(capacity, np.uint8)
            while True:
                code = own.call.again(self.pieces, frame, ids, own.read_offsets, text, own.ends, own.report)
                if code >= 0:
                    return text[:code].tobytes()
                text = self._mended(code, int(own.report[0]), ids)
        finally:
            own.call.release(2, 4)
            self._scratch.append(own)

    def rows(self, ids: I32, offsets: I64, frame: DecodeFrame) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The texts of rows, concatenated, and their ends. Raises InvalidToken."""
        ends, report = np.empty(offsets.size - 1, np.int64), np.zeros(1, np.int64)
        text = np.empty(BYTES_PER_ID * ids.size + SHORT_PIECE, np.uint8)
        while True:
            code = join_rows(self.pieces, frame, ids, frozen(offsets, np.int64), text, ends, report)
            if code >= 0:
                return text[:code], ends
            if code == BAD_ROW:
                raise MalformedArray(
                    f"row {report[0]}", offsets[report[0] : report[0] + 2].tolist(), f"offsets from 0 to {ids.size}"
                )
            text = self._mended(code, int(report[0]), ids)

    def _mended(self, code: int, reported: int, ids: I32) -> NDArray[np.uint8]:
        if code != OUT_OF_CAPACITY:
            raise InvalidToken(int(ids[reported]), len(self.vocab))
        return np.empty(reported, np.uint8)


@helper
def _join_row(
    pieces: PieceTable,
    special: int,
    strip: int,
    numbers: Window,
    first: int,
    last: int,
    text: Window,
    at: int,
    capacity: int,
) -> tuple[int, int, int]:
    """Write the pieces of ids first .. last - 1 at text[at:].

    Returns three numbers: the end of the text; a lower bound of the first offset to clean, or -1; `last`. An offset to
    clean is that of a space before one of ? ! . , or an apostrophe.

    On failure the first number is BAD_ID (an id outside the vocabulary) or OUT_OF_CAPACITY (a piece ends after
    `capacity`), and the last is the index of that id. The text has SHORT bytes more than `capacity`.
    """
    tokens = pieces.facts.size
    facts, words, blob, positions = (
        window(pieces.facts), window(pieces.words), window(pieces.blob), window(pieces.offsets),
    )  # fmt: skip
    dirty, after_space = -1, 0
    for k in range(first, last):
        token = get_i32(numbers, k)
        if not 0 <= token < tokens:
            return BAD_ID, -1, k
        bits = get_i32(facts, token)
        length, begin = bits & LENGTH, at
        if bits & HIDDEN and not special:
            length = 0
        if length > capacity - at:
            return OUT_OF_CAPACITY, -1, k
        if length:
            put_word(text, at, get_u64(words, 2 * token))
            put_word(text, at + 8, get_u64(words, 2 * token + 1))
            if length > SHORT_PIECE:
                start = get_i64(positions, token)
                for i in range(SHORT_PIECE, length):
                    put_u8(text, at + i, get_u8(blob, start + i))
            at += length
            if strip and get_u8(text, begin) == SPACE_BYTE:
                for i in range(begin + 1, at):
                    put_u8(text, i - 1, get_u8(text, i))
                at -= 1
            if at > begin:
                if dirty < 0 and (bits & HOLDS_MOVER or (after_space and moves(get_u8(text, begin)))):
                    dirty = begin
                after_space = bits & ENDS_SPACE
        strip = 0
    return at, dirty, last


@kernel
def clean_spaces(text: OutU8) -> int:
    """Clean text in place. Returns the length that is left. Source: llama.cpp, `detokenize`, clean_spaces.

    Three passes, each over the result of the one before. The first removes a space before one of ? ! . and ,
    The second removes both spaces around an apostrophe. The third removes a space before 's 'm 're 've.
    """
    return _clean(window(text), 0, 0, text.size)


@helper
def _clean(text: Window, start: int, begin: int, stop: int) -> int:
    """`clean_spaces` of text[start:stop]. Returns its new end. There is nothing to remove before `begin`.

    The three passes run only on parts around a space that one of ? ! . , or an apostrophe follows. These begin and end
    at offsets where both sides can be cleaned separately with the same result (see `can_cut`). The text between them
    is only moved.
    """
    read = write = start
    i = max(begin, start + 1)
    while True:
        i = _next_moved(text, i, stop)
        if i >= stop:
            break
        low, high = i - 1, i + 1
        while low > read and not can_cut(text, read, low):
            low -= 1
        while high < stop and not can_cut(text, low, high):
            high += 1
        write = _move(text, read, low, write)
        write = _move(text, low, _clean_closely(text, low, high), write)
        read, i = high, high + 1
    return _move(text, read, stop, write)


@helper
def _next_moved(text: Window, i: int, stop: int) -> int:
    """The next offset from i >= 1 on of one of ? ! . , or an apostrophe after a space, or stop."""
    while i + 64 <= stop:
        mask = equal_mask(text, i - 1, SPACE_BYTE)
        if mask != np.uint64(0):
            ends = equal_mask(text, i, 0x3F) | equal_mask(text, i, 0x21) | equal_mask(text, i, 0x2E)
            mask &= ends | equal_mask(text, i, 0x2C) | equal_mask(text, i, QUOTE)
        if mask != np.uint64(0):
            return i + trailing_zeros(mask)
        i += 64
    while i < stop and (get_u8(text, i - 1) != SPACE_BYTE or not moves(get_u8(text, i))):
        i += 1
    return i


@helper
def can_cut(text: Window, start: int, at: int) -> bool:
    """Whether text[start:] can be cut at `at`: no space is before it, and no apostrophe near.

    A space is removed because of what follows it. An apostrophe depends on at most three bytes after it (" ' re"
    becomes "'re", as one more space is removed first).
    """
    for i in range(max(start, at - CLEANED_NEAR), at):
        if get_u8(text, i) == QUOTE:
            return False
    return bool(get_u8(text, at - 1) != SPACE_BYTE)


@helper
def _move(text: Window, start: int, stop: int, to: int) -> int:
    """Move text[start:stop] down to `to`, eight bytes at a time, each read before it is overwritten. Returns its
    end."""
    if to == start:
        return stop
    while start + 8 <= stop:
        put_word(text, to, get_word(text, start))
        start, to = start + 8, to + 8
    while start < stop:
        put_u8(text, to, get_u8(text, start))
        start, to = start + 1, to + 1
    return to


@helper
def _clean_closely(text: Window, start: int, stop: int) -> int:
    """The three passes over text[start:stop], as in llama.cpp. Returns the new end."""
    at = min(start + 1, stop)
    for i in range(start + 1, stop):
        byte = get_u8(text, i)
        if get_u8(text, i - 1) == SPACE_BYTE and byte != QUOTE and moves(byte):
            at -= 1
        put_u8(text, at, byte)
        at += 1
    stop, at, i = at, min(start + 1, at), start + 1
    while i < stop:
        byte = get_u8(text, i)
        if byte == QUOTE and i + 1 < stop and get_u8(text, i - 1) == SPACE_BYTE and get_u8(text, i + 1) == SPACE_BYTE:
            at -= 1
            i += 1
            put_u8(text, i, 0)  # so the space after is not the space before another apostrophe
        put_u8(text, at, byte)
        at, i = at + 1, i + 1
    stop, at = at, min(start + 1, at)
    for i in range(start + 1, stop):
        byte = get_u8(text, i)
        if byte == QUOTE and i + 1 < stop and get_u8(text, i - 1) == SPACE_BYTE:
            after = get_u8(text, i + 1)
            then = get_u8(text, i + 2) if i + 2 < stop else 0
            if after in (0x73, 0x6D) or (after in (0x72, 0x76) and then == 0x65):
                at -= 1
        put_u8(text, at, byte)
        at += 1
    return at
