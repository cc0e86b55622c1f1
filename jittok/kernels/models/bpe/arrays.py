"""The compiled BPE vocabulary: everything that its kernels read."""

from __future__ import annotations

from typing import NamedTuple

from jittok.kernels.jit import I32, I64, U64
from jittok.kernels.merging.left_to_right import LongWordTables
from jittok.kernels.models.bpe.words.merge_boundaries import MergeBoundaries
from jittok.kernels.models.bpe.words.single_token_words import SingleTokenWords
from jittok.kernels.normalize.case import CaseTable
from jittok.kernels.pretokenize.splitters.blocks import CharacterClasses
from jittok.kernels.pretokenize.splitters.general import Splitter
from jittok.kernels.safe_cuts.cuts import SpanRules
from jittok.kernels.structures.bytes_table import BytesTable
from jittok.kernels.structures.char_table import CharTable
from jittok.kernels.structures.pair_table import PairTable

PLAIN, HYBRIDDNA, WHITESPACE = 0, 1, 2
"""llama.cpp's sessions; those of models `hybriddna` and `whitespace` wrap the plain one."""


class BpeArrays(NamedTuple):
    """Flat arrays of a BPE vocabulary.

    Invariants: ids are below `tokens`, symbols below tokens + virtual_at.size - 1; virtual_at rises from 0 to
    virtual_ids.size - 1."""

    splitter: Splitter
    pairs: PairTable
    tokens: int  # number of tokens; symbols from this number on are virtual
    byte_symbols: I32  # [256] byte-level: the symbol of each byte; else that of each ASCII character, or -1
    characters: CharTable  # not byte-level: the symbols of other characters
    virtual_ids: I32  # the ids that virtual symbols fall back to, one after the other
    virtual_at: I64  # [virtual + 1]
    texts: BytesTable  # texts of all symbols, as written in the vocabulary
    byte_ids: I32  # [256] not byte-level: the token <0xXX> of each byte, or -1
    whole: BytesTable  # raw texts of all tokens that a whole word can become
    whole_ids: I32  # [rows of whole] their ids
    byte_encode: int  # 0 or 1, like all flags here: byte-level
    escape: int  # every space becomes U+2581
    begin_lines: int  # U+2581 is put before each line that does not begin with it
    shortest: int  # Vocab.shortest_utf8
    ignore_merges: int  # a word that is a token becomes it without merging
    newlines_whole: int  # the same, for words of newlines only
    session: int
    lowercase: int  # session WHITESPACE
    family: int  # which splitter: GENERAL, GPT2, LLAMA3, LINES or MARKED
    digits_alone: int  # GPT2: every digit is a pre-token
    group: int  # LLAMA3: digits a pre-token; MARKED: offset of the bitmap in the data, set by each call
    cased: int  # LLAMA3: o200k and tekken
    contractions: int  # LLAMA3: PREFIX, SUFFIX or WITHOUT, and FOLDED
    classes: CharacterClasses
    byte_pairs: U64  # [65536] `find_pair` of each two bytes' symbols; LINES: a space is U+2581
    joints: MergeBoundaries  # bytes or characters that a merge can join
    rules: SpanRules  # LINES: where a line may be cut
    seeds: SingleTokenWords
    chain: LongWordTables  # for long words
    dna: I32  # [3] session HYBRIDDNA: ids of <dna>, </dna>, <oov>
    case: CaseTable  # session WHITESPACE
