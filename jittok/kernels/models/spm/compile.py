"""Compile an SPM vocabulary to flat arrays: the pairs that merge, and the safe cuts between neighbors that never do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import ScoredMerges
from jittok.common.pipeline.steps import PrependBehindSpecial
from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_BYTES
from jittok.kernels.jit import I64, U8, OutI64, OutU8, as_int64, frozen, kernel
from jittok.kernels.merging.left_to_right_build import build_chain, character_rows, no_chain
from jittok.kernels.merging.reachable import MergePairs, reachable_merges
from jittok.kernels.models.spm.kernel import SpmArrays
from jittok.kernels.models.spm.pairs import all_pairs
from jittok.kernels.pretokenize.classes import distinct
from jittok.kernels.safe_cuts import cuts, rules
from jittok.kernels.structures.bytes_table import (
    ABSENT,
    BytesTable,
    build_bytes_table,
    find_bytes,
    find_rows,
    open_bytes_table,
)
from jittok.kernels.structures.char_table import wide_characters
from jittok.kernels.structures.utf8 import lead_length


def compile_pipeline(pipeline: Pipeline) -> SpmArrays:
    """Flat arrays of a GGUF of type "spm". Time: bytes of all tokens times the number of different token lengths."""
    model = pipeline.model
    assert isinstance(model, ScoredMerges)
    data, offsets = frozen(pipeline.model_bytes, np.uint8), frozen(pipeline.model_offsets, np.int64)
    tokens = offsets.size - 1
    texts = other_characters_entered(data, offsets)
    reachable, left, right, merged = all_pairs(texts, tokens)
    _, ranks = np.unique(-model.scores, return_inverse=True)  # equal scores have equal ranks; 0 is the best
    rank = ranks.astype(np.int32)[merged]
    hexes = find_rows(texts, [b"<0x%02X>" % b for b in range(256)])
    hexes[hexes >= tokens] = ABSENT
    singles = find_rows(texts, [bytes([b]) for b in range(256)])
    one_byte = np.where(singles < tokens, singles, ABSENT)
    one_byte[0] = ABSENT  # in llama.cpp, the string of byte 0 is empty
    byte_ids = np.where(hexes != ABSENT, hexes, one_byte)
    prefix = int(pipeline.step(PrependBehindSpecial) is not None)
    return spm_arrays(texts, reachable != 0, byte_ids, (left, right, rank, merged), prefix, tokens)


def spm_arrays(
    texts: BytesTable, reachable: NDArray[np.bool_], bytes_: NDArray[np.int32],
    columns: tuple[NDArray[np.integer], ...], prefix: int, tokens: int | None = None,
) -> SpmArrays:  # fmt: skip
    """The arrays of a vocabulary.

    texts: of all symbols; tokens: how many of them are tokens (all, if None); reachable: bool[tokens] which of these
    merging can make; bytes_: int32[256] byte fallback; columns: left, right, rank and merged of each pair
    """
    count = texts.offsets.size - 1 if tokens is None else tokens
    singles = find_rows(texts, [bytes([byte]) for byte in range(256)])
    mark = int(find_rows(texts, [SPACE_MARK_BYTES])[0])
    span_ascii = singles[:128].copy()
    span_ascii[SPACE_BYTE] = mark
    own: tuple[U8, I64] = (texts.data, frozen(texts.offsets[: count + 1], np.int64))
    every = MergePairs(*(frozen(column, np.int32) for column in columns))
    pairs = reachable_merges(every, character_rows(texts), texts.offsets.size - 1).table
    return SpmArrays(
        pairs=pairs,
        tokens=count,
        texts=texts,
        byte_ids=frozen(bytes_, np.int32),
        reachable=frozen(reachable, np.uint8),
        add_space_prefix=prefix,
        rules=span_rules(*own, reachable),
        characters=wide_characters(texts),
        ascii=frozen(span_ascii, np.int32),
        span_byte_ids=frozen(bytes_, np.int32),
        chain=no_chain(),
        ids_per_byte=1 if 0 <= mark < count else 3,
    )


def with_chain(arrays: SpmArrays) -> SpmArrays:
    """The same, with the tables of left-to-right BPE for long spans if the merges allow it."""
    return arrays._replace(chain=build_chain(arrays.pairs, character_rows(arrays.texts), arrays.texts.offsets.size - 1))


def can_split_at_spaces(arrays: SpmArrays, _size: int) -> bool:
    """Whether a text may be cut before a space between ASCII letters: if no token contains a letter before U+2581. The
    rules cover only tokens of valid UTF-8, so all must be valid."""
    followers = arrays.texts.data[np.minimum(arrays.texts.offsets, arrays.texts.data.size - 1)] & 0xC0 == 0x80
    if not arrays.rules.cuts[cuts.CLASSES * cuts.LETTER + cuts.BLANK] or followers[:-1].any():
        return False
    try:
        arrays.texts.data.tobytes().decode()
    except UnicodeDecodeError:
        return False
    return True


def span_rules(data: U8, offsets: I64, reachable: NDArray[np.bool_]) -> cuts.SpanRules:
    """The safe cuts: between two characters that are adjacent in no token that merging can make.

    Spaces of a text become U+2581, so a token that contains a space never matches.
    """
    spaces = np.concatenate([[0], np.cumsum(data == SPACE_BYTE)])
    found = rules.neighbours(data, offsets, reachable & (spaces[offsets[1:]] == spaces[offsets[:-1]]))
    return rules.rules_of(found)


def other_characters_entered(data: U8, offsets: I64) -> BytesTable:
    """A table of the tokens' texts, followed by each character that occurs in a token but is no token itself.

    data: uint8[offsets[-1] or more]
    """
    table = build_bytes_table(data, offsets)
    more, ends = np.empty(data.size, np.uint8), np.zeros(data.size + 1, np.int64)
    count = other_characters(table, more, ends)
    if count == 0:
        return table
    begins, lengths = ends[:count], np.diff(ends[: count + 1])
    padded, keys = np.append(more, np.zeros(3, np.uint8)).astype(np.int64), np.zeros(count, np.int64)
    for k in range(4):  # a character has up to four bytes
        keys = keys << 8 | np.where(k < lengths, padded[begins + k], 0)
    found = distinct(keys << 3 | lengths).tolist()
    extra = [(key >> 3).to_bytes(4, "big")[: key & 7] for key in found]
    joined = np.concatenate([data[: int(offsets[-1])], np.frombuffer(b"".join(extra), np.uint8)])
    positions = np.concatenate([offsets, offsets[-1] + np.cumsum([len(text) for text in extra])])
    return build_bytes_table(frozen(joined, np.uint8), frozen(positions, np.int64))


@kernel
def other_characters(table: BytesTable, out: OutU8, ends: OutI64) -> int:
    """Write each character (with repeats) of the tokens' texts that is no token: bytes to `out`, ends to ends[1:].

    out: uint8[bytes of all tokens], ends: int64[bytes + 1] beginning with 0. Returns their number.
    """
    strings = open_bytes_table(table)
    count, at = 0, 0
    for row in range(table.offsets.size - 1):
        i, stop = table.offsets[row], table.offsets[row + 1]
        while i < stop:
            j = min(i + lead_length(as_int64(table.data[i])), stop)
            if find_bytes(strings, strings.data, i, j) == ABSENT:
                for k in range(i, j):
                    out[at] = table.data[k]
                    at += 1
                count += 1
                ends[count] = at
            i = j
    return count
