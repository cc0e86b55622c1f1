"""BPE and WordLevel of files other than GGUF as byte-level BPE: prefixes, suffixes, unknown units, whole words.

The words come from `splitters.word_bitmap`, which marks where they begin in a bitmap and writes GOES_ON before a unit
that does not begin its word, ENDS after the last unit, and UNKNOWN for an unknown one. All of it becomes merges of
bytes. A character is merged from its bytes first. Then GOES_ON and a unit merge to the token with the prefix, and a
unit and ENDS to the token with the suffix. These merges have lower ranks than those of the file, and no other merge
has their parts, so the file's merges continue from the symbols that its own library begins with. Symbols that are no
token are virtual: parts of characters, which become the tokens of their bytes or nothing, and UNKNOWN, which becomes
the unknown token.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import MISSING, NO_TOKEN, Merges, Words
from jittok.common.pipeline.pipeline import packed
from jittok.common.pipeline.steps import Splitter
from jittok.common.unicode.tables import BYTE_OF_CHARACTER, ENCODED_BYTE
from jittok.kernels.jit import I32, frozen
from jittok.kernels.merging.left_to_right_build import no_chain
from jittok.kernels.merging.reachable import MergePairs, reachable_merges
from jittok.kernels.models.bpe.arrays import PLAIN, BpeArrays
from jittok.kernels.models.bpe.compile import pair_all_bytes
from jittok.kernels.models.bpe.files import IN_NO_TEXT
from jittok.kernels.models.bpe.words.merge_boundary_tables import all_joined
from jittok.kernels.models.bpe.words.single_token_build import build_single_token_words
from jittok.kernels.models.bpe.words.single_token_words import empty_slots, freeze
from jittok.kernels.normalize.case import no_case
from jittok.kernels.pretokenize.classes import UNICODE_SIZE, two_stage_of
from jittok.kernels.pretokenize.compile import StageChain, chain_of
from jittok.kernels.pretokenize.families import unicode_classes
from jittok.kernels.pretokenize.splitters import MARKED, general
from jittok.kernels.pretokenize.splitters.llama3 import WITHOUT
from jittok.kernels.pretokenize.splitters.word_bitmap import BYTES as BYTES_ARE_UNITS
from jittok.kernels.pretokenize.splitters.word_bitmap import (
    ENDS,
    FUSES,
    GOES_ON,
    KEEPS,
    LAST,
    NO_LIMIT,
    NOT_FIRST,
    REPLACES,
    UNKNOWN,
    VANISHES,
    WordBitmap,
)
from jittok.kernels.safe_cuts.rules import no_cuts
from jittok.kernels.structures.bytes_table import ABSENT, build_bytes_table
from jittok.kernels.structures.char_table import no_characters
from jittok.kernels.structures.pair_table import PairTable, build_pair_table

BYTES = 256
PLACES = (0, NOT_FIRST, LAST, NOT_FIRST | LAST)


class BitmapWords(NamedTuple):
    """The compiled model of such a file, and the tables of its splitter."""

    arrays: BpeArrays
    marking: WordBitmap


class _Units(NamedTuple):
    """The units that words consist of: characters or bytes."""

    texts: dict[bytes, bytes]  # unit as words have it -> as tokens have it
    known: dict[bytes, int]  # unit -> bit set of the PLACES in a word where it is a token


def compile_pipeline(pipeline: Pipeline, stages: tuple[Splitter, ...]) -> BitmapWords | None:
    """Arrays of a BPE or WordLevel model after these splitter stages; None for one that is not supported here."""
    chain, model = chain_of(stages), pipeline.model
    if chain is None or b"" in pipeline.vocabulary:
        return None
    if isinstance(model, Words):
        return None if model.unknown == NO_TOKEN else _of_words(pipeline, model, chain)
    if not isinstance(model, Merges) or model.unknown == MISSING:
        return None
    return _of_merges(pipeline, model, chain)


class _Symbols:
    """The symbols and merges built so far."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.stands_for: list[tuple[int, ...]] = []
        self.merges: list[list[tuple[int, int, int]]] = [[], [], []]
        self.made: dict[tuple[int, int], int] = {}  # merges of the bytes of characters

    def virtual(self, *ids: int) -> int:
        self.stands_for.append(ids)
        return self.tokens + len(self.stands_for) - 1

    def ids(self, symbol: int) -> tuple[int, ...]:
        return (symbol,) if symbol < self.tokens else self.stands_for[symbol - self.tokens]

    def rows(self) -> NDArray[np.int32]:
        rows = [row for layer in self.merges for row in layer]
        return np.array(rows, np.int32).reshape(-1, 3)


def _units(ids: dict[bytes, int], prefix: bytes, suffix: bytes, spelled: bool) -> _Units:
    """The units that are tokens at some place in a word."""
    if spelled:
        texts = {bytes([byte]): ENCODED_BYTE[byte] for byte in range(BYTES)}
    else:
        found = {_bare(text, b"", end) for text in ids for end in {b"", suffix}}
        found |= {_bare(text, prefix, end) for text in ids for end in {b"", suffix}}
        texts = {text: text for text in found if text}
    known = {
        unit: sum(
            1 << position for position in PLACES
            if (prefix if position & NOT_FIRST else b"") + text + (suffix if position & LAST else b"") in ids
        )
        for unit, text in texts.items()
    }  # fmt: skip
    return _Units(texts, known)


def _bare(text: bytes, prefix: bytes, suffix: bytes) -> bytes:
    """The single character between prefix and suffix; b"" if there is none or more than one."""
    if text.startswith(prefix) and text.endswith(suffix):
        inner = text[len(prefix) : len(text) - len(suffix)]
        if 0 < len(inner) <= 4 and len(inner.decode("utf-8", "replace")) == 1:
            return inner
    return b""


def _of_merges(pipeline: Pipeline, model: Merges, chain: StageChain) -> BitmapWords | None:
    ids, prefix, suffix = pipeline.vocabulary, model.prefix.encode(), model.suffix.encode()
    fallback = [ids.get(b"<0x%02X>" % byte, ABSENT) for byte in range(BYTES)]
    falls_back = model.byte_fallback and not chain.spelled and max(fallback) != ABSENT
    if model.byte_fallback and (prefix or suffix or (chain.spelled and max(fallback) != ABSENT)):
        return None  # characters of the byte alphabet may be some of these tokens
    if falls_back and ABSENT in fallback:
        return None
    joined = np.concatenate([model.left, model.right])
    if np.isin(joined, [model.unknown] + fallback * falls_back).any() or (prefix and chain.spelled):
        return None
    units = _units(ids, prefix, suffix, chain.spelled)
    vanishes = model.unknown == NO_TOKEN and not falls_back
    if model.whole_words and (prefix or suffix or not _all_known(ids, units, chain.spelled)):
        return None
    if model.whole_words and vanishes and not chain.spelled:
        return None  # a word may become a token after an unknown unit is dropped
    tokens = pipeline.model_offsets.size - 1
    symbols = _Symbols(tokens)
    byte_symbols = [
        ids.get(units.texts.get(bytes([byte]), b""), ABSENT) if byte not in (UNKNOWN, GOES_ON, ENDS) else ABSENT
        for byte in range(BYTES)
    ]
    for byte, symbol in enumerate(byte_symbols):
        if symbol == ABSENT:
            stands_for = [fallback[byte]] * falls_back + [model.unknown] * (byte == UNKNOWN and not falls_back)
            byte_symbols[byte] = symbols.virtual(*stands_for)
    for unit, text in units.texts.items():
        symbol = _unit_symbol(symbols, byte_symbols, unit, ids.get(text, ABSENT))
        goes_on = symbol
        if prefix and units.known[unit] & (1 << NOT_FIRST | 1 << (NOT_FIRST | LAST)):
            own = ids.get(prefix + text, ABSENT)
            goes_on = own if own != ABSENT else symbols.virtual()
            symbols.merges[1].append((byte_symbols[GOES_ON], symbol, goes_on))
        if suffix:
            for position, before, front in ((LAST, symbol, b""), (NOT_FIRST | LAST, goes_on, prefix)):
                if units.known[unit] >> position & 1 and (front or position == LAST):
                    symbols.merges[2].append((before, byte_symbols[ENDS], ids[front + text + suffix]))
    own_merges = np.stack([model.left, model.right, model.merged], 1)
    rows = np.concatenate([symbols.rows(), own_merges])
    every = MergePairs(
        *(frozen(column, np.int32) for column in (rows[:, 0], rows[:, 1], np.arange(len(rows)), rows[:, 2]))
    )
    count = tokens + len(symbols.stands_for)
    alive = reachable_merges(every, frozen(byte_symbols, np.int32), count)
    words = {text: _as_word(text, prefix, suffix, chain.spelled) for text in ids}
    unknown = KEEPS if falls_back else VANISHES if vanishes else FUSES if model.fuse_unknown else REPLACES
    marking = _marking(chain, units, unknown, prefix, suffix)
    whole = {word: ids[text] for text, word in words.items() if word}
    arrays = _arrays(tokens, symbols, byte_symbols, alive.table, alive.rows, whole, model.whole_words)
    return BitmapWords(arrays, marking)


def _all_known(ids: dict[bytes, int], units: _Units, spelled: bool) -> bool:
    """Whether all units of all tokens are known, so that words that are tokens are written unchanged."""
    if spelled:
        return all(known or unit[0] in IN_NO_TEXT for unit, known in units.known.items())
    return all(c.encode() in units.texts for text in ids for c in text.decode("utf-8", "ignore"))


def _unit_symbol(symbols: _Symbols, byte_symbols: list[int], unit: bytes, token: int) -> int:
    """The symbol that a unit's bytes merge to; adds the merges."""
    if len(unit) == 1:
        return byte_symbols[unit[0]]
    made, symbol = symbols.made, byte_symbols[unit[0]]
    for k, byte in enumerate(unit[1:], 2):
        pair = symbol, byte_symbols[byte]
        if pair not in made:
            both = symbols.ids(pair[0]) + symbols.ids(pair[1])
            last = k == len(unit)
            made[pair] = token if last and token != ABSENT else symbols.virtual(*both)
            symbols.merges[0].append((*pair, made[pair]))
        symbol = made[pair]
    return symbol


def _as_word(text: bytes, prefix: bytes, suffix: bytes, spelled: bool) -> bytes:
    """The word, with its marking bytes, that is exactly this token; b"" if there is none."""
    if not text.endswith(suffix) or (prefix and text.startswith(prefix)):
        return b""
    inner = text[: len(text) - len(suffix)]
    if spelled:
        found = [BYTE_OF_CHARACTER.get(ord(c)) for c in inner.decode("utf-8", "replace")]
        if None in found:
            return b""
        inner = bytes(byte for byte in found if byte is not None)
    elif prefix:
        inner = bytes([GOES_ON]).join(c.encode() for c in inner.decode("utf-8", "replace"))
    return inner + bytes([ENDS]) * bool(suffix) if inner else b""


def _marking(chain: StageChain, units: _Units, unknown: int, prefix: bytes, suffix: bytes) -> WordBitmap:
    every = (1 << len(PLACES)) - 1
    bytes_, points = np.zeros(BYTES, np.uint8), np.zeros(UNICODE_SIZE, np.uint8)
    for unit, known in units.known.items():
        if chain.spelled:
            bytes_[unit[0]] = known
        else:
            points[ord(unit.decode())] = known
    plain = not prefix and (unknown == KEEPS or (chain.spelled and (np.delete(bytes_, [*IN_NO_TEXT]) == every).all()))
    pages, blocks = two_stage_of(points)
    return WordBitmap(
        chain.splitter, chain.drops, chain.byte_at, chain.byte_rows, chain.byte_widths, chain.byte_classes,
        chain.behaves, chain.sizes, BYTES_ARE_UNITS * chain.spelled, frozen([0], np.uint16), int(plain), unknown,
        int(bool(prefix)), int(bool(suffix)), NO_LIMIT, frozen(bytes_, np.uint8), frozen(pages, np.uint16),
        frozen(blocks, np.uint8),
    )  # fmt: skip


def _of_words(pipeline: Pipeline, model: Words, chain: StageChain) -> BitmapWords | None:
    """WordLevel: a word is looked up as a whole. The bytes of any other word all merge to one unknown token. A word
    that is longer than all tokens is cut to one byte more than the longest."""
    if chain.spelled:
        return None
    tokens = pipeline.model_offsets.size - 1
    symbols = _Symbols(tokens)
    unknown = symbols.virtual(model.unknown)
    row = (frozen([unknown], np.int32), frozen([unknown], np.int32), frozen([0], np.int32))
    table = build_pair_table(*row, row[0])
    arrays = _arrays(tokens, symbols, [unknown] * BYTES, table, None, pipeline.vocabulary, True)
    marking = _marking(chain, _Units({}, {}), KEEPS, b"", b"")
    return BitmapWords(arrays, marking._replace(most=max(map(len, pipeline.vocabulary), default=0) + 1))


def _arrays(
    tokens: int,
    symbols: _Symbols,
    byte_symbols: list[int],
    table: PairTable,
    made: I32 | None,
    whole: dict[bytes, int],
    known: bool,
) -> BpeArrays:
    """made: see `reachable_merges`; known: whether a word that is a token becomes it without merging."""
    count = tokens + len(symbols.stands_for)
    own = frozen(byte_symbols, np.int32)
    slots, bits = empty_slots(0)
    data, offsets = packed(whole)
    ids = [token for each in symbols.stands_for for token in each]
    no_texts = build_bytes_table(frozen([], np.uint8), frozen([0], np.int64))
    arrays = BpeArrays(
        splitter=_no_splitter(),
        pairs=table,
        tokens=tokens,
        byte_symbols=own,
        characters=no_characters(),
        virtual_ids=frozen([*ids, ABSENT], np.int32),
        virtual_at=frozen(np.cumsum([0, *map(len, symbols.stands_for)]), np.int64),
        texts=no_texts._replace(offsets=frozen(np.zeros(count + 1), np.int64)),  # as many as symbols; none is read
        byte_ids=frozen(np.full(BYTES, ABSENT), np.int32),
        whole=build_bytes_table(frozen(data, np.uint8), frozen(offsets, np.int64)),
        whole_ids=frozen([*whole.values(), ABSENT], np.int32),
        byte_encode=1,
        escape=0,
        begin_lines=0,
        shortest=1,
        ignore_merges=int(known),
        newlines_whole=0,
        session=PLAIN,
        lowercase=0,
        family=MARKED,
        digits_alone=0,
        group=0,
        cased=0,
        contractions=WITHOUT,
        classes=unicode_classes(None),
        byte_pairs=pair_all_bytes(table, own),
        joints=all_joined(False),
        rules=no_cuts(),
        seeds=freeze(slots, bits),
        chain=no_chain(),
        dna=frozen(np.full(3, ABSENT), np.int32),
        case=no_case(),
    )
    return arrays._replace(seeds=build_single_token_words(arrays, made))


@cache
def _no_splitter() -> general.Splitter:
    """A splitter that cuts nothing: the words are split already."""
    chain = chain_of(())
    assert chain is not None
    return chain.splitter
