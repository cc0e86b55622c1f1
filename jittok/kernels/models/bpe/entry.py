"""The interface of BPE for other packages: see `jittok.kernels.models`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jittok.kernels.fragments import FRAGMENT
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64
from jittok.kernels.models.bpe.arrays import HYBRIDDNA, PLAIN, BpeArrays
from jittok.kernels.models.bpe.dna_and_whitespace import encode_session
from jittok.kernels.models.bpe.fast_path import encode_gpt2, encode_llama3, encode_marked
from jittok.kernels.models.bpe.general import encode_general
from jittok.kernels.models.bpe.lines import encode_lines
from jittok.kernels.models.bpe.scratch import BpeWork
from jittok.kernels.pretokenize.splitters import GENERAL, GPT2, LINES, LLAMA3, MARKED
from jittok.kernels.pretokenize.splitters.gpt2 import MALFORMED
from jittok.kernels.safe_cuts.cuts import BLANK, CLASSES, LETTER
from jittok.kernels.structures.pages import in_huge_pages

IDS_PER_BYTE = 1


_KERNELS = {GPT2: encode_gpt2, LLAMA3: encode_llama3, LINES: encode_lines, MARKED: encode_marked}


def can_split_at_spaces(arrays: BpeArrays, _size: int) -> bool:
    """Whether a text may be cut before a space between two ASCII letters. In the families GPT2 and LLAMA3 a pre-token
    begins there, whatever is before it. For LINES, the rules decide."""
    if arrays.session == HYBRIDDNA:
        return False  # the letters after <dna> are grouped by six
    if arrays.family == LINES:
        return bool(arrays.rules.cuts[CLASSES * LETTER + BLANK])
    return arrays.family not in (GENERAL, MARKED)


def optimized_layout(arrays: BpeArrays) -> BpeArrays:
    """The same with the tables for new words in huge pages: takes milliseconds, which only much text is worth."""
    return arrays._replace(
        pairs=arrays.pairs._replace(slots=in_huge_pages(arrays.pairs.slots)),
        seeds=arrays.seeds._replace(slots=in_huge_pages(arrays.seeds.slots)),
    )


def _run(kernel: Callable[..., int], *args: Any) -> int:
    return kernel(*args)


def encode_fragments(
    model: BpeArrays,
    work: BpeWork,
    data: U8,
    starts: I64,
    stops: I64,
    tokens: I32,
    first: int,
    last: int,
    count: int,
    ids: OutI32,
    ends: OutI64,
    report: OutI64,
    run: Callable[..., int] = _run,
) -> int:
    """Run the kernel of the vocabulary's session or family; see `jittok.kernels.fragments`. Texts of invalid UTF-8 go
    to the general kernel, which is compiled when the first one comes. `run(kernel, *arguments)` calls a kernel."""
    kernel = _KERNELS.get(model.family, encode_general) if model.session == PLAIN else encode_session
    while True:
        code = run(kernel, model, work, data, starts, stops, tokens, first, last, count, ids, ends, report)
        if code != MALFORMED:
            return code
        at = int(report[FRAGMENT])
        count = int(ends[at - 1]) if at > first else count
        code = run(encode_general, model, work, data, starts, stops, tokens, at, at + 1, count, ids, ends, report)
        if code < 0 or at + 1 == last:
            return code
        first, count = at + 1, code
