"""Short first texts, encoded by the Python reference while kernels are not compiled.

Compiling takes seconds; the reference takes a millisecond for a line of text. So a few texts do not wait for the
compiler where no machine code is shipped or cached: neither for the kernels that encode, nor for those that build their
tables. The first longer text or batch, or `WORTH_COMPILING` bytes of short ones, start the compiler. With
`JITTOK_COMPILE_FIRST=1` the first text does, whatever its size.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.encode import limits
from jittok.errors import JittokError
from jittok.kernels.inputs import Documents, to_bytes
from jittok.kernels.jit import CHECKED, has_compiler, without_compiling
from jittok.kernels.jit.compiling import gc_paused
from jittok.vocab import NO_TOKEN, Vocab
from jittok.vocab.types import ids_around, type_of

COMPILE_FIRST = os.environ.get("JITTOK_COMPILE_FIRST", "0") not in ("", "0")
"""Whether no text is left to the reference."""
WORTH_COMPILING = 1 << 16
"""Bytes of such texts in a process: about a second, a tenth of what compiling takes."""
COST_PER_TEXT = 64
"""Bytes that a text counts in addition to its own."""

_spent = 0


def is_cheap(size: int) -> bool:
    """Whether text that counts as `size` bytes is encoded without a kernel that would have to be compiled."""
    return (
        not (COMPILE_FIRST or CHECKED or size > limits.FALLBACK_TEXT + COST_PER_TEXT or _spent >= WORTH_COMPILING)
        and has_compiler()
    )


def charge(size: int) -> None:
    """Count `size` bytes as done without a kernel. Updates of other threads may be lost: the sum is a guess."""
    global _spent  # noqa: PLW0603
    _spent += size


def may_compile_later(vocab: Vocab | Pipeline) -> None:
    """Raise the MalformedVocab that compiling the tables of a vocabulary would raise, without compiling them."""
    from jittok.kernels.normalize.charsmap.xcda import read_charsmap

    for step in vocab.pipeline.normalize if isinstance(vocab, Vocab) else vocab.normalize:
        charsmap = getattr(step, "charsmap", None)
        if charsmap is not None:
            with without_compiling():
                read_charsmap(charsmap, vocab.source)


def encode_batch_in_python(
    vocab: Vocab | Pipeline, texts: list[bytes], add_special: bool, parse_special: bool, *, replace: bool
) -> list[NDArray[np.int32]] | None:
    """The ids of short texts. None if kernels are to encode them: there is too much text, or a text is invalid and the
    kernel's error is needed."""
    size = sum(map(len, texts)) + COST_PER_TEXT * len(texts)
    if not is_cheap(size):
        return None
    charge(size)
    try:
        if isinstance(vocab, Pipeline):
            from jittok.encode.fallback.reference_encoder import ReferenceEncoder

            plain = ReferenceEncoder(vocab)
            rule = plain.rule(add_special, parse_special, replace)
            with gc_paused():  # the first text creates a million objects for a large vocabulary
                return [plain.one(text, rule) for text in texts]
        from jittok.reference.tokenize import tokenize

        found = [tokenize(vocab, text, add_special=add_special, parse_special=parse_special) for text in texts]
    except JittokError:
        return None
    return [np.array(ids, np.int32) for ids in found]


def short_texts(texts: Any, replace: bool) -> list[bytes] | None:
    """A few texts as bytes: of a list, a tuple or `Documents`. None for anything else, and for much text."""
    if isinstance(texts, Documents):
        if not is_cheap(int((texts.stops - texts.starts).sum()) + COST_PER_TEXT * texts.starts.size):
            return None
        return [texts.between(*each) for each in zip(texts.starts.tolist(), texts.stops.tolist(), strict=True)]
    if type(texts) not in (list, tuple) or not all(type(text) in (str, bytes) for text in texts):
        return None
    if not is_cheap(sum(map(len, texts)) + COST_PER_TEXT * len(texts)):
        return None
    try:
        return [to_bytes(text, replace) for text in texts]
    except JittokError:
        return None


def around_rows(vocab: Vocab | Pipeline, add_special: bool) -> tuple[int, int]:
    """Number of ids before each text, and after it."""
    if isinstance(vocab, Pipeline):
        from jittok.encode.fallback.reference_encoder import ReferenceEncoder

        return ReferenceEncoder(vocab).rule(add_special, False, False).around
    before, after = ids_around(vocab) if add_special else (NO_TOKEN, NO_TOKEN)
    return int(before >= 0), int(after >= 0)


def newline_meanwhile(vocab: Vocab) -> int:
    """The id of a newline by the Python reference; NO_TOKEN if there is none."""
    from jittok.reference.tokenize import newline_id

    charge(COST_PER_TEXT)
    return newline_id(vocab)


def newline_of(vocab: Vocab, encoder: Any) -> int:
    """The same by the kernel, once it is compiled."""
    return type_of(vocab).newline_id(vocab, encoder)
