"""The compiled BPE vocabulary: all that its kernels know."""

from __future__ import annotations

from typing import NamedTuple

from jittok._jit import I32, I64, U64
from jittok.merging.chain import Chain
from jittok.models.bpe.joints import Joints
from jittok.models.bpe.seeds import Seeds
from jittok.normalize.case import CaseTable
from jittok.pretokenize.splitters.blocks import CharacterClasses
from jittok.pretokenize.splitters.general import Splitter
from jittok.safe_cuts.cuts import SpanRules
from jittok.structures.bytes_table import BytesTable
from jittok.structures.char_table import CharTable
from jittok.structures.pair_table import PairTable

PLAIN, HYBRIDDNA, WHITESPACE = 0, 1, 2
"""Sessions: `hybriddna` and `whitespace` wrap the plain one."""
"""Ends the texts of k-mers in the map from texts to ids (model hybriddna)."""


class Arrays(NamedTuple):
    """Flat arrays of a BPE vocabulary.

    Invariants: ids and symbols in the arrays are below `tokens`, or for symbols below tokens + virtual_at.size - 1;
    virtual_at rises from 0 to virtual_ids.size - 1."""

    splitter: Splitter
    pairs: PairTable
    tokens: int  # how many; symbols from here on are virtual
    byte_symbols: I32  # [256] byte encoding: the symbol of each byte; else that of each ASCII character, or -1
    characters: CharTable  # without byte encoding: the symbols of other characters
    virtual_ids: I32  # the ids that virtual symbols fall back to, one after the other
    virtual_at: I64  # [virtual + 1]
    texts: BytesTable  # texts of all symbols, as the vocabulary writes them
    byte_ids: I32  # [256] without byte encoding: the token <0xXX> of each byte, or -1
    whole: BytesTable  # raw texts of all tokens that a word can be
    whole_ids: I32  # [rows of whole] their ids
    byte_encode: int  # 0 or 1, as all flags here
    escape: int  # every space becomes U+2581
    begin_lines: int  # each run of characters that are no newlines gets U+2581 before, if it does not begin so
    shortest: int  # Vocab.shortest_utf8
    ignore_merges: int  # a word that is a token is that token
    newlines_whole: int  # the same for words of newlines only
    session: int
    lowercase: int  # session WHITESPACE
    family: int  # which splitter: GENERAL, GPT2, LLAMA3, LINES or MARKED
    digits_alone: int  # GPT2: every digit is cut out first
    group: int  # LLAMA3: digits a piece; MARKED: where in the data the marks are, which each call says again
    cased: int  # LLAMA3: o200k and tekken
    contractions: int  # LLAMA3: PREFIX, SUFFIX or WITHOUT, and FOLDED
    classes: CharacterClasses
    byte_pairs: U64  # [65536] what two neighboring bytes merge to, as the pair table says; LINES: a space is U+2581
    joints: Joints  # bytes or characters that a merge can join
    rules: SpanRules  # LINES: where a line may be cut
    seeds: Seeds
    chain: Chain  # for long words
    dna: I32  # [3] session HYBRIDDNA: ids of <dna>, </dna>, <oov>
    case: CaseTable  # session WHITESPACE
