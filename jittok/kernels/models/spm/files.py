"""BPE over characters of files other than GGUF, as the arrays of SPM: spaces become U+2581, with byte fallback.

There are two kinds of such files: a tokenizer.json with the normalizers Prepend and Replace, whose merges have the
ranks of their list; and a sentencepiece model, whose pieces merge by score like SPM's. SPM's kernel needs only the rank
of a pair, so both become tables of pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import BPE, BYTE, NORMAL, UNUSED, USER, Merges, Pieces
from jittok.common.pipeline.pipeline import packed
from jittok.common.pipeline.steps import MERGED_WITH_PREVIOUS, Cut, Pattern, Prepend, Replace, Squeeze
from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK, SPACE_MARK_BYTES
from jittok.kernels.jit import frozen
from jittok.kernels.models.spm.compile import other_characters_entered, spm_arrays
from jittok.kernels.models.spm.kernel import SpmArrays
from jittok.kernels.models.spm.pairs import all_pairs
from jittok.kernels.models.spm.unused_pieces import is_merged
from jittok.kernels.structures.bytes_table import ABSENT, BytesTable, build_bytes_table, find_rows

ESCAPE = Replace(Pattern(" ", literal=True), SPACE_MARK)
NO_WORDS = Cut(Pattern(" ", literal=True), MERGED_WITH_PREVIOUS)
"""A splitter without effect: it cuts at spaces, and the normalizer leaves none."""
NO_TEXT = b""
"""The text of a token that merging cannot make."""


def compile_pipeline(pipeline: Pipeline) -> SpmArrays | None:
    """The arrays of such a file, or None for any other."""
    if isinstance(pipeline.model, Merges):
        return _of_merges(pipeline, pipeline.model)
    if isinstance(pipeline.model, Pieces):
        return _of_pieces(pipeline, pipeline.model)
    return None


def _of_merges(pipeline: Pipeline, model: Merges, fused: bool = False) -> SpmArrays | None:
    """fused: the kernel's caller joins runs of unknown ids."""
    forms = {(Prepend(SPACE_MARK), ESCAPE): 1, (ESCAPE,): 0}
    if not all(isinstance(step, Prepend | Replace) for step in pipeline.normalize):
        return None
    prefix = forms.get(pipeline.normalize)  # type: ignore[call-overload]
    fused = fused and not model.byte_fallback and model.fuse_unknown and model.unknown >= 0
    plain = (model.byte_fallback or fused) and not (model.whole_words or model.prefix or model.suffix)
    if prefix is None or not plain or pipeline.split not in ((), (NO_WORDS,)):
        return None
    if any(token.normalized for token in pipeline.added):
        return None  # such a token is searched for in the text with U+2581
    texts = build_bytes_table(frozen(pipeline.model_bytes, np.uint8), frozen(pipeline.model_offsets, np.int64))
    bytes_ = find_rows(texts, [b"<0x%02X>" % byte for byte in range(256)])
    if fused:
        bytes_ = np.full(256, model.unknown, np.int32)
    joined = np.isin(bytes_, np.concatenate([model.left, model.right]))
    if ((bytes_ == ABSENT) & _may_be_asked_for(texts)).any() or joined.any():
        return None  # some character would be unknown, or byte tokens take part in merges
    if _starts_within_character(pipeline.model_bytes, pipeline.model_offsets):
        return None
    found = _single(texts)  # tokens that a text can become
    found[model.merged] = True
    if fused and found[model.unknown]:
        return None  # the text may contain the unknown token itself, which must not be joined with its neighbors
    ranks = np.arange(model.left.size)
    return spm_arrays(texts, found, bytes_, (model.left, model.right, ranks, model.merged), prefix)


def _of_pieces(pipeline: Pipeline, model: Pieces) -> SpmArrays | None:
    (step,) = pipeline.normalize
    assert isinstance(step, Squeeze)
    plain = not (step.charsmap.size or step.squeeze or step.suffix) and step.escape
    if model.kind != BPE or not plain or not model.byte_fallback or np.isin(model.types, UNUSED).any():
        return None
    own = [text or b"" for text, kind in zip(pipeline.model_tokens, model.types, strict=True) if kind == USER]
    if any(b" " in text or SPACE_MARK_BYTES in text for text in own):
        return None  # sentencepiece searches for them again in the text with U+2581
    return _pieces(pipeline, model, int(step.prefix))


def compile_normalized(pipeline: Pipeline) -> SpmArrays | None:
    """The arrays of BPE over characters for texts that are normalized already, or None for other files.

    Without byte fallback, each byte of an unknown character becomes the unknown id. The kernel's caller has to join
    runs of these (`unknown_runs`) and to split unused pieces (`unused_pieces`).
    """
    model = pipeline.model
    if isinstance(model, Merges):
        return _of_merges(pipeline, model, fused=True)
    if not isinstance(model, Pieces) or model.kind != BPE:
        return None
    return _pieces(pipeline, model, 0)


def _pieces(pipeline: Pipeline, model: Pieces, prefix: int) -> SpmArrays:
    tokens = pipeline.model_tokens
    own = zip(tokens, model.types.tolist(), strict=True)
    texts_of = [
        text if text and (kind == NORMAL or (kind == UNUSED and is_merged(text))) else NO_TEXT for text, kind in own
    ]
    data, offsets = packed(texts_of)
    capacity = np.append(data, np.uint8(SPACE_BYTE))  # one byte more, as the offset of an empty last token is read
    texts = other_characters_entered(frozen(capacity, np.uint8), frozen(offsets, np.int64))
    bytes_ = np.full(256, ABSENT if model.byte_fallback else model.unknown, np.int32)
    for token, (text, kind) in enumerate(zip(tokens, model.types.tolist(), strict=True)):
        if kind == BYTE and text is not None and model.byte_fallback:
            bytes_[int(text[3:5], 16)] = token
    count = offsets.size - 1
    reachable, left, right, merged = all_pairs(texts, count)
    columns = (left, right, model.ranks[merged], merged)
    return spm_arrays(texts, reachable != 0, bytes_, columns, prefix, count)


def _may_be_asked_for(texts: BytesTable) -> NDArray[np.bool_]:
    """bool[256]: the bytes for which byte fallback may be needed. Gemma's files have a tab, and no <0x09>."""
    asked = np.ones(256, np.bool_)
    asked[:128] = find_rows(texts, [bytes([byte]) for byte in range(128)]) == ABSENT
    asked[[SPACE_BYTE, 0xC0, 0xC1, *range(0xF5, 256)]] = False  # U+2581 for a space; no UTF-8 has the others
    return asked


def _single(texts: BytesTable) -> NDArray[np.bool_]:
    """bool[tokens]: whether a token is a single character."""
    follower = np.concatenate([[0], np.cumsum((texts.data & 0xC0) != 0x80)])
    return follower[texts.offsets[1:]] - follower[texts.offsets[:-1]] == 1


def _starts_within_character(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> bool:
    """Whether a text begins with a continuation byte. No text in JSON does, and the rules require that none does."""
    filled = offsets[:-1][np.diff(offsets) > 0]
    return bool((data[filled] & 0xC0 == 0x80).any())
