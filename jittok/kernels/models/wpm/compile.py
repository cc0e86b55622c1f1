"""Compile a WordPiece vocabulary to flat arrays.

llama.cpp's `llm_tokenizer_wpm_session`. Each code point is looked up once, for its kind (part of a word, ends it,
dropped, or a word by itself) and its image (the first code point of its decomposition, in lower case). U+2581 is put
before each word. If no token matches at some offset of a word, the whole word becomes the unknown token.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import LongestText
from jittok.common.pipeline.steps import BertWords
from jittok.common.unicode import tables
from jittok.kernels.jit import OutI32, OutU8, frozen
from jittok.kernels.models.wpm.alphabet import (
    ALONE,
    BLANK,
    DROPPED,
    ENDS_WORD,
    LETTER,
    NO_ALPHABET,
    Alphabet,
    AlphabetKeys,
    build_alphabet,
    byte_alphabet,
)
from jittok.kernels.pretoken_cache.span_loop import CHUNK, NO_LIMIT, SpanWork, make_span_work, regrow_span_work
from jittok.kernels.pretokenize.classes import shared_rows
from jittok.kernels.safe_cuts import cuts, rules
from jittok.kernels.structures.double_array import (
    NO_VALUE,
)
from jittok.kernels.structures.pages import scratch

KIND, IMAGE = 24, 0xFFFFFF
"""An entry is kind << KIND | (code point ^ image); XOR makes most blocks of the table equal."""
CJK = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),  # llama.cpp omits 2B820..2B91F
    (0x2F800, 0x2FA1F),
)
BYTES_PER_BYTE = 2
"""A word of n bytes becomes at most 2n bytes: ASCII stays ASCII; other characters have two bytes or more, and become
at most four in UTF-8 or a code of three."""
CODED = 3
"""The same where characters may become several: a Hangul syllable becomes three letters of up to three bytes each."""
MARKED_BYTE = BYTES_PER_BYTE + 3
"""The most ids of one byte where U+2581, which is put before each word, is a token by itself, or its bytes are."""


class WpmArrays(NamedTuple):
    """A compiled WordPiece vocabulary."""

    unk_id: int  # may be -1, and is then emitted as -1
    tokens: int  # number of tokens
    alphabet: Alphabet
    rules: cuts.SpanRules
    cut_limit: int  # longer fragments are not cut into spans; negative: there is no alphabet, the reference encodes
    ids_per_byte: int  # the most ids of one byte of text
    lenient: int  # 1: a GGUF, where invalid UTF-8 is encoded too
    shortest: int  # Vocab.shortest_utf8
    longest: int  # characters of a word beyond which it is unknown


class WpmWork(NamedTuple):
    """Memory of one thread, for fragments of up to `longest` bytes."""

    word: OutU8  # [CODED * longest + 16] the normalized word in the alphabet
    found: OutI32  # [as many] which long token begins at each offset of it; empty where there are no long tokens
    spans: SpanWork


def compile_pipeline(pipeline: Pipeline) -> WpmArrays:
    """Flat arrays of a GGUF of type "wpm"."""
    model, words = pipeline.model, pipeline.step(BertWords)
    assert isinstance(model, LongestText)
    assert words is not None
    keys = AlphabetKeys(pipeline.model_bytes, pipeline.model_offsets)
    kinds, points, images = _unpacked(*normal_table(bool(words.lowercase), bool(words.strip_accents)))
    alphabet = build_alphabet(keys, points, images, kinds) or byte_alphabet(keys, points, images, kinds)
    marked = alphabet is not None and (alphabet.first > 0 or alphabet.marker_value != NO_VALUE)
    return WpmArrays(
        model.unknown,
        keys.size,
        alphabet or NO_ALPHABET,
        span_rules(kinds),
        NO_LIMIT if alphabet else -1,
        MARKED_BYTE if marked else BYTES_PER_BYTE,
        1,
        int(words.shortest),
        NO_LIMIT,
    )


@lru_cache(maxsize=4)
def normal_table(lowercase: bool, strip_accents: bool) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(pages, entries) for the two settings of BERT's normalizer: int32[0x1100] code point >> 8 -> block of `entries`;
    int32[256 * blocks] kind and image of each code point, see IMAGE."""
    flags, everything = tables.flag_table(), np.arange(tables.UNICODE_SIZE)
    base, lower = everything.copy(), everything.copy()
    if strip_accents:
        before, after = tables.nfd_map()
        base[before] = after
    if lowercase:
        before, after = tables.lower_map()
        lower[before] = after
    alone = flags & tables.PUNCTUATION != 0
    alone[:0x7F] |= flags[:0x7F] & tables.SYMBOL != 0
    for first, last in CJK:
        alone[first : last + 1] = True
    kind = np.where(alone, ALONE, LETTER)
    if strip_accents:
        kind[flags & tables.MARK != 0] = DROPPED
    kind[flags & tables.CONTROL != 0] = DROPPED
    kind[[0, tables.REPLACEMENT]] = DROPPED
    kind[flags & tables.WHITESPACE != 0] = BLANK
    pages, blocks = shared_rows((kind[base] << KIND | lower[base] ^ everything).reshape(-1, 256))
    return frozen(pages, np.int32), frozen(blocks.reshape(-1), np.int32)


def can_split_at_spaces(_arrays: WpmArrays, _size: int) -> bool:
    """Whether a text may be cut before a space between two ASCII letters: always, a space ends a word."""
    return True


def _unpacked(
    pages: NDArray[np.int32], entries: NDArray[np.int32]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """(kinds of all code points, code points that become others, these others), from `normal_table`."""
    full = entries.reshape(-1, 256)[pages].reshape(-1)
    points = np.flatnonzero(full & IMAGE)
    return (full >> KIND).astype(np.uint8), points, points ^ full[points] & IMAGE


def span_rules(kinds: NDArray[np.uint8]) -> cuts.SpanRules:
    """The safe cuts: around characters that end words or are words by themselves. kinds: of all code points.

    One ASCII blank stays with the word after it, so that a word needs one span; further blanks are a span that gives no
    ids. Invalid UTF-8 is not cut: an invalid byte is dropped, so the letters around it are one word.
    """
    blanks = [b for b in range(0x20) if kinds[b] == BLANK]
    other = rules.class_of() == cuts.OTHER
    apart = [b for b in range(0x80) if (kinds[b] == ALONE) != other[b] and kinds[b] != BLANK]
    if len(blanks) > cuts.BLANK_BYTES or kinds[0x20] != BLANK or apart:
        return rules.no_cuts()
    free = np.zeros((cuts.CLASSES, cuts.CLASSES), bool)
    free[cuts.OTHER], free[:, cuts.OTHER], free[:, cuts.BLANK] = True, True, True
    free[cuts.BLANK], free[cuts.OTHER, cuts.OTHER] = False, False
    flags = kinds & ENDS_WORD
    flags *= cuts.LEFT_BLANK ^ cuts.JOINS
    flags ^= cuts.JOINS
    return rules.build_rules(free, (), blanks, flags, None, last_blank=True)


def make_work(arrays: WpmArrays, longest: int, cache_bytes: int = 64 << 20, chunk: int = CHUNK) -> WpmWork:
    """Memory of one thread for fragments of up to `longest` bytes. Pages that no text needs are not touched."""
    return _work(arrays, longest, make_span_work(longest, arrays.tokens, cache_bytes, chunk))


def regrow(arrays: WpmArrays, work: WpmWork, longest: int) -> WpmWork:
    """The same memory for longer fragments, with the same cache."""
    return _work(arrays, longest, regrow_span_work(work.spans, longest))


def _work(arrays: WpmArrays, longest: int, spans: SpanWork) -> WpmWork:
    capacity = CODED * longest + 16
    found = scratch(capacity if arrays.alphabet.long.count else 0, np.int32)
    return WpmWork(scratch(capacity, np.uint8), found, spans)
