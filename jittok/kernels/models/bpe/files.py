"""Byte-level BPE of files other than GGUF, compiled to the same flat arrays.

Bytes are symbols, and pairs of ids have ranks. A tiktoken file has no merges: two tokens merge to the token of their
concatenated texts. One pair per token suffices, because merging inside a span that becomes one token does not depend on
the text around it. So a token is always made by the same merge: the last one when its own text is encoded by itself.
"""

from __future__ import annotations

from functools import cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import Merges, Ranks
from jittok.common.pipeline.pipeline import packed
from jittok.common.unicode import tables
from jittok.common.unicode.characters import SPACE_BYTE
from jittok.common.unicode.nfc import compositions
from jittok.kernels.jit import I32, I64, U8, OutI32, frozen, helper, kernel
from jittok.kernels.merging.left_to_right_build import no_chain
from jittok.kernels.merging.reachable import MergePairs, reachable_merges
from jittok.kernels.models.bpe.arrays import PLAIN, BpeArrays
from jittok.kernels.models.bpe.compile import byte_of_character, encoded_bytes, pair_all_bytes, whole_words
from jittok.kernels.models.bpe.words.merge_boundary_tables import all_joined, byte_boundaries
from jittok.kernels.models.bpe.words.single_token_build import build_single_token_words
from jittok.kernels.models.bpe.words.single_token_words import empty_slots, freeze
from jittok.kernels.normalize.case import no_case
from jittok.kernels.pretokenize.compile import splitter_of_stages
from jittok.kernels.pretokenize.families import crosses, family_numbers, family_of, unicode_classes
from jittok.kernels.safe_cuts.rules import no_cuts
from jittok.kernels.structures.bytes_table import (
    ABSENT,
    BytesTable,
    BytesWindow,
    build_bytes_table,
    find_bytes,
    find_rows,
    open_bytes_table,
)
from jittok.kernels.structures.char_table import no_characters

IN_NO_TEXT = frozenset({0xC0, 0xC1, *range(0xF5, 0x100)})
"""Bytes that never occur in UTF-8; some files have no tokens for them."""
MOST_PARTS = 1 << 12
"""The most bytes of a token of ranks whose pair is searched for."""


def compile_pipeline(pipeline: Pipeline) -> BpeArrays | None:
    """The arrays of a byte-level BPE with no normalizer or NFC alone; None for any other pipeline."""
    model = pipeline.model
    if (spelled := _spelled(pipeline)) is None:
        return None
    splitter, family = splitter_of_stages(pipeline.split), family_of(pipeline.split)
    if splitter is None:
        return None
    if family and family.ends and crosses(pipeline.vocabulary):
        family = None
    fast = family_numbers(family, unicode=True)
    tokens = pipeline.model_offsets.size - 1
    if (symbols := _with_all_bytes(*spelled)) is None:
        return None
    missing = symbols.offsets.size - 1 - tokens
    byte_symbols = frozen(find_rows(symbols, encoded_bytes()), np.int32)
    pairs = _merge_pairs(pipeline, byte_symbols)
    whole_known = isinstance(model, Ranks) or cast(Merges, model).whole_words
    whole, whole_ids = whole_words(symbols.data, frozen(symbols.offsets[: tokens + 1], np.int64))
    pairs, table, made = reachable_merges(pairs, byte_symbols, tokens + missing)
    slots, bits = empty_slots(0)
    joints = byte_boundaries(
        symbols, pairs.left, pairs.right, pairs.rank, byte_of_character(), int(byte_symbols[SPACE_BYTE])
    )
    arrays = BpeArrays(
        splitter=splitter,
        pairs=table,
        tokens=tokens,
        byte_symbols=byte_symbols,
        characters=no_characters(),
        virtual_ids=frozen([ABSENT], np.int32),
        virtual_at=frozen(np.zeros(missing + 1), np.int64),
        texts=symbols,
        byte_ids=frozen(np.full(256, ABSENT), np.int32),
        whole=whole,
        whole_ids=whole_ids,
        byte_encode=1,
        escape=0,
        begin_lines=0,
        shortest=1,
        ignore_merges=int(whole_known),
        newlines_whole=0,
        session=PLAIN,
        lowercase=0,
        family=fast.family,
        digits_alone=fast.digits_alone,
        group=fast.group,
        cased=fast.cased,
        contractions=fast.contractions,
        classes=unicode_classes(family),
        byte_pairs=pair_all_bytes(table, byte_symbols),
        joints=all_joined(False) if whole_known else joints,
        rules=no_cuts(),
        seeds=freeze(slots, bits),
        chain=no_chain(),
        dna=frozen(np.full(3, ABSENT), np.int32),
        case=no_case(),
    )
    return arrays._replace(seeds=build_single_token_words(arrays, made))


def _merge_pairs(pipeline: Pipeline, byte_symbols: I32) -> MergePairs:
    model = pipeline.model
    if isinstance(model, Ranks):
        return pairs_of_ranks(build_bytes_table(pipeline.model_bytes, pipeline.model_offsets), byte_symbols)
    assert isinstance(model, Merges)
    left, right, merged = (frozen(column, np.int32) for column in (model.left, model.right, model.merged))
    return MergePairs(left, right, frozen(np.arange(model.left.size), np.int32), merged)


def _with_all_bytes(data: U8, offsets: I64) -> BytesTable | None:
    """The table of byte-level texts, followed by the bytes that no text is. None if one of them occurs in UTF-8: it is
    unknown, or dropped."""
    symbols = build_bytes_table(data, offsets)
    missing = np.flatnonzero(find_rows(symbols, encoded_bytes()) == ABSENT).tolist()
    if not {*missing} <= IN_NO_TEXT:
        return None
    if not missing:
        return symbols
    more, after = packed([encoded_bytes()[byte] for byte in missing])
    return build_bytes_table(
        frozen(np.append(data, more), np.uint8), frozen(np.append(offsets, offsets[-1] + after[1:]), np.int64)
    )


def normal_form_alone(pipeline: Pipeline) -> bool:
    """Whether the only normalizer is NFC (or there is none), and NFC can neither create nor change the added tokens
    that are searched for after it. Then they may be searched for before it. Such tokens are ASCII, no character becomes
    one of theirs, and their last character composes with nothing. Not with `single_word`: NFC may change the characters
    next to a token."""
    if not pipeline.normalize:
        return True
    if any(token.normalized and token.single_word for token in pipeline.added):
        return False
    later = [token.content for token in pipeline.added if token.normalized]
    return pipeline.composes_alone and all(
        text.isascii() and text[-1:] not in composing() and _MADE.isdisjoint(text) for text in later
    )


_MADE = frozenset("K;`")
"""ASCII characters that NFC makes of other characters."""


@cache
def composing() -> frozenset[str]:
    """Characters that begin a composition."""
    return frozenset(chr(first) for first, _ in compositions())


def _spelled(pipeline: Pipeline) -> tuple[U8, I64] | None:
    """The vocabulary as byte-level texts; None if the model's input is not byte-level."""
    model = pipeline.model
    if not normal_form_alone(pipeline):
        return None
    if isinstance(model, Ranks):
        return spelled_in_bytes(pipeline.model_bytes, pipeline.model_offsets)
    spells = bool(pipeline.split) and type(pipeline.split[-1]).__name__ == "SpellBytes"
    if not isinstance(model, Merges) or not spells or model.prefix or model.suffix:
        return None
    return frozen(pipeline.model_bytes, np.uint8), frozen(pipeline.model_offsets, np.int64)


def spelled_in_bytes(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> tuple[U8, I64]:
    """Concatenated texts, byte-level. Characters of the alphabet have one or two bytes."""
    whole, alphabet = data.tobytes(), tables.ENCODED_BYTE
    both, there = np.empty((data.size, 2), np.uint8), np.ones((data.size, 2), np.bool_)
    for k in (0, 1):
        both[:, k] = np.frombuffer(whole.translate(bytes(text[min(k, len(text) - 1)] for text in alphabet)), np.uint8)
    two = np.frombuffer(whole.translate(bytes(len(text) == 2 for text in alphabet)), np.uint8)
    there[:, 1] = two
    more = np.append(0, np.cumsum(two, dtype=np.int64))
    return frozen(both[there], np.uint8), frozen(offsets + more[offsets], np.int64)


def pairs_of_ranks(texts: BytesTable, byte_tokens: I32) -> MergePairs:
    """The one pair that makes each token of ranks. texts: raw texts by id; byte_tokens: int32[256]."""
    count = texts.offsets.size - 1
    columns = [np.empty(count, np.int32) for _ in range(3)]
    scratch = [np.empty(MOST_PARTS, np.int32) for _ in range(2)]
    used = last_merges(texts, byte_tokens, *columns, *scratch)
    left, right, merged = (frozen(column[:used].copy(), np.int32) for column in columns)
    return MergePairs(left, right, merged, merged)


@kernel
def last_merges(
    texts: BytesTable, byte_tokens: I32, left: OutI32, right: OutI32, merged: OutI32, ids: OutI32, ends: OutI32
) -> int:
    """Merge the text of each token by itself, lowest resulting id first, and record the last pair; returns how many
    tokens have one.

    texts: raw texts by id; byte_tokens: int32[256]; left, right, merged: int32[tokens]
    ids, ends: int32[MOST_PARTS] scratch; a longer token gets no pair: it is only found as a whole word
    """
    table, count = open_bytes_table(texts), 0
    for token in range(texts.offsets.size - 1):
        start, size = texts.offsets[token], texts.offsets[token + 1] - texts.offsets[token]
        if size < 2 or size > ids.size:
            continue
        for k in range(size):
            ids[k] = byte_tokens[texts.data[start + k]]
            ends[k] = k + 1
        parts = size
        while parts > 2:
            best, at = texts.offsets.size, -1
            for k in range(parts - 1):
                found = _joined(table, start, ends, k)
                if found != ABSENT and found < best:
                    best, at = found, k
            if at < 0:
                break
            ids[at], ends[at] = best, ends[at + 1]
            parts -= 1
            for k in range(at + 1, parts):
                ids[k], ends[k] = ids[k + 1], ends[k + 1]
        if parts == 2:
            left[count], right[count], merged[count] = ids[0], ids[1], token
            count += 1
    return count


@helper
def _joined(table: BytesWindow, start: int, ends: OutI32, k: int) -> int:
    """The token of parts k and k + 1 joined, or ABSENT. Only called while there are more than two parts, so it never
    finds the whole token."""
    begin = 0
    if k > 0:
        begin = ends[k - 1]
    return find_bytes(table, table.data, start + begin, start + ends[k + 1])
