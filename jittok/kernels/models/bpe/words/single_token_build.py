"""Build the table of single-token words: the tokens whose own text is encoded to that one token.

If it is known how merging makes each symbol (`left_to_right_build.made_symbols`), it suffices that the token is made
from the bytes of its text. Else each text is encoded, which needs all kernels of a word; they take seconds to compile.
"""

from __future__ import annotations

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2, SPACE_MARK_BYTES
from jittok.kernels.jit import I32, OutI32, OutU8, OutU64, as_int64, helper, kernel
from jittok.kernels.memory import PAD, Window, get_i32, get_i64, get_u8, put_u8, window
from jittok.kernels.merging.left_to_right import LENGTH, ROW, MergerWork, make_merger_work, open_merger, spell
from jittok.kernels.models.bpe.arrays import BpeArrays
from jittok.kernels.models.bpe.words.single_token_words import (
    LONGEST_KEY,
    SingleTokenWords,
    empty_slots,
    freeze,
    insert,
    key_of,
)
from jittok.kernels.models.bpe.words.word import encode_word, open_words
from jittok.kernels.structures.bytes_table import find_bytes, open_bytes_table

MARK_SIZE = len(SPACE_MARK_BYTES)


def build_single_token_words(arrays: BpeArrays, made: I32 | None) -> SingleTokenWords:
    """The table of a vocabulary whose other arrays are built. made: see `made_symbols`; None if unknown. Tests every
    token of up to 15 bytes once."""
    count = arrays.whole_ids.size - 1
    slots, bits = empty_slots(count)
    if made is not None and arrays.byte_encode and not arrays.newlines_whole:
        insert_made(arrays, made, slots, bits, np.empty(LONGEST_KEY, np.int32))
        return freeze(slots, bits)
    longest = int(np.diff(arrays.whole.offsets).max(initial=0))
    work = make_merger_work(min(longest, MARK_SIZE * LONGEST_KEY))
    text = np.zeros(MARK_SIZE * LONGEST_KEY + PAD, np.uint8)
    insert_encoded(arrays, work, slots, bits, text, np.empty(4 * LONGEST_KEY, np.int32))
    return freeze(slots, bits)


@kernel
def insert_made(model: BpeArrays, made: I32, slots: OutU64, bits: int, numbers: OutI32) -> int:
    """Byte-level: insert every single-token word of up to 15 bytes; returns their number.

    made: see `made_symbols`, with bases that are bytes; slots, bits: from `empty_slots`; numbers: int32[15] scratch. Of
    duplicate texts only the first can be the result of encoding.
    """
    whole = open_bytes_table(model.whole)
    count = 0
    for row in range(model.whole.offsets.size - 1):
        start, stop = get_i64(whole.offsets, row), get_i64(whole.offsets, row + 1)
        if 0 < stop - start <= LONGEST_KEY and find_bytes(whole, whole.data, start, stop) == row:
            token = as_int64(model.whole_ids[row])
            rows, scratch = window(made), window(numbers)
            if model.ignore_merges != 0 or _is_made(rows, token, whole.data, start, stop, scratch):
                low, high = key_of(whole.data, start, stop)
                insert(window(slots), bits, low, high, token)
                count += 1
    return count


@helper
def _is_made(rows: Window, token: int, text: Window, start: int, stop: int, numbers: Window) -> bool:
    """Whether the bytes text[start:stop] merge to this one symbol."""
    if get_i32(rows, ROW * token + LENGTH) != stop - start:
        return False
    spell(rows, token, numbers, 0)
    for k in range(stop - start):
        if get_i32(numbers, k) != get_u8(text, start + k):
            return False
    return True


@kernel
def insert_encoded(model: BpeArrays, work: MergerWork, slots: OutU64, bits: int, text: OutU8, ids: OutI32) -> int:
    """Insert every single-token word of up to 15 bytes; returns their number. Encodes each token's text.

    slots, bits: from `empty_slots`; text: uint8[45 + PAD], ids: int32[60] scratch. If not byte-level, keys have a space
    for U+2581, as in the text of lines. A token that contains a space itself occurs in no line.
    """
    words, merge, out, copied = (
        open_words(model),
        open_merger(work, model.pairs, model.chain),
        window(ids),
        window(text),
    )
    data = words.whole.data
    count = 0
    for row in range(model.whole.offsets.size - 1):
        start, size = model.whole.offsets[row], model.whole.offsets[row + 1] - model.whole.offsets[row]
        if 0 < size <= (LONGEST_KEY if model.byte_encode else MARK_SIZE * LONGEST_KEY):
            for k in range(size):
                put_u8(copied, k, get_u8(data, start + k))
            number = encode_word(words, merge, copied, 0, size, out, 0)
            if number == 1 and ids[0] == model.whole_ids[row]:
                if not model.byte_encode:
                    size = _with_spaces(copied, size)
                if 0 < size <= LONGEST_KEY:
                    low, high = key_of(copied, 0, size)
                    insert(window(slots), bits, low, high, as_int64(ids[0]))
                    count += 1
    return count


@helper
def _with_spaces(text: Window, size: int) -> int:
    """Replace U+2581 by spaces in text[:size]; the new size, or 0 if it contains a space already."""
    i = at = 0
    while i < size:
        byte = get_u8(text, i)
        if byte == SPACE_BYTE:
            return 0
        last = get_u8(text, i + 2) if i + 2 < size else 0
        if byte == SPACE_MARK_0 and last == SPACE_MARK_2 and get_u8(text, i + 1) == SPACE_MARK_1:
            byte = SPACE_BYTE
            i += MARK_SIZE - 1
        put_u8(text, at, byte)
        i, at = i + 1, at + 1
    return at
