"""Texts and pairs to `Rows`: the arguments of a call are checked, then the texts are encoded, and cut to a length."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence, Sized
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.chunks.rows import Facts, Rows, Source
from jittok.chunks.windows import (
    LONGEST_FIRST,
    NO_STEP,
    ONLY_FIRST,
    ONLY_SECOND,
    ROW,
    TOO_SHORT,
    WHOLE,
    Cutting,
    cut_rows,
)
from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.pipeline import FIRST_TEXT, SECOND_TEXT
from jittok.common.rows.ragged import whole_number
from jittok.errors import InWords, UnsupportedVocab
from jittok.kernels.jit import frozen, interruptible_if_long
from jittok.vocab import NO_TOKEN, Vocab
from jittok.vocab.types import ids_around, type_of

if TYPE_CHECKING:
    from jittok.chunks.rows import Align
    from jittok.common.rows import TokenArray
    from jittok.common.rows.token_array import Describe
    from jittok.kernels.inputs import Texts

Truncation = Literal["longest_first", "only_first", "only_second"]
AddSpecial = Literal["window", "document"]
STRATEGIES = {"longest_first": LONGEST_FIRST, "only_first": ONLY_FIRST, "only_second": ONLY_SECOND}
AROUND = ("window", "document")
NO_IDS: NDArray[np.int32] = frozen([], np.int32)
NO_OFFSETS: NDArray[np.int64] = frozen([], np.int64)
SPARE_ROWS = 64


class Calls(NamedTuple):
    """What encodes the texts of one call."""

    vocab: Vocab | Pipeline
    encode: Callable[[Texts], TokenArray]  # without special tokens
    align: Align
    describe: Describe
    threads: int | None


class RowOptions(NamedTuple):
    """How texts become rows, as for `encode_batch`."""

    add_special: bool | str
    max_length: int | None
    overlap: int
    truncation: bool | str | None
    side: str
    windows: bool


def encode_rows(texts: Texts, pairs: Texts | None, asked: RowOptions, calls: Calls) -> Rows:
    """The rows of `Tokenizer.encode_batch`, which has the arguments. ValueError, before a text is encoded, for options
    that contradict each other; afterwards for a text that cannot be cut so."""
    pipeline = calls.vocab if isinstance(calls.vocab, Pipeline) else calls.vocab.pipeline
    _check_special(calls.vocab, pairs is not None, asked.add_special)
    template = pipeline.template(pairs is not None, bool(asked.add_special))
    how = _checked(asked, template, pairs is not None, len(pipeline.template(False)) - 1)
    _check_pairs(texts, pairs)
    kept = [each for each in (texts, pairs) if each is not None]
    batches = [calls.encode(each) for each in kept]
    if len(batches[0]) != len(batches[-1]):
        raise _uneven(len(batches[0]), len(batches[-1]))
    table = _cut(how, batches, asked)
    pad_id = None if calls.vocab.pad_id == NO_TOKEN else int(calls.vocab.pad_id)
    facts = Facts(template, pad_id, None if how.strategy == WHOLE else asked.max_length, calls.threads)
    both = batches[0].ids, NO_IDS if pairs is None else batches[1].ids
    if any(hasattr(each, "__next__") for each in kept):  # an iterator, which has been read
        return Rows.of_table(facts, both, table, (), calls.describe)
    sources = (Source(each, batch.offsets, calls.align) for each, batch in zip(kept, batches, strict=True))
    return Rows.of_table(facts, both, table, tuple(sources), calls.describe)


def _check_special(vocab: Vocab | Pipeline, paired: bool, add_special: bool | str) -> None:
    """ValueError for an option that is none; EncodingFailed, UnsupportedVocab for special tokens that a GGUF lacks."""
    if isinstance(add_special, str) and add_special not in AROUND:
        raise ValueError(f"add_special: found {add_special!r}, expected True, False, 'window' or 'document'")
    if isinstance(vocab, Pipeline) or not add_special:
        return
    ids_around(vocab)
    if paired and type_of(vocab).between(vocab) is None:
        expected = "add_special=False, or the model's tokenizer.json, which has a template for pairs"
        raise UnsupportedVocab(vocab.source, "pairs", InWords("a GGUF vocabulary without a separator"), expected)


def _checked(asked: RowOptions, template: tuple[tuple[int, int], ...], paired: bool, around_one: int) -> Cutting:
    """The options for the kernel. ValueError, TypeError for those that cannot be. around_one: how many ids there are
    around a text that is no pair, with `add_special`."""
    strategy, document = _strategy(asked.truncation), asked.add_special == "document"
    overlap, around = whole_number(asked.overlap, "overlap"), len(template) - 1 - paired
    length = None if asked.max_length is None else whole_number(asked.max_length, "max_length")
    if asked.side not in ("right", "left"):
        raise ValueError(f"side: found {asked.side!r}, expected 'right' or 'left'")
    if overlap < 0:
        raise ValueError(f"overlap: found {overlap}, expected 0 or more")
    if document and paired:
        raise ValueError("add_special: found 'document' with pairs, expected 'window': each pair is a row")
    if length is None or strategy == WHOLE:
        if strategy != WHOLE and (asked.truncation is not None or asked.windows or overlap):
            warnings.warn("max_length is None, so no text is cut: pass max_length=", UserWarning, stacklevel=4)
        strategy = WHOLE
    elif length < (1 if document else around):
        least = "1 or more" if document else f"{around} or more, the special tokens of a row"
        raise ValueError(f"max_length: found {length}, expected {least}")
    else:
        _check_overlap(overlap, length, 0 if document else around_one, bool(asked.add_special))
        if overlap and not asked.windows:
            warnings.warn("overlap is of windows: pass windows=True", UserWarning, stacklevel=4)
    room = (length or 0) - (0 if document else around)
    before = next(k for k, (part, _) in enumerate(template) if part == FIRST_TEXT)
    return Cutting(
        strategy, room, overlap, left=int(asked.side == "left"), every=int(bool(asked.windows)), paired=int(paired),
        swapped=int(any(part == SECOND_TEXT for part, _ in template[:before])), parts=len(template), before=before,
        document=int(document),
    )  # fmt: skip


def _check_overlap(overlap: int, length: int, around_one: int, add_special: bool) -> None:
    """ValueError where windows would not move on; and, as in tokenizers, where they would not with special tokens."""
    most = length - around_one
    left = f", {length} without the special tokens around a text" if around_one else ""
    if overlap and (overlap >= length or (add_special and overlap >= most)):
        least = f"{most}{left}" if add_special else str(length)
        raise ValueError(f"overlap: found {overlap}, expected less than {least}: a window would not move on")
    if 0 <= most < overlap:
        raise ValueError(f"overlap: found {overlap}, expected at most {most}{left}, as in tokenizers")


def _strategy(truncation: bool | str | None) -> int:
    if truncation is None or truncation is True:
        return LONGEST_FIRST
    if truncation is False:
        return WHOLE
    if truncation not in STRATEGIES:
        names = ", ".join(map(repr, STRATEGIES))
        raise ValueError(f"truncation: found {truncation!r}, expected True, False, {names}")
    return STRATEGIES[truncation]


def _check_pairs(texts: Any, pairs: Any) -> None:
    """TypeError for one text in place of many, ValueError for containers whose sizes are known to differ."""
    if isinstance(pairs, str | bytes):
        raise TypeError(f"pairs: found one {type(pairs).__name__}, expected as many texts as there are: [text]")
    sized = isinstance(texts, Sized) and isinstance(pairs, Sized) and not isinstance(texts, str | bytes)
    if sized and len(texts) != len(pairs):
        raise _uneven(len(texts), len(pairs))


def _uneven(texts: int, pairs: int) -> ValueError:
    return ValueError(f"pairs: found {pairs} texts, expected {texts}, one for each of the texts")


def _cut(how: Cutting, batches: Sequence[TokenArray], asked: RowOptions) -> NDArray[np.int64]:
    """int64[rows, ROW]: the table of all rows. ValueError for a text that cannot be cut so."""
    first, second = batches[0].offsets, batches[1].offsets if how.paired else NO_OFFSETS
    ids, texts = sum(batch.ids.size for batch in batches), first.size - 1
    step = max(1, how.room - how.overlap)
    capacity = texts + (ids // step + SPARE_ROWS if how.every and how.strategy != WHOLE else 0)
    report = np.zeros(3, np.int64)
    run = interruptible_if_long(16 * texts)
    while True:
        table = np.empty(ROW * capacity, np.int64)
        rows = run(cut_rows, how, first, second, table, report)
        if rows in (TOO_SHORT, NO_STEP):
            raise _uncut(rows, how, asked, *report.tolist())
        if rows <= capacity:
            return table[: ROW * rows].reshape(-1, ROW)
        capacity = rows


def _uncut(code: int, how: Cutting, asked: RowOptions, text: int, count: int, excess: int) -> ValueError:
    if code == NO_STEP:
        which = f"less than {count}, what max_length={asked.max_length} leaves for one of its texts"
        return ValueError(f"text {text}: found overlap={asked.overlap}, expected {which}: a window would not move on")
    if how.strategy == ONLY_SECOND and not how.paired:
        expected = "truncation='longest_first' or 'only_first' where there are no pairs"
        return ValueError(f"text {text}: found truncation='only_second' and {excess} ids too many, expected {expected}")
    which = "pairs" if how.strategy == ONLY_SECOND else "texts"
    return ValueError(
        f"text {text}: found {count} ids in {which}[{text}] and {excess} too many for max_length={asked.max_length}, "
        f"expected more of them than are too many, or truncation='longest_first'"
    )
