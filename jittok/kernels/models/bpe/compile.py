"""Compile a BPE vocabulary to flat arrays.

A *symbol* is a token's id. A text that some merge has but no token gets a number from the vocabulary's size on (a
*virtual* symbol; real vocabularies have none). If byte-level (all pre-tokenizers but three), token texts are written in
GPT-2's alphabet of 256 printable characters, one a byte. They are translated here once, so kernels read raw bytes only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import PairMerges
from jittok.common.pipeline.steps import BeginLines, Cut, CutWhite, Kmers, Lowercase, ReadUtf8, Replace
from jittok.common.unicode import tables
from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_BYTES
from jittok.kernels.jit import I32, I64, U8, U64, OutI32, OutI64, OutU8, as_int64, frozen, helper, kernel
from jittok.kernels.memory import window
from jittok.kernels.merging.left_to_right_build import build_chain, character_rows, no_chain
from jittok.kernels.merging.reachable import MergePairs, reachable_merges
from jittok.kernels.models.bpe.arrays import HYBRIDDNA, PLAIN, WHITESPACE, BpeArrays
from jittok.kernels.models.bpe.words.merge_boundaries import MergeBoundaries
from jittok.kernels.models.bpe.words.merge_boundary_tables import (
    all_joined,
    byte_boundaries,
    character_boundaries,
    line_boundaries,
)
from jittok.kernels.models.bpe.words.single_token_build import build_single_token_words
from jittok.kernels.models.bpe.words.single_token_words import empty_slots, freeze
from jittok.kernels.normalize.case import case_table, no_case
from jittok.kernels.pretokenize.compile import splitter_of
from jittok.kernels.pretokenize.families import GENERAL_NUMBERS, FamilyNumbers, cuts_lines, family_numbers
from jittok.kernels.pretokenize.records import families
from jittok.kernels.pretokenize.splitters import LINES
from jittok.kernels.pretokenize.splitters.blocks import character_classes
from jittok.kernels.safe_cuts.rules import no_cuts
from jittok.kernels.structures.bytes_table import (
    ABSENT,
    KEYS,
    BytesTable,
    BytesWindow,
    build_bytes_table,
    enter_row,
    fill_bytes_table,
    find_bytes,
    find_rows,
    slot_count,
)
from jittok.kernels.structures.char_table import no_characters, wide_characters
from jittok.kernels.structures.pair_table import NO_PAIR, PairTable

OUT_OF_CAPACITY = -1


def compile_pipeline(pipeline: Pipeline) -> BpeArrays:
    """Flat arrays of a GGUF of type "bpe"; linear in its bytes."""
    model, read = pipeline.model, pipeline.step(ReadUtf8)
    assert isinstance(model, PairMerges)
    assert read is not None
    keys = frozen(pipeline.model_bytes, np.uint8), frozen(pipeline.model_offsets, np.int64)
    tokens, byte_encode, ignore_merges = keys[1].size - 1, model.byte_alphabet, model.whole_words
    escape, cuts = pipeline.step(Replace) is not None, [step for step in pipeline.split if isinstance(step, Cut)]
    patterns = tuple((cut.pattern.text, cut.pattern.engine) for cut in cuts)
    session, dna = _session(pipeline)
    fast = _fast_splitter(model, patterns, session, escape)
    symbols, merges = _resolve(model, *keys)
    alphabet = encoded_bytes() if byte_encode else [bytes([byte]) for byte in range(0x80)] + [b""] * 0x80
    byte_symbols = frozen(find_rows(symbols, alphabet), np.int32)
    merges, pairs, made = reachable_merges(merges, _bases(symbols, byte_symbols, byte_encode), symbols.offsets.size - 1)
    virtual_at, virtual_ids = _fallbacks(symbols, *keys)
    whole, whole_ids = whole_words(*keys) if byte_encode else _all_words(*keys)
    paired = byte_symbols.copy()
    if fast.family == LINES:
        paired[SPACE_BYTE] = find_rows(symbols, [SPACE_MARK_BYTES])[0]
    slots, bits = empty_slots(0)
    arrays = BpeArrays(
        splitter=splitter_of(patterns),
        pairs=pairs,
        tokens=tokens,
        byte_symbols=byte_symbols,
        characters=no_characters() if byte_encode else wide_characters(symbols),
        virtual_ids=virtual_ids,
        virtual_at=virtual_at,
        texts=symbols,
        byte_ids=_tokens_only(find_rows(symbols, [b"<0x%02X>" % b for b in range(256)]), tokens),
        whole=whole,
        whole_ids=whole_ids,
        byte_encode=int(byte_encode),
        escape=int(escape),
        begin_lines=int(pipeline.step(BeginLines) is not None),
        shortest=int(read.shortest),
        ignore_merges=int(ignore_merges),
        newlines_whole=int(model.whole_lines),
        session=session,
        lowercase=int(pipeline.step(Lowercase) is not None),
        family=fast.family,
        digits_alone=fast.digits_alone,
        group=fast.group,
        cased=fast.cased,
        contractions=fast.contractions,
        classes=character_classes(fast.letters),
        byte_pairs=pair_all_bytes(pairs, frozen(paired, np.int32)),
        joints=_joints(model, symbols, merges, byte_symbols),
        rules=line_boundaries(symbols, merges.left, merges.right) if fast.family == LINES else no_cuts(),
        seeds=freeze(slots, bits),
        chain=no_chain(),
        dna=dna,
        case=case_table() if session == WHITESPACE else no_case(),
    )
    seeded = byte_encode or fast.family == LINES
    return arrays._replace(seeds=build_single_token_words(arrays, made)) if seeded else arrays


def _fast_splitter(
    model: PairMerges, patterns: tuple[tuple[str, str], ...], session: int, escape: bool
) -> FamilyNumbers:
    """The splitter of a GGUF. LINES cuts lines, so a line that is a token would be missed (`whole_words`), and so would
    the error for a space inside a pre-token (no escape)."""
    named = families().get(patterns)
    if session != PLAIN:
        return GENERAL_NUMBERS
    if cuts_lines(named) and escape and not model.whole_words:
        return GENERAL_NUMBERS._replace(family=LINES)
    return family_numbers(named) if model.byte_alphabet and not escape else GENERAL_NUMBERS


def with_chain(arrays: BpeArrays) -> BpeArrays:
    """The same, with the tables of left-to-right BPE for long words if the merges allow it."""
    bases = _bases(arrays.texts, arrays.byte_symbols, bool(arrays.byte_encode))
    return arrays._replace(chain=build_chain(arrays.pairs, bases, arrays.texts.offsets.size - 1))


def _bases(symbols: BytesTable, byte_symbols: I32, byte_encode: bool) -> NDArray[np.int32]:
    """The symbols that words begin with."""
    return byte_symbols if byte_encode else character_rows(symbols)


def pair_all_bytes(pairs: PairTable, byte_symbols: I32) -> U64:
    """uint64[65536]: the result of `find_pair` for each pair of bytes. byte_symbols: int32[256], negative for a byte
    that merges with nothing; duplicates are allowed. Reads the pair table once."""
    known, of_byte = np.unique(byte_symbols, return_inverse=True)
    last = int(known[-1]) + 2  # the number of all symbols that are not a byte's
    number = np.full(last + 1, ABSENT, np.int32)
    number[known[known >= 0] + 1] = np.flatnonzero(known >= 0)
    keys, merged = pairs.slots[::2], pairs.slots[1::2]  # left + 1 and right + 1, or 0
    left = number[np.minimum(keys >> np.uint64(32), last)]
    some = np.flatnonzero(left >= 0)
    right = number[np.minimum(keys[some] & np.uint64(0xFFFFFFFF), last)]
    both = right >= 0
    found = np.full((known.size, known.size), NO_PAIR, np.uint64)
    found[left[some[both]], right[both]] = merged[some[both]]
    return frozen(found[of_byte][:, of_byte].ravel(), np.uint64)


def encoded_bytes() -> list[bytes]:
    """Each byte as its character of the byte-level alphabet, in UTF-8."""
    return [tables.byte_encode(bytes([b])) for b in range(256)]


def _joints(model: PairMerges, symbols: BytesTable, merges: MergePairs, byte_symbols: I32) -> MergeBoundaries:
    if model.whole_words:
        return all_joined(not model.byte_alphabet)
    if model.byte_alphabet:
        return byte_boundaries(symbols, *merges[:3], byte_of_character(), int(byte_symbols[SPACE_BYTE]))
    return character_boundaries(symbols, merges.left, merges.right)


def _flat(texts: list[bytes]) -> tuple[U8, I64]:
    data = np.frombuffer(b"".join(texts), np.uint8)
    return frozen(data, np.uint8), frozen(np.cumsum([0, *map(len, texts)]), np.int64)


def _tokens_only(rows: I32, tokens: int) -> I32:
    return frozen(np.where(rows < tokens, rows, ABSENT), np.int32)


def _resolve(model: PairMerges, key_bytes: U8, key_offsets: I64) -> tuple[BytesTable, MergePairs]:
    """(texts of all symbols, the merges that can match)."""
    bytes_first = _flat(encoded_bytes() if model.byte_alphabet else [])
    count, tokens = model.offsets.size - 1, key_offsets.size - 1
    merges = [np.empty(count, np.int32) for _ in range(4)]
    spare = 1024
    while True:
        # texts of virtual symbols are appended to those of the tokens
        capacity = min(spare, 3 * count + 256)
        data = np.empty(key_bytes.size + spare * 64 + int(model.lines.size) + 1024, np.uint8)
        offsets = np.zeros(tokens + capacity + 2, np.int64)
        data[: key_bytes.size], offsets[: tokens + 1] = key_bytes, key_offsets
        slots = np.zeros(slot_count(tokens + capacity), np.int32)
        fill_bytes_table(frozen(data, np.uint8), frozen(offsets[: tokens + 1], np.int64), slots, KEYS)
        merge_data, merge_offsets = frozen(model.lines, np.uint8), frozen(model.offsets, np.int64)
        rows = np.empty(2, np.int64)
        used = resolve_merges(
            data, offsets, slots, KEYS, tokens, *bytes_first, merge_data, merge_offsets, *merges, rows
        )
        if used != OUT_OF_CAPACITY:
            break
        spare *= 16
    total = int(rows[0])
    texts = BytesTable(
        frozen(data[: offsets[total]].copy(), np.uint8),
        frozen(offsets[: total + 1].copy(), np.int64),
        frozen(slots, np.int32),
        KEYS,
    )
    return texts, MergePairs(*(frozen(column[:used].copy(), np.int32) for column in merges))


@kernel
def resolve_merges(
    data: OutU8,
    offsets: OutI64,
    slots: OutI32,
    keys: U64,
    tokens: int,
    byte_data: U8,
    byte_offsets: I64,
    merge_data: U8,
    merge_offsets: I64,
    left: OutI32,
    right: OutI32,
    rank: OutI32,
    merged: OutI32,
    rows: OutI64,
) -> int:
    """The symbols of both parts and of the result of each merge line; texts without a token are added after the tokens.

    data, offsets, slots, keys: the table of the tokens' texts (see BytesTable), with capacity for more
    byte_data, byte_offsets: texts that get symbols first (those of single bytes)
    merge_data: uint8[bytes], merge_offsets: int64[lines + 1] the lines of merges
    left, right, rank, merged: int32[lines]. Lines that can never match are left out
    rows: int64[2] rows[0] becomes the number of symbols

    A line is split at its first space after byte 0 (llama.cpp's BPE loading). Returns the number of merges, or
    OUT_OF_CAPACITY.
    """
    table = BytesWindow(window(data), window(offsets), window(slots), slots.size - 1, keys[0], keys[1])
    symbols, count = tokens, 0
    for k in range(byte_offsets.size - 1):
        row, symbols = _symbol(table, data, offsets, symbols, byte_data, byte_offsets[k], byte_offsets[k + 1], 0, 0)
        if row < 0:
            return OUT_OF_CAPACITY
    for line in range(merge_offsets.size - 1):
        start, stop = merge_offsets[line], merge_offsets[line + 1]
        cut = start + 1
        while cut < stop and merge_data[cut] != 0x20:
            cut += 1
        if cut + 1 >= stop:
            continue  # no space, or nothing after it: such a pair never occurs
        a, symbols = _symbol(table, data, offsets, symbols, merge_data, start, cut, 0, 0)
        if a < 0:
            return OUT_OF_CAPACITY
        b, symbols = _symbol(table, data, offsets, symbols, merge_data, cut + 1, stop, 0, 0)
        if b < 0:
            return OUT_OF_CAPACITY
        c, symbols = _symbol(table, data, offsets, symbols, merge_data, start, cut, cut + 1, stop)
        if c < 0:
            return OUT_OF_CAPACITY
        left[count], right[count], rank[count], merged[count] = a, b, line, c
        count += 1
    rows[0] = symbols
    return count


@helper
def _symbol(
    table: BytesWindow,
    data: OutU8,
    offsets: OutI64,
    symbols: int,
    source: U8,
    start: int,
    stop: int,
    start_2: int,
    stop_2: int,
) -> tuple[int, int]:
    """(symbol of source[start:stop] + source[start_2:stop_2], symbols so far), or (OUT_OF_CAPACITY, ..)."""
    at = offsets[symbols]
    if at + stop - start + stop_2 - start_2 > data.size or symbols + 2 > offsets.size:
        return OUT_OF_CAPACITY, symbols
    for k in range(stop - start):
        data[at + k] = source[start + k]
    for k in range(stop_2 - start_2):
        data[at + stop - start + k] = source[start_2 + k]
    end = at + stop - start + stop_2 - start_2
    row = find_bytes(table, table.data, at, end)
    if row == ABSENT:
        row = symbols
        offsets[symbols + 1] = end
        enter_row(table, row)
        symbols += 1
    return row, symbols


def _fallbacks(symbols: BytesTable, key_bytes: U8, key_offsets: I64) -> tuple[I64, I32]:
    """(offsets, ids) that virtual symbols fall back to: for each byte of the text, the token that is that byte, if
    any."""
    tokens = key_offsets.size - 1
    single = np.full(256, ABSENT, np.int32)
    one = np.flatnonzero(np.diff(key_offsets) == 1)
    single[key_bytes[key_offsets[one]]] = one
    texts: NDArray[np.uint8] = symbols.data[symbols.offsets[tokens] :]
    ids = single[texts]
    positions = symbols.offsets[tokens:] - symbols.offsets[tokens]
    kept = np.concatenate([[0], np.cumsum(ids != ABSENT)])
    return frozen(kept[positions], np.int64), frozen(np.append(ids[ids != ABSENT], ABSENT), np.int32)


def _all_words(data: U8, offsets: I64) -> tuple[BytesTable, I32]:
    """(texts of all tokens, their ids)."""
    ids = np.arange(offsets.size - 1, dtype=np.int32)
    return build_bytes_table(data, offsets), frozen(np.append(ids, ABSENT), np.int32)


def whole_words(data: U8, offsets: I64) -> tuple[BytesTable, I32]:
    """(raw texts of the tokens whose texts are byte-level, their ids). data, offsets: texts by id."""
    tokens = offsets.size - 1
    raw, ends, ids = np.empty(data.size, np.uint8), np.zeros(tokens + 1, np.int64), np.arange(tokens, dtype=np.int32)
    count = decode_texts(data, offsets, byte_of_character(), raw, ends, ids)
    data, offsets = frozen(raw[: ends[count]].copy(), np.uint8), frozen(ends[: count + 1].copy(), np.int64)
    return build_bytes_table(data, offsets), frozen(np.append(ids[:count], ABSENT), np.int32)


def byte_of_character() -> I32:
    """int32[512]: the byte of each character of the byte-level alphabet, or ABSENT."""
    table = np.full(0x200, ABSENT, np.int32)
    for byte, text in enumerate(encoded_bytes()):
        table[ord(text.decode())] = byte
    return frozen(table, np.int32)


@kernel
def decode_texts(data: U8, offsets: I64, byte_of: I32, raw: OutU8, ends: OutI64, ids: OutI32) -> int:
    """Decode the texts that are byte-level throughout; returns their number.

    data, offsets: the texts; byte_of: int32[512] the byte of each character below U+0200, or ABSENT
    raw: uint8[bytes], ends: int64[texts + 1] beginning with 0, ids: int32[texts] the number of each decoded text
    """
    count, out = 0, 0
    for row in range(offsets.size - 1):
        i, at = offsets[row], out
        stop = offsets[row + 1]
        while i < stop:
            c = as_int64(data[i])
            i += 1
            if c >= 0xC2 and c < 0xC8 and i < stop and as_int64(data[i]) & 0xC0 == 0x80:
                c = (c & 0x1F) << 6 | as_int64(data[i]) & 0x3F
                i += 1
            elif c >= 0x80:
                c = 0  # not in the alphabet
            byte = as_int64(byte_of[c])
            if byte == ABSENT:
                at = -1
                break
            raw[at] = byte
            at += 1
        if at >= 0:
            out = at
            ids[count] = row
            count += 1
            ends[count] = out
    return count


def _session(pipeline: Pipeline) -> tuple[int, I32]:
    """(session, int32[3]: the ids of <dna>, </dna> and an unknown k-mer)."""
    kmers = pipeline.step(Kmers)
    if kmers is not None:
        return HYBRIDDNA, frozen([kmers.begin, kmers.end, kmers.unknown], np.int32)
    return WHITESPACE if pipeline.step(CutWhite) else PLAIN, frozen([ABSENT] * 3, np.int32)
