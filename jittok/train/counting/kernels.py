"""Words of documents, cut by the splitter of a pre type and counted: the kernels.

A text is split chunk by chunk, as in encoding (see `pretoken_cache.chunks`); the general splitter takes a text whole.

A kernel returns PAUSE after about STEP bytes, so that Python can handle signals; `state` holds where to continue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jittok.kernels.jit import I64, U8, OutI32, OutI64, helper, kernel
from jittok.kernels.memory import Window, bit_places, get_u64, window
from jittok.kernels.pretoken_cache.chunks import TOO_LONG, make_next_chunk
from jittok.kernels.pretokenize.splitters.blocks import CharacterClasses, ClassWindow, open_classes
from jittok.kernels.pretokenize.splitters.general import (
    Splitter,
    SplitterWindow,
    SplitWindow,
    SplitWork,
    open_split,
    open_splitter,
    split_text,
)
from jittok.kernels.pretokenize.splitters.gpt2 import MALFORMED, split_as_gpt2
from jittok.kernels.pretokenize.splitters.llama3 import split_as_llama3
from jittok.train.counting.table import BATCH, WordTable, count_batch, open_table

CHUNK = 1 << 14
STEP = 1 << 20
"""Bytes after which a kernel returns: some 5 ms."""
PAUSE, NEED_WORK = -10, -11
AT_TEXT, AT_BYTE, AT_PIECE, NEED = range(4)
"""Indices of the state: the text, where its chunk begins, the pre-tokens of the chunk that are counted, the bytes for
which capacity is needed."""


class CountFamily(NamedTuple):
    """How words are cut; see `models.bpe.arrays`."""

    classes: CharacterClasses
    splitter: Splitter
    digits_alone: int
    group: int
    cased: int
    contractions: int


class CountedTexts(NamedTuple):
    """Texts to be counted: text k is data[starts[k]:stops[k]], with PAD readable bytes after."""

    data: U8
    starts: I64
    stops: I64
    weights: I64  # [texts], or [1] for all: what a word counts
    documents: I64  # [texts] the document of each, from 1; empty: a word counts as often as it occurs


class CutWork(NamedTuple):
    """Scratch of one thread."""

    split: SplitWork
    positions: OutI32  # [bytes of a chunk + 64] where the pieces of a chunk begin
    state: OutI64  # [4]
    chunk: int  # bytes of a chunk; for the general splitter more than any text has


class CutWindow(NamedTuple):
    """What a splitter needs, as windows."""

    model: CountFamily
    classes: ClassWindow
    splitter: SplitterWindow
    split: SplitWindow
    positions: Window


def _make_count(split: Callable[..., Any]) -> Callable[..., Any]:
    next_chunk = make_next_chunk(split)

    @helper
    def count(family: CountFamily, texts: CountedTexts, work: CutWork, table: WordTable) -> int:
        text, words, state = window(texts.data), open_table(table), work.state
        own = CutWindow(
            family,
            open_classes(family.classes),
            open_splitter(family.splitter),
            open_split(work.split),
            window(work.positions),
        )
        done = 0
        while state[AT_TEXT] < texts.starts.size:
            k = state[AT_TEXT]
            begin, stop = max(state[AT_BYTE], texts.starts[k]), texts.stops[k]
            weight = np.uint64(texts.weights[k if texts.weights.size > 1 else 0])
            mark = np.uint64(texts.documents[k] if texts.documents.size > 0 else 0)
            while begin < stop:
                number, cut = next_chunk(own, text, begin, stop, work.chunk, own.positions, work.positions.size - 64)
                if number < 0:
                    state[AT_BYTE], state[NEED] = begin, cut - begin
                    return NEED_WORK if number == TOO_LONG else MALFORMED
                piece = state[AT_PIECE]
                while piece < number:
                    batch = min(BATCH, number - piece)
                    code = count_batch(words, text, begin, own.positions, piece, batch, weight, mark)
                    if code != 0:
                        state[AT_BYTE], state[AT_PIECE], state[NEED] = begin, piece, cut - begin
                        return code
                    piece += batch
                done += cut - begin
                begin = cut
                state[AT_BYTE], state[AT_PIECE] = begin, 0
                if done > STEP:
                    return PAUSE
            state[AT_TEXT], state[AT_BYTE] = k + 1, 0
        return 0

    return count


@helper
def _split_general(own: CutWindow, text: Window, begin: int, _end: int, stop: int, positions: Window) -> int:
    if split_text(own.splitter, text, begin, stop, own.split, False) < stop:
        return MALFORMED
    number = 0
    for word in range((stop - begin) // 64 + 1):
        number = bit_places(positions, number, word * 64, get_u64(own.split.cuts, word))
    return number - 1  # the last one is the end


_gpt2, _llama3, _general = (_make_count(split) for split in (split_as_gpt2, split_as_llama3, _split_general))


@kernel
def count_gpt2(family: CountFamily, texts: CountedTexts, work: CutWork, table: WordTable) -> int:
    """Counts words from where the state is. 0, PAUSE, MALFORMED (this text), NEED_WORK or a code of the table."""
    return _gpt2(family, texts, work, table)


@kernel
def count_llama3(family: CountFamily, texts: CountedTexts, work: CutWork, table: WordTable) -> int:
    """The same for the Llama 3 family."""
    return _llama3(family, texts, work, table)


@kernel
def count_general(family: CountFamily, texts: CountedTexts, work: CutWork, table: WordTable) -> int:
    """The same for every other pre type; a chunk is a whole text."""
    return _general(family, texts, work, table)
